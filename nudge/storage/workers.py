"""Threads that own a database connection each, and the way from the event loop to them and back."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from threading import Condition, Thread

from nudge.errors import Invalid, NudgeError, StorageFailed, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

    Work = Callable[[sqlite3.Connection], Any]

CLOSED = "the history is closed"
_TOO_LONG = "the query took too long and was stopped; narrow it"
_LEAVING = "the server is leaving; send it again"
_AFTER_INTERRUPT = 0.2  # seconds for threads to notice


class Job:
    """One piece of work and its answer. `alone`: outside any transaction."""

    __slots__ = ("alone", "error", "future", "interruption", "loop", "result", "work")

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop, *, alone: bool = False) -> None:
        self.work, self.loop, self.alone = work, loop, alone
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.interruption: NudgeError | None = None
        """What to say when SQLite says no more than that it was interrupted."""

    def attempt(self, connection: sqlite3.Connection) -> None:
        try:
            self.result = self.work(connection)
        except sqlite3.Error as error:
            self.error = (
                self.interruption if _code(error) == "SQLITE_INTERRUPT" and self.interruption else translated(error)
            )
        except Exception as error:
            self.error = error

    def finish(self) -> None:
        """On the event loop. Whoever asked may have gone; what was done stays done."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Workers:
    """`threads` threads on one queue; each takes up to `batch` waiting jobs at once. They start with the first job."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        run: Callable[[sqlite3.Connection, list[Job]], None],
        *,
        threads: int = 1,
        batch: int = 1,
    ) -> None:
        self._name, self._connect, self._run, self._most, self._batch = name, connect, run, threads, batch
        self._changed = Condition()
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, sqlite3.Connection] = {}
        self._idle = 0
        self._threads: list[Thread] = []
        self._stopped = False

    async def do(self, job: Job, patience: float | None = None) -> Any:
        """The job's result; when it takes longer than `patience`, it is interrupted and fails."""
        self._submit(job)
        timer = None if patience is None else job.loop.call_later(patience, self._give_up, job)
        try:
            return await job.future
        finally:
            if timer is not None:
                timer.cancel()

    def _submit(self, job: Job) -> None:
        with self._changed:
            if self._stopped:
                raise StorageFailed(CLOSED)
            self._waiting.append(job)
            if self._idle == 0 and len(self._threads) < self._most:
                self._threads.append(Thread(target=self._serve, name=self._name, daemon=True))
                self._threads[-1].start()
            self._changed.notify()

    def stop(self, patience: float) -> bool:
        """No new jobs; those that wait or run have `patience` seconds, then they fail. Whether all threads have
        ended."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if not self._join(patience):
            self._abandon()
        return self._join(_AFTER_INTERRUPT)

    def _join(self, patience: float) -> bool:
        until = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def _abandon(self) -> None:
        with self._changed:
            abandoned = list(self._waiting)
            self._waiting.clear()
            for job, connection in self._running.items():
                job.interruption = Unavailable(_LEAVING)
                connection.interrupt()
        for job in abandoned:
            job.error = Unavailable(_LEAVING)
        deliver(abandoned)

    def _give_up(self, job: Job) -> None:
        with self._changed:
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
        while jobs := self._take():
            try:
                connection = connection or self._connect()
            except Exception as error:
                _fail(jobs, error)
                continue
            self._perform(connection, jobs)
        if connection is not None:
            connection.close()

    def _take(self) -> list[Job]:
        """Nothing when it is time to go."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            self._idle -= 1
            return [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]

    def _perform(self, connection: sqlite3.Connection, jobs: list[Job]) -> None:
        with self._changed:
            self._running.update(dict.fromkeys(jobs, connection))
        try:
            self._run(connection, jobs)
        except Exception as error:
            _fail(jobs, error)
            return
        finally:
            with self._changed:
                for job in jobs:
                    del self._running[job]
        deliver(jobs)


def _fail(jobs: list[Job], error: Exception) -> None:
    for job in jobs:
        job.error = translated(error) if isinstance(error, sqlite3.Error) else error
    deliver(jobs)


def deliver(jobs: list[Job]) -> None:
    """One wake-up of a loop for all of its jobs; a loop that has ended wants no answer."""
    for loop in {job.loop for job in jobs}:
        try:
            loop.call_soon_threadsafe(_finish, [job for job in jobs if job.loop is loop])
        except RuntimeError:
            continue


def _finish(jobs: list[Job]) -> None:
    for job in jobs:
        job.finish()


def _code(error: sqlite3.Error) -> str:
    """Errors that Python itself raises have none."""
    return getattr(error, "sqlite_errorname", None) or ""


def translated(error: sqlite3.Error) -> NudgeError:
    """What SQLite says, as an error of ours. Its messages name no path."""
    if _code(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Unavailable("another process is writing to the history; try again")
    if str(error).startswith("fts5: "):
        return Invalid(str(error).removeprefix("fts5: "), field="query")
    return StorageFailed(f"the history failed: {error}")
