"""Hints on their way out and in. The change log is the outbox of hints: what it numbered is taken from there into the
outbox of the database, once. A row that comes in is committed to the change log first, then noted in the database; when
the process dies between the two, the row comes again and changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nudge.core.errors import Invalid
from nudge.hints.model import Change, Hint, Identity
from nudge.hints.outbox import HintChange, HintOutbox
from nudge.team import store
from nudge.team.entry import HINT, Body, Entry, Name, digest_of
from nudge.team.notes_ops import is_out_of_line, known_of
from nudge.team.sharing import Shared, Withheld, hint_name, parse_identity, project_of_scope, read_hint, share_hint
from nudge.team.store import SharedRepo, Team
from nudge.team.versions import Known, StoreTime, Version, clock_at, has_lost, latest_of

HintsByIdentity = Mapping[Identity, Hint]


# Out


def take_changes(
    connection: sqlite3.Connection,
    team: Team,
    projects: frozenset[str],
    log: str,
    changes: Sequence[tuple[int, HintChange]],
    time: StoreTime,
) -> None:
    """Put numbered changes of a change log into the outbox, those that were not taken yet; of several changes of one
    hint the last."""
    last = store.taken(connection, log) or 0
    latest: dict[Identity, HintChange] = {}
    for n, change in changes:
        if n > last:
            latest.pop(change.identity, None)
            latest[change.identity] = change
            last = n
    for change in latest.values():
        project = project_of_scope(change.identity[2])
        if project in projects:
            hint = None if change.put is None else Hint.from_record(change.put)
            take(connection, team, outgoing(project, change.identity, hint, time.wall(change.time)), time)
    store.note_taken(connection, log, last)


@dataclass(frozen=True, slots=True)
class OutgoingHint:
    """A hint, or None when it was deleted, with what is shared of it and when it was changed."""

    name: Name
    hint: Hint | None
    shared: Shared | None
    seconds: float


def outgoing(project: str, identity: Identity, hint: Hint | None, seconds: float) -> OutgoingHint:
    return OutgoingHint(hint_name(project, identity), hint, None if hint is None else share_hint(hint), seconds)


def gather(hints: Iterable[Hint], projects: Collection[str]) -> list[OutgoingHint]:
    """Return every hint of these repos; takes 0.3 ms for each, so it runs in no transaction."""
    named = ((project_of_scope(hint.identity[2]), hint) for hint in hints)
    return [
        outgoing(project, hint.identity, hint, hint.updated_at)
        for project, hint in named
        if project is not None and project in projects
    ]


def count_waiting(connection: sqlite3.Connection, repo: SharedRepo, outbox: HintOutbox, hints: Iterable[Hint]) -> int:
    """Count the changed hints of a repo that are not in the outbox yet."""
    if not repo.hints:
        return 0
    if repo.is_gathered:
        identities = outbox.identities(store.taken(connection, outbox.log) or 0)
    else:
        identities = {hint.identity for hint in hints}
    return sum(project_of_scope(identity[2]) == repo.project for identity in identities)


def take(connection: sqlite3.Connection, team: Team, one: OutgoingHint, time: StoreTime) -> None:
    """Put a hint into the outbox unless the log has it as it is."""
    known = store.version_of(connection, one.name)
    seen = 0 if known is None else known.version.clock
    if one.hint is None or one.shared is None:
        if known is not None and known.is_live:
            store.add(connection, team, one.name, clock_at(one.seconds, seen), Body(seen, None))
        return
    if isinstance(one.shared, Withheld):
        store.withhold(connection, one.name, one.shared.reason, is_inbound=False)
    elif known is None or not known.is_live or digest_of(one.shared) != known.digest:
        updated, created = time.wall(one.hint.updated_at), time.wall(one.hint.created_at)
        fields = {**one.shared, "created_at": created, "updated_at": updated}
        store.add(connection, team, one.name, clock_at(updated, seen), Body(seen, fields))


def add_again(connection: sqlite3.Connection, team: Team, name: Name, lost: Known, hints: HintsByIdentity) -> None:
    """Put a version that the server lost into the outbox, with its old clock: it is no newer than it was."""
    hint = hints.get(parse_identity(name.key))
    shared = None if hint is None else share_hint(hint)
    if isinstance(shared, Withheld) or (shared is None and lost.is_live):
        return
    if digest_of(shared) == lost.digest:
        store.add(connection, team, name, lost.version.clock, Body(lost.after, shared))


# In


@dataclass(frozen=True, slots=True)
class IncomingHints:
    """What rows of hints come to: the change, what to keep of it in the database, what lost, by their clocks the
    versions that others were made from, and what is refused."""

    change: Change
    versions: Sequence[tuple[Name, Known]]
    lost: Sequence[tuple[Name, Version, dict[str, object] | None, Version]]
    bases: Sequence[tuple[Name, int]]
    refused: Sequence[tuple[Name, str]]


class _Decision:
    """Decides on rows one after the other, as if each was applied."""

    def __init__(self, hints: HintsByIdentity, known: Mapping[Name, Known], now: float, guard: bool) -> None:
        self._hints, self._known, self._now, self._guard = dict(hints), dict(known), now, guard
        self._puts: dict[Identity, Hint | None] = {}
        self._changed: dict[Name, Known] = {}
        self._lost: list[tuple[Name, Version, dict[str, object] | None, Version]] = []
        self._bases: list[tuple[Name, int]] = []
        self._refused: dict[Name, str] = {}

    def take(self, entry: Entry) -> None:
        name, known = entry.name, self._known.get(entry.name)
        try:
            body, identity = entry.read_body(), parse_identity(entry.key)
        except Invalid as error:
            self._refused[name] = error.message
            return
        current = self._hints.get(identity)
        if is_out_of_line(known, body):
            self._bases.append((name, body.after))
        if known is not None and entry.version <= known.version:
            if entry.version < known.version and has_lost(entry.version, body.digest, known):
                self._lost.append((name, entry.version, body.fields, known.version))
            if entry.version < known.version or current is not None:
                return
        else:
            self._keep_replaced(entry, body, known, current)
        self._put(entry, body, identity, current)
        self._known[name] = self._changed[name] = known_of(entry, body)

    def _keep_replaced(self, entry: Entry, body: Body, known: Known | None, current: Hint | None) -> None:
        if known is not None:
            lost = known.version if has_lost(known.version, known.digest, known_of(entry, body)) else None
        else:
            lost = None if current is None else Version(clock_at(current.updated_at), "")
        if lost is None:
            return
        fields = None if current is None else share_hint(current)
        if not isinstance(fields, Withheld) and digest_of(fields) != body.digest:
            self._lost.append((entry.name, lost, fields, entry.version))

    def _put(self, entry: Entry, body: Body, identity: Identity, current: Hint | None) -> None:
        hint = None
        if body.fields is not None:
            read = read_hint(entry, body.fields, latest_of(entry.clock), guard=self._guard)
            if isinstance(read, Withheld):
                self._refused[entry.name] = read.reason
                return
            hint = _with_own_use(read, current, self._now)
        if hint is None or not hint.live_at(self._now):
            self._hints.pop(identity, None)
            self._puts[identity] = None
        else:
            self._hints[identity] = self._puts[identity] = hint

    def result(self) -> IncomingHints:
        puts = tuple(hint for hint in self._puts.values() if hint is not None)
        removals = tuple(identity for identity, hint in self._puts.items() if hint is None)
        return IncomingHints(
            Change(puts, removals), list(self._changed.items()), self._lost, self._bases, list(self._refused.items())
        )


def _with_own_use(hint: Hint, current: Hint | None, now: float) -> Hint:
    """How often a hint worked is counted on each machine by itself."""
    if current is None:
        return replace(hint, last_seen=now)
    failures = current.failure_count if current.value == hint.value else 0
    return replace(
        hint,
        last_seen=now,
        use_count=current.use_count,
        last_used_at=current.last_used_at,
        failure_count=failures,
        credits=current.credits,
        basis=current.basis if current.value == hint.value else None,
    )


def decide(
    entries: Sequence[Entry], hints: HintsByIdentity, known: Mapping[Name, Known], now: float, *, guard: bool
) -> IncomingHints:
    """Decide what rows of hints change, in their order; `hints` and `known` are what is here now."""
    decision = _Decision(hints, known, now, guard)
    for entry in entries:
        decision.take(entry)
    return decision.result()


def read_known(connection: sqlite3.Connection, entries: Iterable[Entry]) -> dict[Name, Known]:
    names = {entry.name for entry in entries if entry.kind == HINT}
    return {name: known for name in names if (known := store.version_of(connection, name)) is not None}


def keep_lost(connection: sqlite3.Connection, incoming: IncomingHints) -> None:
    """Keep the versions that lose. Call it before the change is committed: then they are no longer here."""
    for name, lost, fields, won in incoming.lost:
        store.add_conflict(connection, name, lost, fields, won)
    for name, clock in incoming.bases:
        store.note_base(connection, name, clock)


def note_incoming(connection: sqlite3.Connection, incoming: IncomingHints) -> None:
    """Note in the database what was committed to the change log."""
    for name, known in incoming.versions:
        store.put_version(connection, name, known)
        store.drop_withheld(connection, name)
    for name, reason in incoming.refused:
        store.withhold(connection, name, reason, is_inbound=True)


def misdated(waiting: Iterable[tuple[Name, Body]], hints: HintsByIdentity) -> list[Hint]:
    """Return the hints that wait to be sent with other times than they have here, with those times: a clock that is
    ahead gave theirs, this machine's or that of one whose hint was changed here."""
    found = []
    for name, body in waiting:
        hint = hints.get(parse_identity(name.key))
        if hint is None or body.fields is None:
            continue
        dated = replace(hint, updated_at=body.fields["updated_at"], created_at=body.fields["created_at"])
        if dated != hint and digest_of(_shared_fields(hint)) == body.digest:
            found.append(dated)
    return found


def _shared_fields(hint: Hint) -> dict[str, Any] | None:
    shared = share_hint(hint)
    return None if isinstance(shared, Withheld) else shared


def split(change: Change) -> list[Change]:
    """A change in parts of one hint each: when there is no room for one of them, the others still have it."""
    singles = [Change(puts=(hint,)) for hint in change.puts]
    return [*singles, Change(removals=change.removals)] if change.removals else singles
