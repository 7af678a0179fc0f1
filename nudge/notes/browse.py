"""Notes as the page and `nudge known` list them: newest first, page by page, with counts of what there is."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nudge.notes.note_rows import COLUMNS, read_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nudge.notes.note import Note
    from nudge.notes.store import NoteFilter, SqlConnection

_PREVIEW = 300  # characters of a note's content
_CLOCK_EVERY = 2_000  # rows


@dataclass(slots=True)
class Facets:
    """How many notes there are by kind, namespace, tag and source. `is_partial`: there was no time to count all."""

    total: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    is_partial: bool = False

    def add(self, groups: Mapping[tuple[Any, ...], int]) -> None:
        """Add how many notes there are of each kind, namespace, source and tags."""
        for (kind, namespace, source, tags), number in groups.items():
            self.kinds[str(kind)] += number
            self.namespaces[str(namespace)] += number
            self.sources[str(source)] += number
            for tag in set(_tags(tags)):
                self.tags[tag] += number


def typed_words(text: str) -> str | None:
    """Return an FTS5 expression for what somebody types: every word, the last one as a beginning; None without one."""
    words = [f'"{word}"' for word in re.findall(r"\w+", text)]
    return f"{' AND '.join(words)}*" if words else None


def page(
    connection: SqlConnection,
    where: NoteFilter,
    text: str | None,
    source: str | None,
    now: float,
    before: tuple[float, int] | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return the notes that were changed last before the one that is `before`."""
    condition, values = _condition(where, text, source, now)
    if before is not None:
        condition += " AND (n.updated_at, n.id) < (?, ?)"
        values = [*values, *before]
    order = "ORDER BY n.updated_at DESC, n.id DESC LIMIT ?"
    if text is not None or where.kind is not None:
        ids, given = f"SELECT n.id FROM notes n WHERE {condition} {order}", [*values, limit]
    else:  # an index has the notes of each kind in this order: the first of each are merged
        kinds = list(_kinds(connection))
        parts = [f"SELECT * FROM (SELECT n.id FROM notes n WHERE n.kind = ? AND {condition} {order})"] * len(kinds)
        ids = " UNION ALL ".join(parts) or "SELECT NULL"
        given = [value for kind in kinds for value in (kind, *values, limit)]
    # By their ids, so that whole notes are read and sorted only of this page.
    rows = connection.execute(f"SELECT {COLUMNS} FROM notes n WHERE n.id IN ({ids}) {order}", (*given, limit))
    return [_row(read_note(row), now) for row in rows]


def count(
    connection: SqlConnection, where: NoteFilter, text: str | None, source: str | None, now: float, seconds: float
) -> Facets:
    """Count the notes that are meant: all of them, and by each facet as far as there is time."""
    condition, values = _condition(where, text, source, now)
    found = Facets()
    found.total = connection.execute(f"SELECT count(*) FROM notes n WHERE {condition}", values).fetchone()[0]
    groups: Counter[tuple[Any, ...]] = Counter()
    until = time.monotonic() + seconds
    rows = connection.execute(f"SELECT n.kind, n.namespace, n.source, n.tags FROM notes n WHERE {condition}", values)
    while block := rows.fetchmany(_CLOCK_EVERY):
        groups.update(block)
        if time.monotonic() > until:
            found.is_partial = len(block) == _CLOCK_EVERY
            break
    found.add(groups)
    return found


def _condition(where: NoteFilter, text: str | None, source: str | None, now: float) -> tuple[str, list[Any]]:
    parts, values = where.where(now)
    if text is not None:
        parts.append("n.id IN (SELECT rowid FROM notes_fts WHERE notes_fts MATCH ?)")
        values.append(text)
    if source is not None:
        parts.append("n.source = ?")
        values.append(source)
    return " AND ".join(parts), values


def _kinds(connection: SqlConnection) -> Iterator[Any]:
    """Yield each kind that a note has, with one step in the index for each."""
    row = connection.execute("SELECT min(kind) FROM notes").fetchone()
    while row[0] is not None:
        yield row[0]
        row = connection.execute("SELECT min(kind) FROM notes WHERE kind > ?", row).fetchone()


def _row(note: Note, now: float) -> dict[str, Any]:
    """What is listed of a note. SQLite puts a damaged time before all others: it counts as now."""
    draft = note.draft
    return {
        "id": note.id,
        "title": draft.title,
        "preview": draft.content[:_PREVIEW],
        "kind": draft.kind,
        "tier": draft.tier,
        "namespace": draft.namespace,
        "tags": list(draft.tags),
        "priority": draft.priority,
        "source": draft.source,
        "updated_at": note.updated_at or now,
    }


def _tags(raw: Any) -> list[str]:
    try:
        tags = json.loads(raw)
    except (TypeError, ValueError):  # of a damaged row
        return []
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
