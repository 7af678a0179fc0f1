from __future__ import annotations

from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.hints.index import TextQuery
from nudge.hints.store import HintStore
from tests.unit.hints.builders import NOW, finish, found_by, new_store, put


@pytest.fixture
def store() -> HintStore:
    store = new_store()
    put(store, "http-proxy", "build", "docker compose build router", {"tags": ["docker"], "priority": 9})
    put(store, "api", "run_tests", "pytest -q", {"priority": 8, "reason": "running the fast suite"})
    put(store, "api", "cache", {"type": "command", "cmd": "build the router cache, then compose"}, {"priority": 7})
    put(store, "café", "ports", {"type": "json", "data": {"http": 8080}}, {"priority": 6})
    return store


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("docker", ["http-proxy/build"]),
        ("DOCKER Builds", ["http-proxy/build"]),
        ("router build", ["http-proxy/build", "api/cache"]),
        ('"build router"', ["http-proxy/build"]),
        ('"router build"', []),
        ('"compose build" docker', ["http-proxy/build"]),
        ("comp*", ["http-proxy/build", "api/cache"]),
        ("compo* cach*", ["api/cache"]),
        ('"build rou"*', ["http-proxy/build"]),
        ("rou", []),
        ("http", ["http-proxy/build", "café/ports"]),
        ("http-proxy", ["http-proxy/build"]),
        ("proxy-http", []),
        ("run_tests", ["api/run_tests"]),
        ("test runs", ["api/run_tests"]),
        ("CAFE", ["café/ports"]),
        ("8080", ["café/ports"]),
        ("808*", ["café/ports"]),
        ('unclosed "fast suite', []),
        ('running "fast suite', ["api/run_tests"]),
        ("docker pytest", []),
    ],
)
def test_text(store: HintStore, query: str, found: list[str]) -> None:
    """Words in any order and by their stems, phrases, beginnings; in names, value, reason and tags."""
    assert found_by(store, text=query) == found


def test_text_with_other_filters(store: HintStore) -> None:
    """All must hold, and each says why."""
    assert found_by(store, text="build", component="api") == ["api/cache"]
    assert found_by(store, text="build", tags=["docker"], regex="compose b") == ["http-proxy/build"]
    [entry] = finish(store.query(NOW, text="suite"))["hints"]
    assert entry["match_explain"]["reasons"][0] == "text found in reason"


@pytest.mark.parametrize("query", ["", " ", "--", '""', "*", "x" * (limits.MAX_QUERY_TEXT_CHARS + 1), 5])
def test_a_text_without_words_is_refused(store: HintStore, query: Any) -> None:
    """It would find everything, or nothing."""
    with pytest.raises(Invalid) as refused:
        finish(store.query(NOW, text=query))
    assert refused.value.field == "text"


def test_words_follow_every_change() -> None:
    """What is set, replaced or deleted is found, or no longer, also while the words are first indexed."""
    store = new_store()
    for number in range(limits.HINTS_PER_SLICE + 10):
        put(store, f"c{number // 100}", f"k{number}", f"common word{number}")
    steps = store.query(NOW, text="common", limit=100)
    next(steps)
    put(store, "new", "k", "common newcomer")
    put(store, "c0", "k0", "replaced")
    store.apply(store.decide_delete(NOW, "c5", f"k{limits.HINTS_PER_SLICE + 9}").change)
    assert len(finish(steps)["hints"]) == 100
    assert found_by(store, text="newcomers") == ["new/k"] and found_by(store, text="word0") == []
    assert found_by(store, text="replacing") == ["c0/k0"]
    assert found_by(store, text=f"word{limits.HINTS_PER_SLICE + 9}") == []
    put(store, "new", "k", "other")
    assert found_by(store, text="newcomer") == [] and found_by(store, text="other") == ["new/k"]


def test_a_hint_of_many_words_is_found_by_each() -> None:
    """Only so many of them are indexed; the others are looked for in its text."""
    store = new_store()
    words = [f"w{number}x" for number in range(3 * limits.INDEXED_WORDS)]
    put(store, "long", "k", " ".join(words))
    put(store, "short", "k", "w1x")
    assert found_by(store, text=words[-1]) == ["long/k"]
    assert found_by(store, text=f'"{words[-2]} {words[-1]}"') == ["long/k"]
    assert found_by(store, text="absent") == []
    assert set(found_by(store, text="w1x")) == {"long/k", "short/k"}


def test_a_query_knows_no_order_of_its_words() -> None:
    """And a word that comes twice counts once."""
    assert TextQuery.parse("a b a") == TextQuery.parse("a  b")
