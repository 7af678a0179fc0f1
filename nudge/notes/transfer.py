"""Exchange notes between stores: exports, imports, and the merge of two databases.

A note is identified by a hidden `uid`, or without one by title and namespace. The receiving store gives it an id of its
own, and links are adapted. Of two versions of a note, the newer wins; the higher tier, the higher priority and, with
equal contents, the later expiry are kept. A time in the future counts as now: otherwise a clock that is ahead would win
every merge. Deletions are not transferred.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nudge.core.errors import Invalid
from nudge.notes import store
from nudge.notes.fields import (
    ATTEMPT,
    GLOBAL,
    STORED,
    TIERS,
    Draft,
    check_metadata,
    check_relation,
    clamp_time,
    parse_draft,
    parse_time,
    rfc3339,
)
from nudge.notes.note import Lifetimes, Note, parse_id
from nudge.notes.note_rows import JSON_FORMS, parse_json
from nudge.notes.store import NoteFilter, SqlConnection

CREATED, UPDATED, UNCHANGED, EXPIRED, FORGOTTEN, CONFLICT, REFUSED = (
    *("created", "updated", "unchanged", "expired", "forgotten", "conflicts", "refused"),
)
MEMORIES, LINKS = "memories", "links"
"""The two lists of an export."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_UID = re.compile(r"[0-9a-f]{24}")
_ROW_FIELDS = ("id", "uid", "access_count", *(one.name for one in STORED if one.form not in JSON_FORMS))
_ROW_JSON = tuple(one.name for one in STORED if one.form in JSON_FORMS)
_ROW_TIMES = ("created_at", "updated_at", "last_accessed_at", "expires_at")


@dataclass(frozen=True, slots=True)
class IncomingNote:
    """A note to be imported. `source_id` is its id in the store it comes from, to which links refer; `uid` and
    `updated_at` are None in files that were written by hand."""

    draft: Draft
    source_id: int | None = None
    uid: str | None = None
    created_at: float | None = None
    updated_at: float | None = None
    last_accessed_at: float | None = None
    access_count: int = 0

    def clamped(self, now: float) -> IncomingNote:
        """Return the note with valid times: only its expiry may be in the future."""
        expires_at = self.draft.expires_at
        return replace(
            self,
            draft=replace(self.draft, expires_at=None if expires_at is None else clamp_time(expires_at)),
            created_at=_clamped(self.created_at, now),
            updated_at=_clamped(self.updated_at, now),
            last_accessed_at=_clamped(self.last_accessed_at, now),
        )

    def is_expired(self, now: float) -> bool:
        return self.draft.expires_at is not None and self.draft.expires_at <= now


@dataclass(frozen=True, slots=True)
class IncomingLink:
    """A link between two notes, by their ids in the store they come from."""

    source_id: int
    target_id: int
    relation: str
    created_at: float | None = None


# Out


