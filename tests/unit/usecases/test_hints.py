"""What the use cases of hints add to the store."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from nudge import limits
from nudge.config import Settings
from nudge.hints.index import TextIndex
from nudge.server.operations import OPERATIONS
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.session import open_in_memory


def test_words_are_indexed_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regex runs on a thread, beside changes of the store. The index of words, which a first query by text builds in
    several slices, is not built there."""
    threads: set[int] = set()
    add = TextIndex.add

    def watch(words: Any, hint: Any) -> None:
        threads.add(threading.get_ident())
        add(words, hint)

    async def main() -> Any:
        app = App(open_in_memory(Settings({})), OPERATIONS)
        for number in range(3 * limits.HINTS_PER_SLICE):
            hint = {"component": f"c{number // 100}", "key": f"k{number}", "value": f"docker build {number}"}
            await app.execute("nudge.set_hint", hint, Call())
        monkeypatch.setattr(TextIndex, "add", watch)
        return await app.execute("nudge.query", {"text": "docker", "regex": "build 7$"}, Call())

    found = asyncio.run(main())
    assert [hit["key"] for hit in found["hints"]] == ["k7"]
    assert threads == {threading.get_ident()}
