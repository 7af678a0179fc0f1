"""Lessons: a command that failed because of its environment, and what worked in its place later in the session.

A lesson names another invocation, path, option or target, or an install. For a command that failed for no reason that
`find_problem` knows, the same command with a variable, in another directory or after an install teaches it, if it
succeeds soon after.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from nudge.history.problems import (
    CALL,
    MODULE,
    OPTION,
    PATH,
    PROGRAM,
    TARGET,
    Outcome,
    Problem,
    error_line,
    has_findings,
    is_repo_path,
    is_same_tool,
    name_of,
    target_call,
)
from nudge.history.shell import SOURCE, ShellCall, SimpleCommand, is_install, join_words, may_edit, parse_call
from nudge.security.secrets import REDACTED

_WITHIN = 12  # commands after a failure among which its answer is searched
_SOON = 3  # commands after a failure among which the same command may succeed with a variable or elsewhere
_SIMILAR = 0.72  # share of a name that the right one has in common
# Commands that look at files or move them, and git: whether they fail depends on the situation, not on the environment.
_NOT_CALLS = frozenset(
    (
        *("cat", "head", "tail", "less", "ls", "find", "fd", "tree", "stat", "wc", "diff", "grep", "rg", "sed", "awk"),
        *("cd", "pwd", "echo", "printf", "test", "[", "which", "true", "false", "sleep", "kill", "pkill", "xargs"),
        *("rm", "cp", "mv", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "git", "gh", "jq", "curl", "wget"),
    )
)
_INSTALLABLE = re.compile(
    r"^(?:\S+: )?(?:\d+: )?\S+: (?:command )?not found\s*$|No module named |Cannot find (?:module|package)"
    r"|command not found: ",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A problem and what worked in its place; the ids are those of the two observations."""

    problem: Problem
    answer: str
    failure_id: int
    success_id: int


class LessonFinder:
    """Takes the commands of one session in order, and finds what worked in place of what failed."""

    def __init__(self) -> None:
        self._waiting: list[_OpenProblem] = []
        self._failed: list[_FailedCall] = []
        self._created: set[str] = set()

    def note_edit(self) -> None:
        """Drop what a file edit may fix: calls that failed, and missing targets."""
        self._failed.clear()
        self._waiting = [entry for entry in self._waiting if entry.problem.kind != TARGET]

    def add(self, outcome: Outcome, problem: Problem | None, commands: list[SimpleCommand]) -> list[Lesson]:
        """Take the next command of the session; return the lessons about the commands before it."""
        self._created |= _created(commands)
        if any(map(may_edit, commands)):
            self.note_edit()
        lessons = [
            lesson for entry in list(self._waiting) if (lesson := self._match(entry, outcome, problem, commands))
        ]
        if problem is not None and problem.missing not in self._created and REDACTED not in outcome.command:
            self._waiting.append(_OpenProblem(problem, outcome))
        return lessons + self._match_call(outcome, problem, commands)

    def _match_call(self, outcome: Outcome, problem: Problem | None, commands: list[SimpleCommand]) -> list[Lesson]:
        """Return the lessons from the same command that succeeds with another variable, in another directory or after
        an install."""
        for entry in self._failed:
            entry.left -= 1
        self._failed = [entry for entry in self._failed if entry.left >= 0]
        call = parse_call(commands, outcome.cwd)
        if outcome.error:
            if call is not None and _is_candidate(call, outcome, problem):
                self._failed.append(_FailedCall(call, outcome, error_line(outcome.error)))
            return []
        lessons = []
        for entry in list(self._failed):
            answer = _same_call(entry, call) if call is not None else None
            if answer and REDACTED not in answer + entry.outcome.command:
                command = entry.call.command
                call_problem = Problem(CALL, call_of(command), command.head, command.tool, entry.error)
                lessons.append(Lesson(call_problem, answer, entry.outcome.id, outcome.id))
                self._failed.remove(entry)
            elif call is not None and is_install(call.command):
                entry.installed = call.text()
        return lessons

    def _match(
        self, entry: _OpenProblem, outcome: Outcome, problem: Problem | None, commands: list[SimpleCommand]
    ) -> Lesson | None:
        entry.left -= 1
        is_same = problem is not None and problem.key == entry.problem.key
        answer = None if is_same else _answer(entry, commands, problem, outcome)
        if answer or entry.left <= 0 or entry.problem.missing in self._created:
            self._waiting.remove(entry)
        if not answer or answer in self._created or REDACTED in answer:
            return None
        return Lesson(entry.problem, answer, entry.outcome.id, outcome.id)


@dataclass(slots=True)
class _FailedCall:
    """A command that failed, perhaps only for want of a variable, a directory or an install."""

    call: ShellCall
    outcome: Outcome
    error: str
    left: int = _SOON
    installed: str | None = None


@dataclass(slots=True)
class _OpenProblem:
    """A problem without an answer yet."""

    problem: Problem
    outcome: Outcome
    left: int = _WITHIN
    installed: str | None = None
    is_repaired: bool = False
    """Whether the missing module was installed for the same interpreter."""


def call_of(command: SimpleCommand) -> str:
    """The command without its variables: the key under which its failure is looked up."""
    return " ".join(command.words)


