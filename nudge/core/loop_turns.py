"""Turns of the event loop between slices of a worker thread's work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from nudge.core import limits

_T = TypeVar("_T")


class LoopTurns:
    """Makes a worker thread pause for a turn of the event loop after each WORKER_SLICE of its work on the items that it
    iterates over. Made on the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def between(self, items: Iterable[_T]) -> Iterator[_T]:
        began = time.perf_counter()
        for item in items:
            yield item
            if time.perf_counter() - began > limits.WORKER_SLICE:
                _wait_for_turn(self._loop)
                began = time.perf_counter()


def with_loop_turns(items: Iterable[_T]) -> Iterator[_T]:
    """Items for a worker thread to iterate over, with turns of the event loop. Call this function on the event loop."""
    return LoopTurns().between(items)


def _wait_for_turn(loop: asyncio.AbstractEventLoop) -> None:
    turned = threading.Event()
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(turned.set)
        turned.wait(limits.LOOP_TURN_TIMEOUT)
