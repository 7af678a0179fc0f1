"""A simple command of a shell line, and its place in the line.

A command that is shown to anybody is cut out of the line that ran: `command.text`, or `span_text` for its beginning. It
is never put together from its words, whose quotes are gone.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property

from nudge.core.programs import ENVIRONMENT_RUNNERS, INTERPRETERS, NODE_LAUNCHERS
from nudge.learning.scan import HERE_DOCUMENTS, Redirection, Word

CUT_OFF = " …"
"""What follows a command that is shown without its last words."""

_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
# The words before the name of a program that is run in the project's environment.
_LAUNCHERS = frozenset(
    (
        *((name, "run") for name in ENVIRONMENT_RUNNERS),
        *((name, "exec") for name in ("pnpm", "yarn", "npm", "bundle")),  # `bun exec` runs a shell script
        *((name,) for name in (*NODE_LAUNCHERS, "uvx")),
    )
)
_LAUNCHER_OPTIONS = frozenset(("-y", "--yes", "--no-install", "--frozen", "--locked", "--no-sync", "--dev", "--"))
# Not python2 or python3.12: a version that is named matters.
_SAME_TOOL = {"python3": "python", "pip3": "pip", "py.test": "pytest"}
_SUBCOMMAND_TOOLS: dict[tuple[str, ...], str] = {("docker", "compose"): "docker-compose"}


@dataclass(frozen=True)
class SimpleCommand:
    """One simple command: `A=1 timeout 5 pytest -x tests` has a variable, a wrapper of two words and three words.

    `source[start:end]` is what was typed: from its first word, with what stands between, to its last word or input.
    Files and descriptors that it writes to behind its last word are left out.
    """

    source: str
    start: int
    end: int
    variables: tuple[Word, ...] = ()
    words: tuple[Word, ...] = ()
    wrapper: tuple[Word, ...] = ()
    """`sudo -E`, `timeout 5`: they run the words behind them. Variables of `env` are among the variables."""
    redirections: tuple[Redirection, ...] = ()
    preceded_by: str = ""
    """The operator before it; empty at the beginning of a line."""
    followed_by: str = ""
    """The operator behind it; empty at the end of a line. The end of a line within a text is `;`."""
    within: tuple[str, ...] = ()
    """The words that begin the groups, conditions and loops that it is part of, outermost first: `(`, `{`, `if`, `for`,
    `function`; `!` if its exit code is turned around."""

    @property
    def text(self) -> str:
        """The command as it was typed."""
        return self.source[self.start : self.end]

    @property
    def outputs(self) -> tuple[Word, ...]:
        """Files that it writes by redirection."""
        return tuple(redirection.target for redirection in self.redirections if redirection.writes_file)

    @property
    def reads_here_document(self) -> bool:
        """Whether its input stands on the lines behind it, so that its text alone does something else."""
        return any(redirection.operator in HERE_DOCUMENTS for redirection in self.redirections)

    @property
    def piped(self) -> bool:
        """Whether its output is piped into another command, whose exit code is then that of the line."""
        return self.followed_by in ("|", "|&")

    @property
    def program(self) -> str:
        return self.words[0] if self.words else ""

    @cached_property
    def tool(self) -> str:
        """The tool that is run, however it is invoked: `pytest` for `pytest`, `.venv/bin/pytest`, `python3 -m pytest`
        and `uv run pytest`; `python` for `python3 x.py`."""
        words = self._launched
        if self.is_python_module:
            return words[2]
        if words[:2] in _SUBCOMMAND_TOOLS:
            return _SUBCOMMAND_TOOLS[words[:2]]
        name = posixpath.basename(words[0]) if words else ""
        return _SAME_TOOL.get(name, name)

    @property
    def is_python_module(self) -> bool:
        words = self._launched
        return len(words) > 2 and words[1] == "-m" and _PYTHON.fullmatch(posixpath.basename(words[0])) is not None

    @property
    def is_anonymous(self) -> bool:
        """Whether it runs a script by its interpreter, so that the tool does not say what runs: `python x.py`, `bash -c
        ...`."""
        name = posixpath.basename(self.launched_program)
        return (_PYTHON.fullmatch(name) is not None and not self.is_python_module) or name in INTERPRETERS

    @property
    def launcher(self) -> tuple[Word, ...]:
        """The words that run the program in the project's environment: `uv run`, `npx --yes`."""
        for length in (1, 2):
            if self.words[:length] in _LAUNCHERS:
                while length < len(self.words) and self.words[length] in _LAUNCHER_OPTIONS:
                    length += 1
                is_program = length < len(self.words) and not self.words[length].startswith("-")
                return self.words[:length] if is_program else ()
        return ()

    @property
    def launched_program(self) -> str:
        """The program itself: `pytest` for `uv run pytest`."""
        return self._launched[0] if self._launched else ""

    @property
    def head_length(self) -> int:
        """How many words name the program, with its launcher: 3 for `python3 -m pytest -x`."""
        words = self._launched
        own = 3 if self.is_python_module else 2 if words[:2] in _SUBCOMMAND_TOOLS else 1
        return len(self.launcher) + own

    @property
    def arguments(self) -> tuple[Word, ...]:
        return self.words[self.head_length :]

    @cached_property
    def _launched(self) -> tuple[Word, ...]:
        """The words without those of a launcher."""
        return self.words[len(self.launcher) :]


def span_text(command: SimpleCommand, ending_before: int | None = None) -> str:
    """The command as it was typed, whole or up to the word with this index: `make test …` for `make test A=1`."""
    if ending_before is None or ending_before >= len(command.words):
        return command.text
    end = command.words[ending_before - 1].end
    return command.source[command.start : end] + (CUT_OFF if end < command.end else "")
