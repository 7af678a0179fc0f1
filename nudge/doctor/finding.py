"""One line of a checkup: what was looked at, how it is, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from nudge.config import Settings

OK, WARN, FAIL = "ok", "warn", "fail"

Fix = Callable[[], str]
"""Does what is safe to do unasked, and says what it did."""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    level: str
    message: str
    mend: str | None = None
    fix: Fix | None = field(default=None, compare=False, repr=False)

    def to_wire(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "level": self.level,
            "message": self.message,
            "mend": self.mend,
            "fixable": self.fix is not None,
        }


def ok(check: str, message: str) -> Finding:
    return Finding(check, OK, message)


def warn(check: str, message: str, mend: str, fix: Fix | None = None) -> Finding:
    return Finding(check, WARN, message, mend, fix)


def fail(check: str, message: str, mend: str, fix: Fix | None = None) -> Finding:
    return Finding(check, FAIL, message, mend, fix)


def edit(path: str) -> str:
    """The command for what only a person can decide."""
    return f"${{EDITOR:-vi}} {quote(path)}"


@dataclass(frozen=True, slots=True)
class Patient:
    """All that is looked at: nothing below asks the process it runs in."""

    directory: str
    log_directory: str
    home: str
    cwd: str
    environ: Mapping[str, str]
    settings: Settings
    settings_problem: str | None = None
    status: Mapping[str, Any] | None = None
    """What PRIMARY says of itself, when there is one that answers."""
    silent: str | None = None
    """The sentence when there is one that does not."""
