"""A command that failed because something is missing here, and what then worked in its place. Rules only.

Missing is a program, a module, a path or an option; or a command works as it is only with a variable or in another
directory, which the same command shows that ends well soon after. Failed tests, exceptions in a script of the agent's
own, syntax errors, findings of linters and timeouts are no problems in this sense: they say nothing about the
surroundings.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from nudge.history.shell import Simple, split_commands

PROGRAM, MODULE, PATH, OPTION, CALL = "program", "module", "path", "option", "call"

_WITHIN = 12  # commands after a failure in which its fix is looked for
_SOON = 3  # commands after a failure in which the same command may end well with a variable or elsewhere
_REDACTED = "[REDACTED"
_SIMILAR = 0.72  # share of a file name that the name of the right one has in common
# `cause` is what is told: without the path of the interpreter, or the shell and its line.
_MODULE_ERROR = re.compile(r"^\S+: (?P<cause>No module named '?([\w.]+)'?)\s*$", re.MULTILINE)
_PROGRAM_ERROR = re.compile(
    r"^(?:\S+: )?(?:(?:line )?\d+: )?(?P<cause>(\S+): (?:command )?not found)\s*$", re.MULTILINE
)
_PATH_ERRORS = (
    re.compile(r"file or directory not found: (\S+)"),
    re.compile(r"cannot (?:access|open|stat) '?([^':\n]+)'?(?: for reading)?: No such file or directory"),
    re.compile(r"can't open file '([^']+)'"),
    re.compile(r"^\S+: (?:can't read )?([^:\n]+): No such file or directory\s*$", re.MULTILINE),
    re.compile(r"No such file or directory: '([^']+)'"),
)
_OPTION_ERRORS = (
    re.compile(r"unrecognized arguments?: (-\S+)"),
    re.compile(r"[Nn]o such option:? '?(-[\w-]+)"),
    re.compile(r"(?:unknown|unrecognized|invalid) (?:option|flag):?(?: --)? ?'?(-{0,2}[\w-]+)"),
)
_INSTALLERS = frozenset(
    ("pip", "pip3", "apt-get", "apt", "npm", "yarn", "pnpm", "uv", "poetry", "conda", "brew", "cargo", "gem")
)


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
    """One command of a session as its hook reported it."""

    command: str
    error: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A problem and what worked in its place; the ids are those of the two observations."""

    problem: Problem
    answer: str
    failure_id: int
    success_id: int


def find_problem(outcome: Outcome, commands: list[Simple] | None = None) -> Problem | None:
    """Return what was missing, if the command failed for that reason and names it itself. A pipe hides a failure: then
    the error is what was printed."""
    if not outcome.error:
        return None
    error = outcome.error
    for command in split_commands(outcome.command) if commands is None else commands:
        match = _MODULE_ERROR.search(error)
        if match and command.is_python_module and match[2].split(".")[0] == command.tool.split(".")[0]:
            return Problem(MODULE, match[2], command.head, command.tool, match["cause"])
        match = _PROGRAM_ERROR.search(error)
        if match and match[2] == command.program:
            return Problem(PROGRAM, match[2], command.head, command.tool, match["cause"])
        for pattern in _PATH_ERRORS:
            for match in pattern.finditer(error):
                path = match[1].strip()
                if path in command.arguments and _is_repo_path(path):
                    return Problem(PATH, path, command.head, command.tool, match[0].strip())
        for pattern in _OPTION_ERRORS:
            match = pattern.search(error)
            if match and (option := _option_of(command, match[1])):
                return Problem(OPTION, f"{command.tool} {option}", command.head, command.tool, match[0].strip())
    return None


class LessonFinder:
    """The commands of one session, in order: finds what worked in the place of what failed."""

    def __init__(self) -> None:
        self._waiting: list[_OpenProblem] = []
        self._failed: list[_FailedCall] = []
        self._created: set[str] = set()

    def add(self, outcome: Outcome, problem: Problem | None, commands: list[Simple]) -> list[Lesson]:
        """Take the next command, and return what it teaches about those before it."""
        self._created |= _created(commands)
        lessons = [
            lesson for entry in list(self._waiting) if (lesson := self._match(entry, outcome, problem, commands))
        ]
        if problem is not None and problem.missing not in self._created and _REDACTED not in outcome.command:
            self._waiting.append(_OpenProblem(problem, outcome))
        return lessons + self._match_call(outcome, problem, commands)

    def _match_call(self, outcome: Outcome, problem: Problem | None, commands: list[Simple]) -> list[Lesson]:
        """What the same words with another variable, or behind another `cd`, show when they end well."""
        for entry in self._failed:
            entry.left -= 1
        self._failed = [entry for entry in self._failed if entry.left >= 0]
        if outcome.error:
            if problem is None and len(commands) == 1 and not commands[0].is_anonymous:
                self._failed.append(_FailedCall(commands[0], outcome))
            return []
        lessons = []
        for entry in list(self._failed):
            failed, failure = entry.command, entry.outcome
            answer = _same_call(failed, commands)
            if answer and _REDACTED not in answer + failure.command:
                error = next((line for line in failure.error.splitlines()[1:] if line.strip()), failure.error)
                call_problem = Problem(CALL, call_of(failed), failed.head, failed.tool, error.strip())
                lessons.append(Lesson(call_problem, answer, failure.id, outcome.id))
                self._failed.remove(entry)
        return lessons

    def _match(
        self, entry: _OpenProblem, outcome: Outcome, problem: Problem | None, commands: list[Simple]
    ) -> Lesson | None:
        entry.left -= 1
        is_same = problem is not None and problem.key == entry.problem.key
        answer = None if is_same else _answer(entry, commands, problem)
        if answer or entry.left <= 0 or entry.problem.missing in self._created:
            self._waiting.remove(entry)
        if not answer or answer in self._created or _REDACTED in answer:
            return None
        return Lesson(entry.problem, answer, entry.outcome.id, outcome.id)


