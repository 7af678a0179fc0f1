"""Notes and their links in SQLite. Each function takes a connection; the caller holds the transaction.

An expired note is not found any more; `archive.sweep` moves it to the archive later. `archive_notes` moves a note to
the archive, `delete` deletes it for good.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.core.errors import Conflict, Invalid, NotFound
from nudge.core.note_files import FILES, given_files, index_files, with_files
from nudge.core.passages import index_passages
from nudge.notes.fields import ATTEMPT, GLOBAL, LONG, MID, SHORT, TIERS, Draft, check_metadata, rfc3339, tier_of_kind
from nudge.notes.note import Lifetimes, Note
from nudge.notes.note_rows import COLUMNS, STORED_NAMES, all_fields, read_note, stored_values
from nudge.notes.retrieval import Words

LIVE = "(n.expires_at IS NULL OR n.expires_at > ?)"
OPEN = (
    f"(n.kind = '{ATTEMPT}' AND json_valid(n.metadata) AND n.attempt_session IS NOT NULL AND n.attempt_outcome IS NULL)"
)
"""An attempt without an outcome: only the journal may change, move or count it."""
SOUND = (
    "(typeof(n.priority) = 'integer' AND typeof(n.access_count) = 'integer' AND typeof(n.updated_at) = 'real'"
    " AND n.confidence BETWEEN 0 AND 1 AND typeof(n.expires_at) IN ('null', 'real'))"
)
"""What a note can be scored by. A damaged note is listed, but not recalled."""
_INSERT = (
    f"INSERT INTO notes (id, uid, {', '.join(STORED_NAMES)}, access_count, created_at, updated_at, last_accessed_at,"
    f" expires_at) VALUES ({', '.join('?' * (len(STORED_NAMES) + 7))})"
)
_UPDATE = (
    f"UPDATE notes SET {', '.join(f'{name} = ?' for name in STORED_NAMES)}, updated_at = ?, expires_at = ? WHERE id = ?"
)
_MOST_SUPERSEDED = 8  # notes that supersede one another in a row
_PRIORITY_EVERY = 10  # recalls that raise the priority by one

SqlConnection = sqlite3.Connection


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes are meant. `namespaces` is None for all; `hidden` are namespaces that the caller may not see. `here`
    is the caller's own namespace: it excludes nothing, and its notes rank higher."""

    namespaces: tuple[str, ...] | None = None
    tier: str | None = None
    tags: tuple[str, ...] = ()
    kind: str | None = None
    kinds: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    min_priority: int | None = None
    hidden: tuple[str, ...] = ()
    here: str | None = None
    without_open_attempts: bool = False
    ids: Sequence[int] | None = None

    def where(self, now: float) -> tuple[list[str], list[Any]]:
        """Return conditions on the table `n`, and their values. They exclude expired notes."""
        parts: list[str] = [LIVE]
        values: list[Any] = [now]

        def add(sql: str, *given: Any) -> None:
            parts.append(sql)
            values.extend(given)

        if self.namespaces is not None:
            add(f"n.namespace IN ({placeholders(self.namespaces)})", *self.namespaces)
        if self.hidden:
            add(f"n.namespace NOT IN ({placeholders(self.hidden)})", *self.hidden)
        if self.ids is not None:
            add("n.id IN (SELECT value FROM json_each(?))", json.dumps(list(self.ids)))
        if self.tier is not None:
            add("n.tier = ?", self.tier)
        if self.kind is not None:
            add("n.kind = ?", self.kind)
        if self.kinds:
            add(f"n.kind IN ({placeholders(self.kinds)})", *self.kinds)
        if self.since is not None:
            add("n.updated_at >= ?", self.since)
        if self.until is not None:
            add("n.updated_at <= ?", self.until)
        if self.min_priority is not None:
            add("n.priority >= ?", self.min_priority)
        if self.without_open_attempts:
            add(f"NOT {OPEN}")
        if self.tags:
            add(f"EXISTS (SELECT 1 FROM json_each(n.tags) WHERE value IN ({placeholders(self.tags)}))", *self.tags)
        return parts, values


# Writing


