"""How long an event loop was held: a task that wants to run every millisecond says when it could not."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nudge.core import limits
from tests.pace import slowness
from tests.security.served import Served

BEAT = 0.001
MOST_HELD = 0.020


class Heartbeat:
    """`worst` is the longest time between two beats, in seconds.

    Time in which this whole process did not run is nobody's fault here: a busy machine takes it. So each gap counts as
    the processor time that passed in it, whichever thread used it up, and at most as the wall clock says.
    """

    def __init__(self) -> None:
        self.worst = 0.0
        self._stopping = False

    async def beat(self) -> None:
        last = time.perf_counter(), time.process_time()
        while not self._stopping:
            await asyncio.sleep(BEAT)
            now = time.perf_counter(), time.process_time()
            self.worst = max(self.worst, min(now[0] - last[0], now[1] - last[1]))
            last = now

    def stop(self) -> None:
        self._stopping = True


@contextmanager
def listening(server: Served) -> Iterator[Heartbeat]:
    """Without the collector, which would walk over all that the tests themselves hold; PRIMARY has a rule of its own
    for it."""
    heart = Heartbeat()
    gc.disable()
    sys.setswitchinterval(limits.SWITCH_INTERVAL)  # as PRIMARY does
    beating = asyncio.run_coroutine_threadsafe(heart.beat(), server.loop)
    try:
        yield heart
    finally:
        heart.stop()
        beating.result(60)
        gc.enable()


def held(server: Served, work: Callable[[], object], rounds: int = 6) -> float:
    """The longest gap while `work` runs, beyond the longest while nothing is to do, in seconds of a quiet machine; best
    of some rounds, and of more while it is too long: another process on the same cores can stretch one measurement,
    hardly all of them."""
    best = float("inf")
    for number in range(4 * rounds):
        best = min(best, _round(server, work))
        if best < MOST_HELD / 2 or (number >= rounds and best < MOST_HELD):
            break
    return best


def _round(server: Served, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    with listening(server) as heart:
        work()
    took = min(max(time.perf_counter() - began, 0.05), 0.2)
    with listening(server) as idle:
        time.sleep(took)
    return (heart.worst - idle.worst) / slowness()
