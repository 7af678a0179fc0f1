"""PRIMARY's care for the history: it is opened with the role, fed from the spool, swept by age, and closed before the
role goes."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from nudge import paths
from nudge.config import Settings
from nudge.errors import HandingOver, NudgeError
from nudge.history import store
from nudge.storage import spool
from nudge.storage.database import Database
from nudge.usecases import recording
from nudge.usecases.app import App
from nudge.usecases.retention import Retention, retention_of

_log = logging.getLogger(__name__)
_LOOK = 1.0  # seconds between two looks into the spool
_SWEEP = 3_600.0


class Keeper:
    """One for as long as we are PRIMARY."""

    def __init__(self, app: App, directory: str, settings: Settings) -> None:
        self._app, self._directory = app, directory
        self._database = Database.open(paths.database_file())
        self._retention = Retention(self._database, retention_of(settings.retention))
        self._draining = asyncio.Lock()
        app.history, app.drain = self._database, self._drain

    async def tend(self) -> None:
        """Until cancelled: take in what hooks left while nobody answered; once an hour, let go of what is old."""
        next_sweep = 0.0
        while True:
            try:
                await self._drain()
                if self._app.now() >= next_sweep:
                    next_sweep = self._app.now() + _SWEEP
                    await self._sweep()
            except HandingOver:
                return
            except NudgeError as error:
                _log.warning("tending the history: %s", error.message)
            except OSError as error:
                _log.warning("the spool cannot be read: %s", error.strerror)
            await asyncio.sleep(_LOOK)

    async def _drain(self) -> int:
        """One at a time: what two took in at once, one of them would not find any more."""
        async with self._draining:
            await recording.drain(self._app, self._directory)
        return spool.counts(self._directory)["files"]

    async def _sweep(self) -> None:
        if self._database.reason is not None:
            return
        now = self._app.now()
        spool.sweep(self._directory, now)
        await self._database.write(lambda connection: store.settle(connection, int(now)))
        await self._retention.sweep(now)

    def report(self) -> dict[str, Any]:
        """For `nudge status`; nothing that would have to count through a million rows."""
        parts = [part for part in (self._database.path, f"{self._database.path}-wal") if os.path.exists(part)]
        return {
            "bytes": sum(map(os.path.getsize, parts)),
            "read_only": self._database.reason,
            "retention": self._retention.to_wire(),
            "spool": spool.counts(self._directory),
        }

    def close(self) -> None:
        self._app.history = None
        self._database.close()
