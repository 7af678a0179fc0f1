"""The application: the event loop runs beside a worker thread."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nudge import limits
from nudge.usecases.app import with_loop_turns

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
