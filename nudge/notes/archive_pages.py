"""Archived notes as the page and `nudge known --type archived` list them: what went last comes first, page by page."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nudge.core import limits
from nudge.notes.archive import ARCHIVED
from nudge.notes.browse import Facets

if TYPE_CHECKING:
    from nudge.notes.store import NoteFilter, SqlConnection

_CLOCK_EVERY = 2_000  # rows
# Looking into the JSON of every note takes ten times as long as looking at it as text, which has each word, too.
_RAW = "n.id IN (SELECT id FROM archived_notes WHERE note LIKE ? ESCAPE '!' OR title LIKE ? ESCAPE '!')"
_SOURCE = "json_extract(n.note, '$.source')"
_TEXT = "json_extract(n.note, '$.title') || char(10) || json_extract(n.note, '$.content') || char(10) || n.tags"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which archived notes are meant: by their fields, by words that were typed, by who stored them, and since when
    they are in the archive."""

    where: NoteFilter
    typed: str
    source: str | None
    since: float | None

    def condition(self) -> tuple[str, list[Any]]:
        parts, values = self.where.where(0.0)
        for word in re.findall(r"\w+", self.typed):
            parts += [_RAW, f"{_TEXT} LIKE ? ESCAPE '!'"]
            values += [f"%{word.replace('_', '!_')}%"] * 3
        for sql, value in ((f"{_SOURCE} = ?", self.source), ("n.archived_at >= ?", self.since)):
            if value is not None:
                parts.append(sql)
                values.append(value)
        return " AND ".join(parts), values


def page(connection: SqlConnection, asked: Asked, before: tuple[float, int] | None, limit: int) -> list[dict[str, Any]]:
    """Return the notes that have all typed words and were archived last before the one that is `before`."""
    condition, values = asked.condition()
    if before is not None:
        condition += " AND (n.archived_at, n.id) < (?, ?)"
        values = [*values, *before]
    rows = connection.execute(
        f"SELECT n.id, n.namespace, n.note, n.archived_at, n.archive_reason FROM {ARCHIVED} WHERE {condition}"
        " ORDER BY n.archived_at DESC, n.id DESC LIMIT ?",
        (*values, limit),
    )
    return [_row(*row) for row in rows]


def count(connection: SqlConnection, asked: Asked, *, by_facet: bool) -> Facets:
    """Count the notes that are meant: all of them, and by each facet as far as there is time."""
    condition, values = asked.condition()
    found = Facets()
    found.total = connection.execute(f"SELECT count(*) FROM {ARCHIVED} WHERE {condition}", values).fetchone()[0]
    if not by_facet:
        return found
    until = time.monotonic() + limits.FACET_SECONDS
    rows = connection.execute(
        f"SELECT n.kind, n.namespace, {_SOURCE}, n.tags FROM {ARCHIVED} WHERE {condition}", values
    )
    groups: Counter[tuple[Any, ...]] = Counter()
    while block := rows.fetchmany(_CLOCK_EVERY):
        groups.update(block)
        if time.monotonic() > until:
            found.is_partial = len(block) == _CLOCK_EVERY
            break
    found.add(groups)
    return found


def _row(note_id: int, namespace: str, note: str, archived_at: float, reason: str) -> dict[str, Any]:
    fields = json.loads(note)
    return {
        "id": note_id,
        "title": fields["title"],
        "preview": fields["content"][: limits.STREAM_PREVIEW_CHARS],
        "kind": str(fields.get("kind") or "note"),
        "tier": fields.get("tier"),
        "namespace": namespace,
        "tags": [tag for tag in fields["tags"] if isinstance(tag, str)],
        "priority": fields.get("priority"),
        "source": str(fields.get("source") or ""),
        "updated_at": archived_at,
        "reason": reason,
    }
