"""The database of one PRIMARY: one thread that writes, a few that read, and nothing on the event loop.

Writes that wait together are committed together, each in a savepoint of its own, and each is answered after the commit:
with `synchronous=FULL` a commit waits for the disk, and eight recorders should not wait for it one after the other.

Before each commit the path is compared with the open file, and that of SQLite's write-ahead log too. When one of them
was removed, the database is written again from the open connection; when another file has taken the database's place,
that one is opened and the old content is kept as a backup.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nudge.core import limits
from nudge.core.errors import Invalid, NudgeError, StorageFailed, Unavailable
from nudge.core.locks import OwnerLock
from nudge.storage import migrations
from nudge.storage.database_files import new_backup
from nudge.storage.sqlite import (
    JOURNALS,
    STATEMENT_ERRORS,
    DatabaseDamaged,
    TextDamaged,
    copy_to,
    damaged,
    leave_mark,
    open_readonly,
    open_writable,
    read_any_text,
)
from nudge.storage.workers import CLOSED, Job, Workers, refusal_of

T = TypeVar("T")

_log = logging.getLogger(__name__)
_LAST_READS, _LAST_WRITES = 0.1, 0.3  # seconds for running work on close; what takes longer is interrupted, rolled back
_NEWER = "the history was written by a newer Nudge; upgrade this one to write to it"
_LOCKED = "another server holds the database"
_BUSY = "the database cannot be moved while it is being read; try again"


class Database:
    """`reason` says why nothing can be written, if so; the next write tries again. `readable`: reading works at least.
    `warning`: what happened to the file while it was open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reason: str | None = None
        self.warning: str | None = None
        self.readable = False
        self._lock = OwnerLock(f"{path}.lock")
        self._opened: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._wal: os.stat_result | None = None
        self._writer = Workers(
            "nudge-history-writer", self._writer_connection, _run_writes, batch=limits.MAX_WRITES_PER_COMMIT
        )
        self._readers = Workers(
            "nudge-history-reader", lambda open_: open_ or self._open_reader(), _run_reads, threads=limits.READERS
        )

    @classmethod
    def open(cls, path: str) -> Database:
        """Never raises for what is on the disk: a problem becomes the `reason`, and what still works goes on."""
        database = cls(path)
        with contextlib.suppress(NudgeError):
            database._opened = database._open_writer()
        with contextlib.suppress(NudgeError, *STATEMENT_ERRORS):
            database._open_reader().close()
            database.readable = True
        return database

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction on the writer's thread; returns after the commit."""
        result: T = await self._do(self._writer, Job(work))
        return result

    @property
    def has_other_writes(self) -> bool:
        """Whether somebody waits for the write that runs."""
        return self._writer.has_others

    async def maintain(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writer's thread outside any transaction, for what cannot run in one."""
        result: T = await self._do(self._writer, Job(work, in_transaction=False))
        return result

    async def read(self, work: Callable[[sqlite3.Connection], T], timeout: float | None = limits.READ_TIMEOUT) -> T:
        """Run `work` on a read-only connection; interrupted after `timeout` seconds."""
        result: T = await self._do(self._readers, Job(work), timeout)
        return result

    async def _do(self, workers: Workers, job: Job, timeout: float | None = None) -> Any:
        try:
            return await workers.do(job, timeout)
        except DatabaseDamaged as error:
            self.warning = f"{error.message}; see: nudge doctor"
            raise

    async def check_path(self) -> None:
        """Recover now when the file was removed or replaced, without waiting for the next write."""
        if self.reason is None and not self._holds_path():
            await self.maintain(lambda _: None)

    def close(self) -> None:
        """Finish or interrupt running work, then release the lock. A writer that does not end keeps it until the
        process does."""
        self._readers.stop(_LAST_READS)
        ended = self._writer.stop(_LAST_WRITES)
        if self._opened is not None:
            self._opened.close()
        self.reason, self.readable, self._opened = CLOSED, False, None
        if ended:
            self._lock.release()

    # Connections

    def _open_reader(self) -> sqlite3.Connection:
        connection = open_readonly(self.path, limits.BUSY_TIMEOUT)
        if self.reason is not None and migrations.read_version(connection) == 0:  # it could not be created
            connection.close()
            raise StorageFailed(self.reason)
        connection.execute(f"PRAGMA cache_size = -{limits.READER_CACHE_BYTES // limits.KIB}")
        return connection

    def _writer_connection(self, current: sqlite3.Connection | None) -> sqlite3.Connection:
        if current is None:
            current, self._opened = self._opened, None
        if current is None:
            return self._open_writer()
        return current if self._holds_path() else self._recover(current)

    def _open_writer(self) -> sqlite3.Connection:
        """Open the database in the latest format; what prevents it becomes the `reason`."""
        try:
            self._take_lock()
            return self._open_file()
        except Exception as error:  # a migration may meet any value
            self._lock.release()
            raise self._unusable(error) from None

    def _take_lock(self) -> None:
        """Hold the lock that the path names; after its file was removed that is another one."""
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        if self._lock.holds_path():
            return
        lock = OwnerLock(self._lock.path)
        if not lock.acquire():
            raise StorageFailed(_LOCKED)
        self._lock.release()
        self._lock = lock

    def _open_file(self) -> sqlite3.Connection:
        if _format_of(self.path) > migrations.LATEST:
            raise StorageFailed(_NEWER)
        connection = open_writable(self.path)
        try:
            _migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._file, self._wal = os.stat(self.path), _stat(f"{self.path}-wal")
        self.reason, self.readable = None, True
        leave_mark(self.path)
        return connection

    def _unusable(self, error: BaseException) -> NudgeError:
        refused = _refusal(error)
        self.reason = refused.message
        return refused

    # A file that was removed or replaced

    def _holds_path(self) -> bool:
        return self._holds_file() and self._holds_wal() and self._lock.holds_path()

    def _holds_file(self) -> bool:
        return _is_same(_stat(self.path), self._file)

    def _holds_wal(self) -> bool:
        """SQLite keeps one file until the last connection closes; on a network filesystem there is none."""
        return self._wal is None or _is_same(_stat(f"{self.path}-wal"), self._wal)

    def _recover(self, current: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection to the file that the path names from now on. On failure writing is refused, and
        `current`, which has everything, is kept for the next attempt."""
        try:
            self._take_lock()
            if self._holds_path():
                return current
            # An emptied log belongs to no database: SQLite would otherwise replay it into the new file.
            if current.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise StorageFailed(_BUSY)
            warning = self._keep_content(current)
            connection = self._open_file()
        except (*STATEMENT_ERRORS, OSError, NudgeError) as error:
            raise self._unusable(error) from None
        self.warning = warning
        _log.warning("%s", warning)
        self._readers.reconnect()
        current.close()
        return connection

    def _keep_content(self, current: sqlite3.Connection) -> str:
        """Write the open connection's content to the path, or beside it when another file is there. The shared memory
        goes first: the connections that are still open have it mapped, and SQLite would truncate it under them.

        Without its write-ahead log the same file is replaced too: connections of this process to one file share an
        index of that log, and those that are still open would read a new one's pages from the removed one."""
        if not self._holds_file() and (found := _stat(self.path)) is not None and found.st_size:
            open_readonly(self.path, limits.BUSY_TIMEOUT).close()  # refuse a file that is no database before copying
            kept = new_backup(self.path)
            copy_to(current, kept)
            _remove(f"{self.path}-shm")
            if os.path.exists(f"{self.path}-wal") and not os.path.getsize(f"{self.path}-wal"):
                _remove(f"{self.path}-wal")
            return f"nudge.db was replaced while the server was running; the one until then is kept as {kept}"
        removed = "nudge.db-wal" if self._holds_file() else "nudge.db"
        recovered = f"{self.path}.recovered"
        _remove(recovered)
        copy_to(current, recovered)
        for suffix in JOURNALS:
            _remove(self.path + suffix)
        os.replace(recovered, self.path)
        return (
            f"{removed} was removed while the server was running; the database was written again, with all that was"
            " recorded"
        )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=False)
    except OSError:
        return None


def _is_same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and os.path.samestat(one, other)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _refusal(error: BaseException) -> NudgeError:
    if isinstance(error, NudgeError):
        return error
    if isinstance(error, STATEMENT_ERRORS):
        return refusal_of(error)
    if not isinstance(error, OSError):
        return damaged("a row cannot be read")
    return StorageFailed(f"the database cannot be opened: {getattr(error, 'strerror', None) or error}")


def _format_of(path: str) -> int:
    """The format's number, read before the file is opened for writing: a newer one must not be touched."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return 0
    with contextlib.closing(open_readonly(path, limits.BUSY_TIMEOUT)) as connection:
        return migrations.read_version(connection)


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the database to the latest format, after a backup in place of one that an earlier attempt left."""
    old = migrations.read_version(connection)
    if old == migrations.LATEST:
        return
    if old > 0:
        _remove(f"{path}.v{old}.backup")
        copy_to(connection, f"{path}.v{old}.backup")
    migrations.migrate(connection, migrations.MIGRATIONS)


# Writes that must not be done twice


def run_once(
    connection: sqlite3.Connection,
    request_id: str,
    request: str | None,
    now: float,
    work: Callable[[sqlite3.Connection], T],
) -> T:
    """Run `work` and keep its result, which must be JSON, under `request_id`; when there is one, return that instead.

    `request` tells a repeated call from another one under the same key. The caller holds the transaction."""
    stored = find_answer(connection, request_id, request)
    if stored is not None:
        first: T = stored.result
        return first
    result = work(connection)
    connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (request_id, now, request, json.dumps(result)))
    forget_answers(connection, now)
    return result


