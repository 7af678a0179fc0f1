"""Notes whose rows are damaged: of any type and size in any column, as a file may hold that others wrote to."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.storage.database import Database
from nudge.telling.prompt_notes import lines_about
from tests.contract.ways import InProcess

NAMESPACE = "github.com/acme/api"
_HUGE = "printf('%.*c', 100000, 'x')"
_BAD_VALUES = (
    *(f"{column} = x'c328'" for column in ("title", "content", "namespace", "tier", "kind", "tags", "uid", "source")),
    *(f"{column} = CAST(x'c328' AS TEXT)" for column in ("title", "content", "namespace", "tags", "uid")),
    *(f"{column} = {_HUGE}" for column in ("title", "content", "namespace", "source")),
    *("tier = 'eternal'", "kind = 'rumor'", "tags = '{'", "tags = '[1, null]'", "tags = '\"a\"'"),
    *("priority = 'high'", "priority = 1.5", "priority = x'01'", "confidence = 'sure'", "confidence = 9e999"),
    *(
        f"{column} = 'soon'"
        for column in ("created_at", "updated_at", "last_accessed_at", "expires_at", "access_count")
    ),
    *("created_at = 9e999", "updated_at = -9e999", "updated_at = 1e300", "access_count = x'00'"),
    *("metadata = '[]'", "metadata = 'null'", "origin = '{'", "origin = '7'"),
)
_READABLE = (
    *(f"{column} = CAST(x'c328' AS TEXT)" for column in ("title", "content", "namespace", "tags", "uid")),
    "updated_at = 1e300",
)
"""Shown as they are: with a mark for bytes that are not UTF-8, and the nearest date."""
_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list", {}),
    ("recall", {"context": "deploy", "namespace": NAMESPACE}),
    ("recall", {"context": "deploy"}),
    ("search", {"query": "deploy"}),
    ("export", {}),
    ("explain", {"query": "deploy"}),
    ("stats", {}),
    ("namespaces", {}),
    ("archive_list", {}),
    ("archive_stats", {}),
    ("forget", {"namespace": NAMESPACE, "dry_run": True}),
    ("auto_consolidate", {"dry_run": True}),
    ("gc", {}),
)
_OTHER_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("known", {"facets": True}),
    ("known", {"query": "deploy", "facets": True}),
    ("known", {"kind": "decision"}),
    ("known", {"limit": 1}),
    ("inject", {"context": {"repo": f"git:{NAMESPACE}"}}),
    ("assemble_context", {"query": "deploy"}),
    ("list_ghap_entries", {"project": None}),
    ("get_orphaned_ghap", {}),
    ("journal_calibration", {"project": None}),
    ("changes", {}),
)
"""Operations of other rooms that read notes."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database.open(str(tmp_path / "nudge.db"))) as opened:
        yield opened


def _spoil(database: Database, sql: str) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute(sql)

    asyncio.run(database.write(work))


@pytest.mark.parametrize("bad", _BAD_VALUES)
def test_a_damaged_note_is_listed_and_can_be_deleted(database: Database, bad: str) -> None:
    """It is shown as damaged, with what can be read of it; nothing that reads the other notes fails; and it can be
    deleted."""
    store = InProcess(database)

    def call(operation: str, **params: Any) -> Any:
        outcome = store.call(f"nudge.memory_{operation}", params)
        assert "result" in outcome, (operation, outcome)
        return json.loads(json.dumps(outcome["result"], allow_nan=False))

    for title in ("Deploy target", "Deploy window"):
        note = {"title": title, "content": "Deploys go to staging.", "namespace": NAMESPACE, "tags": ["ops"]}
        spoiled = call("store", **note, kind="decision")["id"]
    _spoil(database, f"UPDATE notes SET {bad} WHERE id = {spoiled}")  # noqa: S608 - constants
    listed = {row["id"]: row for row in call("list")["memories"]}
    assert "damaged" in listed[spoiled] or bad in _READABLE
    assert len(listed) == 2 and "damaged" not in listed[spoiled - 1]
    for operation, params in _CALLS:
        call(operation, **params)
    for operation, params in _OTHER_CALLS:
        outcome = store.call(f"nudge.{operation}", params)
        assert "result" in outcome, (operation, params, outcome)
        json.dumps(outcome["result"], allow_nan=False)
    assert call("recall", context="deploy target")["memories"][0]["id"] == spoiled - 1
    assert call("get", id=spoiled)["memory"]["id"] == spoiled
    call("delete", id=spoiled)
    assert [row["id"] for row in call("list")["memories"]] == [spoiled - 1]


_SHOWN_AS_DAMAGED = ("title = x'c328'", f"title = {_HUGE}", "kind = 'rumor'", "updated_at = 'soon'", "tags = '{'")


@pytest.mark.parametrize("bad", _SHOWN_AS_DAMAGED)
def test_a_damaged_note_is_shown_as_damaged_on_the_page(database: Database, bad: str) -> None:
    """`nudge known` and the page list it as `nudge note list` does, and every other note, page by page."""
    store = InProcess(database)
    for number in range(5):
        store.call("nudge.memory_store", {"title": f"Deploy window {number}", "content": "staging", "kind": "decision"})
    _spoil(database, f"UPDATE notes SET {bad} WHERE id = 2")  # noqa: S608 - constants
    rows: list[dict[str, Any]] = []
    params: dict[str, Any] = {"limit": 2}
    while params.get("after", "") is not None:
        answer = store.call("nudge.known", params)["result"]
        rows += answer["items"]
        params["after"] = answer["next"]
    assert sorted(row["id"] for row in rows) == ["m1", "m2", "m3", "m4", "m5"]
    assert [row["id"] for row in rows if row["title"].startswith("(damaged: ")] == ["m2"]
    assert all(len(row["title"]) < 1_000 for row in rows)


def test_a_damaged_note_does_not_silence_a_start(database: Database) -> None:
    """The other pinned notes are told."""
    store = InProcess(database)
    for title in ("Deploy target is staging", "Deploy window is Monday"):
        note = {"title": title, "content": "as agreed", "namespace": NAMESPACE, "tags": ["pinned"], "kind": "decision"}
        store.call("nudge.memory_store", note)
    _spoil(database, "UPDATE notes SET origin = '{' WHERE id = 1")
    start = store.call("nudge.inject", {"context": {"repo": f"git:{NAMESPACE}"}})
    assert "Deploy window is Monday" in start["result"]["text"], start


def test_a_damaged_note_is_not_told(database: Database) -> None:
    """It is shown to who lists notes; an agent is told what holds."""
    store = InProcess(database)
    for title in ("Deploy window of the payment service", "Deploy window of the search service"):
        note = {"title": title, "content": "Monday at nine", "namespace": NAMESPACE, "kind": "decision"}
        store.call("nudge.memory_store", note)
    prompt = "when is the deploy window of the payment service and of the search service?"

    def told() -> str:
        lines = asyncio.run(database.read(lambda open_: lines_about(open_, prompt, NAMESPACE, None, time.time())))
        context = store.call("nudge.assemble_context", {"query": prompt})["result"]["markdown"]
        return "\n".join([*(line.text for line in lines), context])

    assert told().count("payment service") == 2
    _spoil(database, "UPDATE notes SET tags = '{' WHERE id = 1")
    assert told().count("payment service") == 0 and told().count("search service") == 2
