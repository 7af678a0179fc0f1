"""Notes in a database in memory."""

from __future__ import annotations

import sqlite3
from typing import Any

from nudge.memories import store
from nudge.memories.note import Draft, Lifetimes, Note

NOW = 1_800_000_000.0
LIFETIMES = Lifetimes()


def add(notes: sqlite3.Connection, title: str, content: str = "text", now: float = NOW, **fields: Any) -> Note:
    return store.store(notes, Draft(title=title, content=content, **fields), now, LIFETIMES)[0]
