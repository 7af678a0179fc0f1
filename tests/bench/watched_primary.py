"""A real PRIMARY that watches its own event loop: a task that wants to run every millisecond notes when it could not.

Each byte on stdin asks for the longest gap since the last one; the answer is a line of JSON on stdout.
"""

from __future__ import annotations

import asyncio
import json
import os
import time

from nudge import __version__
from nudge.core import paths
from nudge.core.clock import iso
from nudge.core.locks import OwnerLock
from nudge.hints.lifetime import open_lifetime
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint
from nudge.process.primary import DETACHED, Primary
from nudge.settings import config

_BEAT = 0.001


class _Watch:
    """Both clocks count: time in which the whole process did not run was taken by others, and is not the loop's. `own`
    is what the thread of the loop itself worked."""

    def __init__(self) -> None:
        self._held = self._wall = self._own = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, _published: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._beat()))
        loop.add_reader(0, self._tell)

    async def _beat(self) -> None:
        wall, used, own = time.perf_counter(), time.process_time(), time.thread_time()
        while True:
            await asyncio.sleep(_BEAT)
            gap, work = time.perf_counter() - wall, time.process_time() - used
            mine = time.thread_time() - own
            own += mine
            self._own = max(self._own, min(gap, mine))
            wall, used = wall + gap, used + work
            self._wall, self._held = max(self._wall, gap), max(self._held, min(gap, work))

    def _tell(self) -> None:
        if not os.read(0, 1):
            asyncio.get_running_loop().remove_reader(0)
            return
        print(json.dumps({"held": self._held * 1000, "wall": self._wall * 1000, "own": self._own * 1000}), flush=True)
        self._held = self._wall = self._own = 0.0


def _announcement() -> Endpoint:
    return Endpoint(os.getpid(), None, None, iso(time.time()), os.urandom(6).hex(), __version__, endpoint.STARTING)


def main() -> None:
    directory = paths.runtime_dir()
    paths.ensure_private_dir(directory)
    lock = OwnerLock(os.path.join(directory, paths.LOCK))
    assert lock.acquire()
    Primary(
        directory,
        lock,
        open_lifetime(directory, config.Sources(directory)),
        _announcement(),
        owner=DETACHED,
        on_ready=_Watch().begin,
    ).run()


if __name__ == "__main__":
    main()
