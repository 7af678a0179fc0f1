"""A database that fails: every operation that needs it answers with one sentence of ours."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.interfaces.rest import EXAMPLES
from nudge.settings import config
from nudge.storage import migrations
from nudge.storage.database import Database
from tests.contract.ways import Cli, Http, InProcess, Mcp, connected
from tests.harness import Machine

HISTORY: dict[str, dict[str, Any]] = {
    "nudge.search": {"query": "make", "project": None},
    "nudge.get_observations": {"ids": [1]},
    "nudge.timeline": {"anchor": 1},
    "nudge.recent_context": {"project": None},
    "nudge.session_trace": {"session_id": "s"},
    "nudge.file_history": {"file_path": "/a.py"},
    "nudge.sessions": {},
    "nudge.learned": {},
    "nudge.told": {},
    "nudge.pin": {"ids": [1]},
    "nudge.purge": {"search": "make"},
    "nudge.export_all": {},
    "nudge.memory_search": {"query": "make"},
}
ON_DISK = re.compile(r"/|\bno such\b|\b(SELECT|INSERT|MATCH|SQLITE_\w+)\b|_fts|syntax")


def _objects() -> set[str]:
    """The names in the schema that are no ordinary words."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection)
        names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    return {name for (name,) in names if "_" in name}


def _shows_nothing(error: dict[str, Any], path: str) -> None:
    assert not ON_DISK.search(error["message"]) and path not in str(error), error
    assert not _objects() & set(re.findall(r"\w+", str(error))), error


def _break(path: str, *tables: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in tables:
            connection.execute(f"DROP TABLE {table}")


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[tuple[InProcess, str]]:
    path = str(tmp_path / "nudge.db")
    with closing(Database.open(path)) as database:
        _break(path, "notes_fts", "observations_fts", "notes", "sessions", "told", "facts")
        yield InProcess(database), path


NEEDS_MODEL = {"nudge.memory_expand_query": ("E_CONFLICT",)}
"""It reads no database, and there is no language model here."""


@pytest.mark.parametrize("operation", [*EXAMPLES, *HISTORY])
def test_no_operation_shows_sql_or_a_path(broken: tuple[InProcess, str], operation: str) -> None:
    """Neither in the message nor in the data of an error."""
    way, path = broken
    outcome = way.call(operation, {**EXAMPLES, **HISTORY}[operation])
    if "error" in outcome:
        _shows_nothing(outcome["error"], path)
        assert outcome["error"]["data"]["reason"] in ("E_STORAGE", "E_NOT_FOUND", *NEEDS_MODEL.get(operation, ()))
    if operation in ("nudge.memory_recall", "nudge.search", "nudge.sessions", "nudge.learned"):
        assert outcome["error"]["data"]["reason"] == "E_STORAGE"


def test_no_door_shows_sql(machine: Machine) -> None:
    """A server whose index is gone answers a recall with the same sentence everywhere."""
    machine.prepared_server()
    machine.json("remember", "We use SQLite")
    _break(config.database_file(machine.environ), "notes_fts")
    with closing(Http.to(machine)) as http:
        agent = connected(machine)
        asked = {"context": "sqlite"}
        errors = [
            http.call("nudge.memory_recall", asked)["error"],
            http.exchange("GET", "/api/v1/recall?context=sqlite").json,
            Mcp(agent).call("nudge.memory_recall", asked)["error"],
        ]
        agent.quit()
    code, out, err = Cli(machine).run(["memory", "recall", "sqlite"])
    for error in errors:
        _shows_nothing(error, config.database_file(machine.environ))
        assert error["data"]["reason"] == "E_STORAGE"
    assert (code, out) == (3, "") and errors[0]["message"] in err and not re.search("no such|_fts", err)
