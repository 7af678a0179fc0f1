"""What a check looks at (`Snapshot`) and what it finds (`Finding`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from nudge.core import locks, paths
from nudge.core.errors import NudgeError, Unavailable
from nudge.settings import config
from nudge.settings.config import Settings

OK, WARN, FAIL = "ok", "warn", "fail"

Repair = Callable[[], str]
"""Repairs something and returns what it did; an empty text when there was nothing to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. What is not OK has a fix (a command, or a sentence) or, where nothing can be repaired
    from here, a command that shows more."""

    check: str
    level: str
    message: str
    fix: str | None = None
    repair: Repair | None = field(default=None, compare=False, repr=False)
    question: str | None = None  # to ask the user before the repair; None when it is safe without asking
    look: str | None = None  # a command that repairs nothing, and shows what to decide on

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "level": self.level,
            "message": self.message,
            "fix": self.fix,
            "look": self.look,
            "fixable": self.repair is not None,
        }


def ok(check: str, message: str) -> Finding:
    return Finding(check, OK, message)


def warn(
    check: str, message: str, fix: str | None = None, repair: Repair | None = None, *, look: str | None = None
) -> Finding:
    return Finding(check, WARN, message, fix, repair, look=look)


def fail(
    check: str,
    message: str,
    fix: str | None = None,
    repair: Repair | None = None,
    question: str | None = None,
    *,
    look: str | None = None,
) -> Finding:
    return Finding(check, FAIL, message, fix, repair, question, look)


def edit_command(path: str) -> str:
    """The command that opens a file in the user's editor, for a fix that only the user can decide on."""
    return f"${{EDITOR:-vi}} {quote(path)}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the checks read: no check depends on the process that it runs in."""

    directory: str
    log_directory: str
    home: str
    cwd: str
    environ: Mapping[str, str]
    settings: Settings
    settings_problem: str | None = None
    status: Mapping[str, Any] | None = None  # what PRIMARY says of itself, when there is one that answers
    silent: str | None = None  # the error when there is one that does not answer

    @classmethod
    def take(cls, port: int | None) -> Snapshot:
        """Read the state of this machine, and ask the server for its status; `port` replaces the setting."""
        settings, problem = config.load_or_default()
        if port is not None:
            settings.port = port
        status, silent = _ask_server()
        return cls(
            directory=paths.runtime_dir(),
            log_directory=paths.log_dir(),
            home=paths.home(),
            cwd=_working_directory(),
            environ=os.environ,
            settings=settings,
            settings_problem=problem,
            status=status,
            silent=silent,
        )

    def path(self, name: str) -> str:
        """The path of a file in the runtime directory."""
        return os.path.join(self.directory, name)

    @property
    def has_no_server(self) -> bool:
        return locks.is_free(self.path(paths.LOCK))


def _ask_server() -> tuple[dict[str, Any] | None, str | None]:
    from nudge.process.client import Client

    try:
        return Client(autostart=False).status(), None
    except Unavailable as error:
        return None, error.message.partition(";")[0]
    except NudgeError as error:
        return None, error.message


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep
