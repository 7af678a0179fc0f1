"""How a PRIMARY can be observed: its answer to `nudge.status`, and its log file, which is rotating, limited in size and
readable by the owner only. Values of hints are never logged."""

from __future__ import annotations

import logging
import logging.handlers
import os
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any

from nudge import __version__
from nudge.core import paths
from nudge.core.app import App
from nudge.core.clock import boot_seconds, iso
from nudge.core.errors import StorageFailed
from nudge.core.limits import MIB
from nudge.process.endpoint import Endpoint
from nudge.settings.config import Settings

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class SelfReport:
    """What PRIMARY reports about itself. Collects it when it is asked for; keeps no counters of its own."""

    def __init__(
        self,
        app: App,
        members: Callable[[], list[dict[str, Any]]],
        announced: Endpoint,
        settings: Settings,
        *,
        owner: str,
        client: Callable[[], str | None],
        history: Callable[[], dict[str, Any]],
    ) -> None:
        self._app, self._members, self._announced, self._settings = app, members, announced, settings
        self._owner, self._client, self._history = owner, client, history
        self._born = boot_seconds()

    def to_json(self) -> dict[str, Any]:
        return {**self._process(), **self._contents()}

    def _process(self) -> dict[str, Any]:
        announced = self._announced
        return {
            "role": "PRIMARY",
            "pid": os.getpid(),
            "port": announced.port,
            "socket": announced.socket,
            "version": __version__,
            "started": announced.started,
            "generation": announced.generation,
            "owner": self._owner,
            "client": self._client(),
            "uptime": round(boot_seconds() - self._born, 1),
        }

    def _contents(self) -> dict[str, Any]:
        lifetime, history = self._app.lifetime, self._history()
        warnings = (
            lifetime.warning,
            history.pop("warning", None),
            self._settings.unknown_warning,
            self._port_warning(),
        )
        return {
            "session": self._session(),
            "members": self._members(),
            "hints": len(lifetime.store),
            "calls": self._app.calls,
            "log_bytes": lifetime.log.size if lifetime.log else 0,
            "durability": "process" if lifetime.log else "none",
            "spool": history.pop("spool", None),
            "history": history or None,
            **({} if (model := self._app.model.report()) is None else {"model": model}),
            "last_error": self._app.changes.last_error,
            "warnings": [*filter(None, warnings), *self._settings.warnings],
            "settings": self._settings.session,
        }

    def _port_warning(self) -> str | None:
        wanted, port = self._settings.port, self._announced.port
        if port == wanted or "port" not in self._settings.session:
            return None
        return f"the server listens on {port or 'no port'}, not on {wanted}, which was in use"

    def _session(self) -> dict[str, Any]:
        """`ends_earliest` is when the session would end if every process left now. Without a change log it ends with
        this process."""
        lifetime, now = self._app.lifetime, self._app.now()
        created, grace = lifetime.store.created_at, self._settings.session_grace
        return {
            "id": lifetime.id,
            "created": iso(created),
            "age": round(now - created, 1),
            "grace": grace,
            "ends_earliest": iso(now + grace) if lifetime.log else iso(now),
            "read_only": lifetime.read_only,
        }


# The log file


def configure_log(level: str) -> None:
    """Send the log of this process to the log file; `level` is a value of the setting `log_level`."""
    root = logging.getLogger()
    root.handlers[:] = [_log_handler()]
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


def _log_handler() -> logging.Handler:
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
