"""What a command of a session did, analysed once: its calls, and why it failed.

A call is a command with the directory and the variables in which it ran. Commands that only print or wait, or shorten
the output of another, are no calls.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import cached_property

from nudge.core import limits
from nudge.learning.command import SimpleCommand
from nudge.learning.failures import OWN_WORK, Failure, diagnose, has_failed_tests
from nudge.learning.jobs import IDLE, is_file_name, is_looking, subcommand
from nudge.learning.moved_paths import is_temporary, plain_path
from nudge.learning.shell import parse_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nudge.learning.scan import Word

_FAILURE = "command_error"
SHELL_STATE = frozenset(("cd", "export", "source", ".", "pushd"))
"""Commands that change the shell for the commands after them."""
_GROUPS = frozenset(("(", "{"))
_EDITORS = frozenset(("sed", "perl"))
"""Programs that change the text in a pipe."""


@dataclass(frozen=True)
class Call:
    """A command of a line, and what the line changed in the shell before it."""

    command: SimpleCommand
    index: int
    """Among the commands of the line."""
    directory: str = ""
    """Where the line changed to before it, relative to where the line began; empty for no change."""
    exports: tuple[Word, ...] = ()
    start: int = 0
    """Where the `cd` and `export` begin that it depends on, or itself."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words with a program path as it is usually written: `scripts/ci.sh` for `./scripts/ci.sh`."""
        words = tuple(map(str, self.command.words))
        return (words[0].removeprefix("./"), *words[1:]) if words else ()

    @cached_property
    def tool(self) -> str:
        return self.command.tool

    @cached_property
    def subcommand(self) -> str:
        return subcommand(self.command)

    @cached_property
    def variables(self) -> dict[str, str]:
        return dict(word.partition("=")[::2] for word in (*self.exports, *self.command.variables))

    @cached_property
    def head_length(self) -> int:
        """How many words name the program and what it is to do."""
        length = self.command.head_length
        words = self.command.words
        if not self.subcommand:
            return length
        behind = range(length, len(words))
        at = next((at for at in behind if words[at] == self.subcommand), None)
        if at is None:  # the argument with the code that calls it
            at = next((at for at in behind if self.subcommand in words[at]), length - 1)
        return at + 1


@dataclass(frozen=True)
class Outcome:
    """A command line of a session as its hook reported it."""

    line: str
    printed: str = ""
    """The two ends of what it printed, if it failed or shows a failure."""
    exit_code: int | None = 0
    """None when the client does not report it."""
    id: int = 0
    cwd: str | None = None
    """The directory in which it began."""
    root: str | None = None
    branch: str | None = None

    @cached_property
    def commands(self) -> list[SimpleCommand]:
        return parse_commands(self.line)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(_calls(self.commands))

    @cached_property
    def failure(self) -> Failure | None:
        """Why it failed; None when it did not."""
        if not self.printed:
            return None
        return diagnose(self.printed, self.exit_code, list(self._missing_paths()), set(self._targets()))

    def _targets(self) -> Iterator[str]:
        """The names of the programs, and the arguments that name what the calls work on."""
        for call in self.calls:
            yield from {call.tool.casefold(), posixpath.basename(call.command.program).casefold()}
            words = call.words[call.head_length :]
            yield from (word.casefold() for word in words if len(word) > 2 and not word.startswith("-"))

    def _missing_paths(self) -> Iterator[str]:
        """The paths among its words that do not exist, as far as that is known."""
        is_here = self.cwd is not None and os.path.isdir(self.cwd)
        for call in self.calls if is_here and self.exit_code != 0 else ():
            for word in call.command.words:
                if (
                    _is_path(word, call)
                    and not is_temporary(word, self.root)
                    and not os.path.exists(os.path.join(str(self.cwd), call.directory, plain_path(word)))
                ):
                    yield str(word)

    @property
    def succeeded(self) -> bool:
        return not self.printed and self.exit_code == 0

    @property
    def shows_no_failure(self) -> bool:
        """Whether it may have succeeded: not every client reports exit codes."""
        return not self.printed and self.exit_code in (0, None)

    @property
    def found_own_work(self) -> bool:
        """Whether it failed because of the session's own work, so that its program works."""
        return self.failure is not None and self.failure.nature == OWN_WORK and self.exit_code not in (126, 127)

    @property
    def ran_tests(self) -> bool:
        """Whether tests ran and failed, so that nothing lacks that they need."""
        return self.found_own_work and has_failed_tests(self.printed)

    @cached_property
    def worked(self) -> tuple[Call, ...]:
        """The calls that must have worked, if the line did; the last first."""
        if any(command.followed_by == "||" for command in self.commands):
            return ()
        return tuple(reversed([call for call in self.calls if set(call.command.within) <= _GROUPS]))

    @property
    def place(self) -> str:
        """Where it began, relative to the clone; empty at its top."""
        if not self.cwd or not self.root or self.cwd == self.root or not self.cwd.startswith(f"{self.root}/"):
            return ""
        return self.cwd[len(self.root) + 1 :]


