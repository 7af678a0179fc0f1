"""What PRIMARY does for the database in the background: takes in the spool, deletes what has outlived its retention,
archives notes whose time is over, and notices when the file was moved."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any

from nudge.core import limits, paths
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.errors import HandingOver, NudgeError
from nudge.history import spool_ops as spool_drain
from nudge.history.observations import RETENTION_DAYS
from nudge.history.purge import sweep_observations
from nudge.history.sessions import close_silent_sessions
from nudge.learning import store as fact_store
from nudge.notes import archive_ops
from nudge.notes.deferred_ops import merge_note_index
from nudge.notes.models import NoMemoryParams
from nudge.proposals.background_ops import Proposer
from nudge.settings import config
from nudge.settings.config import Settings
from nudge.storage import database_files, spool
from nudge.storage.database import Database
from nudge.telling import hook_answers

_log = logging.getLogger(__name__)
_POLL = 1.0  # seconds between two looks into the spool
_SWEEP_INTERVAL = 3_600.0


def _sentence(error: Exception) -> str:
    """What the log may hold: the text of another exception could quote what is stored."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return error.message if isinstance(error, NudgeError) else type(error).__name__


class Retention:
    """Deletes what is too old, and remembers the last sweep for `nudge status`."""

    def __init__(self, database: Database, days: Mapping[str, int]) -> None:
        self._database, self.days = database, dict(days)
        self.last_sweep: float | None = None
        self.deleted: dict[str, int] = {}

    async def sweep(self, now: float) -> dict[str, int]:
        """Delete everything that is due, in several transactions so that recording never waits long; the number deleted
        by type."""
        total: dict[str, int] = {}
        while True:
            deleted = await self._database.write(lambda connection: sweep_observations(connection, now, self.days))
            for obs_type, number in deleted.items():
                total[obs_type] = total.get(obs_type, 0) + number
            if sum(deleted.values()) < limits.SWEEP_PORTION:
                break
        self.last_sweep, self.deleted = now, total
        return total

    def to_json(self) -> dict[str, Any]:
        return {"days": self.days, "last_sweep": self.last_sweep, "deleted": self.deleted}


def _open_database(path: str) -> Database:
    """Open the database after closing it to others; `warning` says when others could have changed it."""
    warning = database_files.close_to_others(path, is_moved=path != paths.default_database_file())
    database = Database.open(path)
    database.warning = warning
    return database


class BackgroundWork:
    """Opens the history with the role and closes it before the role goes."""

    def __init__(self, app: App, directory: str, settings: Settings) -> None:
        self._app, self._directory = app, directory
        self._database = _open_database(config.database_file(settings=settings))
        self._retention = Retention(self._database, {**RETENTION_DAYS, **settings.retention})
        self._draining = asyncio.Lock()
        self._proposer = Proposer(app)
        self._asked_for_team = False
        app.database, app.drain = self._database, self._drain
        app.spool_recorded.clear()

    async def run(self) -> None:
        """Until cancelled. The first sweep waits: a PRIMARY that was started with the wrong settings should not delete
        anything before somebody can notice."""
        next_settle, next_sweep, next_purge = 0.0, boot_seconds() + limits.FIRST_SWEEP, 0.0
        problem = None
        while True:
            try:
                await self._join_team()
                await self._database.check_path()
                await hook_answers.load(self._app, self._database)
                await self._drain()
                if boot_seconds() >= next_settle:
                    next_settle = boot_seconds() + _SWEEP_INTERVAL
                    await self._clean_up()
                if boot_seconds() >= next_purge and self._database.reason is None:
                    next_purge = boot_seconds() + limits.UNDO_KEPT
                    await archive_ops.purge_deleted(self._app)
                if boot_seconds() >= next_sweep and self._database.reason is None:
                    next_sweep = boot_seconds() + _SWEEP_INTERVAL
                    await self._retention.sweep(self._app.now())
                    await archive_ops.gc(self._app, NoMemoryParams(), Call())
                    await self._database.write(lambda connection: fact_store.delete_old(connection, self._app.now()))
                problem = None
            except HandingOver:
                return
            except Exception as error:  # a damaged row may raise anything; what is sound is kept up all the same
                if str(error) != problem:  # once, not every second
                    problem = str(error)
                    _log.warning("history: %s", _sentence(error))
            self._app.spool_recorded.set()
            self._proposer.look()
            await asyncio.sleep(_POLL)

    async def _join_team(self) -> None:
        """Go on with the exchange with a team, if one was joined."""
        if self._asked_for_team or self._database.reason is not None:
            return
        self._asked_for_team = True
        if await self._database.read(lambda connection: connection.execute("SELECT 1 FROM team").fetchone()):
            from nudge.team.sync_ops import TeamSync  # late: most people have no team

            self._app.team = TeamSync(self._app)
            self._app.team.start()

    async def _drain(self) -> int:
        """Take in the spool, one caller at a time; how many events still wait."""
        async with self._draining:
            return await spool_drain.drain(self._app, self._directory)

    async def _clean_up(self) -> None:
        """Remove unfinished spool files, summarize sessions that have been silent for long, merge the note index."""
        now = self._app.now()
        await asyncio.to_thread(spool.sweep, self._directory, now)
        if self._database.reason is None:
            await self._database.write(lambda connection: close_silent_sessions(connection, int(now)))
            await merge_note_index(self._database, limits.INDEX_SEGMENTS)
        await self._app.meaning.start()

    def report(self) -> dict[str, Any]:
        """For `nudge status`; nothing that would have to count a million rows."""
        files = [path for path in (self._database.path, f"{self._database.path}-wal") if os.path.exists(path)]
        return {
            "bytes": sum(map(os.path.getsize, files)),
            "read_only": self._database.reason,
            "readable": self._database.readable,
            "retention": self._retention.to_json(),
            "spool": spool.counts(self._directory),
            "warning": self._database.warning,
        }

    def close(self) -> None:
        self._app.database = None
        self._database.close()
