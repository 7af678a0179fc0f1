"""Notes on their way out and in. What waits was written down by triggers in the transaction of the change; a row that
comes in is stored in the transaction that moves the cursor behind it. So nothing is lost or done twice, whenever the
process dies."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes import store as notes
from nudge.notes.note import Lifetimes, Note
from nudge.team import store
from nudge.team.entry import NOTE, Body, Entry, Name, digest_of
from nudge.team.sharing import SharedNote, Withheld, note_name, read_note, share_note
from nudge.team.store import NoteChange, Team
from nudge.team.versions import Known, StoreTime, Version, clock_at, has_lost, latest_of

_BY_TEAM = "team"
"""Why a note is in the archive: somebody of the team deleted it."""


class Notes:
    """The notes of one database, for one step within the caller's transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        team: Team,
        time: StoreTime,
        lifetimes: Lifetimes,
        *,
        guard: bool,
        is_awaited: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_awaited`: whether somebody waits for the end of the transaction."""
        self._connection, self._team, self._time, self._now = connection, team, time, time.now
        self._lifetimes, self._guard, self._is_awaited = lifetimes, guard, is_awaited
        self._began = perf_counter()

    def _is_over(self) -> bool:
        """Whether this step has taken long enough."""
        taken = perf_counter() - self._began
        return taken > limits.TEAM_WRITE_MOST or (taken > limits.TEAM_WRITE_SLICE and self._is_awaited())

    # Out

    def take_changes(self) -> bool:
        """Put changed notes into the outbox until the step is over; return whether there are more."""
        while changes := store.changes(self._connection, 50):
            for change in changes:
                self._take(change)
            if self._is_over():
                return True
        return False

    def _take(self, change: NoteChange) -> None:
        store.drop_change(self._connection, change.project, change.title)
        name = note_name(change.project, change.title)
        known, note = store.version_of(self._connection, name), self._find(name)
        seen = 0 if known is None else known.version.clock
        if note is None:
            if known is not None and known.is_live and not self._is_expired(name):
                self._add(name, self._time.bound(change.seconds), seen, None)
            return
        shared = share_note(note)
        if isinstance(shared, Withheld):
            store.withhold(self._connection, name, shared.reason, is_inbound=False)
        elif known is None or not known.is_live or digest_of(shared) != known.digest:
            self._add(name, self._time.wall(note.updated_at), seen, self._dated(note, shared))

    def _dated(self, note: Note, shared: dict[str, Any]) -> dict[str, Any]:
        """The fields with times that a right clock would have given; the note gets them as well. What a clock ahead of
        this one made was made no later than it was changed here."""
        updated = self._time.wall(note.updated_at)
        created = min(self._time.wall(note.created_at), updated)
        if (created, updated) == (note.created_at, note.updated_at):
            return shared
        self._set_times(note.id, created, updated)
        store.drop_change(self._connection, note.draft.namespace, note.draft.title)
        return {**shared, "created_at": created, "updated_at": updated}

    def _set_times(self, note_id: int, created: float, updated: float) -> None:
        sql = "UPDATE notes SET created_at = ?, updated_at = ? WHERE id = ?"
        self._connection.execute(sql, (created, updated, note_id))

    def _add(self, name: Name, seconds: float, seen: int, fields: dict[str, Any] | None) -> None:
        clock, body = clock_at(seconds, seen), Body(seen, fields)
        if len(body.to_text().encode("utf-8", "replace")) > limits.TEAM_BODY_BYTES:
            store.withhold(self._connection, name, "it is too large", is_inbound=False)
        else:
            store.add(self._connection, self._team, name, clock, body)

    def add_again(self, name: Name, lost: Known) -> None:
        """Put a version that the server lost into the outbox, with its old clock: it is no newer than it was."""
        note = self._find(name)
        shared = None if note is None else share_note(note)
        if isinstance(shared, Withheld) or (shared is None and lost.is_live):
            return
        if digest_of(shared) == lost.digest:
            store.add(self._connection, self._team, name, lost.version.clock, Body(lost.after, shared))

    def _find(self, name: Name) -> Note | None:
        note = notes.find_by_title(self._connection, name.key, name.project)
        return note if note is None or note.expires_at is None or note.expires_at > self._now else None

    def _is_expired(self, name: Name) -> bool:
        return notes.find_by_title(self._connection, name.key, name.project) is not None

    # In

    def apply(self, entries: Sequence[Entry], kinds: frozenset[str]) -> int:
        """Store rows of one origin in their order until the step is over, and move the cursor behind them. Return how
        many were stored. Rows of hints are in the store of hints by now; those of a kind that is not shared are passed
        over."""
        done = 0
        for entry in entries:
            if entry.kind == NOTE and NOTE in kinds:
                self._apply(entry)
            done += 1
            if self._is_over():
                break
        if done:
            last = entries[done - 1]
            store.advance(self._connection, last.project, last.origin, last.n)
        return done

    def _apply(self, entry: Entry) -> None:
        if (change := store.change_of(self._connection, entry.project, entry.key)) is not None:
            self._take(change)  # before this row is here: what was changed was made without having seen it
        known, name = store.version_of(self._connection, entry.name), entry.name
        try:
            body = entry.read_body()
        except Invalid as error:
            store.withhold(self._connection, name, error.message, is_inbound=True)
            return
        if is_out_of_line(known, body):
            store.note_base(self._connection, name, body.after)
        if known is not None and entry.version <= known.version:
            self._keep_loser(known, entry, body)
            if entry.version < known.version or not store.is_withheld(self._connection, name):
                return
        else:
            self._keep_replaced(known, entry, body)
        refused = self._put(entry, body)
        if refused is None:
            store.drop_withheld(self._connection, name)
        else:
            store.withhold(self._connection, name, refused, is_inbound=True)
        store.put_version(self._connection, name, known_of(entry, body))
        store.drop_change(self._connection, entry.project, entry.key)  # what the triggers wrote about our own change

    def _keep_loser(self, known: Known, entry: Entry, body: Body) -> None:
        if entry.version < known.version and has_lost(entry.version, body.digest, known):
            store.add_conflict(self._connection, entry.name, entry.version, body.fields, known.version)

    def _keep_replaced(self, known: Known | None, entry: Entry, body: Body) -> None:
        """Keep the version that counted here until now, unless the new one was made from it. A note that is not shared,
        such as one with a secret in it, is nobody's version, and kept as well."""
        note = self._find(entry.name)
        if known is not None:
            lost = known.version if has_lost(known.version, known.digest, known_of(entry, body)) else None
        else:
            lost = None if note is None else Version(clock_at(note.updated_at), "")
        if lost is None:
            return
        fields = None if note is None else share_note(note)
        if isinstance(fields, Withheld):
            fields = {"content": note.draft.content if note else ""}
        if digest_of(fields) != body.digest:
            store.add_conflict(self._connection, entry.name, lost, fields, entry.version)

    def _put(self, entry: Entry, body: Body) -> str | None:
        """Make the note what the row says; return why not, if so."""
        if body.fields is None:
            note = notes.find_by_title(self._connection, entry.key, entry.project)
            if note is not None:
                notes.archive_notes(self._connection, [note], _BY_TEAM, self._now)
            return None
        shared = read_note(entry, body.fields, latest_of(entry.clock), guard=self._guard)
        if isinstance(shared, Withheld):
            return shared.reason
        expires_at = self._lifetimes.expiry(shared.draft, self._now)
        if expires_at is None or expires_at > self._now:
            self._write(entry, shared, expires_at)
        return None

    def _write(self, entry: Entry, shared: SharedNote, expires_at: float | None) -> None:
        draft = replace(shared.draft, origin={"team": entry.origin}, expires_at=None)
        held = notes.find_same_title(self._connection, draft, self._now)
        if held is None:
            notes.insert(
                self._connection,
                draft,
                self._now,
                expires_at=expires_at,
                created_at=shared.created_at,
                updated_at=shared.updated_at,
            )
            return
        notes.write(self._connection, held.id, draft, shared.updated_at, expires_at)
        self._set_times(held.id, shared.created_at, shared.updated_at)


def is_out_of_line(known: Known | None, body: Body) -> bool:
    """Whether a version was made from another one than that which counts here."""
    return body.after != 0 and (known is None or known.version.clock != body.after)


def known_of(entry: Entry, body: Body) -> Known:
    return Known(entry.version, body.after, body.fields is not None, body.digest, entry.n)