def store(connection: SqlConnection, draft: Draft, now: float, lifetimes: Lifetimes) -> tuple[Note, Note | None]:
    """Insert the note, or update the one of the same title and namespace. Returns the note and its former version.

    An update keeps what was not given, and never lowers the tier or the priority.
    """
    previous = find_same_title(connection, draft, now)
    if previous is None:
        created = insert(connection, draft, now, expires_at=lifetimes.expiry(draft, now))
        return get(connection, created, now), None
    merged = _merge(draft, previous.draft)
    is_raised = merged.tier != previous.draft.tier
    expires_at = lifetimes.expiry(merged, now)
    if draft.expires_at is None and not is_raised:
        expires_at = _kept_expiry(previous, expires_at, lifetimes)
    write(connection, previous.id, merged, now, expires_at)
    return get(connection, previous.id, now), previous


def _merge(draft: Draft, previous: Draft) -> Draft:
    """Return what an update makes of a note. A tier that was not given is the note's own, or that of its new kind."""
    kept = {name: getattr(previous, name) for name in draft.defaulted - {"tier", "priority", "metadata", FILES}}
    merged = replace(draft, **kept, metadata=_merge_metadata(draft, previous))
    is_tier_kept = "tier" in draft.defaulted and merged.kind == previous.kind
    priority = previous.priority if "priority" in draft.defaulted else max(draft.priority, previous.priority)
    return replace(
        merged,
        tier=previous.tier if is_tier_kept else _higher_tier(draft.tier, previous.tier),
        priority=priority,
    )


def _merge_metadata(draft: Draft, previous: Draft) -> Mapping[str, Any]:
    """The files of a note are a field of their own: either is kept when only the other one is given."""
    given = {"metadata", FILES} - draft.defaulted
    if not given:
        return previous.metadata
    if given == {FILES}:
        return check_metadata(with_files(previous.metadata, given_files(draft.metadata)))
    return _with_kept_files(draft.metadata, previous.metadata) if given == {"metadata"} else draft.metadata


def _with_kept_files(metadata: Mapping[str, Any], previous: Mapping[str, Any]) -> Mapping[str, Any]:
    """New metadata, with the files of the former ones unless they name some."""
    files = given_files(previous)
    return check_metadata(with_files(metadata, files)) if files and FILES not in metadata else metadata


def _higher_tier(one: str, other: str) -> str:
    return max(one, other, key=TIERS.index)


def _kept_expiry(previous: Note, renewed: float | None, lifetimes: Lifetimes) -> float | None:
    """Return the expiry of a note that is stored again without one: what its tier gave it starts anew, and what was
    given stays."""
    by_tier = lifetimes.expiry(previous.draft, previous.updated_at)
    if previous.expires_at is None or by_tier is None or previous.expires_at < by_tier:
        return previous.expires_at
    return max(previous.expires_at, renewed or 0.0)


def insert(
    connection: SqlConnection,
    draft: Draft,
    now: float,
    *,
    expires_at: float | None,
    note_id: int | None = None,
    uid: str | None = None,
    access_count: int = 0,
    created_at: float | None = None,
    updated_at: float | None = None,
    last_accessed_at: float | None = None,
) -> int:
    """Insert a row and return its id; times that are not given are now. The title must be free in its namespace."""
    cursor = connection.execute(
        _INSERT,
        (
            note_id,
            uid or os.urandom(12).hex(),
            *stored_values(draft),
            access_count,
            now if created_at is None else created_at,
            now if updated_at is None else updated_at,
            last_accessed_at,
            expires_at,
        ),
    )
    created = int(cursor.lastrowid or 0)
    _index(connection, created, draft)
    return created


def update(
    connection: SqlConnection, note_id: int, changes: Mapping[str, Any], now: float, lifetimes: Lifetimes
) -> Note:
    """Change the named fields. A new tier sets its own expiry, unless `expires_at` is named, too; a new kind raises the
    tier to its own, unless one of both is named. Raises NotFound, or Conflict for an open attempt or a taken title."""
    note = get(connection, note_id, now)
    refuse_open_attempts(connection, [note_id])
    if note.damage is not None:
        raise Invalid(f"m{note_id} is damaged ({note.damage}); delete it, and store it anew")
    fields = {name: value for name, value in changes.items() if name not in ("expires_at", FILES)}
    if {"metadata", FILES} & changes.keys():
        metadata = _with_kept_files(changes.get("metadata", note.draft.metadata), note.draft.metadata)
        fields["metadata"] = check_metadata(with_files(metadata, changes[FILES])) if FILES in changes else metadata
    draft = replace(note.draft, **fields)
    if draft.kind != note.draft.kind and not {"tier", "expires_at"} & changes.keys():
        draft = replace(draft, tier=_higher_tier(tier_of_kind(draft.kind), draft.tier))
    expires_at = note.expires_at
    if "expires_at" in changes:
        expires_at = changes["expires_at"]
    elif draft.tier != note.draft.tier:
        expires_at = lifetimes.expiry(draft, now)
    refuse_taken_title(connection, draft, now, note_id)
    write(connection, note_id, draft, now, expires_at)
    return get(connection, note_id, now)


