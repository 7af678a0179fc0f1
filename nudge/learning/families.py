"""The families of failures of the surroundings, as data: what a failing command prints, and what cures it.

A family is a kind of thing that is missing or refuses. Its signs are sentences of any tool: what is missing (a noun)
and how that is said (a verb). A sign names a tool only where the tool has a sentence of its own. `failures` reads them.
"""

from __future__ import annotations

from nudge.learning.family import Family
from nudge.learning.jobs import AUTH, FETCH, FILES, FORMAT, GENERATE, INSTALL, MIGRATE, SELECT, START
from nudge.learning.sign_words import (
    CANNOT_FIND,
    CODE_NOUN,
    FILE_PATH,
    IS_ABSENT,
    MANIFEST,
    NAME,
    PLACE_NOUN,
    SECRET_NOUN,
    SERVER_NOUN,
)

# The first that matches anywhere in the output decides, so the narrow ones come first.
FAMILIES: tuple[Family, ...] = (
    Family(
        "hook",
        (
            r"(?i:hook (?:id|declined|failed|exited)|pre-commit .*failed|husky - .*hook|lint-staged.*failed)",
            r"(?i:(?:pre|post)-(?:commit|push|receive)[^\n]{0,40}(?:failed|declined|rejected|exited))",
        ),
        steps=(FORMAT, GENERATE, INSTALL),
        takes_runner=False,
        is_certain=True,
    ),
    Family(
        "option",
        (
            r"unrecognized arguments?: (?P<n>-\S+)",
            r"[Nn]o such option:? '?(?P<n>-[\w-]+)",
            r"(?i:(?:unknown|unrecognized|invalid|illegal|undefined) (?:[\w-]+ ){0,2}(?:option|flag|argument|"
            r"switch)):?(?: --)? "
            r"?['`\"]?(?P<n>-{0,2}[\w-]+)",
            r"(?i:unexpected argument|unsupported (?:option|flag)):? '?(?P<n>-[\w-]+)",
            r"flag provided but not defined: (?P<n>-[\w-]+)",
        ),
        tells_apart=True,
        takes_runner=False,
        is_proved_by_run=True,
        is_certain=True,
        is_breaking=True,
    ),
    Family(
        "port",
        (
            r"(?P<n>:\d+): bind: address already in use",
            r"(?i:address (?:is )?already in use|EADDRINUSE)[^\n]*?(?P<n>:\d+)?$",
            r"(?i:port:? (?:is )?(?P<n>\d+)? ?(?:is )?(?:already )?(?:(?:being )?(?:in use|used)|allocated|taken|"
            r"occupied|busy))",
            r"(?i:(?:port|address)\b[^\n]{0,40} (?:already )?in use|only one usage of each socket address)",
        ),
        tells_apart=True,
        takes_runner=False,
        outlasts_edit=True,
        is_certain=True,
    ),
    Family(
        "script",
        (
            r"[Mm]issing script: \"?(?P<n>[\w:./-]+)",
            r"Command \"(?P<n>[\w:./-]+)\" not found",
            r"No rule to make target [`'](?P<n>[\w:./-]+)'",
            r"does not contain recipe `(?P<n>[\w:./-]+)`",
            r"(?i:(?:task|target|recipe|script|goal|rule|alias) ['\"`‘]?(?P<n>[\w:./-]+)['\"`’]? "
            r"?" + IS_ABSENT + r")",
            r"Don't know how to (?:build|make) (?:task )?['\"`]?(?P<n>[\w:./-]+)",
            r"no such (?:sub)?command: `(?P<n>[\w-]+)`",
            r"None of the selected packages has a \"(?P<n>[\w:./-]+)\" script",
            r"(?i:(?:no such|unknown|no|undefined) (?:task|target|recipe|script):? ['\"`‘]?(?P<n>[\w:./-]+))",
            r"(?i:script not found:? \"(?P<n>[\w:./-]+)\")",
            r"(?i:(?:invalid|unsupported|undefined|unrecognized|no such) (?:sub)?(?:command|goal|action|verb|"
            r"operation):? ['\"`‘]?"
            r"(?P<n>[\w:./-]+))",
        ),
        steps=(INSTALL, GENERATE, SELECT),
        tells_apart=True,
        takes_any_step=True,
        is_proved_by_run=True,
        is_certain=True,
        is_breaking=True,
    ),
    Family(
        "directory",
        (
            r"(?i:"
            + CANNOT_FIND
            + r" [^\n]{0,40}\b(?-i:"
            + MANIFEST
            + r")\b[^\n]{0,60}(?:director|parent|folder|root|here))",
            r"(?i:" + CANNOT_FIND + r" (?:a |an |any |the )?['\"`]?(?-i:" + MANIFEST + r")\b)",
            r"\b" + MANIFEST + r"['\"`]? (?i:(?:file )?(?:is |was )?(?:not found|missing|does not exist|required))",
            r"(?i:no [^\n]{0,20}(?-i:" + MANIFEST + r")['\"`]? (?:file )?(?:was |were )?(?:found|here|in ))",
            r"(?i:no (?:\w+ ){0,3}\w*(?:file|config(?:uration)?|manifest|inventory)\b(?: was| were)? (?:found|"
            r"provided|in (?:this|the) ))",
            r"(?i:no configuration files?\b|MSB1003|no POM in this directory|could not find "
            r".{0,30}config(?:uration)?\b)",
            r"(?i:does not contain a (?:Gradle|valid)|no (?:targets specified and no )?makefile found)",
            r"(?i:(?:is not|not (?:currently )?(?:in|inside|within|part of|running in)) (?:a|an|any|the)? ?(?:\S+ "
            r"){0,3}" + PLACE_NOUN + r"\b(?: root)?)",
            r"(?i:(?:run|must be run|execute[d]?|launched?) (?:this )?(?:command )?(?:from|in|inside|within) "
            r"(?:the|a|an) (?:\S+ ){0,3}" + PLACE_NOUN + r")",
            r"(?i:ENOENT[^\n]*package\.json|no \w+ project|(?:environment|project|workspace)[^\n]{0,30} is "
            r"required to run)",
        ),
        steps=(SELECT, FETCH, GENERATE, INSTALL),
        is_of_program=True,
        outlasts_edit=True,
        is_proved_by_run=True,
        is_certain=True,
        is_breaking=True,
    ),
    Family(
        "tool",
        (
            r"^(?:\S+: )?(?:(?:line )?\d+: )?(?P<n>[^\s:'\"`]+): (?:command )?not found\s*$",
            r"(?i:command not found: (?P<n>\S+))",
            r"(?i:unknown command:? ['\"`]?(?P<n>[\w.-]+))",
            r"exec: \"(?P<n>[^\"]+)\": executable file not found",
            r"Failed to spawn: `(?P<n>[^`\s]+)`",
            r"(?P<n>[\w.-]+)['\"`]?:? (?:executable file )?(?:is )?not (?:found )?(?:in|on) (?:your |the )?\$?PATH",
            r"'(?P<n>[\w.-]+)' is not recognized as an internal",
            r"(?i:(?:'|\"|`)?(?P<n>[\w.-]+)(?:'|\"|`)? is not a (?:\w+ )?(?:command|subcommand))",
            r"(?i:(?P<n>[\w.-]+) (?:is not installed|is required but (?:it's )?not (?:installed|found)))",
            r"spawn (?P<n>[\w.-]+) ENOENT",
            r"(?i:(?:could(?: not|n't)|cannot|can't|unable to|failed to) (?:find|run|execute|locate) (?:the )?"
            r"(?:program|executable|binary|command|compiler|interpreter|tool)[: ]+['\"`‘]?(?P<n>[\w.-]+))",
            r"(?i:(?:program|executable|binary|compiler|interpreter) ['\"`‘]?(?P<n>[\w.-]+)['\"`’]? ?"
            + IS_ABSENT
            + r")",
            r"(?i:(?:could not|cannot|can't|unable to|failed to) (?:find|locate|run) (?:the |an? )?['\"`]?"
            r"(?P<n>[\w.-]+)['\"`]? (?:binary|executable|command|program|compiler|interpreter|toolchain|cli)\b)",
            r"env: ['‘]?(?P<n>[\w.-]+)['’]?: No such file",
            r"(?i:Program ['\"]?(?P<n>[\w.-]+)['\"]? (?:not found|is missing))",
        ),
        steps=(INSTALL, SELECT, GENERATE),
        tells_apart=True,
        is_of_program=True,
        takes_any_step=True,
        outlasts_edit=True,
        is_proved_by_run=True,
        is_certain=True,
        is_breaking=True,
    ),
    Family(
        "generated",
        (
            r"did not initialize yet|no matching files found|magic bytes|not a parquet file|git-lfs",
            r"(?P<n>[\w/.-]+\.(?:hpp|hh|h)): No such file|'(?P<m>[\w/.-]+\.hp?p?)' file not found",
            r"(?i:(?:has|have|was|were|is|are) not (?:yet )?(?:been )?(?:generated|built|compiled|initiali[sz]ed|"
            r"bootstrapped"
            r"|configured|prepared|provisioned|synced|downloaded|rendered)\b)",
            r"(?i:needs? to be (?:generated|built|compiled|initiali[sz]ed|configured|synced)|not (?:yet )?generated"
            r"|(?:un|not )initiali[sz]ed (?:workspace|project|repository|stack|backend|store))",
            r"(?i:Error when reading '[^']*\.g\.dart'|undefined: \w+pb\b|is not a directory$|client (?:is "
            r")?not generated)",
        ),
        steps=(GENERATE, FETCH, INSTALL),
        is_of_program=True,
        takes_any_step=True,
        is_certain=True,
    ),
    Family(
        "module",
        (
            r"No module named '?(?P<n>[\w.]+)",
            r"PackageNotFoundError: [^\n]*?(?P<n>[\w.-]+)$",
            r"[Cc]annot find (?:module|package) ['\"](?P<n>[^'\"]+)",
            r"no required module provides package (?P<n>[^\s;:]+)",
            r"package (?P<n>[\w./-]+) (?:is not in (?:std|GOROOT)|does not exist)",
            r"cannot load such file -- (?P<n>\S+)",
            r"there is no package called .(?P<n>[\w.]+)",
            r"Can't locate (?P<n>[\w/]+\.pm)",
            r"(?i:(?:no such|"
            + CANNOT_FIND
            + r") (?:a |the |any )?"
            + CODE_NOUN
            + r" (?:named |called |for )?['\"`‘](?P<n>[\w./@:+-]+))",
            r"(?i:" + CODE_NOUN + r":? ['\"`‘](?P<n>[\w./@:+-]+)['\"`’]? (?:[^\n]{0,30} )?" + IS_ABSENT + r")",
            r"(?i:"
            + CODE_NOUN
            + r"(?: lookup for)? (?P<n>[\w./@:+-]+) (?:[^\n]{0,40} )?(?:not found|failed: [^\n]*not found|is "
            r"missing|not installed))",
            r"(?i:(?:dependency|dependencies|package|packages|module|modules) [^\n]{0,40}(?:(?:not|n't) (?:been "
            r")?(?:installed|found|resolved|satisfied|met"
            r"|fetched)|(?:is|are) missing|out of date|not up[ -]to[ -]date))",
            r"(?i:(?:missing|unmet|unresolved|unsatisfied) (?:peer |required |\d+ |the )*(?:dependenc(?:y|ies)|"
            r"packages?|modules?))",
            r"ClassNotFoundException: (?P<n>[\w.$]+)",
            r"(?i:Failed to resolve (?:import|entry for package) \"(?P<n>[^\"]+))",
            r"(?i:Could not find (?P<n>[\w.-]+) in (?:any of the|locally installed)|Unchecked dependencies|is "
            r"not yet checked out|collection not found)",
            r"(?i:the dependency (?P<n>[\w.-]+)? ?is not available|node_modules[^\n]*(?:missing|not found"
            r"|doesn't exist))",
            r"(?i:Class ['\"](?P<n>[\w\\]+)['\"] not found|vendor/autoload\.php)",
        ),
        steps=(INSTALL, GENERATE, SELECT, FETCH),
        tells_apart=True,
        is_of_program=True,
        takes_any_step=True,
        is_proved_by_run=True,
        is_breaking=True,
    ),
    Family(
        "schema",
        (
            r"(?i:(?:relation|table|column|type|database|schema|index|collection|topic|keyspace|bucket) "
            r"[\"'`]?(?P<n>[\w.-]+)[\"'`]? (?:does(?: not|n't) exist|not found)"
            r"|no such (?:table|column|index|keyspace))",
            r"(?i:pending migrations?|migrations? (?:are |is )?pending|UndefinedTable|(?:schema|database) is "
            r"(?:not up "
            r"to date|out of date|behind)"
            r"|Unknown (?:database|table|keyspace)|has(?: not|n't) been migrated|ActiveRecord::(?:PendingMigration|"
            r"NoDatabase)"
            r"|unapplied migration|out[- ]of[- ]date (?:schema|migration))",
        ),
        steps=(MIGRATE, START),
        takes_any_step=True,
        outlasts_edit=True,
        is_certain=True,
    ),
    Family(
        "connection",
        (
            r"(?i:ECONNREFUSED) ?(?P<n>[\w.:-]+)?",
            r"(?i:could not find a (?:valid|running|usable) (?:\w+ )?(?:environment|server|daemon|instance|engine))",
            r"(?i:dial (?:tcp|unix) (?P<n>[\w./:-]+?): connect)",
            r"(?i:connection to (?:server )?(?:at |on socket )?\"(?P<n>[^\"]+)\"[^\n]*(?:refused|failed|No such "
            r"file))",
            r"(?i:cannot connect to (?:the )?(?P<n>\w+)|is (?:the |a |your )?(?:\w+ )?" + SERVER_NOUN + r" running)",
            r"(?i:connection to (?:the )?(?:\w+ )?(?P<n>[\w.-]+:\d+) (?:was |is )?refused)",
            r"(?i:(?:connection|connect)(?: to [^\n]{0,60})? ?(?:was |is |could not be |has )?(?:been )?(?:refused|"
            r"failed|error|established|lost)|no route "
            r"to host|not reachable|unreachable)",
            r"(?i:could(?: not|n't) (?:connect|reach|contact)|unable to (?:connect|reach|contact)|(?:can't|cannot) "
            r"(?:connect|reach|contact)"
            r"|failed to (?:connect|reach|contact)|no connection could be made|not running\b)",
            r"(?i:getaddrinfo[^\n]*?(?P<n>[\w-]+)?$|name or service not known|could not translate host name "
            r"\"(?P<m>[^\"]+))",
            r"(?i:NOAUTH|UNAVAILABLE: |no (?:\w+[ /])?"
            + SERVER_NOUN
            + r"s?(?:[/ ]\w+)? (?:is |are |was |were )?(?:running|available|connected|found|alive|attached|online))",
            r"(?i:\b"
            + SERVER_NOUN
            + r" (?:\S+ )?(?:is |may |might |are |has )?(?:not |n't )(?:be |been )?(?:running|available|connected|"
            r"started|responding|reachable|up|ready|listening|online|alive)\b)",
            r"(?i:"
            + SERVER_NOUN
            + r" (?:is |appears to be |seems to be )?(?:down|offline|stopped|unavailable|dead)\b)",
            r"(?i:no (?:live|active|available) (?:upstreams?|workers?|connections?|brokers?|nodes?))",
        ),
        steps=(START,),
        tells_apart=True,
        is_of_program=True,
        takes_any_step=True,
        outlasts_edit=True,
        is_proved_by_run=True,
        is_certain=True,
    ),
    Family(
        "auth",
        (
            r"(?i:permission to \S+ denied|permission denied \(publickey|could not read (?:username|password)"
            r"|access (?:is )?denied)",
            r"(?i:unable to locate credentials|(?:invalid|missing|expired|no|bad|could not (?:find|load)|"
            r"requires?)(?: \w+){0,2} " + SECRET_NOUN + r"\b)",
            r"(?i:\b"
            + SECRET_NOUN
            + r" (?:is |are |was |has |have )?(?:\w+ )?(?:failed|required|expired|missing|invalid|not (?:found|set|"
            r"configured|valid|available)))",
            r"(?i:not (?:yet )?(?:logged|signed)[ -]?in|(?:please|must|need to|have to|run)\b.{0,40}\b(?:log ?in|"
            r"sign[ -]?in|authenticate|login|auth)\b|not authenticated)",
            r"404 Not Found - GET",
            r"(?i:not in this registry|unauthori[sz]ed|unauthenticated|forbidden|(?:code|status|http|error|"
            r"returned|got)\W[^\n]{0,20}\b40[13]\b|\b40[13] (?:client|error)|pull "
            r"access denied"
            r"|denied: |\": denied|ExpiredToken)",
            r"(?i:active account|AADSTS|login required|authentication failed)",
        ),
        steps=(AUTH, SELECT),
        is_of_program=True,
        takes_runner=False,
        outlasts_edit=True,
    ),
    Family(
        "variable",
        (
            r"KeyError: '(?P<n>[A-Z][A-Z0-9_]+)'",
            r"(?i:environment variable)s?:? ['\"`$]?(?P<n>[A-Z][A-Z0-9_]{2,})",
            r"['\"`$]?\{?(?P<n>[A-Z][A-Z0-9_]{2,})\}?['\"`]? (?i:(?:environment variable |env var )?(?:(?:is|was|"
            r"are|must|has|have|needs|should|to|be|not|been|both|to) )*"
            r"(?:not |un)?(?:set|defined|missing|required|provided|specified|configured|exported|empty|point(?:s|"
            r"ed)?|found))",
            r"(?i:missing|requires?|please set|please export|set|expected|undefined|define|specify|export)(?i:(?: "
            r"required)?(?: the)?(?: "
            r"env(?:ironment)?)?(?: var(?:iable)?s?)?):? ['\"`$]?(?P<n>" + NAME + r")",
            r"(?i:no value for required variable|required variable|settings are not configured)",
            r"(?P<n>" + NAME + r"): (?:unbound variable|parameter null or not set|not set|undefined)",
        ),
        steps=(SELECT, FILES, AUTH),
        tells_apart=True,
        is_of_program=True,
        takes_any_step=True,
        is_proved_by_run=True,
        is_certain=True,
    ),
    Family(
        "version",
        (
            r"EBADENGINE|Unsupported engine|(?i:class file version|unsupported class|UnsupportedClassVersion)"
            r"|\"packageManager\"",
            r"ERESOLVE|peer dep|inconsistent vendoring|ERR_OSSL|may not be used on the stable",
            r"(?i:requires? [\w .@\"'-]{1,40}?(?:>=|<=|>|=|\^|~|version )? ?v?\d+(?:\.\d+|\.x|\b)[^\n]*)",
            r"(?i:requires? (?:a )?(?:different|newer|older|higher|later|at least)\b|supports only|minimum "
            r"(?:required )?version|(?:too old|too new|out of date|outdated)\b)",
            r"(?i:(?:is|are) (?:not compatible|incompatible) with|unsupported (?:\w+ ){0,3}version|version "
            r"(?:mismatch|conflict|skew)|already activated|not supported (?:by|in|on|with) (?:this|the|your|\w+ v?\d)"
            r"|in this version of)",
            r"(?i:(?:the )?current version is \S+|you are (?:currently )?using|needs? (?:node|python|java|go"
            r"|ruby|rust|xcode)\b|wrong version|(?:not|un)supported (?:\w+ )?(?:version|release))",
            r"(?i:no version (?:is |was )?(?:set|selected|chosen)|(?:release|source|target) version \d+ (?:is )?not "
            r"supported)",
            r"(?i:Your Ruby version is|The engine \"\w+\" is incompatible|no toolchain|toolchain '.*' is not "
            r"installed)",
            r"(?i:version [^\n]{1,40} (?:is |was )?(?:not installed|required|expected|too)|v?\d+\.\d+\S* (?:is |"
            r"was )?(?:not|un) ?supported)",
        ),
        steps=(SELECT, INSTALL),
        is_of_program=True,
        takes_any_step=True,
        outlasts_edit=True,
        is_proved_by_run=True,
        is_breaking=True,
    ),
    Family(
        "tls",
        (r"(?i:certificate|x509:|SSL(?:Error|_ERROR)|SSL certificate problem|self[- ]signed)",),
        steps=(INSTALL, SELECT),
        is_of_program=True,
        outlasts_edit=True,
    ),
    Family(
        "platform",
        (
            r"(?i:exec format error|(?:not|no) a tty|input device is not a TTY|(?:cannot open|could not connect to|"
            r"unable to open) (?:X )?display|no display"
            r"|unable to open X)",
            r"^sed: \d+: |illegal option|(?i:wrong ELF class|unsupported (?:platform|architecture)|no "
            r"matching manifest|libGL|headless)",
            r"(?i:must be run (?:in|from|on|inside)|only (?:works|supported) (?:on|in))",
        ),
        steps=(SELECT, INSTALL, START),
        is_of_program=True,
        outlasts_edit=True,
    ),
    Family(
        "resources",
        (
            r"(?i:no space left|ENOSPC|heap (?:out of memory|limit|exhausted)|out of memory|cannot allocate|too many "
            r"open files|EMFILE|OOM)",
            r"(?i:OutOfMemoryError|memory exhausted|Killed\b|SIGKILL|system limit for number of file watchers"
            r"|exceeds? (?:the )?(?:memory|stack))",
        ),
        takes_runner=False,
    ),
    Family(
        "permission",
        (
            r"Permission denied|EACCES|EPERM|Operation not permitted|externally-managed|Read-only file system"
            r"|(?i:must be root|are you root|not (?:allowed|permitted) for (?:user|this)|permission denied|"
            r"insufficient (?:permissions?|privileges?)"
            r"|not writ(?:e)?able|read-only)",
        ),
        steps=(FILES, SELECT),
        is_of_program=True,
        outlasts_edit=True,
        is_breaking=True,
    ),
    Family(
        "timeout",
        (
            r"(?i:timed out (?:after|waiting)|exceeded timeout of|deadlock detected|timeout (?:of \S+ )?exceeded"
            r"|deadline exceeded|exceeded (?:the |its )?(?:time limit|deadline|timeout))",
        ),
    ),
    Family(
        "runner",
        (
            r"(?i:Cannot use import statement outside a module|encountered an unexpected token|require\(\) of "
            r"ES Module|ERR_REQUIRE_ESM)",
            r"(?i:Unknown file extension|ERR_UNKNOWN_FILE_EXTENSION|Vitest failed to access its internal "
            r"state|do not import `@jest/globals`)",
            r"(?i:Requires \w+ access to|run again with the --allow|no longer supported|is deprecated, use)",
        ),
        is_certain=True,
    ),
    Family(
        "locale",
        (
            r"(?i:cannot (?:de|en)code (?:byte|character)|invalid byte sequence in|codec can't (?:de|en)code"
            r"|unmappable character|(?:unsupported|cannot change|setting) locale)",
        ),
        takes_runner=False,
        outlasts_edit=True,
        is_certain=True,
    ),
    Family(
        "setting",
        (
            r"(?i:(?:please|must|you need to|have to) (?:specify|provide|choose|select|pass|supply)\b)",
            r"(?i:(?:must|needs? to|has to|should) be (?:specified|provided|given|selected|chosen)\b)",
            r"(?i:(?:no|missing|without an?) (?:default |active |current |selected )?(?:project|region|profile|context|"
            r"environment|account|subscription|workspace|zone|namespace|target|preset|configuration|tenant)\b[^\n]{0,40}"
            r"(?:is |was |has been )?(?:set|specified|selected|configured|given|provided|chosen|found))",
            r"(?i:(?:no such|unknown|undefined|could not find) (?:preset|profile|environment|configuration|workspace|"
            r"project|context|toolchain file|feature|build type)s?\b)",
            r"(?i:(?:preset|profile|environment|configuration|context|workspace)s? ['\"`]?[\w.-]+['\"`]? (?:could )?"
            + IS_ABSENT
            + r")",
            r"(?i:no (?:projects?|workspaces?|environments?|profiles?|stacks?|presets?) (?:were |was )?"
            r"(?:found|matched|defined))",
        ),
        steps=(SELECT, GENERATE, INSTALL),
        takes_any_step=True,
        is_of_program=True,
        is_breaking=True,
    ),
    Family(
        "path",
        (
            r"file or directory not found: (?P<n>\S+)",
            r"cannot (?:access|open|stat) '?(?P<n>[^':\n]+)'?(?: for reading)?: No such file or directory",
            r"(?i:can(?:'t|not| not) (?:open|find|read|load) (?:the )?(?:file "
            r")?['\"`](?P<n>[^'\"`\n]*[./][^'\"`\n]*)['\"`])",
            r"^\S+: (?:(?:line )?\d+: )?(?:can't read )?(?P<n>[^:\n]+): No such file or directory",
            r"IO error for operation on (?P<n>[^:\n]+): No such file",
            r"(?i:no such file or directory)[:,]? '?\"?(?P<n>[\w./-]+)",
            r"^stat (?P<n>[^:\n]+): (?:no such file|directory not found)",
            r"(?i:(?:unable to (?:load|open|read|find)|(?:could|can) ?not (?:open|find|read|load)|failed to "
            r"(?:open|find|read|load)|no such file:?"
            r"|not found:)(?: the)?(?: \w+)? ?(?:file|directory|path|dir|spec|script|document|input)?:? "
            r"['\"`‘]?(?P<n>" + FILE_PATH + r"))",
            r"(?i:(?:path|file|directory|folder|module|spec|script|input|template|workspace)s? ['\"`‘]?(?P<n>"
            + FILE_PATH
            + r")['\"`’]? "
            + IS_ABSENT
            + r")",
            r"['\"`](?P<n>"
            + FILE_PATH
            + r")['\"`]:? (?i:FileNotFound|No such file|does not exist|not found|is missing|doesn't exist)",
            r"['\"`](?P<n>[\w-]+\.\w+)['\"`]:? (?i:does not exist|doesn't exist|No such file)",
            r"FileNotFoundError: [^\n]*'(?P<n>[^']+)'|Error: ENOENT[^\n]*'(?P<m>[^']+)'",
            r"(?i:Source \"(?P<n>" + FILE_PATH + r")\" not found)",
        ),
        steps=(GENERATE, FILES, FETCH, INSTALL),
        tells_apart=True,
        takes_runner=False,
        takes_any_step=True,
        is_proved_by_run=True,
    ),
)
CHANCE_SIGNS = (
    r"ECONNRESET|ETIMEDOUT|EAI_AGAIN|TLS handshake timeout|Read timed out|ReadTimeout|Connection reset by peer",
    r"Temporary failure in name resolution|(?:502|503|504) (?:Bad|Service|Gateway)"
    r"|(?i:(?:http|status|code|error|returned)[^\n]{0,12}\b(?:429|50[0234])\b)",
    r"(?i:(?:failed|unable|could not|error)(?: to)? (?:download|fetch|retriev|load metadata)\w*[^\n]{0,60}"
    r"(?:https?://|registry|mirror|index\b|cache\b)|network is unreachable|connection timed out|i/o timeout"
    r"|:timeout\})",
    r"(?i:acquiring the (?:\w+ )?lock|could not get lock|is (?:currently )?locked by|held by (?:process|another)"
    r"|another (?:\w+ ){0,3}(?:is|process) (?:already )?(?:running|in progress)|waiting for (?:another|file lock))",
    r"(?i:waiting to start|ContainerCreating|PodInitializing|still (?:starting|initiali[sz]ing|being created))",
    r"429 Too Many|rate limit|early EOF|RPC failed|unexpected disconnect|Could not resolve host|socket hang up"
    r"|curl: \((?:6|18|28|35|52|56)\)|Operation timed out|CONNECTION FAILED for url",
)
"""Signs of a network that failed and may work the next time; a family above counts more."""

_BY_NAME = {family.name: family for family in FAMILIES}
_UNKNOWN = Family("", (), steps=(INSTALL, START, GENERATE, MIGRATE, AUTH, FETCH, SELECT))


def family_of(name: str) -> Family:
    """The family with a name; for a failure of no family one that claims nothing."""
    return _BY_NAME.get(name, _UNKNOWN)


def fits(name: str, step: str) -> int:
    """Return how well a kind of step cures a family of failures: 0 not at all, more is better."""
    steps = family_of(name).steps
    return len(steps) - steps.index(step) if step in steps else 0
