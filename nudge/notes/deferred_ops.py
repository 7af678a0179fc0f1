"""What is done after the answer to a recall or a store of notes: recalls are counted, and the index is merged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from nudge.core.call import Call
from nudge.notes import store as notes
from nudge.notes.note import Lifetimes
from nudge.notes.retrieval import count_segments, is_small, merge_segments
from nudge.storage.database import Database

if TYPE_CHECKING:
    from nudge.core.app import App

_COUNTED_AFTER = 1.0  # seconds after a recall: each commit empties the caches of the threads that read
_MERGED_AFTER = 2.0  # seconds after a note was stored


class DeferredWork:
    """The work that waits. A count that a crash loses harms nobody."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._recalled: list[Sequence[int]] = []
        self._counting: asyncio.Task[None] | None = None
        self._count_now = asyncio.Event()
        self._merging: asyncio.Task[None] | None = None

    def count_recall(self, ids: Sequence[int]) -> None:
        """Count a recall of notes after the answer."""
        self._recalled.append(ids)
        if self._counting is None or self._counting.done():
            self._counting = self._app.in_background(self._count_recalls())

    async def _count_recalls(self) -> None:
        """Count the recalls so far, those that come meanwhile in another transaction. What cannot be written is not
        counted."""
        lifetimes = Lifetimes.configured(self._app.lifetime.settings.memories)
        with suppress(TimeoutError):  # a commit would slow down the recalls that follow at once
            await asyncio.wait_for(self._count_now.wait(), _COUNTED_AFTER)
        while self._recalled:
            ids, self._recalled = list(chain.from_iterable(self._recalled)), []
            await self._app.write(Call(), partial(notes.touch, ids=ids, now=self._app.now(), lifetimes=lifetimes))

    async def recalls_counted(self) -> None:
        """Wait until the recalls before are counted: whoever looks at a note sees them."""
        if self._counting is not None and not self._counting.done():
            self._count_now.set()
            await asyncio.wait([self._counting])
            self._count_now.clear()

    def merge_index(self) -> None:
        """Merge the index of few notes some seconds after one was stored: with one segment a recall takes half as
        long."""
        if self._merging is None or self._merging.done():
            self._merging = self._app.in_background(self._merge_small_index())

    async def _merge_small_index(self) -> None:
        await asyncio.sleep(_MERGED_AFTER)
        if await self._app.read(is_small):
            await merge_note_index(self._app.require_database(), 1)


async def merge_note_index(database: Database, most: int) -> None:
    """Each store of a note adds to the segments of the index, and each search looks into all of them: merge them where
    there are more than `most`. In small steps: what is recorded meanwhile never waits long."""
    if await database.read(count_segments) <= most:
        return
    has_more = await database.write(lambda connection: merge_segments(connection, begin=True))
    while has_more:
        has_more = await database.write(merge_segments)
