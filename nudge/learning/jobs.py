"""What a command is for: its job (test, build, lint, ...), and what it changes for the commands after it.

Data first; the functions below it only look words up. A word counts wherever a command names what it does: as
subcommand, target, script or task, with `:`, `.`, `-`, `_` and `/` between its parts.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise

from nudge.core.file_names import SUFFIXES
from nudge.core.programs import FORMATTERS, LINTERS, NODE_PACKAGE_MANAGERS, SHELLS, TARGET_RUNNERS, TEST_RUNNERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nudge.learning.command import SimpleCommand

TEST, LINT, FORMAT, TYPES, BUILD = "test", "lint", "format", "types", "build"
INSTALL, GENERATE, MIGRATE, RUN, DEPLOY = "install", "generate", "migrate", "run", "deploy"
START, AUTH, FETCH, SELECT, FILES, CLEAN = "start", "auth", "fetch", "select", "files", "clean"
EVERYDAY = frozenset((TEST, LINT, FORMAT, TYPES, BUILD, INSTALL))
"""What nearly every session does."""

# Words that name a job. The first that is found in a command decides, so the narrow ones come first.
_JOB_WORDS: dict[str, str] = {
    **dict.fromkeys(("fmt", "format", "prettier", *FORMATTERS), FORMAT),
    **dict.fromkeys(("lint", "vet", "clippy", "analyze", "analyse", "pre-commit", *LINTERS), LINT),
    **dict.fromkeys(("typecheck", "types", "tsc", "mypy", "pyright", "dialyzer"), TYPES),
    **dict.fromkeys(("test", "tests", "t", "spec", "runtest", "runtests", "testonly", "nextest", "unit"), TEST),
    **dict.fromkeys((*TEST_RUNNERS, "prove"), TEST),
    **dict.fromkeys(("migrate", "migrations", "upgrade"), MIGRATE),
    **dict.fromkeys(("build", "compile", "package", "assemble", "bundle", "uberjar", "dist", "image"), BUILD),
    **dict.fromkeys(("install", "ci", "sync"), INSTALL),
    **dict.fromkeys(("generate", "gen", "codegen"), GENERATE),
    **dict.fromkeys(("serve", "dev", "start", "runserver", "server"), RUN),
    **dict.fromkeys(("deploy", "publish", "release", "apply"), DEPLOY),
    **dict.fromkeys(("push", "pull", "fetch", "docs", "plan", "bench", "check", "verify"), ""),
}
_JOB_WORDS |= {word: word for word, job in _JOB_WORDS.items() if not job} | {"verify": "check"}

# Words that name what a step changes for the commands after it.
_STEP_WORDS: dict[str, str] = {
    **dict.fromkeys(("install", "ci", "sync", "add", "restore", "download", "bootstrap", "setup"), INSTALL),
    **dict.fromkeys(("init", "deps", "dependencies", "vendor", "tidy", "i", "update", "pub", "instantiate"), INSTALL),
    **dict.fromkeys(("up", "start", "serve", "restart", "launch", "daemon", "boot"), START),
    **dict.fromkeys(("generate", "gen", "codegen", "build", "compile", "prepare", "configure", "proto"), GENERATE),
    **dict.fromkeys(("migrate", "upgrade", "seed", "load", "createdb", "create"), MIGRATE),
    **dict.fromkeys(("login", "auth", "sso", "activate", "refresh"), AUTH),
    **dict.fromkeys(("pull", "submodule", "lfs", "fetch", "clone", "checkout"), FETCH),
    **dict.fromkeys(("use", "enable", "source", "set-url", "workspace", "select", "allow", "trust", "default"), SELECT),
    **dict.fromkeys(("shell", "switch", "local", "global", "set", "use-context", "export"), SELECT),
}
_STEP_PROGRAMS: dict[str, str] = {
    **dict.fromkeys(("cp", "ln", "mkdir", "touch", "chmod", "mv"), FILES),
    **dict.fromkeys(("source", ".", "export", "cd", "nvm", "asdf", "mise", "corepack", "direnv"), SELECT),
    **dict.fromkeys(("cmake", "autoreconf", "meson", "protoc", "buf", "swag", "sqlc"), GENERATE),
    **dict.fromkeys(("createdb", "dropdb", "alembic", "flyway", "dbmate", "goose"), MIGRATE),
    **dict.fromkeys(("kinit", "ssh-add", "ssh-keygen"), AUTH),
    **dict.fromkeys(("pip", "pip3", "bundle", "composer", "conda", "apt", "apt-get", "brew", "dnf", "apk"), INSTALL),
}
_SERVER = re.compile(r"[\w.-]+-server|[\w-]*(?:sqld|dockerd|memcached|mongod|consul)|systemctl|pg_ctl")

IDLE = frozenset(
    (
        *("echo", "printf", "true", "false", ":", "test", "[", "[[", "pwd", "date", "sleep", "wait", "set", "clear"),
        *("pg_isready", "wait-for-it", "wait-for-it.sh", "wait-for", "wait-on", "dockerize"),
    )
)
"""Programs that do nothing for the work, or wait."""
_LOOKING = frozenset(
    (
        *IDLE,
        *("ls", "cat", "head", "tail", "less", "more", "wc", "stat", "file", "tree", "find", "fd", "du", "df", "which"),
        *(
            "grep",
            "rg",
            "ag",
            "ack",
            "awk",
            "cut",
            "sort",
            "uniq",
            "jq",
            "yq",
            "xxd",
            "od",
            "diff",
            "cmp",
            "comm",
            "nl",
        ),
        *("type", "man"),
        *("whoami", "id", "uname", "hostname", "env", "printenv", "ps", "ss", "lsof", "netstat", "curl", "wget", "dig"),
        *("history", "command", "whereis", "realpath", "dirname", "basename", "readlink", "tee", "xargs", "tr", "jobs"),
        *("nc", "ping", "nproc", "free", "uptime", "top", "md5sum", "sha256sum", "dmesg", "journalctl", "column"),
    )
)
"""Programs that only look at something, or wait."""
_LOOKING_WORDS = frozenset(
    (
        *("-V", "version", "help", "list", "ls", "ps", "status", "show", "info", "logs"),
        *("-l", "describe", "current-context", "config-view", "metadata", "outdated", "why"),
        *(
            "log",
            "diff",
            "blame",
            "rev-parse",
            "branch",
            "remote",
            "tag",
            "reflog",
            "shortlog",
            "grep",
            "env",
            "get-url",
        ),
        *("list-profiles", "whoami", "tree", "doctor", "inspect", "-N", "versions"),
        *("search", "view", "dir", "root", "bin", "prefix", "wait", "ping", "health", "healthcheck"),
    )
)
"""Subcommands and options with which any program only looks at something."""
_LOOKING_WORD = re.compile(
    r"--(?:dry-?run|help|no-run|collect-only|just-print|what-?if|preview|no-execute|show-only|list(?:-[a-z-]+)?)"
    r"|(?:get(?!-dep)|list|describe|show|wait)-[a-z-]+|--version\Z"
)

CHECK = "check"
"""The job of a target that may test, lint or check types."""
CHECKS = frozenset((TEST, LINT, TYPES, FORMAT, CHECK))

_WITHOUT_SUBCOMMANDS = (TEST_RUNNERS | LINTERS | FORMATTERS) - {"ruff", "golangci-lint", "vitest"}

NOISE = frozenset(
    (
        *(
            "-v",
            "-vv",
            "-vvv",
            "-q",
            "-qq",
            "-x",
            "-s",
            "--verbose",
            "--quiet",
            "--silent",
            "-ra",
            "-rA",
            "--no-header",
        ),
        *(
            "--color",
            "--no-color",
            "--color=never",
            "--color=always",
            "-no-color",
            "--colors",
            "--tb=short",
            "--tb=long",
        ),
        *(
            "--exitfirst",
            "--fail-fast",
            "--failfast",
            "--bail",
            "--stacktrace",
            "--info",
            "--debug",
            "--trace",
            "-count=1",
        ),
        *("--nocapture", "--no-capture", "--progress", "--no-progress", "--reporter", "--plain", "--console=plain"),
        *("--tail", "--since", "--lines"),
        *("--tb=no", "-l", "--showlocals", "--lf", "--last-failed", "--ff", "--no-cov", "--rerun", "--rerun-tasks"),
    )
)
"""Options that change what is printed, or in which order, but not whether a command can work."""


def job_of(command: SimpleCommand, scripts: Mapping[str, str] | None = None) -> str:
    """Return the job of a command, or an empty text. `scripts` are those of the package.json, whose text says what a
    name does not."""
    if posixpath.basename(command.program) in _LOOKING:
        return ""
    words = _naming_words(command)
    for word in words:
        for part in _parts(word):
            if job := _JOB_WORDS.get(part) or _job_by_ending(part):
                return job
    script = next((scripts[word] for word in words[1:] if word in scripts), "") if scripts else ""
    return next((_JOB_WORDS[word] for word in re.split(r"\W+", script) if word in _JOB_WORDS), "")


def _job_by_ending(word: str) -> str:
    """The job of a program whose name ends with it: `eunit`, `hlint`, `cljfmt`."""
    match = _JOB_ENDING.fullmatch(word)
    return _JOB_WORDS.get(match[1], "") if match else ""


_JOB_ENDING = re.compile(r"(?!la|con|pro|at|de|in)[a-z]{1,8}(test|unit|spec|lint|fmt|format|check)s?")


SELECTING = frozenset(
    (
        *("-k", "-m", "--deselect", "--ignore", "--last-failed", "-run", "-skip", "-short", "-t", "--testNamePattern"),
        *(
            "--grep",
            "-g",
            "--filter",
            "--tests",
            "-Dtest",
            "--test",
            "--bin",
            "--package",
            "--only",
            "--tag",
            "-e",
            "--example",
        ),
        *(
            "--exclude",
            "-E",
            "--testPathPattern",
            "--test-name-pattern",
            "--include",
            "--lib",
            "--doc",
            "--seed",
            "-n",
            "--maxfail",
        ),
        *(
            "--timeout-method",
            "--durations",
            "-W",
            "--warnings",
            "--depth",
            "-A",
            "-B",
            "-C",
            "--max-count",
            "--head-limit",
        ),
    )
)
"""Options that choose what is tested or shown."""


EDITING = frozenset(
    ("--fix", "--write", "-u", "--update", "--update-snapshot", "--updateSnapshot", "--unsafe-fixes", "--allow-dirty")
)
"""Options with which a check changes what it checks."""


def same_job(one: str, other: str) -> bool:
    """Whether two jobs are one; `check` may be any job that checks."""
    if not one or not other:
        return False
    return one == other or (CHECK in (one, other) and {one, other} <= CHECKS)


def step_of(command: SimpleCommand) -> str:
    """Return what a command changes for those after it, or an empty text when it names nothing of the kind."""
    job = job_of(command)
    if is_looking(command) or job in (TEST, LINT, TYPES):
        return ""
    if job == FORMAT:
        return FORMAT
    words = _naming_words(command)
    if words == ["yarn"]:
        return INSTALL
    if words[:2] in (["docker", "run"], ["podman", "run"]):
        return START
    kinds = [_STEP_WORDS[part] for word in words[1:] for part in (word, *_parts(word)) if part in _STEP_WORDS]
    if words and words[0] == "git":
        return _git_step(kinds)
    if kinds and words[0] not in _PLACES_AND_FILES:
        return kinds[0]
    if len(command.words) > 1 and _STEP_WORDS.get(command.words[-1]) == START:
        return START  # what tools for a service end with: `pg_ctlcluster 16 main start`
    return _step_of_program(words[0] if words else "")


def _git_step(kinds: Sequence[str]) -> str:
    return FETCH if FETCH in kinds else SELECT if SELECT in kinds else ""


_PLACES_AND_FILES = ("cd", "export", *_STEP_PROGRAMS.keys() & {"cp", "ln", "mkdir", "touch", "chmod", "mv"})
"""Programs whose arguments say nothing of what they do."""


def _step_of_program(name: str) -> str:
    if _SERVER.fullmatch(name):
        return START
    return _STEP_PROGRAMS.get(name) or next((_STEP_WORDS[part] for part in _parts(name) if part in _STEP_WORDS), "")


def is_looking(command: SimpleCommand) -> bool:
    """Whether a command only looks at something, or waits."""
    if posixpath.basename(command.program) in _LOOKING:
        return True
    words = [word for word in command.arguments if word not in NOISE]
    if command.tool == "git":
        return _looks_with_git(words[:3])
    if _first_verb(words) == "get":
        return not _fetches_by_get(command)
    if any(pair in _SHOWING_SETTINGS for pair in pairwise(words[:3])):
        return True
    asks_for_help = words[-1:] == ["-h"]  # else it may be a host
    return asks_for_help or any(word in _LOOKING_WORDS or _LOOKING_WORD.fullmatch(word) for word in words[:3])


_SHOWING_SETTINGS = frozenset(("config", verb) for verb in ("get", "list", "ls", "show", "view"))


def _first_verb(words: Sequence[str]) -> str:
    """The first word that is no option nor the value of one."""
    for before, word in zip(("", *words), words, strict=False):
        if not word.startswith("-") and not (before.startswith("-") and "=" not in before):
            return word
    return ""


def _fetches_by_get(command: SimpleCommand) -> bool:
    """Whether `get` fetches packages: `go get` does, `kubectl get` and `helm get` look at something."""
    return command.tool == "go"


def _looks_with_git(words: Sequence[str]) -> bool:
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in ("remote", "stash", "branch", "tag", "config", "submodule", "lfs", "worktree"):
        after = words[words.index(verb) + 1 :]
        return not after or after[0] in ("-v", "list", "show", "--list", "status", "get-url", "-a", "--get", "ls-files")
    return verb in ("status", "log", "diff", "show", "blame", "rev-parse", "ls-files", "grep", "describe", "reflog")


def main_words(command: SimpleCommand) -> tuple[str, ...]:
    """The words that name the program and what it is to do, without options: `("npm", "run", "build")`."""
    return tuple(_naming_words(command))


def subcommand(command: SimpleCommand) -> str:
    """The word that says what the program is to do: `build` for `npm run build`; empty where there is none."""
    if command.tool in _WITHOUT_SUBCOMMANDS or command.is_anonymous or "/" in command.launched_program:
        return ""
    if names := called_names(command):
        return names[0]
    is_value = False
    is_script_run = command.tool == "php"  # `php artisan migrate`: the script is no subcommand
    for word in command.arguments[is_script_run:5]:
        if word in ("run", "run-script", "exec", "--") and command.tool in NODE_PACKAGE_MANAGERS:
            continue
        if word.startswith(("-", "+")):
            is_value = "=" not in word
        elif not is_target(word):
            return word
        elif not is_value:
            return ""
        else:
            is_value = False
    return ""


_FILE = re.compile(rf"[\w.-]+\.(?:{SUFFIXES})")


def is_file_name(word: str) -> bool:
    """Whether a word is the name of a file: `seed.py`."""
    return _FILE.fullmatch(word) is not None


def is_target(word: str) -> bool:
    """Whether an argument names what is worked on: a path, a test, a package pattern, a URL, an assignment."""
    return (
        "/" in word
        or "::" in word
        or word in (".", "..", "...")
        or "*" in word
        or "=" in word
        or _FILE.fullmatch(word) is not None
    )


def called_names(command: SimpleCommand) -> list[str]:
    """The functions that an argument with code calls: `testthat::test_dir` for `Rscript -e 'testthat::test_dir()'`."""
    if command.tool in SHELLS:
        return []
    for before, word in zip(command.words, command.words[1:], strict=False):
        if _CODE_OPTION.fullmatch(before) and ("(" in word or "=" not in word):
            names = _LISP_CALL.findall(word) if word.startswith("(") else _CALL.findall(word)
            return [name for name in names if name not in _NO_CALLS]
    return []


def _named_in(word: str) -> str:
    """What a word names: `test` of `-M:test`, `testOnly` of the argument "testOnly *RateSpec"; nothing for options."""
    if word.startswith(("-", "+")):
        return _ALIAS.sub("", word) if _ALIAS.match(word) else ""
    return word.partition(" ")[0]


_ALIAS = re.compile(r"-[A-Z]?:")
FILE_PROGRAMS = frozenset(
    (
        *("sed", "cp", "mv", "ln", "touch", "mkdir", "tee", "patch", "git", "chmod", "chown", "ed", "ex", "vi", "vim"),
        *("nano", "emacs", "tar", "unzip", "rm"),
    )
)
"""Programs that change files."""
_TAKES_FILES = frozenset((*FILE_PROGRAMS, *_STEP_PROGRAMS, *LINTERS, *FORMATTERS, *TEST_RUNNERS))
"""Programs whose first argument may be a file that they do not run."""
_CODE_OPTION = re.compile(r"-(?:e|c|r|batch)|--?(?:eval|expr|execute)|runner")
_CALL = re.compile(r"[A-Za-z_][\w.:!?]*(?=\()|\b[A-Z]\w*(?:\.\w+)+")
_LISP_CALL = re.compile(r"\(([A-Za-z][\w:./*!?-]*)")
_NO_CALLS = frozenset(("if", "for", "while", "print", "println", "puts", "cat", "require", "library", "quit", "exit"))


def _naming_words(command: SimpleCommand) -> list[str]:
    if names := called_names(command):
        return [command.tool, *names[:3]]
    words = list(filter(None, map(_named_in, command.words[len(command.launcher) :])))
    if not words:
        return []
    name, rest = posixpath.basename(words[0]), words[1:]
    if command.is_python_module:
        named = (word for word in command.arguments if not word.startswith("-") and not is_target(word))
        return [command.tool, *named][:4]
    if _runs_script(name):
        script = rest[0] if rest else ""
        return [posixpath.splitext(posixpath.basename(script))[0] or name, *rest[1:3]]
    if rest and is_file_name(posixpath.basename(rest[0])) and name not in _TAKES_FILES:
        return [name, *filter(None, re.split(r"[/.]", rest[0])), *rest[1:2]]
    if "/" in words[0]:
        name = posixpath.splitext(name)[0]
    most = 4 if name in (*TARGET_RUNNERS, "docker", "git", "gcloud", "az") else 3
    return [name, *(word for word in rest[: most + 1] if not is_target(word) or name in NODE_PACKAGE_MANAGERS)][:most]


def _runs_script(program: str) -> bool:
    """Whether what a program does is in the script that it is given."""
    return program in SHELLS or program.startswith("python") or program in ("node", "ruby", "perl", "php", "deno")


def _parts(word: str) -> Iterator[str]:
    yield word
    yield from filter(None, re.split(r"[:._/-]", word.casefold()))


_ECOSYSTEMS = {
    **dict.fromkeys(
        ("pytest", "python", "unittest", "pip", "mypy", "flake8", "ruff", "pylint", "black", "django-admin"), "python"
    ),
    **dict.fromkeys(
        (*NODE_PACKAGE_MANAGERS, "jest", "vitest", "mocha", "eslint", "tsc", "node", "deno", "prettier"), "node"
    ),
    **dict.fromkeys(("cargo", "rustc", "rustfmt"), "rust"),
    **dict.fromkeys(("go", "gofmt", "golangci-lint", "gotestsum"), "go"),
    **dict.fromkeys(("rspec", "rake", "rubocop", "bundle", "rails"), "ruby"),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew", "javac", "sbt"), "jvm"),
    **dict.fromkeys(("phpunit", "composer", "php", "phpstan"), "php"),
    **dict.fromkeys(("mix", "iex"), "elixir"),
    "dotnet": "dotnet",
}
"""The languages whose programs cannot do each other's jobs. Task runners and scripts can do any."""


def same_ecosystem(one: SimpleCommand, other: SimpleCommand) -> bool:
    """Whether one program may do the job of the other."""
    first, second = _ECOSYSTEMS.get(one.tool), _ECOSYSTEMS.get(other.tool)
    return first is None or second is None or first == second
