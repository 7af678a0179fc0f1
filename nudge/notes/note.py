"""The stored note: how long it lives, and how it is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes.fields import ATTEMPT, FIELDS, LONG, MID, SHORT, STORED, Draft, Field, Form, rfc3339
from nudge.security.secrets import find_secret

_ID = re.compile(r"m?([1-9][0-9]{0,17})")
_SHOWN = tuple(one.name for one in STORED if one.form is not Form.OBJECT)
_LISTED_METADATA = ("domain", "outcome", "confidence_tier")  # of an attempt


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Seconds that a note of each tier lives, and by how much a recall extends that; None: for good."""

    short: float | None = limits.SHORT_NOTE_TTL
    mid: float | None = limits.MID_NOTE_TTL
    long: float | None = None
    short_extension: float = limits.SHORT_NOTE_EXTENSION
    mid_extension: float = limits.MID_NOTE_EXTENSION
    promote_at: int = limits.PROMOTION_RECALLS
    """Recalls after which a `mid` note becomes `long`."""

    @classmethod
    def configured(cls, settings: Mapping[str, float]) -> Lifetimes:
        """From the names that `[memories]` in `config.toml` has; a lifetime of 0 is for good."""
        return cls(
            short=settings.get("short_ttl_secs", limits.SHORT_NOTE_TTL) or None,
            mid=settings.get("mid_ttl_secs", limits.MID_NOTE_TTL) or None,
            long=settings.get("long_ttl_secs", 0) or None,
            short_extension=settings.get("short_extend_secs", limits.SHORT_NOTE_EXTENSION),
            mid_extension=settings.get("mid_extend_secs", limits.MID_NOTE_EXTENSION),
        )

    def expiry(self, draft: Draft, now: float) -> float | None:
        """When a note that is stored now expires: at its own time, else by its tier."""
        seconds = {SHORT: self.short, MID: self.mid, LONG: self.long}[draft.tier]
        if draft.expires_at is not None or seconds is None:
            return draft.expires_at
        return min(now + seconds, limits.MAX_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Note:
    """A stored note."""

    id: int
    uid: str
    draft: Draft
    access_count: int
    created_at: float
    updated_at: float
    last_accessed_at: float | None
    expires_at: float | None
    damage: str | None = None
    """Why its row cannot be read; then the other fields are what can, with defaults for the rest."""

    def to_json(self, score: float | None = None) -> dict[str, Any]:
        """The form for every interface. Fields without a value are left out, to save a model's tokens."""
        draft = self.draft
        optional = {
            "last_accessed_at": rfc3339(self.last_accessed_at),
            "expires_at": rfc3339(self.expires_at),
            "metadata": dict(draft.metadata),
            "origin": dict(draft.origin),
            "score": None if score is None else round(score, 3),
            "damaged": self.damage,
        }
        shown = {name: getattr(draft, name) for name in _SHOWN}
        return {
            "id": self.id,
            **shown,
            "tags": list(draft.tags),
            "access_count": self.access_count,
            "created_at": rfc3339(self.created_at),
            "updated_at": rfc3339(self.updated_at),
            **{name: value for name, value in optional.items() if value not in (None, {})},
        }

    def to_row(self, score: float | None = None) -> dict[str, Any]:
        """The form in a list. It leaves out most metadata of an attempt, which are long and which `memory_get`
        returns."""
        row = self.to_json(score)
        if self.draft.kind == ATTEMPT and "metadata" in row:
            row["metadata"] = {name: row["metadata"][name] for name in _LISTED_METADATA if name in row["metadata"]}
        return row


def parse_id(value: object) -> int:
    """Return the id that `12`, `"12"` or `"m12"` names."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= limits.MAX_NOTE_ID:
        return value
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise Invalid("must be a note's number, such as 12 or m12", field="id")
    return int(match[1])


def find_secret_in(draft: Draft) -> tuple[str, str] | None:
    """Return the first field that looks like a secret, and its kind; None when there is none."""
    texts = ((name, text) for one in FIELDS if one.is_column for name, text in _texts_in(one, getattr(draft, one.name)))
    findings = ((field, find_secret(text)) for field, text in texts if text)
    return next(((field, kind) for field, kind in findings if kind), None)


def _texts_in(one: Field, value: Any) -> Iterator[tuple[str, str]]:
    if one.form is Form.TEXT:
        yield one.name, value
    elif one.form is Form.TAGS:
        yield from ((f"{one.name}[{number}]", tag) for number, tag in enumerate(value))
    elif one.form is Form.OBJECT and value:
        yield one.name, json.dumps(dict(value), ensure_ascii=False)
