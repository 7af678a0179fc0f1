"""Questions as people type them: with apostrophes, open quotes and slips."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.ways import ALONE, TO_A_PRIMARY, Http, Rest, Way
from tests.harness import Machine

_NOTE = {"title": "The user's database is Postgres", "content": "We don't shard it.", "kind": "decision"}
_ALL_WORDS = ["user's databse", "don't shard", '"database is', "(database"]
_FOUND = ["user's databse", "don't shard", '"database is', "O'Reilly's databse?", "(database", "data-base: 'postgres"]


@pytest.fixture(params=["mcp-primary", "json-rpc", "mcp-proxy", "rest"])
def way(request: pytest.FixtureRequest) -> Any:
    with ExitStack() as opened:
        name = str(request.param)
        if name in ALONE:
            yield opened.enter_context(ALONE[name]())
            return
        machine: Machine = request.getfixturevalue("machine")
        machine.http_only()
        if name == "rest":
            http = Http.to(machine)
            yield Rest(http)
            http.close()
        else:
            yield opened.enter_context(TO_A_PRIMARY[name](machine))


def _titles(way: Way, operation: str, **params: Any) -> list[str]:
    outcome = way.call(f"nudge.{operation}", params)
    assert "result" in outcome, outcome
    rows = outcome["result"].get("memories", outcome["result"].get("results"))
    return [row["title"] for row in rows]


def test_a_question_is_text_and_a_slip_is_understood(way: Way) -> None:
    """Through every interface: quotes are no syntax, and a misspelled word finds what nothing has as it was typed."""
    assert "result" in way.call("nudge.memory_store", _NOTE)
    for question in _FOUND:
        assert _titles(way, "memory_recall", context=question) == [_NOTE["title"]], question
    for question in ("user's databse", "don't shard", '"database is', "(database"):
        assert _titles(way, "memory_search", query=question) == [_NOTE["title"]], question


def test_a_question_at_the_terminal_is_text(machine: Machine) -> None:
    """And an explanation says which word was understood."""
    machine.json("note", "store", "-T", _NOTE["title"], "-c", _NOTE["content"], "--kind", "decision")
    for question in _FOUND:
        assert machine.json("recall", question)["count"] == 1, question
    for question in _ALL_WORDS:
        assert machine.json("note", "search", question)["count"] == 1, question
    assert machine.cli("explain", "user's databse").stdout.startswith("nothing has databse; searched for database")
