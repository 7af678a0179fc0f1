"""Events as hooks send them, and an empty store to put them into."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any

from nudge.history import store
from nudge.storage import migrations

NOW = 1_800_000_000
DAY = 86_400
_numbers = itertools.count()


def event(type: str = "command", content: str = "make test", timestamp: int = NOW, **fields: Any) -> dict[str, Any]:
    """One with an id of its own, unless it is given one."""
    return {
        "event_id": f"event-{next(_numbers)}",
        "session_id": "s1",
        "client": "claude-code",
        "cwd": "/work/app",
        "repo": "git:acme/app",
        "project": "app",
        "timestamp": timestamp,
        "source_event": "PostToolUse",
        "prompt_id": None,
        "agent_id": None,
        "type": type,
        "tool_name": None,
        "file_path": None,
        "content": content,
        "metadata": {},
        "start_source": None,
        **fields,
    }


def read(path: str, timestamp: int = NOW, **fields: Any) -> dict[str, Any]:
    return event("file_read", path, timestamp, file_path=path, **fields)


def edit(path: str, timestamp: int = NOW, **fields: Any) -> dict[str, Any]:
    return event("file_edit", path, timestamp, file_path=path, **fields)


def prompt(content: str, timestamp: int = NOW, prompt_id: str | None = None, **fields: Any) -> dict[str, Any]:
    return event("user_prompt", content, timestamp, prompt_id=prompt_id, source_event="UserPromptSubmit", **fields)


def empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    migrations.migrate(connection)
    return connection


def filled(*events: dict[str, Any]) -> sqlite3.Connection:
    """A store to which these were told in this order."""
    connection = empty()
    for row in events:
        store.insert_event(connection, row)
    return connection


def rows(connection: sqlite3.Connection, columns: str, table: str = "observations") -> list[Any]:
    """Single columns as plain values."""
    result = connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()  # noqa: S608 - a test's own words
    return [row[0] if len(row) == 1 else tuple(row) for row in result]
