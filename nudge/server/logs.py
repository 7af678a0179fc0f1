"""The server's log: bounded, rotating, owner-only, and never with a value in it."""

from __future__ import annotations

import logging
import logging.handlers
import os
from io import TextIOWrapper

from nudge import paths
from nudge.errors import StorageFailed
from nudge.limits import MIB

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def configure(level: str) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_handler()]
    root.setLevel(_LEVELS[level])


class _PrivateLog(logging.handlers.RotatingFileHandler):
    """Owner-only also after it was rotated."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A log that cannot be written (a full disk) is no reason for a traceback on the client's stderr."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(
            self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        return TextIOWrapper(open(descriptor, "ab"), encoding="utf-8", errors="backslashreplace", write_through=True)


def _handler() -> logging.Handler:
    """A log that cannot be written is no reason not to serve."""
    directory = paths.log_dir()
    try:
        paths.ensure_private_dir(os.path.dirname(directory))  # a planted one must not get a log either
        paths.ensure_private_dir(directory)
        handler = _PrivateLog(os.path.join(directory, "nudge.log"), maxBytes=MIB, backupCount=3)
    except (OSError, StorageFailed):
        return logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    return handler