class StoredAnswer(NamedTuple):
    result: Any


def find_answer(connection: sqlite3.Connection, request_id: str, request: str | None) -> StoredAnswer | None:
    """Return the result that is kept under `request_id`; None when there is none. Raises Invalid for the key of another
    call."""
    row = connection.execute("SELECT request, result FROM answers WHERE once = ?", (request_id,)).fetchone()
    if row is None:
        return None
    if request != row[0]:
        raise Invalid("was used for another call; make a new one for each", field="once")
    return StoredAnswer(json.loads(row[1]))


def forget_answers(connection: sqlite3.Connection, now: float) -> None:
    """Delete the answers that no caller asks for again, and all but the latest MAX_ANSWERS."""
    latest = "SELECT answered_at FROM answers ORDER BY answered_at DESC LIMIT 1 OFFSET ?"
    row = connection.execute(latest, (limits.MAX_ANSWERS - 1,)).fetchone()
    oldest = max(now - limits.REQUEST_ID_KEPT, row[0] if row else 0.0)
    connection.execute("DELETE FROM answers WHERE answered_at < ?", (oldest,))


# What the threads do


def _run_reads(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    """Each in a transaction of its own: all its queries see the same rows, and FTS5 reads its structure once."""
    for job in jobs:
        connection.execute("BEGIN")
        job.run(connection)
        if isinstance(job.error, TextDamaged):
            read_any_text(connection)
            job.run(connection)
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run_writes(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    """In the order of arrival; a job outside a transaction separates the others into two commits."""
    together: list[Job] = []
    for job in jobs:
        if job.in_transaction:
            together.append(job)
        else:
            _commit(connection, together)
            together = []
            job.run(connection)
    _commit(connection, together)


def _commit(connection: sqlite3.Connection, jobs: list[Job]) -> None:
    if not jobs:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            _run_in_savepoint(connection, job)
        connection.execute("COMMIT")
    except STATEMENT_ERRORS as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        failures = (job.error for job in jobs if isinstance(job.error, StorageFailed | Unavailable))
        cause = next(failures, None) or refusal_of(error)
        for job in jobs:
            job.error = job.error or cause


def _run_in_savepoint(connection: sqlite3.Connection, job: Job) -> None:
    """A job that fails is undone alone. A full disk may have rolled back the whole transaction, which the next
    statement then shows."""
    connection.execute("SAVEPOINT job")
    job.run(connection)
    if isinstance(job.error, TextDamaged):
        connection.execute("ROLLBACK TO job")
        read_any_text(connection)
        job.run(connection)
    if job.error is not None:
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
