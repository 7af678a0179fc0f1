"""A command as a manifest states it and as `scan` returns it, and how it is typed at the root of the repo."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import IntEnum

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*")


class Rank(IntEnum):
    """Which manifest wins: targets of a task runner are written for people to type, CI steps for a machine."""

    RUNNER = 0
    SCRIPT = 1
    LANGUAGE = 2
    CONTAINER = 3
    WORKFLOW = 4


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