def delete(connection: SqlConnection, note_id: int, now: float) -> Note:
    """Delete a note for good, with its links."""
    note = get(connection, note_id, now)
    connection.execute("DELETE FROM notes WHERE id = ?", (note_id,))
    return note


def promote(connection: SqlConnection, note_id: int, now: float) -> Note:
    """Make a note `long` and clear its expiry."""
    get(connection, note_id, now)
    connection.execute(
        "UPDATE notes SET tier = ?, expires_at = NULL, updated_at = ? WHERE id = ?", (LONG, now, note_id)
    )
    return get(connection, note_id, now)


def touch(connection: SqlConnection, ids: Iterable[int], now: float, lifetimes: Lifetimes) -> None:
    """Count a recall of each note: it extends the expiry, promotes a `mid` note to `long` at the `promote_at`-th, and
    adds priority at every tenth. Open attempts are not changed."""
    rules = {
        "now": now,
        "short": SHORT,
        "mid": MID,
        "long": LONG,
        "every": _PRIORITY_EVERY,
        "short_by": lifetimes.short_extension,
        "mid_by": lifetimes.mid_extension,
        "most": limits.MAX_PRIORITY,
        "promote_at": lifetimes.promote_at,
        "latest": limits.MAX_TIMESTAMP,
    }
    touched = [{**rules, "id": note_id} for note_id in ids]
    # In two steps: a column that has an index costs a write to it, whether or not its value changes.
    connection.executemany(
        f"UPDATE notes AS n SET access_count = access_count + 1, last_accessed_at = :now WHERE id = :id AND NOT {OPEN}",
        touched,
    )
    connection.executemany(
        f"""UPDATE notes AS n SET
            tier = CASE WHEN tier = :mid AND access_count >= :promote_at THEN :long ELSE tier END,
            expires_at = CASE
                WHEN expires_at IS NULL OR (tier = :mid AND access_count >= :promote_at) THEN NULL
                ELSE MIN(
                    expires_at + CASE tier WHEN :short THEN :short_by WHEN :mid THEN :mid_by ELSE 0 END, :latest
                ) END,
            priority = CASE WHEN access_count % :every = 0 THEN MIN(priority + 1, :most) ELSE priority END
        WHERE id = :id AND NOT {OPEN} AND (expires_at IS NOT NULL OR tier = :mid OR access_count % :every = 0)""",
        touched,
    )