def export_rows(connection: SqlConnection, where: NoteFilter, now: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each note as `memories` and its fields, then each link from one of them as `links` and its fields. The
    caller holds a transaction."""
    for note in _notes(connection, where, now):
        yield MEMORIES, {**note.to_json(), "uid": note.uid}
    for source, target, relation, created in store.links_from(connection, where, now):
        fields = {"source_id": source, "target_id": target, "relation": relation, "created_at": rfc3339(created)}
        yield LINKS, fields


def export_pieces(exported_at: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield the JSON text of a whole export, a row to a line."""
    yield f'{{"exported_at":{_encode(exported_at)},"{MEMORIES}":['
    before, current = "\n", MEMORIES
    for kind, row in rows:
        if kind != current:
            yield f'\n],"{LINKS}":['
            before, current = "\n", LINKS
        yield before + _encode(row)
        before = ",\n"
    yield '\n],"links":[]}\n' if current == MEMORIES else "\n]}\n"


def _notes(connection: SqlConnection, where: NoteFilter, now: float) -> Iterator[Note]:
    parts, values = where.where(now)
    return store.select(connection, f"{' AND '.join(parts)} ORDER BY n.id", values)


# In


def parse_note(fields: Mapping[str, Any], now: float, namespace: str) -> IncomingNote:
    """Validate one note of an import. An expiry in the past is no error: the note is counted as expired."""
    expires_at = None if fields.get("expires_at") is None else parse_time(fields["expires_at"], "expires_at")
    others = {name: value for name, value in fields.items() if name != "expires_at"}
    draft = parse_draft(others, now=now, namespace=namespace, source="import")
    uid = fields.get("uid")
    if uid is not None and not (isinstance(uid, str) and _UID.fullmatch(uid)):
        raise Invalid("must be 24 hexadecimal digits", field="uid")
    count = fields.get("access_count", 0)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**53:
        raise Invalid("must be a whole number, 0 or more", field="access_count")
    return IncomingNote(
        replace(draft, expires_at=expires_at, origin=check_metadata(fields.get("origin") or {}, "origin")),
        None if fields.get("id") is None else parse_id(fields["id"]),
        uid,
        _time(fields, "created_at"),
        _time(fields, "updated_at"),
        _time(fields, "last_accessed_at"),
        count,
    )


def parse_link(fields: object) -> IncomingLink:
    if not isinstance(fields, Mapping):
        raise Invalid("must be an object", field="links")
    source, target = parse_id(fields.get("source_id")), parse_id(fields.get("target_id"))
    relation = check_relation(fields.get("relation", "related_to"))
    return IncomingLink(source, target, relation, _time(fields, "created_at"))


def parse_row(values: Mapping[str, Any], now: float) -> IncomingNote:
    """Validate the row of a note in another database. Its times are numbers, which `IncomingNote.clamped` makes
    valid."""
    given = {name: values[name] for name in _ROW_FIELDS}
    parsed = {name: parse_json(values, name) for name in _ROW_JSON}
    incoming = parse_note({**given, **parsed}, now, GLOBAL)
    created_at, updated_at, accessed_at, expires_at = (_row_time(values, name) for name in _ROW_TIMES)
    if created_at is None or updated_at is None:
        raise Invalid("is required", field="updated_at" if created_at else "created_at")
    draft = replace(incoming.draft, expires_at=expires_at)
    return replace(incoming, draft=draft, created_at=created_at, updated_at=updated_at, last_accessed_at=accessed_at)


def parse_link_row(row: Sequence[Any]) -> IncomingLink:
    """Validate the row of a link: source, target, relation, and when it was made."""
    source, target, relation, created_at = row
    created = _row_time({"created_at": created_at}, "created_at")
    return IncomingLink(parse_id(source), parse_id(target), check_relation(relation), created)


def _row_time(values: Mapping[str, Any], name: str) -> float | None:
    value = values[name]
    if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
        raise Invalid("must be a number", field=name)
    return value


def _time(fields: Mapping[str, Any], name: str) -> float | None:
    return None if fields.get(name) is None else parse_time(fields[name], name)


@dataclass(slots=True)
class Merge:
    """Puts incoming notes and links into a store, inside the caller's transaction.

    `counts` has the numbers by result. Left out are `expired` notes, `forgotten` ones, which a user moved to the
    archive of this store, unless they are to be `revived`, `conflicts`, whose title another note has, and those that
    `is_refused` refuses. `links` counts the new links.
    """

    connection: SqlConnection
    now: float
    lifetimes: Lifetimes
    revived: bool = True
    is_refused: Callable[[IncomingNote], bool] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    _ids: dict[int, int] = field(default_factory=dict)

    def add_notes(self, incoming: Iterable[IncomingNote]) -> None:
        for one in incoming:
            note_id, outcome = self._put(one.clamped(self.now))
            self.counts[outcome] += 1
            if one.source_id is not None and note_id is not None:
                self._ids[one.source_id] = note_id

    def add_links(self, incoming: Iterable[IncomingLink]) -> None:
        """Add the links whose two notes were imported."""
        for one in incoming:
            source, target = self._ids.get(one.source_id), self._ids.get(one.target_id)
            if source is not None and target is not None and source != target:
                created = self.now if one.created_at is None else clamp_time(one.created_at, self.now)
                self.counts["links"] += store.add_link(self.connection, source, target, one.relation, created)

    def to_json(self) -> dict[str, int]:
        names = (CREATED, UPDATED, UNCHANGED, EXPIRED, FORGOTTEN, CONFLICT, REFUSED, "links")
        return {name: self.counts[name] for name in names}

    def _left_out(self, one: IncomingNote) -> str | None:
        """Why a note is not imported at all; None when it is."""
        if one.is_expired(self.now):
            return EXPIRED
        if self.is_refused is not None and self.is_refused(one):
            return REFUSED
        return FORGOTTEN if not self.revived and one.uid and self._was_forgotten(one.uid) else None

    def _put(self, one: IncomingNote) -> tuple[int | None, str]:
        if (left_out := self._left_out(one)) is not None:
            return None, left_out
        same = store.find_by_uid(self.connection, one.uid, self.now) if one.uid else None
        same_title = store.find_same_title(self.connection, one.draft, self.now)
        held = same or same_title
        if held is None:
            return self._insert(one), CREATED
        if held.damage is not None and (same_title is None or same_title.id == held.id):
            store.delete(self.connection, held.id, self.now)
            return self._insert(one), UPDATED
        draft = replace(one.draft, **_higher(one.draft, held.draft))
        if _is_newer(held, one) or _same(draft, held.draft):
            return held.id, self._keep_text(held, one.draft)
        if same_title is not None and same_title.id != held.id:
            return held.id, CONFLICT
        store.write(self.connection, held.id, draft, one.updated_at or self.now, self._expiry(draft))
        return held.id, UPDATED

    def _keep_text(self, held: Note, incoming: Draft) -> str:
        """Keep a note's text, but take the tier, priority and expiry of the other version where they are higher or
        later."""
        draft = replace(held.draft, **_higher(incoming, held.draft))
        expires_at = held.expires_at
        if incoming.expires_at is not None or draft.tier != held.draft.tier:  # otherwise its tier has set it already
            new = self._expiry(replace(draft, expires_at=incoming.expires_at))
            expires_at = None if new is None or expires_at is None else max(new, expires_at)
        is_open = held.draft.kind == ATTEMPT and not held.draft.metadata.get("outcome")
        if is_open or (draft == held.draft and expires_at == held.expires_at):
            return UNCHANGED
        store.write(self.connection, held.id, draft, held.updated_at, expires_at)
        return UPDATED

    def _was_forgotten(self, uid: str) -> bool:
        sql = "SELECT 1 FROM archived_notes WHERE uid = ? AND archive_reason IN ('forgotten', 'consolidated')"
        return self.connection.execute(sql, (uid,)).fetchone() is not None

    def _insert(self, one: IncomingNote) -> int:
        return store.insert(
            self.connection,
            one.draft,
            self.now,
            expires_at=self._expiry(one.draft),
            uid=one.uid,
            access_count=one.access_count,
            created_at=one.created_at,
            updated_at=one.updated_at,
            last_accessed_at=one.last_accessed_at,
        )

    def _expiry(self, draft: Draft) -> float | None:
        return self.lifetimes.expiry(draft, self.now)


def _clamped(seconds: float | None, now: float) -> float | None:
    return None if seconds is None else clamp_time(seconds, now)


def _higher(one: Draft, other: Draft) -> dict[str, Any]:
    return {
        "tier": max(one.tier, other.tier, key=TIERS.index),
        "priority": max(one.priority, other.priority),
    }


def _is_newer(held: Note, one: IncomingNote) -> bool:
    """Whether the stored note stays: it was changed later, or is resolved and the other is not."""
    if one.updated_at is not None and one.updated_at <= held.updated_at:
        return True
    is_resolved = held.draft.kind == ATTEMPT and held.draft.metadata.get("outcome")
    return bool(is_resolved and not one.draft.metadata.get("outcome"))


def _same(one: Draft, other: Draft) -> bool:
    return replace(one, expires_at=None, origin={}) == replace(other, expires_at=None, origin={})
