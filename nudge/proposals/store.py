"""Proposals in SQLite. Each function takes a connection; the caller holds the transaction.

A proposal is open until it is accepted or rejected; what was rejected is not proposed again, unless the text of the
note changes. `undo` is what accepting changed, for who wants it back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nudge.core.errors import NotFound

TAGS, CONTRADICTION, GROUP = KINDS = ("tags", "contradiction", "group")
OPEN, ACCEPTED, REJECTED = ("open", "accepted", "rejected")
_COLUMNS = "id, kind, details, state, model, proposed_at, decided_at, undo"
_EXISTING = "SELECT id, namespace FROM notes UNION ALL SELECT id, namespace FROM archived_notes"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was said about `notes`, given by their ids. `details` has `tags`, for a contradiction nothing, for a group
    its `tag`."""

    id: int
    kind: str
    notes: tuple[int, ...]
    details: Mapping[str, Any]
    state: str
    model: str
    proposed_at: float
    decided_at: float | None
    undo: Mapping[str, Any] | None


def propose(
    connection: sqlite3.Connection, kind: str, notes: Sequence[int], details: Mapping[str, Any], model: str, now: float
) -> int | None:
    """Store a proposal and return its id, that of the open one where it was made before; None for one that was
    rejected. What was accepted, and is not in force any more, is open again."""
    name = json.dumps([sorted(notes), *details.values()])
    connection.execute(
        "INSERT INTO proposals (kind, name, details, state, model, proposed_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET state = excluded.state, model = excluded.model,"
        " proposed_at = excluded.proposed_at, decided_at = NULL, undo = NULL WHERE state = ?",
        (kind, name, json.dumps(details), OPEN, model, now, ACCEPTED),
    )
    proposal, state = connection.execute(
        "SELECT id, state FROM proposals WHERE kind = ? AND name = ?", (kind, name)
    ).fetchone()
    connection.executemany(
        "INSERT OR IGNORE INTO proposal_notes VALUES (?, ?)", [(note_id, proposal) for note_id in notes]
    )
    return int(proposal) if state == OPEN else None


def get(connection: sqlite3.Connection, proposal_id: int, hidden: Sequence[str]) -> Proposal:
    """Raises NotFound, also for one about a note in a `hidden` namespace."""
    found = find(connection, hidden, proposal_id=proposal_id, limit=1)
    if not found:
        raise NotFound(f"there is no proposal {proposal_id}; list them with: nudge note review", id=proposal_id)
    return found[0]


def find(
    connection: sqlite3.Connection,
    hidden: Sequence[str],
    *,
    limit: int,
    offset: int = 0,
    state: str | None = None,
    kind: str | None = None,
    proposal_id: int | None = None,
) -> list[Proposal]:
    """Return proposals, the newest first, whose notes all exist and are not in a `hidden` namespace. What was accepted
    may be undone while they are in the archive; the others wait until they are back."""
    rows = connection.execute(
        f"SELECT {_COLUMNS}, (SELECT json_group_array(note_id) FROM proposal_notes WHERE proposal_id = p.id)"  # noqa: S608 - constants
        f" FROM proposals p WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR id = ?3)"
        f" AND NOT EXISTS (SELECT 1 FROM proposal_notes LEFT JOIN ({_EXISTING}) n ON n.id = note_id"
        "  WHERE proposal_id = p.id AND (n.id IS NULL OR n.namespace IN (SELECT value FROM json_each(?4))"
        f"  OR (state <> '{ACCEPTED}' AND note_id NOT IN (SELECT id FROM notes))))"
        " ORDER BY id DESC LIMIT ?5 OFFSET ?6",
        (state, kind, proposal_id, json.dumps(list(hidden)), limit, offset),
    ).fetchall()
    return [_read(row) for row in rows]


def _read(row: Sequence[Any]) -> Proposal:
    proposal_id, kind, details, state, model, proposed_at, decided_at, undo, notes = row
    ids = tuple(sorted(json.loads(notes)))
    changed = None if undo is None else json.loads(undo)
    return Proposal(proposal_id, kind, ids, json.loads(details), state, model, proposed_at, decided_at, changed)


