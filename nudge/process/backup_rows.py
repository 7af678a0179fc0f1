"""The rows of a backup that is restored. A file may hold any value in any column: rows that are not valid are left out
of the restored database, counted and named. The backup keeps them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nudge.core import limits
from nudge.history.observations import TYPES
from nudge.notes.foreign_notes import ForeignNotes
from nudge.storage.foreign import ForeignDatabase

_KINDS = {"TEXT": ("text",), "INTEGER": ("integer", "real"), "REAL": ("integer", "real"), "BLOB": ("blob",)}
_TIMELESS = frozenset(("notes", "archived_notes", "note_links"))
"""A time out of range counts as the nearest one there."""
_JSON = {
    "observations": {"metadata": "object"},
    "injections": {"items": "array"},
    "told": {"uses": "array"},
    "archived_notes": {"note": "object"},
}
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    " AND name NOT LIKE 'sqlite_%' AND name NOT GLOB '*_fts_*' AND name NOT GLOB 'passages_*'"
)


@dataclass(slots=True)
class LeftOut:
    """How many rows of each table were left out, and why, for the first notes."""

    rows: dict[str, int] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, table: str, count: int) -> None:
        if count:
            self.rows[table] = self.rows.get(table, 0) + count

    def lines(self) -> Iterator[str]:
        """Sentences for a person; none when nothing was left out."""
        for table, count in self.rows.items():
            yield f"{count:,} damaged {'row' if count == 1 else 'rows'} of {table} left out; the backup still has them"
        yield from (f"m{one['id']}: {one['error']}" for one in self.notes)


def remove_bad_rows(connection: sqlite3.Connection) -> LeftOut:
    """Delete the rows that are not valid, each note by the rules of an import."""
    left_out = LeftOut()
    for (table,) in connection.execute(_TABLES).fetchall():
        condition = _bad_condition(connection, table)
        if table == "sessions":
            of_bad = f"DELETE FROM observations WHERE session_id IN (SELECT id FROM sessions WHERE {condition})"  # noqa: S608
            left_out.add("observations", connection.execute(of_bad).rowcount)
        if table != "notes":
            left_out.add(table, connection.execute(f"DELETE FROM {table} WHERE {condition}").rowcount)  # noqa: S608
    _remove_bad_notes(connection, left_out)
    return left_out


def _remove_bad_notes(connection: sqlite3.Connection, left_out: LeftOut) -> None:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone():
        return  # a backup from before there were notes
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    incoming = ForeignNotes(ForeignDatabase(connection, limits.RESTORE_READ_TIMEOUT).rows, 0.0)
    for _ in incoming.notes():
        pass
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
    connection.text_factory = str
    connection.executemany("DELETE FROM notes WHERE id = ?", [(note_id,) for note_id in incoming.bad_notes])
    left_out.add("notes", len(incoming.bad_notes))
    left_out.notes = incoming.errors[: limits.MAX_IMPORT_REASONS]


def _bad_condition(connection: sqlite3.Connection, table: str) -> str:
    """An SQL condition that a row meets which has a value of another type, a huge text, an impossible time, or text
    that is not JSON where it should be."""
    bad = [f"NOT (obs_type IN ({', '.join(repr(name) for name in TYPES)}))"] if table == "observations" else []
    for _, name, kind, not_null, _, is_key, is_hidden in connection.execute(f"PRAGMA table_xinfo({table})").fetchall():
        if is_hidden:
            continue
        kinds = _KINDS[kind] if not_null or is_key else (*_KINDS[kind], "null")
        bad.append(f"typeof({name}) NOT IN ({', '.join(map(repr, kinds))})")
        if kind == "TEXT":
            bad.append(f"length(CAST({name} AS BLOB)) > {limits.LONGEST_FOREIGN_VALUE}")
        elif (name == "timestamp" or name.endswith("_at")) and table not in _TIMELESS:
            bad.append(f"{name} NOT BETWEEN 0 AND {limits.MAX_TIMESTAMP}")
    for name, kind in _JSON.get(table, {}).items():
        bad.append(f"CASE WHEN json_valid({name}) THEN json_type({name}) ELSE '' END <> '{kind}'")
    return f"({' OR '.join(bad)})"
