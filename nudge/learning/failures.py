"""Why a command failed: because of its surroundings (a tool, module, variable, service... is missing), of the session's
own work (a failed test, a finding, an error of the compiler), or of nothing that can be known again.

The table of families is data: patterns, and whether what they name (`detail`) tells failures of one family apart.
Two failures are alike if they are of one family with the same detail, or if the lines that name their cause are equal
but for numbers, quoted texts and paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nudge.security.patterns import PatternSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SURROUNDINGS, OWN_WORK, CHANCE, UNKNOWN = "surroundings", "own work", "chance", "unknown"

_FLAGS = re.MULTILINE
_PATH = r"[^\s'\"`:,()]+"

# Family, whether its detail tells failures apart, and patterns with the detail as group `n`. The first that matches
# anywhere in the output decides, so the narrow ones come first.
_FAMILIES: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    (
        "hook",
        False,
        (r"(?i:hook (?:id|declined|failed|exited)|pre-commit .*failed|husky - .*hook)", r"(?i:lint-staged.*failed)"),
    ),
    (
        "option",
        True,
        (
            r"unrecognized arguments?: (?P<n>-\S+)",
            r"[Nn]o such option:? '?(?P<n>-[\w-]+)",
            r"(?i:(?:unknown|unrecognized|invalid|illegal) (?:\w+ )?(?:option|flag|argument)):?(?: --)? "
            r"?['`\"]?(?P<n>-{0,2}[\w-]+)",
            r"unexpected argument '(?P<n>-[\w-]+)",
            r"flag provided but not defined: (?P<n>-[\w-]+)",
        ),
    ),
    (
        "port",
        True,
        (
            r"(?i:address already in use|EADDRINUSE)[^\n]*?(?P<n>:\d+)?$",
            r"(?P<n>:\d+): bind: address already in use",
            r"(?i:port(?: is)? (?P<n>\d+) is (?:already )?(?:in use|allocated|taken|occupied)|port is already "
            r"allocated)",
        ),
    ),
    (
        "script",
        True,
        (
            r"[Mm]issing script: \"?(?P<n>[\w:./-]+)",
            r"Command \"(?P<n>[\w:./-]+)\" not found",
            r"No rule to make target [`'](?P<n>[\w:./-]+)'",
            r"[Jj]ustfile does not contain recipe `(?P<n>[\w:./-]+)`",
            r"(?i:task \"?(?P<n>[\w:./-]+)\"? (?:not found|does not exist|could not be found|is not defined))",
            r"Don't know how to build task '(?P<n>[\w:./-]+)'",
            r"no such (?:sub)?command: `(?P<n>[\w-]+)`",
            r"None of the selected packages has a \"(?P<n>[\w:./-]+)\" script",
            r"Script not found \"(?P<n>[\w:./-]+)\"",
        ),
    ),
    (
        "directory",
        False,
        (
            r"(?i:(?:could ?n[o']t|can ?n[o']t|no|did not|unable to|does not|failed to) (?:be )?(?:find|found"
            r"|locate|contain|open|read)?"
            r"[^\n]{0,40}\b(?:Cargo\.toml|go\.mod|Gemfile|package\.json|project\.clj|pubspec\.yaml"
            r"|composer\.json|mix\.exs|"
            r"pyproject\.toml|pom\.xml|build\.gradle|CMakeLists\.txt|Makefile|dune-project|build\.zig"
            r"|deps\.edn|Chart\.yaml|"
            r"[Jj]ustfile|Taskfile|Package\.swift|stack\.yaml|manage\.py))",
            r"(?i:no (?:\w+ ){0,2}\w*(?:file|config(?:uration)?)\b(?: was| were)? found)",
            r"(?i:go\.mod file not found|no configuration files?\b|no configuration file provided|MSB1003|no "
            r"POM in this directory)",
            r"(?i:does not contain a (?:Gradle|valid)|no (?:targets specified and no )?makefile found|is not "
            r"(?:a|an) \w+ project)",
            r"(?i:ENOENT[^\n]*package\.json|no mix project|not (?:in )?a (?:valid )?(?:workspace|project"
            r"|flutter|cargo) ?(?:root|directory)?\b)",
        ),
    ),
    (
        "tool",
        True,
        (
            r"^(?:\S+: )?(?:(?:line )?\d+: )?(?P<n>[^\s:'\"`]+): (?:command )?not found\s*$",
            r"(?i:command not found: (?P<n>\S+))",
            r"(?i:unknown command:? ['\"`]?(?P<n>[\w.-]+))",
            r"exec: \"(?P<n>[^\"]+)\": executable file not found",
            r"Failed to spawn: `(?P<n>[^`\s]+)`",
            r"(?P<n>[\w.-]+): (?:executable file )?not found in \$?PATH",
            r"'(?P<n>[\w.-]+)' is not recognized as an internal",
            r"(?i:(?:'|\"|`)?(?P<n>[\w.-]+)(?:'|\"|`)? is not a (?:\w+ )?(?:command|subcommand))",
            r"(?i:(?P<n>[\w.-]+) (?:is not installed|is required but (?:it's )?not (?:installed|found)))",
            r"spawn (?P<n>[\w.-]+) ENOENT",
            r"(?i:could(?: not|n't) find (?:the )?(?:program|executable|binary|command)[: ]+['\"`]?(?P<n>[\w.-]+))",
            r"env: ['‘]?(?P<n>[\w.-]+)['’]?: No such file",
        ),
    ),
    (
        "generated",
        False,
        (
            r"did not initialize yet|no matching files found|magic bytes|not a parquet file|git-lfs",
            r"(?P<n>[\w/.-]+\.(?:hpp|hh|h)): No such file|'(?P<m>[\w/.-]+\.hp?p?)' file not found",
            r"(?i:(?:has|have) not been (?:generated|built|compiled)|needs? to be (?:generated|built"
            r"|compiled)|not (?:yet )?generated)",
            r"(?i:Error when reading '[^']*\.g\.dart'|undefined: \w+pb\b|is not a directory$|client (?:is "
            r")?not generated)",
        ),
    ),
    (
        "module",
        True,
        (
            r"No module named '?(?P<n>[\w.]+)",
            r"PackageNotFoundError: [^\n]*?(?P<n>[\w.-]+)$",
            r"[Cc]annot find (?:module|package) ['\"](?P<n>[^'\"]+)",
            r"no required module provides package (?P<n>[^\s;:]+)",
            r"cannot load such file -- (?P<n>\S+)",
            r"there is no package called .(?P<n>[\w.]+)",
            r"Can't locate (?P<n>[\w/]+\.pm)",
            r"(?i:(?:no such|can(?:no|')t (?:find|load|resolve)|(?:could not|failed to|unable to) (?:find"
            r"|load|resolve)) "
            r"(?:the )?(?:module|package|gem|crate|library|plugin|provider|extension)s? ['\"`‘](?P<n>[\w./@:-]+))",
            r"ClassNotFoundException: (?P<n>[\w.$]+)",
            r"(?i:Failed to resolve (?:import|entry for package) \"(?P<n>[^\"]+))",
            r"(?i:Could not find (?P<n>[\w.-]+) in (?:any of the|locally installed)|Unchecked dependencies|is "
            r"not yet checked out)",
            r"(?i:the dependency (?P<n>[\w.-]+)? ?is not available|node_modules[^\n]*(?:missing|not found"
            r"|doesn't exist))",
            r"(?i:Class ['\"](?P<n>[\w\\]+)['\"] not found|vendor/autoload\.php)",
        ),
    ),
    (
        "schema",
        False,
        (
            r"(?i:(?:relation|table|column|type|database) [\"'`]?(?P<n>[\w.]+)[\"'`]? does(?: not|n't) exist"
            r"|no such (?:table|column))",
            r"(?i:pending migrations?|migrations are pending|UndefinedTable|(?:schema|database) is (?:not up "
            r"to date|out of date)"
            r"|Unknown database|has not been migrated|ActiveRecord::(?:PendingMigration|NoDatabase))",
        ),
    ),
    (
        "connection",
        True,
        (
            r"ECONNREFUSED ?(?P<n>[\w.:-]+)?",
            r"(?i:dial (?:tcp|unix) (?P<n>[\w./:-]+?): connect)",
            r"(?i:connection to (?:server )?(?:at |on socket )?\"(?P<n>[^\"]+)\"[^\n]*(?:refused|failed|No such file))",
            r"(?i:cannot connect to (?:the )?(?P<n>\w+)|is the (?:docker )?(?:server|daemon) running|is the "
            r"server running)",
            r"(?i:(?:connection|connect)(?: to [^\n]{0,60})? ?(?:was |is )?(?:refused|failed|error)|no route "
            r"to host|not reachable)",
            r"(?i:could not connect|unable to connect|can't connect|failed to connect|no connection could be "
            r"made|not running\b)",
            r"(?i:getaddrinfo[^\n]*?(?P<n>[\w-]+)?$|name or service not known|could not translate host name "
            r"\"(?P<m>[^\"]+))",
            r"(?i:NOAUTH|UNAVAILABLE: |No (?:running )?(?:emulator|device|broker|nodes?) (?:is )?(?:running"
            r"|available|connected))",
        ),
    ),
    (
        "auth",
        False,
        (
            r"(?i:permission to \S+ denied|permission denied \(publickey|could not read (?:username|password)"
            r"|access denied for)",
            r"(?i:unable to locate credentials|(?:invalid|missing|expired|no)(?: valid)? (?:credentials?"
            r"|token|api key)|bad credentials)",
            r"(?i:authentication (?:failed|required|is required)|authorization failed|not logged in|(?:please"
            r"|must) (?:log ?in|sign in|run .{0,30}login))",
            r"404 Not Found - GET",
            r"(?i:not in this registry|unauthori[sz]ed|forbidden|(?:^|\D)40[13](?:\D|$)|pull access denied"
            r"|denied: |ExpiredToken)",
            r"(?i:active account|AADSTS|session (?:has )?expired|token (?:has )?expired|login required|403)",
        ),
    ),
    (
        "variable",
        True,
        (
            r"KeyError: '(?P<n>[A-Z][A-Z0-9_]+)'",
            r"(?i:environment variable)s?:? ['\"`]?(?P<n>[A-Z][A-Z0-9_]{2,})",
            r"['\"`$]?(?P<n>[A-Z][A-Z0-9_]{2,})['\"`]? (?i:(?:environment variable )?(?:is|was|must be|has to "
            r"be|needs to be|not) (?:not |un)?(?:set|defined|missing|required|provided))",
            r"(?i:missing|requires?|please set|set|expected|undefined)(?: required)?(?: the)?(?: "
            r"env(?:ironment)?)?(?: var(?:iable)?s?)?:? ['\"`$]?(?P<n>[A-Z][A-Z0-9]*_[A-Z0-9_]+)",
            r"(?i:no value for required variable|required variable|settings are not configured)",
            r"(?P<n>[A-Z][A-Z0-9]*_[A-Z0-9_]+): (?:unbound variable|parameter null or not set)",
        ),
    ),
    (
        "version",
        False,
        (
            r"EBADENGINE|Unsupported engine|(?i:class file version|unsupported class|UnsupportedClassVersion)"
            r"|\"packageManager\"",
            r"ERESOLVE|peer dep|inconsistent vendoring|ERR_OSSL|may not be used on the stable",
            r"(?i:requires? [\w .@-]{1,40}?(?:>=|<=|>|=|\^|~|version )? ?v?\d+(?:\.\d+|\.x|\b)[^\n]*)",
            r"(?i:requires? (?:a )?(?:different|newer|older|higher|later|at least)\b|supports only|minimum "
            r"(?:required )?version)",
            r"(?i:(?:is|are) (?:not compatible|incompatible) with|unsupported (?:\w+ )?version|version "
            r"mismatch|already activated)",
            r"(?i:(?:the )?current version is \S+|you are (?:currently )?using|needs? (?:node|python|java|go"
            r"|ruby|rust|xcode)\b|wrong version)",
            r"(?i:Your Ruby version is|The engine \"\w+\" is incompatible|no toolchain|toolchain '.*' is not "
            r"installed)",
        ),
    ),
    (
        "tls",
        False,
        (r"(?i:certificate|x509:|SSL(?:Error|_ERROR)|SSL certificate problem|self[- ]signed)",),
    ),
    (
        "platform",
        False,
        (
            r"(?i:exec format error|(?:not|no) a tty|input device is not a TTY|cannot open display|no display"
            r"|unable to open X)",
            r"^sed: \d+: |illegal option|(?i:wrong ELF class|unsupported (?:platform|architecture)|no "
            r"matching manifest|libGL|headless)",
            r"(?i:must be run (?:in|from|on|inside)|only (?:works|supported) (?:on|in))",
        ),
    ),
    (
        "resources",
        False,
        (
            r"(?i:no space left|ENOSPC|heap (?:out of memory|limit)|out of memory|cannot allocate|too many "
            r"open files|EMFILE|OOM)",
            r"(?i:OutOfMemoryError|memory exhausted|Killed\b|SIGKILL|system limit for number of file watchers"
            r"|exceeds? (?:the )?(?:memory|stack))",
        ),
    ),
    (
        "permission",
        False,
        (
            r"Permission denied|EACCES|EPERM|Operation not permitted|externally-managed|Read-only file system"
            r"|(?i:must be root|are you root)",
        ),
    ),
    (
        "timeout",
        False,
        (r"(?i:test(?:s)? timed out after|timed out after|exceeded timeout of|deadlock detected|timeout exceeded)",),
    ),
    (
        "runner",
        False,
        (
            r"(?i:Cannot use import statement outside a module|encountered an unexpected token|require\(\) of "
            r"ES Module|ERR_REQUIRE_ESM)",
            r"(?i:Unknown file extension|ERR_UNKNOWN_FILE_EXTENSION|Vitest failed to access its internal "
            r"state|do not import `@jest/globals`)",
            r"(?i:Requires \w+ access to|run again with the --allow)",
        ),
    ),
    (
        "path",
        True,
        (
            r"file or directory not found: (?P<n>\S+)",
            r"cannot (?:access|open|stat) '?(?P<n>[^':\n]+)'?(?: for reading)?: No such file or directory",
            r"can't open file '(?P<n>[^']+)'",
            r"^\S+: (?:(?:line )?\d+: )?(?:can't read )?(?P<n>[^:\n]+): No such file or directory",
            r"IO error for operation on (?P<n>[^:\n]+): No such file",
            r"(?i:no such file or directory)[:,]? '?\"?(?P<n>[\w./-]+)",
            r"^stat (?P<n>[^:\n]+): (?:no such file|directory not found)",
            r"Cannot find module '(?P<n>/[^']+\.[cm]?[jt]s)'",
            r"(?i:unable to (?:load|open|read|find)|could not (?:open|find|read|load)(?: (?:file|the file))?"
            r"|no such file:?|not found:) ['\"`]?(?P<n>[\w.-]*/[\w./-]+)",
            r"(?i:(?:path|file|directory|module|spec) ['\"`]?(?P<n>[\w.-]*/[\w./-]+)['\"`]? (?:does not exist"
            r"|doesn't exist|not found|was not found))",
            r"['\"`](?P<n>[\w.-]*/[\w./-]+)['\"`]:? (?:FileNotFound|No such file|does not exist|not found)",
            r"FileNotFoundError: [^\n]*'(?P<n>[^']+)'|Error: ENOENT[^\n]*'(?P<m>[^']+)'",
        ),
    ),
    (
        "chance",
        False,
        (
            r"ECONNRESET|ETIMEDOUT|EAI_AGAIN|TLS handshake timeout|Read timed out|ReadTimeout|Connection reset by peer",
            r"Temporary failure in name resolution|(?:502|503|504) (?:Bad|Service|Gateway)",
            r"429 Too Many|rate limit|early EOF|RPC failed|unexpected disconnect|Could not resolve host",
        ),
    ),
)
_PATTERNS = tuple((name, re.compile(text, _FLAGS)) for name, _, texts in _FAMILIES for text in texts)
_SIGNS = PatternSet([pattern.pattern for _, pattern in _PATTERNS])  # one after the other takes six times as long
_TELLS_APART = {name: tells_apart for name, tells_apart, _ in _FAMILIES}

# What the session's own work causes: failed tests, findings of linters and compilers, errors in code that it wrote.
_OWN_WORK = re.compile(
    r"""
      ^FAILED[ ] | \b[1-9]\d*[ ](?:tests?[ ])?fail(?:ed|ing|ures?)\b
    | \bAssertion(?:Error)?\b[^\n]*fail | \bAssertionError\b | ^E[ ]{2,}assert\b
    | ^\s*---[ ]FAIL: | \btest[ ]result:[ ]FAILED | ^not[ ]ok\b | ^FAILURES! | Failures:[ ][1-9]
    | ^\s*●[ ] | failing[ ]tests
    | \btests[ ]failed[ ]out[ ]of\b | ^\s*[✕✗×✖][ ] | ^[ ]*FAIL[ ] | \bSnapshot\b.*\bmismatched | assertion[ ]`
    | \bFailed!?[ ]+-[ ] | Assert\.\w+\(\)[ ]Failure | panicked[ ]at | ^\s*Failed[ ]\w+
    | ^\s*[^\s:()]+\.\w+:\d+(?::\d+)?:?[ \t]+\S | \(\d+,\d+\):[ ](?:error|warning)\b | ^\s*\d+:\d+\s+(?:error|warning)\b
    | ^\s*-->[ ]\S+:\d+:\d+ | \bFound[ ]\d+[ ]errors?\b | \b\d+[ ]problems?\b | \bwould[ ](?:be[ ])?reformat
    | ^--[ ][A-Z ]+[ ]-{3,} | ^error(?:\[E\d+\])?: | \berror\b[^\n]*:\d+:\d+
    | \bCode[ ]style[ ]issues | \bcode[ ]has[ ]been[ ]rated
    | \b(?:Syntax|Indentation|Type|Name|Attribute|Value|Index|Key)Error\b
    | \bUndefined\w*Error\b | \bReferenceError\b | ^CONFLICT[ ] | merge[ ]conflict
    | nothing[ ]to[ ]commit | non-fast-forward
    | \[rejected\] | divergent[ ]branches | already[ ]exists | are[ ]in[ ]sync | nothing[ ]added[ ]to[ ]commit
    """,
    re.MULTILINE | re.VERBOSE,
)
_CERTAIN = frozenset(
    ("tool", "script", "directory", "port", "option", "connection", "schema", "variable", "generated", "hook")
)
"""Families that are told from a failed test even if the output shows one as well: the test failed because of them."""
_TEST_FAILURE = re.compile(
    r"^FAILED | \d+ failed\b|\d+ failing\b|^\s*--- FAIL:|test result: FAILED|^not ok\b|^E {2,}assert", re.MULTILINE
)
_CAUSE = re.compile(
    r"\w(?:Error|Exception)\b|(?i:\b(?:error|fatal|panic|failed)\b)"
    r"|(?i:\b(?:not found|no such|cannot|can't|undefined|refused|denied|missing|required?|requires|not set"
    r"|unable|unsupported)\b)"
)
# Lines that say only that something failed, or what is run.
_NOT_A_CAUSE = re.compile(
    r"\s*(?:$|Exit code \d+|[>$+] |make(?:\[\d+\])?: (?:\*\*\* |Entering|Leaving)|\[\.\.\.\]$|[╷│╵\s]*$"
    r"|Traceback \(most"
    r"|npm (?:ERR!|error)(?: (?:code|errno|A|syscall|path)\b.*)?$|(?:error )?Command failed with exit code|.*ELIFECYCLE"
    r"|File \"|\s+at \S+ \(|error: test failed, to rerun|BUILD FAILED|FAILURE: Build failed|\* What went wrong)"
)
_BOX = re.compile(
    r"^(?:/(?:usr/)?bin/)?(?:ba|z|da|fi|k)?sh: (?:(?:line )?\d+: )?|^[\s│╷╵|>*•✖×]+|^(?:npm (?:ERR!|error) )|^E {2,}"
)
_BLANKED = re.compile(
    r"\"[^\"]*\"|'[^']*'|`[^`]*`|‘[^’]*’|https?://\S+|0x[\da-f]+|\b[\da-f]{7,}\b|\d+(?:[.:]\d+)*"
    r"|(?:[\w.@+~-]*/)+[\w.@+~-]*"
)
_MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command failed."""

    nature: str
    family: str = ""
    detail: str = ""
    """What is missing or refused, as the output names it."""
    line: str = ""
    """The line that says most about the cause."""
    causes: tuple[str, ...] = ()
    """The lines that name a cause, with numbers, quoted texts and paths blanked."""
    sign: str = ""
    """The words of the output that its family is known by, blanked."""

    @property
    def is_known(self) -> bool:
        return self.nature == SURROUNDINGS


NOTHING = Failure(CHANCE)


def diagnose(printed: str, exit_code: int | None, missing: Sequence[str] = ()) -> Failure:
    """Return why a command failed, by what it printed. `missing` are paths among its words that do not exist."""
    text = printed.partition("\n")[2] if printed.startswith("Exit code ") else printed
    if not text.strip():
        return Failure(SURROUNDINGS, "timeout", "", "") if exit_code == 124 else NOTHING
    found = _path_in(text, missing) or _family_in(text)
    causes = tuple(dict.fromkeys(_cause_lines(text)))[:_MAX_LINES]
    if found is None:
        line = _first_cause(text)
        if _OWN_WORK.search(text):
            return Failure(OWN_WORK, "", "", line, causes)
        if exit_code == 124:
            return Failure(SURROUNDINGS, "timeout", "", line, causes)
        return Failure(UNKNOWN, "", "", line, causes or (blank(line),)) if line else NOTHING
    family, detail, line, sign = found
    if family == "chance":
        return Failure(CHANCE, family, "", line, causes)
    blanked = blank(line)
    return Failure(
        SURROUNDINGS, family, detail, line, (blanked, *(cause for cause in causes if cause != blanked)), sign
    )


def _family_in(text: str) -> tuple[str, str, str, str] | None:
    has_failed_tests = _TEST_FAILURE.search(text) is not None
    for place in _SIGNS.find(text):
        family, pattern = _PATTERNS[place]
        if has_failed_tests and family not in _CERTAIN:
            continue
        if match := pattern.search(text):
            return family, _detail(match), _line_at(text, match.start(), match.end()), blank(match[0])
    return None


_ABSENT = re.compile(
    r"(?i)no such|not found|n[o']t (?:exist|find|found|open|read|load|locate|match)|(?:cannot|unable to|could "
    r"not|failed to) (?:find|open|read|load|stat|access)"
    r"|no (?:files?|tests?) (?:found|match|were)|FileNotFound|ENOENT|did not match|does not exist|is missing"
    r"|invalid path"
)


def _path_in(text: str, missing: Sequence[str]) -> tuple[str, str, str, str] | None:
    """A path of the command that does not exist, in a line that says so."""
    for path in missing:
        plain = path.removeprefix("./").removesuffix("/...").partition("::")[0].rstrip("/")
        for match in re.finditer(re.escape(plain), text):
            line = _line_at(text, match.start(), match.end())
            before = text.rfind("\n", 0, max(text.rfind("\n", 0, match.start()), 0)) + 1
            if _ABSENT.search(line) or _ABSENT.search(text[before : match.start()]):
                return "path", path, line, "missing path"
    return None


def _detail(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return (groups.get("n") or groups.get("m") or "").strip("'\"`.,;")


def _line_at(text: str, start: int, end: int) -> str:
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", max(end - 1, start))
    return _plain(text[first : last if last >= 0 else len(text)].partition("\n")[0])


def _plain(line: str) -> str:
    """The line without the frame that a tool draws around it."""
    return _BOX.sub("", line).strip()


def _first_cause(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not _NOT_A_CAUSE.match(line)]
    named = next((line for line in lines if _CAUSE.search(line)), lines[0] if lines else "")
    return _plain(named)


def _cause_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not _NOT_A_CAUSE.match(line):
            plain = blank(_plain(line))
            is_sentence = plain.count(" ") >= 5 and not _OWN_WORK.search(line)
            if (is_sentence or _CAUSE.search(line)) and len(plain) > 8:
                yield plain


@lru_cache(2_000)
def blank(line: str) -> str:
    """The line with numbers, quoted texts, URLs and paths blanked, in lower case."""
    return " ".join(_BLANKED.sub("#", line).casefold().split())


def likeness(one: Failure, other: Failure) -> float:
    """Return how alike two failures are, from 0 to 1."""
    if CHANCE in (one.nature, other.nature):
        return 0.0
    if one.family != other.family:  # the table may see one part of an output and not the other
        best = _best_overlap(one, other)
        return best if best >= 0.8 else 0.0
    if one.family and one.detail and one.detail == other.detail:
        return 1.0
    best = _best_overlap(one, other)
    if one.family == "timeout":
        best = max(best, 0.8)
    if one.family and one.sign == other.sign:
        best = max(best, 0.65)
    is_other = tells_apart(one, other)
    return min(best, 0.65) if is_other else best


def tells_apart(one: Failure, other: Failure) -> bool:
    """Whether two failures of one family are about different things: two programs, two variables."""
    is_told = _TELLS_APART.get(one.family, False) and one.family == other.family
    return is_told and bool(one.detail and other.detail) and one.detail != other.detail


def _best_overlap(one: Failure, other: Failure) -> float:
    return max((_overlap(a, b) for a in one.causes[:_MAX_LINES] for b in other.causes[:_MAX_LINES]), default=0.0)


def _overlap(one: str, other: str) -> float:
    if one == other:
        return 1.0
    first, second = _words(one), _words(other)
    return 2 * len(first & second) / (len(first) + len(second))


@lru_cache(2_000)
def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


def has_failed_tests(printed: str) -> bool:
    """Whether an output reports tests that ran and failed."""
    return _TEST_FAILURE.search(printed) is not None


def has_findings(printed: str) -> bool:
    """Whether an output shows the session's own work: failed tests, findings, errors in code."""
    return diagnose(printed, None).nature == OWN_WORK


def names_command(printed: str, words: Sequence[str]) -> bool:
    """Whether an output names these words side by side, as in `run the suite with cargo nextest`."""
    plain = " ".join(re.sub(r"['\"`]", "", printed).split())
    wanted = " ".join(" ".join(words).split())
    return bool(wanted) and re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", plain) is not None