def decide(
    connection: sqlite3.Connection, proposal_id: int, state: str, now: float | None, undo: Mapping[str, Any] | None
) -> None:
    connection.execute(
        "UPDATE proposals SET state = ?, decided_at = ?, undo = ? WHERE id = ?",
        (state, now, None if undo is None else json.dumps(undo), proposal_id),
    )


def proposed_tags(connection: sqlite3.Connection, note_id: int) -> list[str]:
    """Return the tags that wait for a decision."""
    rows = connection.execute(
        "SELECT details FROM proposals JOIN proposal_notes ON proposal_id = id"
        " WHERE note_id = ? AND kind = ? AND state = ? ORDER BY id",
        (note_id, TAGS, OPEN),
    )
    return list(dict.fromkeys(tag for (details,) in rows for tag in json.loads(details)["tags"]))


def known_tags(connection: sqlite3.Connection, note_id: int) -> set[str]:
    """Return the tags that were proposed for a note and not accepted: those that wait, and those that were rejected."""
    rows = connection.execute(
        "SELECT details FROM proposals JOIN proposal_notes ON proposal_id = id"
        " WHERE note_id = ? AND kind = ? AND state <> ?",
        (note_id, TAGS, ACCEPTED),
    )
    return {tag for (details,) in rows for tag in json.loads(details)["tags"]}


def has_pair(connection: sqlite3.Connection, one: int, other: int) -> bool:
    """Whether two notes were compared and found to contradict each other, or are linked."""
    row = connection.execute(
        "SELECT 1 FROM proposal_notes a JOIN proposal_notes b USING (proposal_id) JOIN proposals ON id = proposal_id"
        " WHERE a.note_id = ?1 AND b.note_id = ?2 AND kind = ?3"
        " UNION ALL SELECT 1 FROM note_links WHERE (source_id = ?1 AND target_id = ?2)"
        " OR (source_id = ?2 AND target_id = ?1) LIMIT 1",
        (one, other, CONTRADICTION),
    ).fetchone()
    return row is not None


# Notes for which proposals are made without being asked


def find_unexamined(connection: sqlite3.Connection, since: float, now: float, limit: int) -> list[int]:
    """Return the ids of notes that were stored or changed since a time, and were not examined as they are now."""
    rows = connection.execute(
        "SELECT n.id FROM notes n LEFT JOIN examined_notes e ON e.note_id = n.id WHERE typeof(n.updated_at) = 'real'"
        " AND n.updated_at >= ?"
        " AND e.updated_at IS NOT n.updated_at AND n.kind NOT IN ('attempt', 'session_summary')"
        " AND (n.expires_at IS NULL OR n.expires_at > ?) ORDER BY n.updated_at DESC LIMIT ?",
        (since, now, limit),
    )
    return [note_id for (note_id,) in rows]


def note_examined(connection: sqlite3.Connection, note_id: int, updated_at: float) -> None:
    """Note that a note was examined in this state. One that is gone, or has changed since, stays unexamined."""
    connection.execute(
        "INSERT OR REPLACE INTO examined_notes SELECT id, ?2 FROM notes WHERE id = ?1", (note_id, updated_at)
    )


def namespaces_to_group(connection: sqlite3.Connection, now: float, least: int) -> list[tuple[str, float]]:
    """Return the namespaces with at least so many notes, and when one of them was last changed, the latest first."""
    return connection.execute(
        "SELECT namespace, max(updated_at) FROM notes WHERE (expires_at IS NULL OR expires_at > ?)"
        " AND kind <> 'attempt' GROUP BY namespace HAVING count(*) >= ? ORDER BY 2 DESC",
        (now, least),
    ).fetchall()


def notes_to_group(connection: sqlite3.Connection, namespace: str, now: float, limit: int) -> list[int]:
    """Return the latest notes of a namespace that are in no group which waits for a decision, or was rejected."""
    rows = connection.execute(
        "SELECT id FROM notes n WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?) AND kind <> 'attempt'"
        " AND NOT EXISTS (SELECT 1 FROM proposal_notes JOIN proposals p ON p.id = proposal_id"
        "  WHERE note_id = n.id AND p.kind = ? AND state <> ?) ORDER BY updated_at DESC LIMIT ?",
        (namespace, now, GROUP, ACCEPTED, limit),
    )
    return [note_id for (note_id,) in rows]
