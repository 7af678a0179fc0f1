"""Notes in a database in memory."""

from __future__ import annotations

import sqlite3
from typing import Any

from nudge.notes import store
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes, Note

NOW = 1_800_000_000.0
LIFETIMES = Lifetimes()


def add(notes: sqlite3.Connection, title: str, content: str = "text", now: float = NOW, **fields: Any) -> Note:
    return store.store(notes, Draft(title=title, content=content, **fields), now, LIFETIMES)[0]


def insert_row(notes: sqlite3.Connection, title: str, content: str = "text", now: float = NOW, **fields: Any) -> int:
    """Insert a note as it stood in a database of an older format, before its text had other tables; returns its id."""
    draft = Draft(title=title, content=content, **fields)
    row = notes.execute(
        "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source, created_at,"
        " updated_at, expires_at, metadata, origin) VALUES (?, ?, ?, ?, ?, ?, '[]', 5, 1, 'cli', ?, ?, ?, '{}', '{}')",
        (
            *(title, draft.tier, draft.namespace, draft.kind, title, content),
            *(now, now, LIFETIMES.expiry(draft, now)),
        ),
    )
    return int(row.lastrowid or 0)
