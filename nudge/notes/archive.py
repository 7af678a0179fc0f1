"""The archive of notes that expired, were forgotten or were consolidated: archive, restore, purge, consolidate."""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid, NotFound
from nudge.core.note_files import given_files, with_files
from nudge.core.words import split_words, stem
from nudge.notes import store
from nudge.notes.fields import LONG, STORED, Draft, rfc3339
from nudge.notes.note import Lifetimes, Note
from nudge.notes.retrieval import Words
from nudge.notes.store import NoteFilter, SqlConnection

DELETED = "deleted"
"""Why a note is in the archive: it was deleted, and is kept for as long as that can be undone."""
_TIMES = ("created_at", "updated_at", "last_accessed_at", "expires_at")
_EVERY_NOTE = NoteFilter()
_SOUND = """(SELECT id, namespace, archived_at, archive_reason,
    CASE WHEN json_valid(note) AND json_type(note, '$.title') = 'text' AND json_type(note, '$.content') = 'text'
        AND json_type(note, '$.tags') = 'array' THEN note
    ELSE json_object('id', id, 'title', '(damaged) ' || title, 'content', '', 'tags', json('[]')) END AS note
    FROM archived_notes)"""
ARCHIVED = f"""(SELECT id, namespace, note, archived_at, archive_reason, NULL AS expires_at,
    json_extract(note, '$.tier') AS tier, json_extract(note, '$.kind') AS kind, json_extract(note, '$.tags') AS tags,
    json_extract(note, '$.priority') AS priority, json_extract(note, '$.updated_at') AS updated_at
    FROM {_SOUND}) n"""
"""Archived notes with the columns that a filter needs; an expired one is meant too."""


def forget(
    connection: SqlConnection, where: NoteFilter, pattern: str | None, now: float, *, dry_run: bool = False
) -> list[Note]:
    """Move the notes that the filter and all the words of `pattern` select to the archive; return them."""
    notes = store.find_notes(connection, where, pattern, now)
    if not dry_run:
        store.archive_notes(connection, notes, "forgotten", now)
    return notes


def sweep(connection: SqlConnection, now: float, *, keep: bool = True, most: int = limits.SWEPT_NOTES) -> int:
    """Archive up to `most` expired notes, or delete them without `keep`; return how many."""
    notes = store.find_expired(connection, now, most)
    if keep:
        store.archive_notes(connection, notes, "gc", now)
    else:
        connection.executemany("DELETE FROM notes WHERE id = ?", [(note.id,) for note in notes])
    return len(notes)


def list_archived(
    connection: SqlConnection,
    limit: int,
    offset: int = 0,
    *,
    where: NoteFilter = _EVERY_NOTE,
    words: Words | None = None,
) -> list[dict[str, Any]]:
    """Return archived notes that pass the filter and have any of the words, the latest first."""
    return [_entry(*row) for row in islice(_select(connection, where, words), offset, offset + limit)]


