"""What of the notes a caller may see."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from nudge.core.errors import NotFound
from nudge.core.visibility import Visibility
from nudge.notes import namespaces
from nudge.notes import store as notes
from nudge.notes.fields import check_kind, parse_time
from nudge.notes.models import Filters
from nudge.notes.note import Note
from nudge.notes.store import NoteFilter


def note_filter(connection: sqlite3.Connection, visible: Visibility, params: Filters) -> NoteFilter:
    """The notes that the parameters mean, without those that the caller may not see."""
    namespace = namespaces.find_named(connection, params.namespace, visible)
    return NoteFilter(
        namespaces=(namespace,) if namespace else None,
        tier=params.tier,
        tags=tuple(params.tags or ()),
        kind=None if params.kind is None else check_kind(params.kind),
        since=None if params.since is None else parse_time(params.since, "since"),
        until=None if params.until is None else parse_time(params.until, "until"),
        min_priority=params.min_priority,
        hidden=() if namespace else namespaces.find_hidden(connection, visible),
        here=visible.here,
    )


def refuse_hidden(
    connection: sqlite3.Connection, visible: Visibility, ids: Sequence[int], *, archived: bool = False
) -> None:
    """Raise NotFound for a note that the caller may not see, in the words of one that does not exist."""
    where = " in the archive" if archived else ""
    for note_id, namespace in notes.namespaces_of(connection, ids, archived=archived):
        if not visible.shows(namespace):
            raise NotFound(f"there is no note m{note_id}{where}", id=note_id)


def shown_note(row: dict[str, Any], visible: Visibility) -> dict[str, Any]:
    """A note's row, without where it comes from if that is a project that the caller may not see."""
    origin = row.get("origin") or {}
    return row if visible.shows(origin.get("repo")) else {name: row[name] for name in row if name != "origin"}


def shown_one(connection: sqlite3.Connection, visible: Visibility, note_id: int, now: float) -> Note:
    """The note with this id. Raises NotFound, also for one that the caller may not see."""
    refuse_hidden(connection, visible, [note_id])
    return notes.get(connection, note_id, now)


def shown_links(
    connection: sqlite3.Connection, links: Sequence[dict[str, Any]], visible: Visibility
) -> list[dict[str, Any]]:
    """The links without those to or from a note that the caller may not see."""
    ids = {link[end] for link in links for end in ("source_id", "target_id")} if visible.private else ()
    found = notes.namespaces_of(connection, sorted(ids), archived=False)
    hidden = {note_id for note_id, namespace in found if not visible.shows(namespace)}
    return [link for link in links if hidden.isdisjoint((link["source_id"], link["target_id"]))]
