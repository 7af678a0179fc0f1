"""`memory_explain`: its request rules, its envelope, and scores that are the ones which ranked."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from nudge.core import limits
from nudge.history.store import store_injection
from nudge.interfaces.operations import OPERATIONS
from nudge.notes.explain_ops import Explain
from nudge.storage import spool
from nudge.storage.database import Database
from tests.contract.ways import InProcess
from tests.harness import Machine, eventually
from tests.unit.history.stored import event

API, DOCS = "github.com/acme/api", "github.com/acme/docs"
ITEM_KEYS = [
    *("id", "kind", "title", "created_at", "project", "retrieval", "score", "matches", "pack_context"),
]
COMPONENTS = [
    "base",
    "recency",
    "kind_bonus",
    "semantic_boost",
    "priority",
    "access",
    "confidence",
    "tier",
    "namespace",
]
PACK_KEYS = ["included", "section", "tokens", "sessions"]


class Notes(InProcess):
    """An application with a database, whose calls must succeed."""

    def result(self, operation: str, **params: Any) -> Any:
        outcome = self.call(f"nudge.{operation}", params)
        assert "result" in outcome, outcome
        return outcome["result"]

    def add(self, title: str, content: str = "text", **fields: Any) -> int:
        params = {"title": title, "content": content, "namespace": API, **fields}
        return int(self.result("memory_store", **params)["id"])

    def explain(self, **params: Any) -> dict[str, Any]:
        envelope: dict[str, Any] = self.result("memory_explain", **params)
        assert list(envelope) == ["items", "missing_ids", "errors", "metadata"]
        assert envelope["metadata"]["returned_items_count"] == len(envelope["items"])
        return envelope


@pytest.fixture
def notes() -> Iterator[Notes]:
    with closing(Machine()) as machine, closing(Database.open(str(machine.base / "notes.db"))) as database:
        yield Notes(database)


def ids_of(envelope: dict[str, Any]) -> list[int]:
    return [item["id"] for item in envelope["items"]]


# The matrix of the contract, row by row


def test_the_tool_takes_the_arguments_of_the_contract() -> None:
    """1: the schema has them with their defaults."""
    assert OPERATIONS["nudge.memory_explain"].tool == "memory_explain"
    defaults = {name: field.default for name, field in Explain.model_fields.items()}
    expected = {"query": None, "ids": None, "project": None, "include_pack_context": False, "limit": 10}
    assert expected.items() <= defaults.items()


def test_a_query_is_explained(notes: Notes) -> None:
    """2: every item has all fields, and says how it was found, how it was scored and which words it has."""
    notes.add("Path normalization", "SQLite paths are normalized before use.", kind="decision")
    envelope = notes.explain(query="How does SQLite normalize a path?")
    [item] = envelope["items"]
    assert list(item) == ITEM_KEYS
    assert (item["kind"], item["title"], item["project"]) == ("decision", "Path normalization", API)
    assert item["retrieval"] == {"source": "query", "rank": 1}
    assert item["matches"] == {"query_terms": ["sqlite", "normalize", "path"], "project_match": None}
    assert envelope["metadata"] == {
        "query": "How does SQLite normalize a path?",
        "project": None,
        "requested_ids_count": 0,
        "returned_items_count": 1,
        "include_pack_context": False,
    }


def test_a_misspelled_word_is_explained(notes: Notes) -> None:
    """What was looked for in its place is said, and only then."""
    notes.add("Storage", "The database is PostgreSQL")
    envelope = notes.explain(query="which databse")
    assert envelope["metadata"]["corrections"] == {"databse": "database"}
    assert envelope["items"][0]["matches"]["query_terms"] == ["database"]
    assert "corrections" not in notes.explain(query="which database")["metadata"]


def test_missing_ids_are_named(notes: Notes) -> None:
    """3: what exists is explained, what does not is in `missing_ids` with an error each."""
    known = notes.add("Known")
    envelope = notes.explain(ids=[99, known, 98, 99])
    assert ids_of(envelope) == [known] and envelope["missing_ids"] == [99, 98]
    assert [(error["code"], error["field"]) for error in envelope["errors"]] == [("NOT_FOUND", "ids")] * 2
    assert envelope["metadata"]["requested_ids_count"] == 3


def test_ids_of_another_project_are_missing(notes: Notes) -> None:
    """4: and named by PROJECT_MISMATCH; the short name of the project is enough, its identity is returned."""
    here, there = notes.add("Here"), notes.add("There", namespace=DOCS)
    envelope = notes.explain(ids=[there, here], project="api")
    assert ids_of(envelope) == [here] and envelope["missing_ids"] == [there]
    assert envelope["items"][0]["matches"]["project_match"] is True
    assert [error["code"] for error in envelope["errors"]] == ["PROJECT_MISMATCH"]
    assert envelope["metadata"]["project"] == API
    assert notes.explain(ids=[there], project="api")["items"] == []


def test_without_pack_context_it_is_null(notes: Notes) -> None:
    """5: for every item."""
    first, second = notes.add("A deploy"), notes.add("A test")
    envelope = notes.explain(query="deploy", ids=[second], include_pack_context=False)
    assert ids_of(envelope) == [first, second]
    assert [item["pack_context"] for item in envelope["items"]] == [None, None]


def test_with_pack_context_it_has_all_keys(notes: Notes) -> None:
    """6: the same keys whether the note was injected or not."""
    known = notes.add("A deploy")
    [item] = notes.explain(ids=[known], include_pack_context=True)["items"]
    assert item["pack_context"] == {"included": False, "section": None, "tokens": None, "sessions": []}


def test_unknown_components_are_null(notes: Notes) -> None:
    """7: none is ever left out: there is no text score without a query, and no semantic retriever."""
    known = notes.add("A deploy")
    for asked, nulls in (({"ids": [known]}, {"base", "semantic_boost"}), ({"query": "deploy"}, {"semantic_boost"})):
        [item] = notes.explain(**asked)["items"]
        components = item["score"]["components"]
        assert list(components) == COMPONENTS
        assert {name for name, part in components.items() if part is None} == nulls


# The rules beside the matrix


@pytest.mark.parametrize("asked", [{}, {"query": None, "ids": []}, {"query": "  "}])
def test_a_request_for_nothing_is_an_envelope_with_an_error(notes: Notes, asked: dict[str, Any]) -> None:
    """It is not a failed call."""
    envelope = notes.explain(**asked)
    assert envelope["items"] == [] and envelope["missing_ids"] == []
    assert envelope["errors"] == [
        {"code": "INVALID_ARGUMENT", "message": "at least one of query or ids is required", "field": "query"}
    ]


def test_a_query_without_words_does_not_stop_the_ids(notes: Notes) -> None:
    """Errors are additive."""
    known = notes.add("A deploy")
    envelope = notes.explain(query="?!", ids=[known])
    assert ids_of(envelope) == [known] and envelope["metadata"]["query"] is None
    assert [(error["code"], error["field"]) for error in envelope["errors"]] == [("INVALID_ARGUMENT", "query")]


def test_an_ambiguous_project_is_an_error_in_the_envelope(notes: Notes) -> None:
    """Its candidates are named, and nothing is searched."""
    known = notes.add("A deploy")
    notes.add("Another", namespace="gitlab.com/other/api")
    envelope = notes.explain(query="deploy", ids=[known], project="api")
    assert envelope["items"] == [] and envelope["missing_ids"] == [known]
    [error] = envelope["errors"]
    assert error["code"] == "INVALID_ARGUMENT" and error["field"] == "project" and API in error["message"]


def test_results_come_by_rank_and_then_the_other_ids_as_requested(notes: Notes) -> None:
    """The limit holds for the query only, and what both name is there once."""
    deploys = [notes.add(f"Deploy {number}", "about a deploy") for number in range(5)]
    others = [notes.add(f"Other {number}") for number in range(3)]
    envelope = notes.explain(query="deploy", ids=[others[2], f"m{others[0]}", str(others[1])], limit=2)
    assert len(ids_of(envelope)) == 5 and set(ids_of(envelope)[:2]) <= set(deploys)
    assert ids_of(envelope)[2:] == [others[2], others[0], others[1]]
    both = notes.explain(query="deploy", ids=[ids_of(envelope)[1]], limit=2)
    assert [item["retrieval"] for item in both["items"]] == [
        {"source": "query", "rank": 1},
        {"source": "query+id_lookup", "rank": 2},
    ]
    unranked = notes.explain(query="deploy", ids=[others[0]], limit=1)["items"][1]
    assert unranked["retrieval"] == {"source": "id_lookup", "rank": None}
    assert unranked["score"]["components"]["base"] == 0.0 and unranked["matches"]["query_terms"] == []


def test_an_id_behind_the_limit_has_the_score_that_would_rank_it(notes: Notes) -> None:
    """Its parts are the same as when the query returns it."""
    for number in range(6):
        notes.add(f"Deploy {number}", f"deploy {'of the server ' * number}", priority=number + 1)
    every = notes.explain(query="deploy server")["items"]
    for item in every[1:]:
        looked_up = notes.explain(query="deploy server", ids=[item["id"]], limit=1)["items"][1]
        assert looked_up["id"] == item["id"]
        assert math.isclose(looked_up["score"]["total"], item["score"]["total"], rel_tol=1e-4)


def test_it_touches_nothing(notes: Notes) -> None:
    """Explaining is not using."""
    known = notes.add("A deploy")
    before = notes.result("memory_get", id=known)
    notes.explain(query="deploy", ids=[known], include_pack_context=True)
    assert notes.result("memory_get", id=known) == before


def test_the_total_is_the_score_that_ranked_for_a_thousand_queries(notes: Notes) -> None:
    """The order is that of recall, totals fall with the rank, and the components that are known sum to the total."""
    chance = random.Random(7)
    words = [f"word{number}" for number in range(60)]
    memories = [
        {
            "title": f"Note {number}",
            "content": " ".join(chance.choices(words, k=12)),
            "namespace": API,
            "tier": chance.choice(["short", "mid", "long"]),
            "priority": chance.randint(1, 10),
            "confidence": chance.random(),
            "kind": chance.choice(["note", "decision", "bugfix"]),
        }
        for number in range(120)
    ]
    assert notes.result("memory_bulk", memories=memories)["errors"] == []
    for _ in range(1_000):
        query = " ".join(chance.sample(words, chance.randint(1, 4)))
        recalled = notes.result("memory_recall", context=query, touch=False)["memories"]
        items = notes.explain(query=query)["items"]
        assert [item["id"] for item in items] == [note["id"] for note in recalled]
        totals = [item["score"]["total"] for item in items]
        assert totals == sorted(totals, reverse=True)
        for item, note in zip(items, recalled, strict=True):
            parts = [part for part in item["score"]["components"].values() if part is not None]
            assert math.isclose(sum(parts), item["score"]["total"])
            assert all(number == round(number, 4) for number in (*parts, item["score"]["total"]))
            assert abs(item["score"]["total"] - note["score"]) < 0.001


def test_more_ids_than_an_answer_takes_are_refused(notes: Notes) -> None:
    """Each is scored: thousands would take longer than a caller waits."""
    most = limits.MAX_EXPLAINED_IDS
    assert len(notes.explain(ids=list(range(1, most + 1)))["missing_ids"]) == most
    error = notes.call("nudge.memory_explain", {"ids": list(range(1, most + 2))})["error"]
    assert error["data"] == {"reason": "E_INVALID", "field": "ids"}


# Injections and hints


def test_pack_context_tells_where_a_note_was_injected(notes: Notes) -> None:
    """The section of its line, its tokens at four characters each, and the sessions that got it, newest first."""
    known = notes.add("A deploy")
    text = f"Header\nHints for here\n- api/test: make test\nDecisions and lessons here\n- m{known} decision: A deploy"
    items = [{"id": "api/test", "kind": "hint"}, {"id": f"m{known}", "kind": "note"}]
    assert notes.app.database is not None
    for session, when in (("one", 1_000), ("two", 2_000)):
        injected = partial(store_injection, session_id=session, timestamp=when, items=items, text=text)
        asyncio.run(notes.app.database.write(injected))
    [item] = notes.explain(ids=[known], include_pack_context=True)["items"]
    assert item["pack_context"] == {
        "included": True,
        "section": "Decisions and lessons here",
        "tokens": 6,
        "sessions": [{"session_id": "two", "timestamp": 2_000}, {"session_id": "one", "timestamp": 1_000}],
    }
    assert list(item["pack_context"]) == PACK_KEYS


def test_names_explain_hints_in_the_same_envelope(notes: Notes) -> None:
    """A variant that applies has the score that ranks it; one that does not says which condition stands in the way."""
    notes.result("set_hint", component="api", key="test", value="make test", meta={"scope": {"branch": ["main"]}})
    notes.result("set_hint", component="api", key="test", value="make slow", meta={"scope": {"branch": ["release"]}})
    envelope = notes.explain(names=["api/test", "api/none"], context={"branch": "main"})
    applies, refused = envelope["items"]
    assert list(applies) == ITEM_KEYS and list(refused) == ITEM_KEYS
    assert applies["retrieval"] == {"source": "name_lookup", "rank": 1} and applies["matches"]["eligible"] is True
    got = notes.result("get_hint", component="api", key="test", context={"branch": "main"})["match_explain"]
    assert round(applies["score"]["total"], 4) == got["score"]
    parts = [part for part in applies["score"]["components"].values() if part is not None]
    assert math.isclose(sum(parts), applies["score"]["total"])
    assert refused["score"]["total"] is None and set(refused["score"]["components"].values()) == {None}
    assert refused["matches"]["eligible"] is False and "release" in " ".join(refused["matches"]["reasons"])
    assert envelope["errors"] == [{"code": "NOT_FOUND", "message": "there is no hint api/none", "field": "names"}]


def test_a_name_with_slashes_or_blanks(notes: Notes) -> None:
    """A name is split where a hint exists, at the last slash first. A query that is the name of a hint explains it too:
    a name with blanks looks like a search."""
    for component, key in (("a/b", "c"), ("a", "b/d"), ("a b", "c"), ("x/y", "z"), ("x", "y/z")):
        notes.result("set_hint", component=component, key=key, value=f"in {component}", meta={})
    envelope = notes.explain(names=["a/b/c", "a/b/d", "a b/c", "a/b/none"])
    assert [item["id"] for item in envelope["items"]] == ["a/b/c", "a/b/d", "a b/c"]
    assert [error["message"] for error in envelope["errors"]] == ["there is no hint a/b/none"]
    assert [item["id"] for item in notes.explain(names=["x/y/z"])["items"]] == ["x/y/z"]
    searched = notes.explain(query="a b/c")
    assert ([item["id"] for item in searched["items"]], searched["errors"]) == (["a b/c"], [])


def test_what_was_learned_is_explained_in_the_same_envelope(notes: Notes) -> None:
    """By the command that fails, also with arguments, by the one that works, and by name; of visible projects, behind
    notes. Other words find no fact, and a name of neither a hint nor a fact is an error."""
    database = notes.app.database
    assert database is not None
    rows = [
        (API, "module", "python -m pytest", "pytest", "No module named pytest", "uv run pytest", "s1", 3, 4),
        (DOCS, "path", "docs/a.md", "cat", "No such file", "docs/b.md", "s1", 5, 6),
    ]
    now = int(notes.app.now())
    sql = "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')"
    asyncio.run(database.write(lambda connection: [connection.execute(sql, (*row, now)) for row in rows]))
    for query in ("python -m pytest", "python  -m pytest tests -q", "uv run pytest"):
        [item] = notes.explain(query=query)["items"]
        assert list(item) == ITEM_KEYS and (item["id"], item["kind"]) == ("fact python -m pytest", "fact")
        assert (item["title"], item["project"]) == ("python -m pytest -> uv run pytest", API)
        assert item["retrieval"] == {"source": "query", "rank": 1}
        assert list(item["score"]["components"]) == COMPONENTS
        observed = "it failed (#3), and this worked (#4)"
        assert item["matches"]["reasons"] == ["No module named pytest", observed, "worked in 1 session, just now #4"]
    envelope = notes.explain(names=["docs/a.md", "docs/none.md"])
    assert [item["id"] for item in envelope["items"]] == ["fact docs/a.md"]
    assert envelope["errors"] == [{"code": "NOT_FOUND", "message": "there is no hint docs/none.md", "field": "names"}]
    assert notes.explain(query="python -m pytest", project=DOCS)["items"] == []
    assert notes.explain(query="pytest")["items"] == []
    note = notes.add("python -m pytest", "Fails here.")
    assert ids_of(notes.explain(query="python -m pytest")) == [note, "fact python -m pytest"]


def test_the_terminal_explains_what_was_learned(machine: Machine) -> None:
    """`nudge explain 'python3 -m pytest'` after one session that found what works."""
    machine.prepared_server()
    hook = {"session_id": "s1", "cwd": "/nowhere/api", "tool_name": "Bash"}
    for command, outcome in (
        ("/usr/bin/python3 -m pytest", {"error": "Exit code 1\n/usr/bin/python3: No module named pytest"}),
        ("pytest", {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}),
    ):
        name = "PostToolUseFailure" if "error" in outcome else "PostToolUse"
        call = {"hook_event_name": name, "tool_use_id": command, "tool_input": {"command": command}}
        assert machine.cli("record", stdin=json.dumps({**hook, **call, **outcome})).returncode == 0
        eventually(lambda: not spool.pending(machine.runtime), "the event is stored")
    done = machine.cli("explain", "/usr/bin/python3 -m pytest")
    assert done.returncode == 0
    assert "fact  /usr/bin/python3 -m pytest -> pytest" in done.stdout and "No module named pytest" in done.stdout
    assert machine.cli("explain", "/usr/bin/python3 -m none").returncode == 0
    assert machine.cli("explain", "m999").returncode == machine.cli("explain", "api/none").returncode == 1


def test_hints_are_explained_without_a_database() -> None:
    """A history that is off does not matter to them."""
    app = Notes()
    app.result("set_hint", component="api", key="test", value="make test")
    assert [item["id"] for item in app.explain(names=["api/test"])["items"]] == ["api/test"]


# The history


@pytest.mark.parametrize("order_by", ["relevance", "blended"])
def test_a_search_of_the_history_is_explained_in_the_same_envelope(notes: Notes, order_by: str) -> None:
    """The order is that of `search`, totals fall with the rank, and the components that are known sum to the total."""
    for number in range(6):
        content = f"pytest {'deploy ' * number}failed"
        notes.result(
            "record", event=event(event_id=f"e{number}", content=content, timestamp=1_700_000_000 + 90 * number)
        )
    asked = {"query": "deploy OR pytest", "order_by": order_by}
    result = [row["id"] for row in notes.result("search", **asked)]
    envelope = notes.result("search_explain", **asked, include_pack_context=True)
    assert list(envelope) == ["items", "missing_ids", "errors", "metadata"] and ids_of(envelope) == result
    totals = [item["score"]["total"] for item in envelope["items"]]
    assert totals == sorted(totals, reverse=True) and len(totals) == 6
    for rank, item in enumerate(envelope["items"], 1):
        assert list(item) == ITEM_KEYS and list(item["score"]["components"]) == COMPONENTS
        assert item["retrieval"] == {"source": "query", "rank": rank}
        assert {"pytest"} <= set(item["matches"]["query_terms"]) <= {"deploy", "or", "pytest"}
        parts = [part for part in item["score"]["components"].values() if part is not None]
        assert math.isclose(sum(parts), item["score"]["total"])
        assert list(item["pack_context"]) == PACK_KEYS
    assert ids_of(notes.result("search_explain", **asked, limit=2, offset=1)) == result[1:3]
