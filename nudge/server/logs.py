"""The server's log file: rotating, limited in size, readable by the owner only. Values of hints are never logged."""

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
    """Send the log of this process to the log file; `level` is a value of the setting `log_level`."""
    root = logging.getLogger()
    root.handlers[:] = [_handler()]
    root.setLevel(_LEVELS[level])


class _PrivateLog(logging.handlers.RotatingFileHandler):
    """A rotating log file that is owner-only also after a rotation."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore a line that cannot be written (full disk): the default prints a traceback to the client's stderr."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(
            self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        return TextIOWrapper(open(descriptor, "ab"), encoding="utf-8", errors="backslashreplace", write_through=True)


def _handler() -> logging.Handler:
    """Return a null handler when the log file cannot be opened: logging must not stop the server."""
    directory = paths.log_dir()
    try:
        paths.ensure_private_dir(
            os.path.dirname(directory)
        )  # another user must not get our log by planting the directory
        paths.ensure_private_dir(directory)
        handler = _PrivateLog(os.path.join(directory, "nudge.log"), maxBytes=MIB, backupCount=3)
    except (OSError, StorageFailed):
        return logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    return handler