@dataclass(slots=True)
class _FailedCall:
    """A command that failed, and may only lack a variable or a directory."""

    command: Simple
    outcome: Outcome
    left: int = _SOON


@dataclass(slots=True)
class _OpenProblem:
    """A problem whose answer is looked for."""

    problem: Problem
    outcome: Outcome
    left: int = _WITHIN
    installed: str | None = None
    is_repaired: bool = False
    """Whether the missing module was installed for the very interpreter that lacked it."""


def call_of(command: Simple) -> str:
    """A command without its variables, by which its failure is looked up."""
    return " ".join(command.words)


def _same_call(failed: Simple, commands: list[Simple]) -> str | None:
    """The same words with more variables, or after `cd`; None when something else was run as well."""
    *before, last = commands or [Simple((), ())]
    if last.words != failed.words:
        return None
    if not before and set(last.variables) > set(failed.variables):
        return " ".join((*last.variables, *last.words))
    if len(before) == 1 and before[0].tool == "cd" and len(before[0].arguments) == 1:
        return f"cd {before[0].arguments[0]} && {' '.join((*last.variables, *last.words))}"
    return None


def _answer(entry: _OpenProblem, commands: list[Simple], problem: Problem | None) -> str | None:
    """Return what worked: an invocation, an install, a path. A later failure counts when the tool itself ran."""
    wanted = entry.problem
    for command in commands:
        if problem is not None and problem.head == command.head and problem.kind in (PROGRAM, MODULE):
            continue
        if wanted.kind in (PROGRAM, MODULE):
            if command.tool in _INSTALLERS and "install" in command.words and problem is None:
                entry.installed = " ".join((*command.variables, *command.words))
                if wanted.kind == MODULE and _installs(command, wanted):
                    entry.is_repaired = True
            if command.tool == wanted.tool and command.tool not in _INSTALLERS:
                if command.head != wanted.head:
                    return None if entry.is_repaired else command.head
                if entry.installed:
                    return entry.installed
        elif wanted.kind == PATH and not (problem is not None and problem.kind == PATH):
            if path := _similar_path(wanted.missing, command):
                return path
        elif wanted.kind == OPTION and command.head == wanted.head and problem is None:
            option = wanted.missing.split(" ", 1)[1]
            if option not in {argument.split("=")[0] for argument in command.arguments}:
                return " ".join((*command.variables, *command.words))[:200]
    return None


def _installs(command: Simple, wanted: Problem) -> bool:
    """Whether a command installs the module that was missing, with the interpreter that lacked it or the pip beside
    it."""
    interpreter = wanted.head.split()[-3]  # PROGRAM -m MODULE, after variables
    beside = posixpath.dirname(command.program) == posixpath.dirname(interpreter)
    is_same = command.program == interpreter if command.is_python_module else beside
    names = {re.split(r"[^\w.-]", argument)[0].replace("-", "_").casefold() for argument in command.arguments}
    return is_same and wanted.missing.partition(".")[0].casefold() in names


def _similar_path(missing: str, command: Simple) -> str | None:
    """Return an argument that is plainly the path that was meant: the same name elsewhere, or nearly the same name."""
    name, folder = posixpath.basename(missing), posixpath.dirname(missing)
    for argument in command.arguments:
        path = argument.split("::")[0]
        other = posixpath.basename(path)
        if path == missing or not _is_repo_path(path) or posixpath.splitext(other)[1] != posixpath.splitext(name)[1]:
            continue
        if other == name or (
            posixpath.dirname(path) == folder and "." in name and SequenceMatcher(None, name, other).ratio() >= _SIMILAR
        ):
            return path
    return None


def _is_repo_path(path: str) -> bool:
    return "/" in path and not path.startswith(("/tmp", "/dev", "/proc", "-", "~", "$", "http")) and "*" not in path


def _option_of(command: Simple, option: str) -> str | None:
    for argument in command.arguments:
        name = argument.split("=")[0]
        if name == option or name.lstrip("-") == option.lstrip("-"):
            return name if name.startswith("-") else None
    return None


def _created(commands: list[Simple]) -> set[str]:
    """Return the files that these commands make: redirections, `touch`, `tee`, the targets of `cp` and `mv`."""
    made = {path for command in commands for path in command.outputs}
    for command in commands:
        if command.tool in ("touch", "tee", "mkdir"):
            made |= {argument for argument in command.arguments if not argument.startswith("-")}
        elif command.tool in ("cp", "mv", "ln") and command.arguments:
            made.add(command.arguments[-1])
    return made
