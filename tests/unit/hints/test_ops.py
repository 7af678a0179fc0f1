"""What the operations of hints add to the store."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.index import TextIndex
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.storage.database import Database


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

    result = asyncio.run(main())
    assert [hit["key"] for hit in result["hints"]] == ["k7"]
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("name", "params", "returned"),
    [
        ("nudge.get_hint", {"component": "api", "key": "test"}, {"test"}),
        ("nudge.query", {"keys": ["test", "build"], "limit": 1}, {"test"}),
        ("nudge.query", {"regex": "pytest"}, {"test"}),
        ("nudge.inject", {}, {"test", "build"}),
        ("nudge.assemble_context", {"query": "how do I run pytest here", "context_types": ["hints"]}, {"test"}),
        ("nudge.list_components", {"component": "api"}, set()),
    ],
)
def test_a_hint_that_is_returned_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, Any], returned: set[str]
) -> None:
    """Through every operation that shows its value to an agent; the result has nothing of it. A list of all hints is
    not a use of each."""
    moment = [1_800_000_000.0]

    async def main() -> tuple[Any, set[str]]:
        app = App(open_in_memory(Settings({})), OPERATIONS)
        database = app.database = Database.open(str(tmp_path / "nudge.db"))
        monkeypatch.setattr(app, "now", lambda: moment[0])
        for key, value, priority in (("test", "pytest -q", 9), ("build", "make all", 5), ("elsewhere", "ls", 5)):
            place = "/other/**" if key == "elsewhere" else "/code/**"
            meta = {"scope": {"cwd_glob": [place]}, "priority": priority}
            await app.execute("nudge.set_hint", {"component": "api", "key": key, "value": value, "meta": meta}, Call())
        moment[0] += 20 * 86_400
        result = await app.execute(name, {"context": {"cwd": "/code/api"}, **params}, Call())
        app.lifetime.store.apply(app.lifetime.store.decide_sweep(moment[0]))
        moment[0] += 11 * 86_400
        app.lifetime.store.apply(app.lifetime.store.decide_sweep(moment[0]))
        database.close()
        return result, {hint.key for hint in app.lifetime.store.hints()}

    result, held = asyncio.run(main())
    assert held == returned
    assert "due" not in str(result)
