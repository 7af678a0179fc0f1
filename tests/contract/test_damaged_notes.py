"""Notes whose rows are damaged: of any type and size in any column, as a file may hold that others wrote to."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.storage.database import Database
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
    assert call("recall", context="deploy target")["memories"][0]["id"] == spoiled - 1
    assert call("get", id=spoiled)["memory"]["id"] == spoiled
    call("delete", id=spoiled)
    assert [row["id"] for row in call("list")["memories"]] == [spoiled - 1]