def archive_notes(connection: SqlConnection, notes: Iterable[Note], reason: str, now: float) -> None:
    """Move notes to the archive, each with its links."""
    rows = [
        (
            *(note.id, note.uid, note.draft.namespace, note.draft.title),
            json.dumps({**all_fields(note), "links": link_rows(connection, note.id)}, ensure_ascii=False),
            *(now, reason),
        )
        for note in notes
    ]
    connection.executemany("INSERT OR REPLACE INTO archived_notes VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.executemany("DELETE FROM notes WHERE id = ?", [(row[0],) for row in rows])


# Links


def link(connection: SqlConnection, source: int, target: int, relation: str, now: float) -> bool:
    """Link two notes; False when they have this link already."""
    if source == target:
        raise Invalid("a note cannot be linked to itself", field="target_id")
    get(connection, source, now), get(connection, target, now)
    return add_link(connection, source, target, relation, now)


def add_link(connection: SqlConnection, source: int, target: int, relation: str, created_at: float) -> bool:
    """Insert a link between two notes that exist; False when they have it already."""
    row = (source, target, relation, created_at)
    return connection.execute("INSERT OR IGNORE INTO note_links VALUES (?, ?, ?, ?)", row).rowcount == 1


def delete_links(connection: SqlConnection, source: int, target: int, relation: str | None, now: float) -> int:
    """Delete the links from one note to another, or the one of this relation; return how many. Raises NotFound when
    there is none."""
    get(connection, source, now), get(connection, target, now)
    deleted = connection.execute(
        "DELETE FROM note_links WHERE source_id = ?1 AND target_id = ?2 AND (?3 IS NULL OR relation = ?3)",
        (source, target, relation),
    ).rowcount
    if not deleted:
        kind = f"{relation} link" if relation else "link"
        found = f"there is no {kind} from m{source} to m{target}"
        raise NotFound(f"{found}; see the links of m{source} with: nudge note get m{source}")
    return deleted


def links_of(connection: SqlConnection, note_id: int) -> list[dict[str, Any]]:
    return [
        {"source_id": source, "target_id": target, "relation": relation, "created_at": rfc3339(created)}
        for source, target, relation, created in link_rows(connection, note_id)
    ]


def link_rows(connection: SqlConnection, note_id: int) -> list[tuple[int, int, str, float]]:
    return connection.execute(
        "SELECT source_id, target_id, relation, created_at FROM note_links WHERE source_id = ? OR target_id = ?"
        " ORDER BY created_at, source_id, target_id, relation",
        (note_id, note_id),
    ).fetchall()


def links_from(connection: SqlConnection, where: NoteFilter, now: float) -> Iterator[tuple[int, int, str, float]]:
    """Every link from one of these notes."""
    parts, values = where.where(now)
    rows: Iterator[tuple[int, int, str, float]] = connection.execute(
        "SELECT l.source_id, l.target_id, l.relation, l.created_at FROM note_links l JOIN notes n ON n.id = l.source_id"
        f" WHERE {' AND '.join(parts)} ORDER BY l.source_id, l.created_at, l.target_id, l.relation",
        values,
    )
    return rows


def resolve(connection: SqlConnection, winner: int, loser: int, now: float, lifetimes: Lifetimes) -> None:
    """Settle a contradiction: the winner supersedes the loser, which keeps priority 1 and confidence 0.1."""
    link(connection, winner, loser, "supersedes", now)
    connection.execute("UPDATE notes SET priority = 1, confidence = 0.1, updated_at = ? WHERE id = ?", (now, loser))
    touch(connection, [winner], now, lifetimes)


def find_winners(connection: SqlConnection, ids: Iterable[int], now: float) -> dict[int, Note | None]:
    """Return, for each of the notes that was resolved in favor of another, the note that holds now; None when that one
    is gone. Of two notes that supersede each other, the later decision counts."""
    rows = connection.execute(
        """WITH RECURSIVE chain(origin, id, depth) AS (
            SELECT value, value, 0 FROM json_each(?)
            UNION SELECT chain.origin, l.source_id, depth + 1 FROM chain JOIN note_links l ON l.target_id = chain.id
            WHERE l.relation = 'supersedes' AND depth < ? AND NOT EXISTS (
                SELECT 1 FROM note_links r WHERE r.source_id = l.target_id AND r.target_id = l.source_id
                AND r.relation = 'supersedes' AND r.created_at > l.created_at))
        SELECT origin, id FROM chain WHERE depth > 0 ORDER BY depth, id""",
        (json.dumps(list(ids)), _MOST_SUPERSEDED),
    )
    latest: dict[int, int] = dict(rows.fetchall())
    live = get_many(connection, list(latest.values()), now)
    return {loser: live.get(winner) for loser, winner in latest.items()}


# Reading


def get(connection: SqlConnection, note_id: int, now: float) -> Note:
    note = get_many(connection, [note_id], now).get(note_id)
    if note is None:
        raise NotFound(f"there is no note m{note_id}", id=note_id)
    return note


def get_many(connection: SqlConnection, ids: Sequence[int], now: float) -> dict[int, Note]:
    """Return the notes that exist, by id."""
    query = f"SELECT {COLUMNS} FROM notes n WHERE n.id IN ({placeholders(ids)}) AND {LIVE}"
    rows = connection.execute(query, (*ids, now))
    return {note.id: note for note in map(read_note, rows)}


def namespaces_of(connection: SqlConnection, ids: Sequence[int], *, archived: bool) -> list[tuple[int, str]]:
    """Return id and namespace of the notes that exist, or that are in the archive."""
    table = "archived_notes" if archived else "notes"
    query = f"SELECT id, namespace FROM {table} WHERE id IN ({placeholders(ids)})"
    rows = connection.execute(query, tuple(ids))
    return [(note_id, namespace if isinstance(namespace, str) else GLOBAL) for note_id, namespace in rows]


def list_notes(connection: SqlConnection, where: NoteFilter, limit: int, now: float, offset: int = 0) -> list[Note]:
    """Return notes by priority, the newest first among equals."""
    parts, values = where.where(now)
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM notes n WHERE {' AND '.join(parts)}"
        " ORDER BY n.priority DESC, n.updated_at DESC, n.id DESC LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [read_note(row) for row in rows]


def find_notes(connection: SqlConnection, where: NoteFilter, pattern: str | None, now: float) -> list[Note]:
    """Return every note that passes the filter and has all the words of `pattern`, ordered by id; no open attempts."""
    parts, values = where.where(now)
    parts.append(f"NOT {OPEN}")
    if pattern is not None:
        parts.append("n.id IN (SELECT rowid FROM notes_fts WHERE notes_fts MATCH ?)")
        values.append(Words.parse(pattern, all_needed=True, field="pattern").expression())
    rows = connection.execute(f"SELECT {COLUMNS} FROM notes n WHERE {' AND '.join(parts)} ORDER BY n.id", values)
    return [read_note(row) for row in rows]


def find_ids(connection: SqlConnection, where: NoteFilter, now: float) -> list[int]:
    """Return the ids of the notes that pass the filter."""
    parts, values = where.where(now)
    return [
        note_id for (note_id,) in connection.execute(f"SELECT n.id FROM notes n WHERE {' AND '.join(parts)}", values)
    ]


def find_expired(connection: SqlConnection, now: float, limit: int) -> list[Note]:
    """Return expired notes; no open attempts."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM notes n WHERE n.expires_at <= ? AND NOT {OPEN} LIMIT ?", (now, limit)
    )
    return [read_note(row) for row in rows]


# Rows


def select(connection: SqlConnection, condition: str, values: Sequence[Any]) -> Iterator[Note]:
    """Return the notes that meet an SQL condition on the table `n`, which may end with ORDER BY and LIMIT."""
    return map(read_note, connection.execute(f"SELECT {COLUMNS} FROM notes n WHERE {condition}", values))


def find_by_uid(connection: SqlConnection, uid: str, now: float) -> Note | None:
    """Return the note with this uid; an expired one is archived instead."""
    return _archive_if_expired(connection, next(select(connection, "n.uid = ?", (uid,)), None), now)


def find_by_title(connection: SqlConnection, title: str, namespace: str) -> Note | None:
    """Return the note of this title, expired or not. Attempts may share a title and are left out."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM notes n WHERE n.title = ? AND n.namespace = ? AND n.kind <> '{ATTEMPT}'",
        (title, namespace),
    ).fetchone()
    return None if row is None else read_note(row)