def _is_candidate(call: ShellCall, outcome: Outcome, problem: Problem | None) -> bool:
    """Whether a failure may be due to the variables or the directory. A missing path or target may exist in another
    directory; `_answer` has the rules for anything else that is missing."""
    is_plain = not call.directory and not call.setup and not call.command.is_anonymous
    is_open = problem is None or problem.kind in (PATH, TARGET)
    return is_plain and is_open and call.command.tool not in _NOT_CALLS and not has_findings(outcome.error)


def _same_call(failed: _FailedCall, call: ShellCall) -> str | None:
    """Return the call that succeeded, if it is the failed one with more variables or in another directory; or the
    install that made the unchanged call succeed."""
    before = failed.call.command
    if call.setup:
        return None
    if call.command.words != before.words:
        is_elsewhere = not call.directory and call.command.variables == before.variables
        return call.text() if is_elsewhere and call.moved_words() == before.words else None
    if call.directory or set(call.command.variables) > set(before.variables):
        return call.text()
    is_repaired = failed.installed and _INSTALLABLE.search(failed.outcome.error)
    return failed.installed if is_repaired and call.command.variables == before.variables else None


def _answer(
    entry: _OpenProblem, commands: list[SimpleCommand], problem: Problem | None, outcome: Outcome
) -> str | None:
    """Return what worked: an invocation, an install, a path, a command or a target. A command that failed counts as an
    invocation that works if the tool itself ran."""
    wanted = entry.problem
    for at, command in enumerate(commands):
        if problem is not None and problem.head == command.head and problem.kind in (PROGRAM, MODULE):
            continue
        if wanted.kind in (PROGRAM, MODULE):
            if is_install(command) and problem is None and command.tool != wanted.tool:
                entry.installed = join_words(command)
                if wanted.kind == MODULE and _installs(command, wanted):
                    entry.is_repaired = True
            elif command.tool == wanted.tool:
                answer = invocation(commands[:at], command, outcome.cwd)
                if answer != wanted.head:
                    return None if entry.is_repaired else answer
                if entry.installed:
                    return entry.installed
        elif wanted.kind == PATH and not (problem is not None and problem.kind == PATH):
            if path := _similar_path(wanted.missing, command):
                return path
        elif wanted.kind == OPTION and command.head == wanted.head and problem is None:
            name, _, option = wanted.missing.rpartition(" ")
            if name_of(command) == name and option not in {argument.split("=")[0] for argument in command.arguments}:
                return join_words(command)
        elif wanted.kind == TARGET and not outcome.error and (target := _similar_target(wanted, command)):
            return target_call(command, target)
    return None


def invocation(before: list[SimpleCommand], command: SimpleCommand, cwd: str | None) -> str:
    """Return how to run a command of a line on its own: with the environment that the commands before it activate, and
    with `cd` if its program is a relative path."""
    activations = [join_words(other) for other in before if other.tool in SOURCE and other.arguments]
    call = parse_call([*before, command], cwd)
    program = command.launched_program
    needs_directory = call is not None and ("/" in program or activations) and not program.startswith("/")
    cd = [f"cd {call.directory}"] if call is not None and call.directory and needs_directory else []
    return " && ".join((*cd, *activations, command.head))


def _installs(command: SimpleCommand, wanted: Problem) -> bool:
    """Whether a command installs the module that was missing, with the interpreter that lacked it or the pip beside
    it."""
    interpreter = wanted.head.split()[-3]  # PROGRAM -m MODULE, after variables
    beside = posixpath.dirname(command.program) == posixpath.dirname(interpreter)
    is_same = command.program == interpreter if command.is_python_module else beside
    names = {re.split(r"[^\w.-]", argument)[0].replace("-", "_").casefold() for argument in command.arguments}
    return is_same and wanted.missing.partition(".")[0].casefold() in names


def _similar_path(missing: str, command: SimpleCommand) -> str | None:
    """Return an argument that is likely the path that was meant: the same name elsewhere, or nearly the same name."""
    name, folder = posixpath.basename(missing), posixpath.dirname(missing)
    for argument in (command.launched_program, *command.arguments):
        path = argument.split("::")[0]
        other = posixpath.basename(path)
        if posixpath.normpath(path) == posixpath.normpath(missing) or not is_repo_path(path):
            continue
        if posixpath.splitext(other)[1] != posixpath.splitext(name)[1]:
            continue
        if other == name or (
            posixpath.dirname(path) == folder and "." in name and SequenceMatcher(None, name, other).ratio() >= _SIMILAR
        ):
            return path
    return None


def _similar_target(wanted: Problem, command: SimpleCommand) -> str | None:
    """Return the target of a command if it is likely the one that was meant: `test` for `tests`, `test:unit` for
    `test`."""
    missing = wanted.missing.split(" ")[-1]
    for word in command.arguments if is_same_tool(command.tool, wanted.tool) else ():
        if word.startswith("-") or word in ("run", "run-script") or "=" in word:
            continue
        is_part = len(min(missing, word, key=len)) > 2 and (word in missing or missing in word)
        is_near = SequenceMatcher(None, missing, word).ratio() >= _SIMILAR
        return word if word != missing and (is_part or is_near) else None
    return None


def _created(commands: list[SimpleCommand]) -> set[str]:
    """Return the files that the commands create: redirections, `touch`, `tee`, the targets of `cp` and `mv`."""
    made = {path for command in commands for path in command.outputs}
    for command in commands:
        if command.tool in ("touch", "tee", "mkdir"):
            made |= {argument for argument in command.arguments if not argument.startswith("-")}
        elif command.tool in ("cp", "mv", "ln") and command.arguments:
            made.add(command.arguments[-1])
    return made
