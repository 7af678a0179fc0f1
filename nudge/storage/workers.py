"""Threads with a database connection each, and the queue through which the event loop gives them work."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
import traceback
from collections import deque
from threading import Lock, Thread

from nudge.core.errors import NudgeError, StorageFailed, Unavailable
from nudge.storage.sqlite import STATEMENT_ERRORS, error_name, to_nudge_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Work = Callable[[sqlite3.Connection], Any]

_log = logging.getLogger(__name__)
CLOSED = "the history is closed"
_TOO_LONG = "the query took too long and was stopped; narrow it"
_STOPPING = "the server is stopping; send it again"
_AFTER_INTERRUPT = 0.2  # seconds for the threads to end


class Job:
    """One piece of work and its result. `in_transaction`: together with others that wait, each in its own savepoint."""

    __slots__ = ("error", "future", "in_transaction", "interruption", "loop", "result", "work")

    def __init__(self, work: Work, *, in_transaction: bool = True) -> None:
        self.work, self.in_transaction = work, in_transaction
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.interruption: NudgeError | None = None
        """The reason, when SQLite says no more than that it was interrupted."""

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the work; what it raises becomes `error`."""
        self.error = None
        try:
            self.result = self.work(connection)
        except STATEMENT_ERRORS as error:
            traceback.clear_frames(error.__traceback__)  # a cursor in them would hold the read transaction open
            interrupted = error_name(error) == "SQLITE_INTERRUPT"
            self.error = self.interruption if interrupted and self.interruption else refusal_of(error)
        except Exception as error:
            self.error = error

    def finish(self) -> None:
        """Give the result to the caller, on the event loop. A caller that has gone does not undo the work."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Workers:
    """`threads` threads on one queue; each takes up to `batch` waiting jobs at once. They start with the first job.

    Before each batch `connect` gets the thread's connection (None at first) and returns the one to use.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[sqlite3.Connection | None], sqlite3.Connection],
        run: Callable[[sqlite3.Connection, list[Job]], None],
        *,
        threads: int = 1,
        batch: int = 1,
    ) -> None:
        self._name, self._connect, self._run, self._most, self._batch = name, connect, run, threads, batch
        self._changing = Lock()
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, sqlite3.Connection] = {}
        # A lock for each idle thread, which waits for it. The one that worked last is woken first: its connection has
        # the pages, and with two threads in turn a recall takes a tenth longer.
        self._idle: list[Lock] = []
        self._threads: list[Thread] = []
        self._stopped = False
        self._epoch = 0

    async def do(self, job: Job, timeout: float | None = None) -> Any:
        """Return the job's result. After `timeout` seconds it is interrupted and fails."""
        self._submit(job)
        timer = None if timeout is None else job.loop.call_later(timeout, self._time_out, job)
        try:
            return await job.future
        finally:
            if timer is not None:
                timer.cancel()

    def _submit(self, job: Job) -> None:
        with self._changing:
            if self._stopped:
                raise StorageFailed(CLOSED)
            self._waiting.append(job)
            if self._idle:
                self._idle.pop().release()
            elif len(self._threads) < self._most:
                self._threads.append(Thread(target=self._serve, name=self._name, daemon=True))
                self._threads[-1].start()

    @property
    def has_others(self) -> bool:
        """Whether a job waits behind the one that runs, or shares its batch."""
        return bool(self._waiting) or len(self._running) > 1

    def reconnect(self) -> None:
        """Have every thread open a new connection before its next batch."""
        self._epoch += 1

    def stop(self, timeout: float) -> bool:
        """Take no new jobs; those that wait or run have `timeout` seconds, then they fail. Return whether all threads
        have ended."""
        with self._changing:
            self._stopped = True
            for idle in self._idle:
                idle.release()
            self._idle.clear()
        if not self._join(timeout):
            self._interrupt()
        return self._join(_AFTER_INTERRUPT)

    def _join(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def _interrupt(self) -> None:
        with self._changing:
            abandoned = list(self._waiting)
            self._waiting.clear()
            for job, connection in self._running.items():
                job.interruption = Unavailable(_STOPPING)
                connection.interrupt()
        for job in abandoned:
            job.error = Unavailable(_STOPPING)
        deliver(abandoned)

    def _time_out(self, job: Job) -> None:
        with self._changing:
            if job in self._running:
                job.interruption = StorageFailed(_TOO_LONG)
                self._running[job].interrupt()
            elif job in self._waiting:
                self._waiting.remove(job)
                job.error = Unavailable("the history is busy; try again")
                job.finish()

    # On the threads

    def _serve(self) -> None:
        connection: sqlite3.Connection | None = None
        epoch = self._epoch
        while jobs := self._take():
            if connection is not None and epoch != self._epoch:
                connection.close()
                connection = None
            try:
                epoch, connection = self._epoch, self._connect(connection)
            except Exception as error:
                _fail(jobs, error)
                continue
            self._perform(connection, jobs)
        if connection is not None:
            connection.close()

    def _take(self) -> list[Job]:
        """The next jobs, or none when the thread should end."""
        wake = Lock()
        wake.acquire()
        while True:
            with self._changing:
                if self._waiting or self._stopped:
                    return [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
                self._idle.append(wake)
            wake.acquire()  # released with the next job, which a thread that just became free may take

    def _perform(self, connection: sqlite3.Connection, jobs: list[Job]) -> None:
        with self._changing:
            self._running.update(dict.fromkeys(jobs, connection))
        try:
            self._run(connection, jobs)
        except Exception as error:
            _fail(jobs, error)
            return
        finally:
            with self._changing:
                for job in jobs:
                    del self._running[job]
        deliver(jobs)


def refusal_of(error: BaseException) -> NudgeError:
    """Return what a caller is told about one of `STATEMENT_ERRORS`; SQLite's own words are for the log."""
    refused = to_nudge_error(error)
    if isinstance(refused, StorageFailed):
        _log.warning("a statement failed: %s", error)
    return refused


def _fail(jobs: list[Job], error: Exception) -> None:
    for job in jobs:
        job.error = refusal_of(error) if isinstance(error, STATEMENT_ERRORS) else error
    deliver(jobs)


def deliver(jobs: list[Job]) -> None:
    """Hand the results over, waking each event loop once; a loop that has ended is skipped."""
    for loop in {job.loop for job in jobs}:
        try:
            loop.call_soon_threadsafe(_finish, [job for job in jobs if job.loop is loop])
        except RuntimeError:
            continue


def _finish(jobs: list[Job]) -> None:
    for job in jobs:
        job.finish()
