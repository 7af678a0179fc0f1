"""The application: repeated calls, deadlines, and an event loop that runs beside a worker thread."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.answers import Answers
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.errors import Invalid, Unavailable
from nudge.core.loop_turns import with_loop_turns
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.storage.database import Database, find_answer, run_once

_ITEMS = 5


@pytest.fixture
def no_forced_switches() -> Iterator[None]:
    """A thread keeps the interpreter until it gives it up by itself."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    yield
    sys.setswitchinterval(interval)


def _work(result: Any) -> Any:
    until = time.perf_counter() + 2 * limits.WORKER_SLICE
    while time.perf_counter() < until:
        pass
    return result


@pytest.mark.usefixtures("no_forced_switches")
def test_the_event_loop_turns_after_each_slice_of_a_workers_items() -> None:
    """A worker that never gives the interpreter up by itself still leaves the loop a turn between two slices."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> list[int]:
        counter = asyncio.ensure_future(count_turns())
        items = with_loop_turns(_work(turns) for _ in range(_ITEMS))
        seen = await asyncio.to_thread(list, items)
        counter.cancel()
        return seen

    seen = asyncio.run(main())
    assert len(seen) == _ITEMS
    assert seen == sorted(set(seen)), "no turn between two items"


def test_a_worker_does_not_depend_on_a_loop_that_has_ended() -> None:
    """After the loop is closed, the worker iterates over the remaining items."""

    async def main() -> Iterator[int]:
        return with_loop_turns(_work(number) for number in range(_ITEMS))

    assert list(asyncio.run(main())) == list(range(_ITEMS))


# Repeated calls


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(open_in_memory(Settings({})), OPERATIONS)
    made.database = Database.open(str(tmp_path / "nudge.db"))
    yield made
    made.database.close()


NOTE = {"title": "Prices are cents", "content": "Never floats"}
HINT = {"component": "api", "key": "test", "value": "make test"}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("nudge.set_hint", HINT),
    ("nudge.memory_store", NOTE),
    ("nudge.backup", {}),
    ("nudge.purge", {"search": "anything", "confirm": True}),
    ("nudge.start_session", {}),
    ("nudge.increment_tool_count", {}),
]


@pytest.mark.parametrize(("name", "params"), WRITES)
def test_a_repeated_write_gets_the_first_answer(app: App, name: str, params: dict[str, Any]) -> None:
    """Under one `once` key, whatever the write changes and wherever its answer is kept; another key is another call."""

    async def main() -> tuple[Any, Any]:
        call = Call(interface="cli", request_id="k")
        return await app.execute(name, params, call), await app.execute(name, params, call)

    first, repeated = asyncio.run(main())
    assert first == repeated


def test_a_write_that_is_repeated_while_it_runs_is_done_once(app: App) -> None:
    """A client that lost its connection sends the call to the same server again; both get the one answer."""

    async def main() -> tuple[Any, Any, Any]:
        call = Call(interface="cli", request_id="k", session="s")
        both = await asyncio.gather(*(app.execute("nudge.memory_store", NOTE, call) for _ in range(2)))
        return *both, await app.execute("nudge.memory_list", {}, replace(call, request_id=None))

    first, second, listed = asyncio.run(main())
    assert first == second and len(listed["memories"]) == 1


@pytest.mark.parametrize("writes", [WRITES[:2], WRITES[1::-1], WRITES[2:4], WRITES[3:5]])
def test_a_key_belongs_to_one_call(app: App, writes: list[tuple[str, dict[str, Any]]]) -> None:
    """A hint's key is refused for a note, and a note's for a hint: nothing is changed by the second call."""

    async def main() -> None:
        for name, params in writes:
            await app.execute(name, params, Call(interface="cli", request_id="k"))

    with pytest.raises(Invalid, match="once: was used for another call"):
        asyncio.run(main())


def test_a_failed_write_may_be_repeated(app: App) -> None:
    """Only answers are kept: what failed was not done."""

    async def main() -> Any:
        call = Call(interface="cli", request_id="k")
        with pytest.raises(Unavailable, match="too late"):
            await app.execute("nudge.memory_store", NOTE, replace(call, deadline=0.0))
        return await app.execute("nudge.memory_store", NOTE, call)

    assert asyncio.run(main())["id"]


def test_a_write_that_waited_past_its_deadline_is_not_applied(app: App) -> None:
    """Another process held the database: the caller was told long ago that its call failed."""

    async def main() -> int:
        assert app.database is not None
        deadline = boot_seconds() + 0.1
        with closing(sqlite3.connect(app.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            call = Call(interface="cli", request_id="k", deadline=deadline)
            writing = asyncio.ensure_future(app.execute("nudge.memory_store", NOTE, call))
            while boot_seconds() <= deadline:
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
        with pytest.raises(Unavailable, match="too late"):
            await writing
        return len((await app.execute("nudge.memory_list", {}, Call(interface="cli")))["memories"])

    assert asyncio.run(main()) == 0


def test_a_repeated_write_has_its_own_deadline(app: App) -> None:
    """A client sends the call again with more time while the first copy waits: the first one's end is not its end."""

    async def main() -> Any:
        assert app.database is not None
        deadline = boot_seconds() + 0.1
        with closing(sqlite3.connect(app.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            calls = [Call(interface="cli", request_id="k", deadline=deadline + more) for more in (0.0, 60.0)]
            writing = [asyncio.ensure_future(app.execute("nudge.memory_store", NOTE, call)) for call in calls]
            while boot_seconds() <= deadline:
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
        first, repeated = await asyncio.gather(*writing, return_exceptions=True)
        assert isinstance(first, Unavailable)
        return repeated, await app.execute("nudge.memory_list", {}, Call(interface="cli"))

    repeated, listed = asyncio.run(main())
    assert repeated["id"] and len(listed["memories"]) == 1


@pytest.mark.parametrize(("name", "params"), [*WRITES, ("nudge.stop", {})])
def test_no_write_is_applied_after_its_deadline(app: App, name: str, params: dict[str, Any]) -> None:
    """Wherever it writes to: its caller was told that it failed."""
    with pytest.raises(Unavailable, match="too late"):
        asyncio.run(app.execute(name, params, Call(interface="cli", request_id="k", deadline=0.0)))


def test_large_answers_make_room_for_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kept answers together have a limit: thousands of recalls must not fill the memory."""
    monkeypatch.setattr(limits, "MAX_ANSWER_BYTES", 100)
    answers = Answers()
    for number in range(4):
        answers.remember(float(number), f"k{number}", "x" * 40)
    answers.remember(4.0, "k3", "x" * 40)  # counted once
    assert [f"k{number}" in answers for number in range(4)] == [False, False, True, True]


def test_the_latest_answers_are_kept(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most MAX_ANSWERS of them, in the database too."""
    monkeypatch.setattr(limits, "MAX_ANSWERS", 3)

    def write(connection: sqlite3.Connection) -> list[str]:
        for number in range(5):
            run_once(connection, f"k{number}", "f", 1_000.0 + number, lambda _: True)
        return [key for key in map("k{}".format, range(5)) if find_answer(connection, key, "f") is not None]

    assert app.database is not None
    assert asyncio.run(app.database.write(write)) == ["k2", "k3", "k4"]


def test_an_import_of_notes_is_answered_by_the_next_server(app: App) -> None:
    """The one that stored them died before it answered."""

    async def send(app: App) -> Any:
        call = Call(interface="cli", request_id="k")
        return await app.execute("nudge.memory_import", {"memories": [NOTE, {**NOTE, "title": "Another"}]}, call)

    answer = asyncio.run(send(app))
    successor = App(open_in_memory(Settings({})), OPERATIONS)
    successor.database = app.database
    assert answer["created"] == 2
    assert asyncio.run(send(successor)) == answer