def find_same_title(connection: SqlConnection, draft: Draft, now: float) -> Note | None:
    """Return the note that has the draft's title; an expired one is archived instead, so that its title is free."""
    note = None if draft.kind == ATTEMPT else find_by_title(connection, draft.title, draft.namespace)
    return _archive_if_expired(connection, note, now)


def _archive_if_expired(connection: SqlConnection, note: Note | None, now: float) -> Note | None:
    if note is not None and note.expires_at is not None and note.expires_at <= now:
        archive_notes(connection, [note], "gc", now)
        return None
    return note


def refuse_taken_title(connection: SqlConnection, draft: Draft, now: float, *but: int) -> None:
    """Raise Conflict when a note other than these has the title in the namespace."""
    other = find_same_title(connection, draft, now)
    if other is not None and other.id not in but:
        raise Conflict(f"note m{other.id} has this title in the repo {draft.namespace}", id=other.id)


def refuse_open_attempts(connection: SqlConnection, ids: Sequence[int]) -> None:
    """Raise Conflict when one of the notes is an open attempt."""
    row = connection.execute(f"SELECT n.id FROM notes n WHERE n.id IN ({placeholders(ids)}) AND {OPEN}", ids).fetchone()
    if row is not None:
        raise Conflict(f"m{row[0]} is an open attempt; change it with update_ghap, end it with resolve_ghap", id=row[0])


def write(connection: SqlConnection, note_id: int, draft: Draft, now: float, expires_at: float | None) -> None:
    """Replace the fields of a note. The title must be free in its namespace."""
    connection.execute(
        _UPDATE,
        (*stored_values(draft), now, expires_at, note_id),
    )
    _index(connection, note_id, draft)


def _index(connection: SqlConnection, note_id: int, draft: Draft) -> None:
    index_passages(connection, note_id, draft.title, draft.content)
    index_files(connection, note_id, draft.metadata, draft.title, draft.content)


def placeholders(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
