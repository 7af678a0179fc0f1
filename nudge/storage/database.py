"""The database of one PRIMARY: one thread that writes, a few that read, and nothing on the event loop.

Writes that wait together are committed together, each in a savepoint of its own, and each is answered after the commit:
with
`synchronous=FULL` a commit is a wait for the disk, and eight recorders must not wait for it one after the other.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from nudge import limits
from nudge.errors import StorageFailed, Unavailable
from nudge.ipc.lock import OwnerLock
from nudge.storage import migrations
from nudge.storage.connections import open_readonly, open_writable
from nudge.storage.workers import CLOSED, Job, Workers, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["Database", "check", "copy_to", "open_readonly", "scrub"]

_LAST_READS, _LAST_WRITES = 0.1, 0.3  # seconds for what is under way; what takes longer is interrupted and rolled back
_NEWER = "the history was written by a newer Nudge; upgrade this one to write to it"
_LOCKED = "another server holds the history"


class Database:
    """`reason` says why nothing can be written, where that is so; the next write tries again. `readable`: reading works
    at least."""

    def __init__(self, path: str, lock_path: str) -> None:
        self.path = path
        self.reason: str | None = None
        self.readable = False
        self._lock = OwnerLock(lock_path)
        self._opened: sqlite3.Connection | None = None
        self._writer = Workers("nudge-history-writer", self._connect, _run_writes, batch=limits.MAX_WRITES_PER_COMMIT)
        self._readers = Workers("nudge-history-reader", self._look, _run_reads, threads=limits.READERS)

    @classmethod
    def open(cls, path: str, *, lock_path: str | None = None) -> Database:
        """Never raises for what a disk may hold: trouble becomes the reason, and whatever can still be done goes on."""
        database = cls(path, lock_path or f"{path}.lock")
        with contextlib.suppress(StorageFailed):
            database._opened = database._connect()
        with contextlib.suppress(StorageFailed):
            database._look().close()
            database.readable = True
        return database

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction on the writer's thread; the answer comes after the commit."""
        result: T = await self._writer.do(_job(work))
        return result

    async def maintain(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same outside any transaction, for what cannot run in one."""
        result: T = await self._writer.do(_job(work, alone=True))
        return result

    async def read(self, work: Callable[[sqlite3.Connection], T], patience: float | None = limits.READ_PATIENCE) -> T:
        """Run `work` on a read-only connection; stopped when it takes longer than a caller waits."""
        result: T = await self._readers.do(_job(work), patience)
        return result

    def close(self) -> None:
        """Finish what is under way, or interrupt it; the lock goes last. A writer that hears nothing keeps it until the
        process ends."""
        self._readers.stop(_LAST_READS)
        ended = self._writer.stop(_LAST_WRITES)
        if self._opened is not None:
            self._opened.close()
        self.reason, self.readable, self._opened = CLOSED, False, None
        if ended:
            self._lock.release()

    def _look(self) -> sqlite3.Connection:
        connection = open_readonly(self.path, limits.BUSY_TIMEOUT)
        connection.execute(f"PRAGMA cache_size = -{limits.READER_CACHE_BYTES // limits.KIB}")
        return connection

    def _connect(self) -> sqlite3.Connection:
        """The writer's connection, of the latest format; whatever is in the way becomes the reason."""
        opened, self._opened = self._opened, None
        if opened is not None:
            return opened
        try:
            connection = self._open_writable()
        except (sqlite3.Error, OSError, StorageFailed) as error:
            self._lock.release()
            self.reason = _sentence(error)
            raise StorageFailed(self.reason) from None
        self.reason, self.readable = None, True
        return connection

    def _open_writable(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        if not self._lock.acquire():
            raise StorageFailed(_LOCKED)
        if _format_of(self.path) > migrations.LATEST:
            raise StorageFailed(_NEWER)
        connection = open_writable(self.path)
        try:
            _bring_up_to_date(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection


def _job(work: Callable[[sqlite3.Connection], T], *, alone: bool = False) -> Job:
    import asyncio  # late: a hook that looks into the database has no event loop, nor the time to load one

    return Job(work, asyncio.get_running_loop(), alone=alone)


def _sentence(error: Exception) -> str:
    if isinstance(error, StorageFailed):
        return error.message
    if isinstance(error, sqlite3.Error):
        return translated(error).message
    return f"the history cannot be opened: {getattr(error, 'strerror', None) or error}"


def _format_of(path: str) -> int:
    """Asked before the file is opened for writing: a newer one may not even be touched."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return 0
    with contextlib.closing(open_readonly(path, limits.BUSY_TIMEOUT)) as connection:
        return migrations.version(connection)


def _bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    old = migrations.version(connection)
    if old == migrations.LATEST:
        return
    if old > 0:
        keep_backup(connection, f"{path}.v{old}.backup")
    migrations.migrate(connection, migrations.MIGRATIONS)


def keep_backup(connection: sqlite3.Connection, target: str) -> None:
    """In place of one that an earlier attempt left."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    copy_to(connection, target)


def copy_to(connection: sqlite3.Connection, target: str) -> None:
    """A consistent copy in a new owner-only file; what is there already is never overwritten."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
    except BaseException:
        os.unlink(target)
        raise


# What the threads do


def _run_reads(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    for job in jobs:
        job.attempt(connection)


def _run_writes(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    """In the order of arrival; work that must be alone parts the others into two commits."""
    together: list[Job] = []
    for job in jobs:
        if job.alone:
            _commit(connection, together)
            together = []
            job.attempt(connection)
        else:
            together.append(job)
    _commit(connection, together)


def _commit(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    if not jobs:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            _attempt_in_savepoint(connection, job)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        cause = next(
            (job.error for job in jobs if isinstance(job.error, StorageFailed | Unavailable)), None
        ) or translated(error)
        for job in jobs:
            job.error = job.error or cause


def _attempt_in_savepoint(connection: sqlite3.Connection, job: Job) -> None:
    """What fails is undone alone. A full disk may have undone the whole transaction, which the next statement then
    shows."""
    connection.execute("SAVEPOINT job")
    job.attempt(connection)
    if job.error is not None:
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def scrub(connection: sqlite3.Connection) -> bool:
    """Leave no trace of deleted rows in the file or its log; False when a reader kept the log from being emptied.

    Deleted content is zeroed as it goes, but pages that were split keep stale copies of cells that moved: a small file
    is
    rewritten, which has none; a large one only gives back its free pages.
    """
    size = connection.execute("PRAGMA page_count").fetchone()[0] * connection.execute("PRAGMA page_size").fetchone()[0]
    if size <= limits.VACUUM_BYTES:
        connection.execute("VACUUM")
    else:
        connection.execute("PRAGMA incremental_vacuum").fetchall()
    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)


def check(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the file: pages, foreign keys, the full-text index. Nothing: it is whole."""
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)") if row[0] != "ok"]
        found += [
            f"{row[0]}: row {row[1]} refers to a missing row of {row[2]}"
            for row in connection.execute("PRAGMA foreign_key_check")
        ]
        return found + _check_index(connection)
    except sqlite3.DatabaseError as error:
        return [str(error)]


def _check_index(connection: sqlite3.Connection) -> list[str]:
    """Against the rows it was made of (rank 1); it does so only through a connection that may write."""
    if connection.execute("PRAGMA query_only").fetchone()[0]:
        return []
    try:
        connection.execute("INSERT INTO observations_fts(observations_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return [f"the full-text index does not agree with the observations: {error}"]
    return []