def get(connection: SqlConnection, note_id: int) -> dict[str, Any]:
    """Return an archived note. Raises NotFound."""
    row = connection.execute(
        f"SELECT note, archived_at, archive_reason FROM {ARCHIVED} WHERE n.id = ?", (note_id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no note m{note_id} in the archive", id=note_id)
    return _entry(*row)


def describe_matches(connection: SqlConnection, where: NoteFilter, words: Words | None) -> dict[str, Any]:
    """Return how many archived notes a recall, search or list that found nothing would have had, and the command that
    shows them; nothing when there are none."""
    if connection.execute("SELECT 1 FROM archived_notes LIMIT 1").fetchone() is None:
        return {}
    count = sum(1 for _ in _select(connection, where, words))
    return {"archived": count, "show_archived": _list_command(where, words)} if count else {}


def _select(connection: SqlConnection, where: NoteFilter, words: Words | None) -> Iterator[tuple[str, float, str]]:
    """Return note, time and reason of archived notes, the latest first."""
    parts, values = where.where(0.0)
    wanted = [] if words is None else [{stem(part) for part in split_words(word)} for word in words.words]
    if wanted:
        # Only the last letter of a stem may differ from the word. A text with other letters than those of ASCII may
        # have an accent in it.
        beginnings = [f"%{next(iter(stems))[:-1]}%" for stems in wanted if stems]
        parts.append(f"({' OR '.join(['n.note LIKE ?'] * len(beginnings))} OR n.note GLOB ?)")
        values += [*beginnings, "*[^\x01-~]*"]
    rows = connection.execute(
        f"SELECT n.note, n.archived_at, n.archive_reason FROM {ARCHIVED} WHERE {' AND '.join(parts)}"
        " ORDER BY n.archived_at DESC, n.id DESC",
        values,
    )
    return (row for row in rows if not wanted or _has_any(json.loads(row[0]), wanted))


def _has_any(note: Mapping[str, Any], wanted: Sequence[set[str]]) -> bool:
    """Whether a note has one of the words; each is given by the stems of its parts."""
    words = split_words(" ".join([note["title"], note["content"], *note["tags"]]))
    stems = {stem(word) for word in words}
    return any(word and word <= stems for word in wanted)


def _list_command(where: NoteFilter, words: Words | None) -> str:
    options = {
        "--repo": where.namespaces and where.namespaces[0],
        "--tier": where.tier,
        "--kind": where.kind,
        "--tags": ",".join(where.tags),
        "--since": rfc3339(where.since),
        "--until": rfc3339(where.until),
        "--min-priority": where.min_priority,
    }
    flags = [text for name, value in options.items() if value for text in (name, str(value))]
    return shlex.join(["nudge", "note", "archive", "list", *(words.words if words else ()), *flags])


def restore(connection: SqlConnection, note_id: int, now: float, lifetimes: Lifetimes) -> Note:
    """Restore a note under its own number with its tier, a new expiry, and its links; those to notes that are in the
    archive come back with these. A deletion that is undone leaves its times as they were. Raises NotFound when it is
    not in the archive, Conflict when its title is taken."""
    row = connection.execute("SELECT note, archive_reason FROM archived_notes WHERE id = ?", (note_id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no note m{note_id} in the archive", id=note_id)
    try:
        fields = json.loads(row[0])
        stored = {one.name: fields[one.name] for one in STORED}
        draft = Draft(**{**stored, "tags": tuple(stored["tags"])})
    except (KeyError, TypeError, ValueError):
        raise Invalid(
            f"m{note_id} is damaged and cannot be restored; delete it with: nudge note archive purge"
        ) from None
    store.refuse_taken_title(connection, draft, now)
    is_undone = row[1] == DELETED
    store.insert(
        connection,
        draft,
        now,
        expires_at=fields["expires_at"] if is_undone else lifetimes.expiry(draft, now),
        updated_at=fields["updated_at"] if is_undone else None,
        note_id=note_id,
        uid=fields["uid"],
        access_count=fields["access_count"],
        created_at=fields["created_at"],
        last_accessed_at=fields["last_accessed_at"],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO note_links SELECT ?1, ?2, ?3, ?4"
        " WHERE (SELECT count(*) FROM notes WHERE id IN (?1, ?2)) = 2",
        fields["links"],
    )
    for link in fields["links"]:
        _pass_on(connection, link[1] if link[0] == note_id else link[0], link)
    connection.execute("DELETE FROM archived_notes WHERE id = ?", (note_id,))
    return store.get(connection, note_id, now)


def _pass_on(connection: SqlConnection, other: int, link: Sequence[Any]) -> None:
    """Give a link to the note at its other end, if that is in the archive: of two notes that go one after the other,
    only the first has the link between them."""
    connection.execute(
        "UPDATE archived_notes SET note = json_insert(note, '$.links[#]', json(?)) WHERE id = ? AND json_valid(note)",
        (json.dumps(link), other),
    )


def purge_deleted(connection: SqlConnection, before: float) -> int:
    """Delete for good what was deleted before a time and can no longer be undone; return how many."""
    return connection.execute(
        f"DELETE FROM archived_notes WHERE archive_reason = '{DELETED}' AND archived_at < ?", (before,)
    ).rowcount


def has_deleted(connection: SqlConnection, before: float) -> bool:
    """Whether `purge_deleted` would delete something."""
    sql = f"SELECT 1 FROM archived_notes WHERE archive_reason = '{DELETED}' AND archived_at < ? LIMIT 1"
    return connection.execute(sql, (before,)).fetchone() is not None


def purge(connection: SqlConnection, before: float | None = None, hidden: Sequence[str] = ()) -> int:
    """Delete archived notes for good, all or those archived before a time; return how many."""
    return connection.execute(
        "DELETE FROM archived_notes WHERE (?1 IS NULL OR archived_at < ?1)"
        " AND namespace NOT IN (SELECT value FROM json_each(?2))",
        (before, json.dumps(list(hidden))),
    ).rowcount


def stats(connection: SqlConnection, hidden: Sequence[str] = ()) -> dict[str, Any]:
    """Return count, size, time span and reasons of archived notes outside of the `hidden` namespaces."""
    shown = "FROM archived_notes WHERE namespace NOT IN (SELECT value FROM json_each(?))"
    values = (json.dumps(list(hidden)),)
    count, first, last, size = connection.execute(
        f"SELECT count(*), min(archived_at), max(archived_at), coalesce(sum(length(note)), 0) {shown}", values
    ).fetchone()
    reasons = connection.execute(f"SELECT archive_reason, count(*) {shown} GROUP BY 1 ORDER BY 1", values)
    span = {"oldest": rfc3339(first), "newest": rfc3339(last)} if count else {}
    by_reason = [{"reason": reason, "count": number} for reason, number in reasons]
    return {"count": count, "bytes": size, **span, "by_reason": by_reason}


# Consolidation


def consolidate(connection: SqlConnection, ids: Sequence[int], draft: Draft, now: float, lifetimes: Lifetimes) -> Note:
    """Replace notes by one that has their tags and files and their highest priority. The originals go to the archive,
    and their links to other notes become links of the new one."""
    notes = [store.get(connection, note_id, now) for note_id in ids]
    store.refuse_open_attempts(connection, ids)
    links = [link for note_id in ids for link in store.link_rows(connection, note_id)]
    files = dict.fromkeys(path for note in notes for path in given_files(note.draft.metadata))
    metadata = with_files(draft.metadata, list(files)[: limits.MAX_NOTE_FILES]) if files else draft.metadata
    tags = dict.fromkeys([*draft.tags, *(tag for note in notes for tag in note.draft.tags)])
    merged = replace(
        draft,
        tags=tuple(tags)[: limits.MAX_NOTE_TAGS],
        priority=max(draft.priority, *(note.draft.priority for note in notes)),
        metadata={**metadata, "consolidated_from": list(ids)},
    )
    store.refuse_taken_title(connection, merged, now, *ids)
    store.archive_notes(connection, notes, "consolidated", now)
    whole = store.store(connection, merged, now, lifetimes)[0]
    replaced = dict.fromkeys(ids, whole.id)
    moved = {
        (replaced.get(source, source), replaced.get(target, target), relation) for source, target, relation, _ in links
    }
    connection.executemany(
        "INSERT OR IGNORE INTO note_links VALUES (?, ?, ?, ?)",
        sorted((source, target, relation, now) for source, target, relation in moved if source != target),
    )
    return whole


def groups(connection: SqlConnection, where: NoteFilter, least: int, now: float) -> list[tuple[str, str, list[Note]]]:
    """Return groups of notes to consolidate, as (namespace, tag, notes): those with the same first tag in a namespace,
    at least `least` of them, and no more than fit into one note."""

    def key(note: Note) -> tuple[str, str]:
        return note.draft.namespace, note.draft.tags[0]

    tagged = sorted((note for note in store.find_notes(connection, where, None, now) if note.draft.tags), key=key)
    parts = [
        (namespace, tag, part) for (namespace, tag), notes in groupby(tagged, key) for part in _fitting(list(notes))
    ]
    return [(namespace, tag, part) for namespace, tag, part in parts if len(part) >= least]


def consolidated_draft(namespace: str, tag: str, notes: Sequence[Note], now: float) -> Draft:
    """Return the note that replaces a group: every title and content, one after the other."""
    first, last = (rfc3339(time(note.created_at for note in notes)) or "" for time in (min, max))
    return Draft(
        title=f"{tag}: {len(notes)} notes, m{notes[0].id} to m{notes[-1].id}",
        content="\n\n".join(map(_section, notes)),
        namespace=namespace,
        tier=LONG,
        tags=(tag,),
        source="consolidation",
        metadata={"created_from": first, "created_until": last, "consolidated_at": rfc3339(now)},
    )


def _section(note: Note) -> str:
    return f"## {note.draft.title}\n{note.draft.content}"


def _fitting(notes: Sequence[Note]) -> list[list[Note]]:
    """Split a group so that no part exceeds the limit of a note's content or of one consolidation."""
    parts: list[list[Note]] = []
    size = limits.MAX_NOTE_BYTES
    for note in notes:
        added = len(_section(note).encode()) + 2
        if size + added > limits.MAX_NOTE_BYTES or len(parts[-1]) == limits.MAX_CONSOLIDATED:
            parts.append([])
            size = 0
        parts[-1].append(note)
        size += added
    return parts


def _entry(note: str, archived_at: float, reason: str) -> dict[str, Any]:
    return {**_shown(json.loads(note)), "archived_at": rfc3339(archived_at), "archive_reason": reason}


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: rfc3339(value) if name in _TIMES else value
        for name, value in fields.items()
        if name not in ("uid", "links") and value not in (None, {})
    }
