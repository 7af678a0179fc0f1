"""A command as a manifest states it and as `scan` returns it, and how it is typed at the root of the repo."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from nudge.core.programs import (
    ENVIRONMENT_RUNNERS,
    FORMATTERS,
    INSTALL_VERBS,
    JVM_BUILD_TOOLS,
    JVM_WRAPPERS,
    LINTERS,
    SHELLS,
    TARGET_RUNNERS,
    TEST_RUNNERS,
)

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*")


class Rank(IntEnum):
    """Which source wins: what people type, then what CI runs, then what is usual for a language (a guess)."""

    RUNNER = 0  # a target of make, just or task
    SCRIPT = 1  # a script of package.json, an environment of tox, ...
    EXECUTABLE = 2  # `scripts/test`
    WORKFLOW = 3  # a step of CI
    LANGUAGE = 4
    CONTAINER = 5
    FORMAT_CHECK = 6  # a step of CI that looks at the formatting only: the last choice for a linter


@dataclass(frozen=True, slots=True)
class Claim:
    """One manifest's answer for one job. Without a `package` it belongs to the component of `directory`."""

    job: str
    cmd: str
    rank: Rank
    directory: str
    file: str  # from the root, not always below `directory`
    line: int
    package: str | None = None
    is_service: bool = False  # a compose service shares the component of a package of that name, in any directory

    @property
    def reason(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command that runs from the root of the repo. `cwd` is the directory of its package, `.` for the root."""

    component: str
    key: str
    cmd: str
    reason: str
    cwd: str
    file: str = ""  # that it comes from
    is_guess: bool = False  # the usual command for such a manifest: no file of the repo names it


def quote_path(path: str) -> str:
    """Return `path` as one word of a command line that no tool takes for an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def run_in(directory: str, cmd: str) -> str:
    """Return `cmd` run in `directory`, for tools that have no option for it."""
    return f"cd {quote_path(directory)} && {cmd}" if directory else cmd


def is_plain_word(text: object) -> bool:
    """Whether a name from a manifest (a session, service or package) needs no quoting."""
    return isinstance(text, str) and _PLAIN_WORD.fullmatch(text) is not None


def fold_name(name: str) -> str:
    """Return the form in which package registries compare names: `Pydantic_Core` is `pydantic-core`."""
    return name.lower().replace("_", "-").replace(".", "-")


JOBS = ("build", "test", "run", "check", "lint", "format")

Names = Mapping[str, Sequence[str]]

# The best name first: in a Makefile with both `test` and `check`, `test` is the one to type.
TARGETS: Names = {
    "build": ("build", "all", "compile", "dist"),
    "test": ("test", "tests", "check", "unit", "test-unit", "unit-test", "unit-tests", "unittest", "pytest"),
    "run": ("run", "serve", "start", "dev", "up"),
    "lint": ("lint", "vet", "flake8", "ruff", "linting", "golangci-lint", "clippy"),
    "format": ("fmt", "format", "prettier", "black"),
}

SCRIPT_DIRECTORIES = ("scripts", "script", "bin", "tools")
_SCRIPT_NAMES: Names = {
    "build": ("build", "compile"),
    "test": ("test", "tests", "run-tests", "run_tests", "runtests", "unit-tests"),
    "run": ("run", "serve", "server", "start", "dev"),
    "check": ("check", "checks"),
    "lint": ("lint", "linting", "run-lint"),
    "format": ("format", "fmt"),
}
_SCRIPT_SUFFIX = re.compile(r"\.(?:sh|bash|py|rb|pl)$")

# `hatch run` and `pdm run` run the scripts of a pyproject.toml. `invoke` and the like are not in the table of all: the
# history looks for those anywhere in a line, and `aws lambda invoke` is another program.
_SCRIPT_RUNNERS = TARGET_RUNNERS | {"invoke", "inv", "poe", "hatch", "pdm"}
_RUN_WORDS = ("run", "run-script")
_GOAL_RUNNERS = JVM_BUILD_TOOLS | JVM_WRAPPERS
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_INSTALLERS = frozenset((*INSTALL_VERBS, "pip3"))
# Linters that check nothing without a subcommand.
_NEED_SUBCOMMAND = frozenset(["ruff", "pre-commit", "golangci-lint"])
_WHOLE_REPO = frozenset([".", "./...", "--all", "--all-files", "--workspace"])
_GOALS = {"test": {"test", "verify", "check"}, "build": {"package", "build", "assemble"}}
# Consecutive words, without the directory of a program. Formatters come first: `ruff format` is not a linter.
_PHRASES = {
    "format": (*FORMATTERS, "ruff format", "cargo fmt", "go fmt", "dotnet format"),
    # Not `tsc`, which many packages build with.
    "lint": (*(LINTERS - {"tsc"}), "cargo clippy", "go vet", "pre-commit"),
    # `unittest` is a module: as a word of its own it names a directory or an environment.
    "test": (
        *(*(TEST_RUNNERS - {"unittest"}), "-m unittest", "manage.py test", "runtests.py"),
        *("cargo test", "cargo nextest run", "go test", "mix test", "dotnet test"),
    ),
    "build": ("cargo build", "go build", "cmake --build", "-m build", "dotnet build"),
}
_CHECK_OPTIONS = frozenset(["--check", "--check-only", "--diff", "--list-different", "-l", "-d", "-c"])

_SETUP_PROGRAMS = frozenset(
    ["sudo", "apt", "apt-get", "brew", "choco", "curl", "wget", "git", "docker", "rm", "echo", "set"]
)
_SHELL_SYNTAX = frozenset(["if", "for", "while", "case", "then", "else", "fi", "do", "done"])
_CI_ONLY_WORDS = frozenset(["install", "ci", "publish", "deploy", "push", "upload", "secret", "secrets"])


def select_targets(defined: Iterable[str], names: Names = TARGETS) -> Iterator[tuple[str, str]]:
    """Yield each job with the best of the defined names for it: `("test", "check")`."""
    available = frozenset(defined)
    for job, candidates in names.items():
        name = next((name for name in candidates if name in available), None)
        if name is not None:
            yield job, name


def select_scripts(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each job with the best of the files in a directory of scripts: `("test", "run-tests.sh")`."""
    stems: dict[str, str] = {}
    for file in sorted(files):
        stems.setdefault(_SCRIPT_SUFFIX.sub("", file), file)
    for job, stem in select_targets(stems, _SCRIPT_NAMES):
        yield job, stems[stem]


def classify_command(cmd: str) -> str | None:
    """Return the job that a command line does; None when it sets up, ships, or is not recognized."""
    try:
        paths = shlex.split(cmd)
    except ValueError:
        return None
    words = [posixpath.basename(word) or word for word in paths]
    if not words or words[0] in _SETUP_PROGRAMS | _SHELL_SYNTAX or not _CI_ONLY_WORDS.isdisjoint(words):
        return None
    job = _job_of_script(paths) or _job_of_words(words)
    return "lint" if job == "format" and only_checks(cmd) else job


def job_invocation(cmd: str) -> tuple[str, str] | None:
    """Return the job of a command that ran, and its beginning that does the job for everything: with its variables and
    directory, without files and options of the moment. `A=1 pytest -x tests/a.py` is `("test", "A=1 pytest")`. It is a
    part of the command as it was typed, so `go test -run TestA ./...` has none: `go test ./...` did not run."""
    prefix, separator, last = cmd.rpartition(" && ")
    try:
        words, directory = shlex.split(last), shlex.split(prefix)
    except ValueError:
        return None
    if directory and (len(directory) != 2 or directory[0] != "cd" or directory[1].startswith(("/", "~"))):
        return None
    start = next((at for at, word in enumerate(words) if not _VARIABLE.match(word)), len(words))
    match = _shortest_invocation(words[start:])
    if match is None:
        return None
    job, invocation = match
    length = start + len(invocation)
    while length < len(words) and words[length] in _WHOLE_REPO:
        length += 1
    beginning = _first_words(last, words[:length])
    is_whole = _WHOLE_REPO.isdisjoint(words[length:])
    return (job, prefix + separator + beginning) if beginning and is_whole else None


def _first_words(cmd: str, words: list[str]) -> str:
    """The beginning of a command that has these words, as it was typed."""
    for end in (match.start() for match in re.finditer(r"(?<=\S)(?=\s|$)", cmd)):
        with suppress(ValueError):  # within quotes
            if shlex.split(cmd[:end]) == words:
                return cmd[:end]
    return ""


def _shortest_invocation(words: list[str]) -> tuple[str, list[str]] | None:
    """The first words of a command that say which job it does; None when it does none, or needs a word that is not
    there: `ruff` alone checks nothing."""
    if len(words) > 1 and posixpath.basename(words[0]) in _INSTALLERS and "install" in words:
        return "install", words
    for length in range(1, len(words) + 1):
        if job := classify_command(shlex.join(words[:length])):
            needs_word = posixpath.basename(words[length - 1]) in _NEED_SUBCOMMAND
            if needs_word and (length == len(words) or words[length].startswith("-")):
                return None
            return job, words[: length + needs_word]
    return None


def only_checks(cmd: str) -> bool:
    """Whether a formatter only reports, which makes it a linter."""
    return not _CHECK_OPTIONS.isdisjoint(cmd.split()) and _job_of_words(_base_words(cmd)) == "format"


def uses_same_tool(cmd: str, other: str) -> bool:
    """Whether two command lines run the same tool, in whichever environment and with whichever arguments. Maven and
    Gradle side by side build the same thing."""
    tool, words = _tool(cmd), _base_words(other)
    return tool in words or (tool in _GOAL_RUNNERS and not set(words).isdisjoint(_GOAL_RUNNERS))


def _tool(cmd: str) -> str:
    words = [word for word in _base_words(cmd.rpartition(" && ")[2]) if not word.startswith("-")]
    if len(words) > 1 and words[0] in ENVIRONMENT_RUNNERS and "run" in words:
        words = words[words.index("run") + 1 :]
    if len(words) > 1 and words[0].startswith("python"):
        words = words[1:]
    return words[0] if words else ""


def _base_words(cmd: str) -> list[str]:
    try:
        return [posixpath.basename(word) or word for word in shlex.split(cmd)]
    except ValueError:
        return []


def _job_of_script(words: list[str]) -> str | None:
    """The job that the name of a script in the repo says: `./scripts/test -q`, `bash ci/lint.sh`."""
    path = words[1] if words[0] in SHELLS and len(words) > 1 else words[0]
    folder, name = posixpath.split(posixpath.normpath(path))
    if posixpath.basename(folder) not in (*SCRIPT_DIRECTORIES, "ci") or path.startswith("/"):
        return None
    return next((job for job, _ in select_scripts([name])), None)


def _job_of_words(words: list[str]) -> str | None:
    if words[0] in _SCRIPT_RUNNERS:
        target = next((word for word in words[1:] if not word.startswith("-") and word not in _RUN_WORDS), None)
        return next((job for job, names in TARGETS.items() if target in names), None)
    if words[0] in _GOAL_RUNNERS:
        return next((job for job, goals in _GOALS.items() if not goals.isdisjoint(words)), None)
    spaced = f" {' '.join(words)} "
    return next((job for job, phrases in _PHRASES.items() if any(f" {phrase} " in spaced for phrase in phrases)), None)
