"""Why a command failed: which program, module, path, option or target of a task runner is missing. By rules only.

Failed tests, exceptions in a script of the agent's own, syntax errors, findings of linters and timeouts are no problems
in this sense: they say nothing about the environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nudge import limits
from nudge.history.observations import COMMAND_TYPES, FAILURE
from nudge.history.shell import SimpleCommand, relative_commands, relative_text, split_commands
from nudge.programs import NODE_PACKAGE_MANAGERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROGRAM, MODULE, PATH, OPTION, TARGET, CALL = "program", "module", "path", "option", "target", "call"

# `cause` is the part that agents are told: without the path of the interpreter, or the shell and its line.
_MODULE_ERROR = re.compile(r"^\S+: (?P<cause>No module named '?(?P<name>[\w.]+)'?)\s*$", re.MULTILINE)
_PROGRAM_ERRORS = (
    re.compile(
        r"^(?:\S+: )?(?:(?:line )?\d+: )?(?P<cause>(?P<name>[^\s:]\S*): (?:command )?not found)\s*$", re.MULTILINE
    ),
    re.compile(r"^(?:\S+ )?(?P<cause>[Cc]ommand not found: (?P<name>\S+))\s*$", re.MULTILINE),  # zsh, poetry
    re.compile(r"^fish: (?P<cause>Unknown command:? '?(?P<name>[^\s']+)'?)\s*$", re.MULTILINE),
    re.compile(r"(?P<cause>Failed to spawn: `(?P<name>[^`\s]+)`)"),  # uv
)
_PATH_ERRORS = (
    re.compile(r"file or directory not found: (\S+)"),
    re.compile(r"cannot (?:access|open|stat) '?([^':\n]+)'?(?: for reading)?: No such file or directory"),
    re.compile(r"can't open file '([^']+)'"),
    re.compile(
        r"^\S+: (?:(?:line )?\d+: )?(?:can't read )?([^:\n]+): No such file or directory(?: \(os error 2\))?\s*$",
        re.MULTILINE,
    ),
    re.compile(r"IO error for operation on ([^:\n]+): No such file or directory"),  # ripgrep
    re.compile(r"^(?:zsh|fish): no such file or directory: (\S+)", re.MULTILINE),
    re.compile(r"No such file or directory: '([^']+)'"),
    re.compile(r"^stat ([^:\n]+): directory not found", re.MULTILINE),  # go
    re.compile(r"Cannot find module '(/[^']+\.[cm]?[jt]s)'"),  # node, for its script
)
_OPTION_ERRORS = (
    re.compile(r"unrecognized arguments?: (-\S+)"),
    re.compile(r"[Nn]o such option:? '?(-[\w-]+)"),
    re.compile(r"(?i)(?:unknown|unrecognized|invalid) (?:compiler )?(?:option|flag):?(?: --)? ?['`\"]?(-{0,2}[\w-]+)"),
    re.compile(r"unexpected argument '(-[\w-]+)"),  # cargo and others that are built with clap
    re.compile(r"flag provided but not defined: (-[\w-]+)"),  # go
)
_TARGET_ERRORS = (
    re.compile(r"(?P<cause>[Mm]issing script: \"?(?P<name>[\w:./-]+)\"?)"),  # npm, pnpm
    re.compile(r"(?P<cause>Command \"(?P<name>[\w:./-]+)\" not found)"),  # yarn
    re.compile(r"(?P<cause>No rule to make target [`'](?P<name>[\w:./-]+)')"),
    re.compile(r"(?P<cause>[Jj]ustfile does not contain recipe `(?P<name>[\w:./-]+)`)"),
    re.compile(r"(?P<cause>no such (?:sub)?command: `(?P<name>[\w-]+)`)"),  # cargo
)
# The tools whose messages are in _TARGET_ERRORS.
_TASK_RUNNERS = NODE_PACKAGE_MANAGERS | {"make", "gmake", "just", "cargo"}
# Tools whose first argument is a subcommand with options of its own.
_WITH_SUBCOMMANDS = frozenset(
    ("cargo", "go", "git", "npm", "pnpm", "yarn", "docker", "docker-compose", "kubectl", "gh")
)

# Failures that the session's own work causes: failed tests, findings of linters and compilers, syntax errors, timeouts.
_FINDINGS = re.compile(
    r"""
      ^FAILED[ ] | \b[1-9]\d*[ ]failed\b | \bAssertionError\b | ^E[ ]{2,}assert\b | ^FAILED[ ]\((?:failures|errors)=
    | ^\s*---[ ]FAIL: | \btest[ ]result:[ ]FAILED | \b[1-9]\d*[ ]failing\b | \bexamples?,[ ][1-9]\d*[ ]failures?
    | ^not[ ]ok\b | ^FAILURES! | Failures:[ ][1-9] | \btests[ ]failed[ ]out[ ]of\b | ^\s*●[ ] | failing[ ]tests
    | ^\s*[^\s:()]+\.\w+:\d+(?::\d+)?:?[ \t]+\S | \(\d+,\d+\):[ ](?:error|warning)\b | ^\s*\d+:\d+\s+(?:error|warning)\b
    | ^\s*-->[ ]\S+:\d+:\d+ | \bFound[ ]\d+[ ]errors?\b | \b\d+[ ]problems?\b | \bwould[ ](?:be[ ])?reformat
    | \bCode[ ]style[ ]issues | \bcode[ ]has[ ]been[ ]rated | \b(?:Syntax|Indentation)Error\b | \btimed[ ]out\b
    """,
    re.MULTILINE | re.VERBOSE,
)
_CAUSE = re.compile(
    r"\w(?:Error|Exception)\b|(?i:\b(?:error|fatal|panic)\b)"
    r"|(?i:\b(?:not found|no such|cannot|can't|undefined|refused|denied|missing|required|not set)\b)"
)
# Lines that say only that something failed, or what is run.
_NOT_A_CAUSE = re.compile(
    r"\s*(?:$|Exit code \d+|[>$+] |make(?:\[\d+\])?: (?:\*\*\* \[|Entering|Leaving)"
    r"|npm (?:ERR!|error) (?:code|errno|A)\b|(?:error )?Command failed with exit code|.*ELIFECYCLE"
    r"|task: \[|task: Failed to run task|error: Recipe )"
)
_MAKE_FAILED = re.compile(r"^g?make(?:\[\d+\])?: \*\*\* \[", re.MULTILINE)
_RECIPE = re.compile(r"(?:\w+=\S* )*(?:[\w./-]+ )*(?:&& |\|\| |-[\w-]+(?:[ =]|$))")


@dataclass(frozen=True, slots=True)
class Problem:
    """What was missing when a command failed."""

    kind: str
    missing: str
    head: str
    """The invocation that failed, without arguments."""
    tool: str
    error: str

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.head if self.kind in (PROGRAM, MODULE) else self.missing


@dataclass(frozen=True, slots=True)
class Outcome:
    """One command of a session as its hook reported it. `cwd` is the directory in which it ran, `root` the top of that
    clone."""

    command: str
    error: str = ""
    id: int = 0
    cwd: str | None = None
    root: str | None = None
    exit_code: int | None = 0
    """None when the client does not report it."""

    @property
    def succeeded(self) -> bool:
        return not self.error and self.exit_code == 0

    def commands(self) -> list[SimpleCommand]:
        """Its simple commands, with the paths in the clone relative to `cwd`."""
        return relative_commands(split_commands(self.command), self.cwd, self.root)


def outcome_of(event: Mapping[str, Any], observation_id: int) -> Outcome | None:
    """Return the outcome of the command in a recorded event; None without a command, or if it was interrupted."""
    if event.get("type") not in COMMAND_TYPES:
        return None
    metadata = event.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    if details.get("interrupted") is True:
        return None
    error = "\n".join(_ends(str(details[name])) for name in ("cause", "error") if isinstance(details.get(name), str))
    code = details.get("exit_code")
    if not error and event.get("type") == FAILURE:
        error = f"Exit code {code}"
    cwd, root = (path if isinstance(path, str) and path else None for path in (event.get("cwd"), event.get("clone")))
    exit_code = code if type(code) is int else None
    return Outcome(str(event.get("content") or ""), error, observation_id, cwd, root, exit_code)


def _ends(text: str) -> str:
    """Both ends of an error, as hooks send it; another sender may send all of it."""
    half = limits.MAX_ERROR_CHARS // 2
    return text if len(text) <= limits.MAX_ERROR_CHARS else f"{text[:half]}\n{text[-half:]}"


# Why it failed


def find_problem(outcome: Outcome, commands: list[SimpleCommand] | None = None) -> Problem | None:
    """Return what was missing, if the command failed for that reason and its own words name it. `outcome.error` is what
    was printed when a pipe hides the exit code."""
    if not outcome.error:
        return None
    error = relative_text(outcome.error, outcome.cwd, outcome.root)
    for command in outcome.commands() if commands is None else commands:
        finders = (_missing_module, _missing_program, _missing_path, _unknown_option, _missing_target)
        if problem := next(filter(None, (find(command, error) for find in finders)), None):
            return problem
    return None


def _missing_module(command: SimpleCommand, error: str) -> Problem | None:
    match = _MODULE_ERROR.search(error)
    if match and command.is_python_module and match["name"].split(".")[0] == command.tool.split(".")[0]:
        return Problem(MODULE, match["name"], command.head, command.tool, match["cause"])
    return None


def _missing_program(command: SimpleCommand, error: str) -> Problem | None:
    for match in filter(None, (pattern.search(error) for pattern in _PROGRAM_ERRORS)):
        if match["name"] in (command.program, command.launched_program):
            return Problem(PROGRAM, match["name"], command.head, command.tool, match["cause"])
    return None


def _missing_path(command: SimpleCommand, error: str) -> Problem | None:
    for match in (match for pattern in _PATH_ERRORS for match in pattern.finditer(error)):
        path = match[1].strip()
        for word in (command.launched_program, *command.arguments):
            if is_repo_path(word) and _is_same_path(path, word):
                return Problem(PATH, word, command.head, command.tool, match[0].strip())
    return None


def _is_same_path(path: str, word: str) -> bool:
    """Whether the path in an error is this word. Python and node print the absolute path of a missing script."""
    plain = word.removeprefix("./")
    return path in (word, plain) or (path.startswith("/") and not word.startswith("/") and path.endswith(f"/{plain}"))


def _unknown_option(command: SimpleCommand, error: str) -> Problem | None:
    for match in filter(None, (pattern.search(error) for pattern in _OPTION_ERRORS)):
        if option := _option_of(command, match[1]):
            return Problem(OPTION, f"{name_of(command)} {option}", command.head, command.tool, match[0].strip())
    return None


def _missing_target(command: SimpleCommand, error: str) -> Problem | None:
    if command.tool not in _TASK_RUNNERS:
        return None
    for match in filter(None, (pattern.search(error) for pattern in _TARGET_ERRORS)):
        if match["name"] in command.arguments:
            subject = target_call(command, match["name"])
            return Problem(TARGET, subject, command.head, command.tool, match["cause"])
    return None


def target_call(command: SimpleCommand, target: str) -> str:
    """The command up to its target: `npm run lint` for `npm run lint -- --fix`."""
    return " ".join(command.words[: command.words.index(target) + 1])


def is_same_tool(one: str, other: str) -> bool:
    """Whether two tools can replace each other: every package manager runs the scripts of a package.json."""
    return one == other or {one, other} <= NODE_PACKAGE_MANAGERS


def name_of(command: SimpleCommand) -> str:
    """The tool, with its subcommand where it has one."""
    has_subcommand = command.tool in _WITH_SUBCOMMANDS and command.arguments[:1] and command.arguments[0][:1] != "-"
    return f"{command.tool} {command.arguments[0]}" if has_subcommand else command.tool


def has_findings(error: str) -> bool:
    """Whether an error shows failed tests, findings of a linter or compiler, a syntax error or a timeout. These are the
    result of the session's own work, not of its environment."""
    return _FINDINGS.search(error) is not None


def error_line(error: str) -> str:
    """The line of an error that says most about its cause."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    causes = [line for line in lines if not _NOT_A_CAUSE.match(line)]
    if _MAKE_FAILED.search(error):  # make prints each command of the recipe before it runs it
        causes = [line for line in causes[1:] if not _RECIPE.match(line)] or causes
    named = (line for line in causes if _CAUSE.search(line))
    return next(named, causes[0] if causes else (lines[0] if lines else ""))


def is_same_error(one: str, other: str) -> bool:
    """Whether two error lines are equal but for numbers, addresses and directories."""
    return _normalized(one) == _normalized(other)


def _normalized(line: str) -> str:
    plain = re.sub(r"(?:/[\w.@+~-]+)+/", "/", line.casefold())
    return " ".join(re.sub(r"0x[\da-f]+|\b[\da-f]{7,}\b|\d+(?:\.\d+)*", "0", plain).split())


def is_repo_path(path: str) -> bool:
    return "/" in path and not path.startswith(("/tmp", "/dev", "/proc", "-", "~", "$", "http")) and "*" not in path


def _option_of(command: SimpleCommand, option: str) -> str | None:
    for argument in command.arguments:
        name = argument.split("=")[0]
        if name == option or name.lstrip("-") == option.lstrip("-"):
            return name if name.startswith("-") else None
    return None
