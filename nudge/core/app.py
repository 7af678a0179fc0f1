"""The application: executes the operations of a table. Interfaces call `App.execute` and nothing else."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from nudge.core import limits, transfer_files
from nudge.core.aliases import with_own_names
from nudge.core.answers import Answers, check_fingerprint
from nudge.core.call import Call, ClientProcesses, Params, SessionActivity, parse_params
from nudge.core.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    WIRE_REASONS,
    Invalid,
    NudgeError,
    StorageFailed,
    Unavailable,
)
from nudge.hints.commit_ops import HintChanges
from nudge.hints.lifetime import HintLifetime
from nudge.learning.facts import Facts
from nudge.meaning.search_ops import Meaning
from nudge.notes.deferred_ops import DeferredWork
from nudge.proposals.language_model import LanguageModel
from nudge.storage.database import Database, run_once
from nudge.telling.edits import Edits
from nudge.telling.ledger import Ledger

if TYPE_CHECKING:
    from nudge.team.sync_ops import TeamSync

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_SLICE = 0.001  # seconds of work before the event loop gets its turn


class UnknownMethod(NudgeError):
    code, reason = METHOD_NOT_FOUND, WIRE_REASONS[METHOD_NOT_FOUND]


class ParamsNotObject(NudgeError):
    code, reason = INVALID_PARAMS, WIRE_REASONS[INVALID_PARAMS]


class OperationLike(Protocol):
    """What the application needs of an entry of the table."""

    @property
    def params(self) -> type[Params]: ...
    @property
    def effect(self) -> str: ...
    @property
    def run(self) -> Callable[..., Awaitable[Any]]: ...


class _RunningWrite(NamedTuple):
    fingerprint: str | None
    answer: asyncio.Future[Any]


class App:
    """Executes operations: validates parameters, decides, appends to the log, applies.

    `operations` is the table by name; `confirm_role` raises HandingOver when this process is no longer PRIMARY.
    """

    database: Database | None = None
    """The database of history and notes; without one, `require_database` raises StorageFailed."""
    facts: Facts | None = None
    """What was learned from outcomes, for use `in_learning_thread`; None until it is loaded."""
    team: TeamSync | None = None
    """Exchanges hints and notes with a team; None when none was joined."""
    calls = 0
    """How many calls there were."""

    def __init__(
        self,
        lifetime: HintLifetime,
        operations: Mapping[str, OperationLike],
        confirm_role: Callable[[], None] = lambda: None,
    ) -> None:
        self._operations = operations
        self.lifetime = lifetime
        self.confirm_role = confirm_role
        self.changes = HintChanges(lifetime, confirm_role)
        """Commits changes of hints."""
        self.directory = lifetime.directory
        """The runtime directory; None when it cannot be written."""
        self.describe: Callable[[], dict[str, Any]] = dict
        self.request_stop: Callable[[bool, bool], dict[str, Any]] = lambda _force, _forget: {}
        self.drain: Callable[[], Awaitable[int]] = _nothing_to_drain
        """Records the events in the spool, which hooks wrote while no server answered; returns how many remain."""
        self.spool_recorded = asyncio.Event()
        """Set once the events that hooks spooled before this server started are recorded, or cannot be."""
        self.spool_recorded.set()
        self._learning: ThreadPoolExecutor | None = None
        self.edits = Edits()
        """Which files were edited recently, and by whom."""
        self.ledger = Ledger()
        """The lines that active sessions were told."""
        self.clients = ClientProcesses()
        """Which session each client process is in."""
        self.deferred = DeferredWork(self)
        """The work on notes that follows an answer."""
        self.meaning = Meaning(self)
        """The meaning of notes, if there is a model."""
        self.activity = SessionActivity()
        """When sessions were last seen, and what they did since they updated their attempts."""
        self.model = LanguageModel(lifetime.settings)
        """The language model of the session, if its settings name one."""
        self.on_write: set[Callable[[str], None]] = set()
        """Called with the name of each operation that may have changed something."""
        self.exporting = asyncio.Lock()
        """Held by the large export that is being written: others read the database at the same time."""
        self._answers = Answers()
        """Of writes that are not answered from the change log."""
        self._running: dict[str, _RunningWrite] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def execute(self, name: str, params: object, call: Call) -> Any:
        """Run one operation and return its result; raises NudgeError, or EnvNeeded for what to ask the caller for."""
        operation = self._operations.get(name)
        if operation is None:
            raise UnknownMethod(f"Method not found: {name[:100]}")
        if not isinstance(params, dict):
            raise ParamsNotObject("Invalid params: must be an object")
        self.calls += 1
        parsed = parse_params(operation.params, with_own_names(operation.params, params))
        call = call.located(parsed.place())
        if operation.effect == "read":
            return await operation.run(self, parsed, call)
        call.refuse_late()
        # The key of a hook is the id of its event, by which the history tells a repeated event.
        if call.request_id is None or call.interface == "hook":
            result = await operation.run(self, parsed, call)
        else:
            call = replace(call, fingerprint=call.fingerprint or _fingerprint(name, params))
            result = await self._answer_once(call, lambda: operation.run(self, parsed, call))
        for notify in self.on_write:
            notify(name)
        return result

    async def _answer_once(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a write, unless its request id was used before: then return the first call's answer, and wait for it if
        need be. Raises Invalid for a key of another call. What must also be known to the next server is kept with the
        change itself, by `HintChanges.commit` and `write_once`."""
        request_id = call.request_id
        assert request_id is not None
        while True:
            for answers in (self.lifetime.answers, self._answers):
                if request_id in answers:
                    return answers.get(request_id, call.fingerprint)
            if (running := self._running.get(request_id)) is None:
                break
            check_fingerprint(running.fingerprint, call.fingerprint)
            try:
                return await asyncio.shield(running.answer)
            except Unavailable:  # nothing was applied, maybe since the deadline of the first call has passed
                call.refuse_late()
        running = self._running[request_id] = _RunningWrite(
            call.fingerprint, asyncio.get_running_loop().create_future()
        )
        try:
            result = await run()
        except BaseException as error:
            cancelled = Unavailable("the call was cancelled; send it again")
            running.answer.set_exception(error if isinstance(error, Exception) else cancelled)
            running.answer.exception()  # retrieved: usually nobody else waits for it
            raise
        finally:
            del self._running[request_id]
        running.answer.set_result(result)
        if request_id not in self.lifetime.answers:
            self._answers.remember(self.now(), request_id, result, call.fingerprint)
        return result

    def now(self) -> float:
        return self.lifetime.clock.now()

    def write_log(self) -> bool:
        """Write the change log that there was no room for; return whether that succeeded now."""
        is_written = self.changes.write_log()
        self.directory = self.lifetime.directory
        return is_written

    def require_directory(self) -> str:
        if self.directory is None:
            raise StorageFailed("no file can be written in the runtime directory; see: nudge status")
        return self.directory

    # The database

    def require_database(self) -> Database:
        if self.database is None:
            raise StorageFailed("no history is open")
        return self.database

    async def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        return await self.require_database().read(work)

    async def read_history(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """`read` for observations. Right after a start, wait until the events in the spool are recorded: the call that
        started this server may ask about what its own hooks just spooled."""
        if not self.spool_recorded.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.spool_recorded.wait(), limits.SPOOL_WAIT)
        return await self.read(work)

    async def write(self, call: Call, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` in a transaction; returns when it is durable. Refused when we are no longer PRIMARY, or after the
        deadline: the caller sends the request again. The deadline is checked in the transaction: another process may
        hold the database for longer than that."""

        def work_in_time(connection: sqlite3.Connection) -> _T:
            call.refuse_late()
            return work(connection)

        self.confirm_role()
        return await self.require_database().write(work_in_time)

    async def write_once(self, call: Call, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """`write` for what must not be done twice: a repeated call gets the result of the first, which is kept in the
        same transaction. The result must be JSON."""
        request_id, now = call.request_id, self.now()
        if request_id is None:
            return await self.write(call, work)
        return await self.write(call, lambda connection: run_once(connection, request_id, call.fingerprint, now, work))

    async def in_learning_thread(self, work: Callable[[], _T]) -> _T:
        """Run `work` on the one thread that the facts belong to: what was learned is changed and read in order, and a
        long command or error does not hold the event loop."""
        if self._learning is None:
            self._learning = ThreadPoolExecutor(1, "nudge-learning")
        return await asyncio.get_running_loop().run_in_executor(self._learning, work)

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` without waiting for it. Its errors are logged; it is lost when the server ends."""

        async def run() -> None:
            try:
                await work
            except NudgeError as error:
                _log.warning("in the background: %s", error.message)

        task = asyncio.ensure_future(run())
        self._background.add(task)  # the loop itself keeps no reference
        task.add_done_callback(self._background.discard)
        return task

    async def tick(self) -> None:
        """Do the work that is due once a minute."""
        async with self.changes.writing:
            self.tidy()
        await self.meaning.start()

    def tidy(self) -> None:
        """Write a heartbeat to the log; drop expired hints, old answers and the files of abandoned transfers."""
        if self.directory is not None:
            transfer_files.sweep(self.directory)
        self._answers.forget_old(self.now())
        self.changes.sweep()

    async def in_slices(self, steps: Generator[None, None, _T]) -> _T:
        """Drive a long computation in short slices, between which the event loop serves other calls. In one step a
        query among 1,000 costly globs holds it for 880 ms, a list of components for 960, a get among 200 for 320; in
        slices for 9, 6 and 5."""
        began = time.perf_counter()
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                result: _T = finished.value
                return result
            if time.perf_counter() - began > _SLICE:
                await asyncio.sleep(0)
                began = time.perf_counter()

    async def in_thread(self, steps: Generator[None, None, _T]) -> _T:
        """Take the first step here and the others on a worker thread: a regular expression runs there beside the event
        loop."""
        try:
            next(steps)
        except StopIteration as finished:
            result: _T = finished.value
            return result
        return await asyncio.to_thread(_finish, steps, time.monotonic() + limits.SEARCH_TIMEOUT)


async def _nothing_to_drain() -> int:
    return 0


def _finish(steps: Generator[None, None, _T], give_up: float) -> _T:
    """Run the steps to their end; raises Invalid at the monotonic time `give_up`."""
    while time.monotonic() < give_up:
        try:
            next(steps)
        except StopIteration as finished:
            result: _T = finished.value
            return result
    raise Invalid(
        f"takes longer than {limits.SEARCH_TIMEOUT} s; simplify it, or narrow the search by component or tags",
        field="regex",
    )


def _fingerprint(name: str, params: dict[str, Any]) -> str:
    """A hash that tells a repeated call from another one with the same request id."""
    # Not `to_json`: it fails on half a surrogate pair, which JSON can spell.
    return blake2b(json.dumps([name, params]).encode(), digest_size=8).hexdigest()