class RecordedEvent:
    """An event and the id of its observation, with the outcome of its command: learning, credit, the journal and what
    is told share it, so that a line is parsed and a failure judged once."""

    def __init__(self, event: Mapping[str, Any], observation_id: int) -> None:
        self.event, self.id = event, observation_id

    @cached_property
    def outcome(self) -> Outcome | None:
        return analyse(self.event, self.id)


def analyse(event: Mapping[str, Any], observation_id: int) -> Outcome | None:
    """Return the outcome of the command in a recorded event; None without a command, or if it was interrupted."""
    metadata = event.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    is_command = "exit_code" in details or str(event.get("type")).startswith("command")
    if not is_command or details.get("interrupted") is True:
        return None
    printed = "\n".join(_ends(str(details[name])) for name in ("cause", "error") if isinstance(details.get(name), str))
    code = details.get("exit_code")
    if not printed and event.get("type") == _FAILURE:
        printed = f"Exit code {code}"
    cwd, root, branch = (
        text if isinstance(text, str) and text else None for text in map(event.get, ("cwd", "clone", "branch"))
    )
    exit_code = code if type(code) is int else None
    return Outcome(str(event.get("content") or ""), printed, exit_code, observation_id, cwd, root, branch)


def _ends(text: str) -> str:
    """Both ends of an error, as much as hooks send of it; another sender may send all."""
    half = limits.MAX_ERROR_CHARS // 2
    return text if len(text) <= limits.MAX_ERROR_CHARS else f"{text[:half]}\n{text[-half:]}"


def _is_path(word: Word, call: Call) -> bool:
    if word.is_expanded or word.startswith(("-", "@", "http", "/dev/")):
        return False
    return "/" in word or (is_file_name(word) and word != call.command.program)


def _calls(commands: list[SimpleCommand]) -> Iterator[Call]:
    directory, start = "", -1
    exports: tuple[Word, ...] = ()
    for index, command in enumerate(commands):
        if not command.words:
            continue
        if command.tool in ("cd", "pushd"):
            if _names_directory(command):
                directory = posixpath.normpath(posixpath.join(directory, command.arguments[0]))
                start = command.start if start < 0 else start
            yield Call(command, index, start=command.start)
        elif _sets_variables(command):
            exports = (*exports, *command.arguments)
            start = command.start if start < 0 else start
            if index == len(commands) - 1:  # for the commands after it, where a client keeps its shell
                yield Call(command, index, start=command.start)
        elif command.program not in IDLE and not is_filter(command, commands, index):
            place = "" if directory == "." else directory
            begin = start if start >= 0 and (place or exports) else command.start
            yield Call(command, index, place, exports, begin)


def _sets_variables(command: SimpleCommand) -> bool:
    return command.tool == "export" and all("=" in word for word in command.arguments)


def _names_directory(command: SimpleCommand) -> bool:
    return len(command.arguments) == 1 and not command.arguments[0].is_expanded


def is_filter(command: SimpleCommand, commands: list[SimpleCommand], index: int) -> bool:
    """Whether a command only reads the output of a call in a pipe."""
    if command.preceded_by not in ("|", "|&") or not (is_looking(command) or command.tool in _EDITORS):
        return False
    return any(not is_looking(one) for one in _pipeline_before(commands, index))


def _pipeline_before(commands: list[SimpleCommand], index: int) -> Iterator[SimpleCommand]:
    while index > 0 and commands[index].preceded_by in ("|", "|&"):
        index -= 1
        yield commands[index]
