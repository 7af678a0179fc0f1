"""The note: what its fields may hold, their defaults, and how it is shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.note_files import FILES, check_files, with_files
from nudge.core.text import is_all_visible
from nudge.security.secrets import find_secret

SHORT, MID, LONG = "short", "mid", "long"
TIERS = (SHORT, MID, LONG)
NOTE, ATTEMPT = "note", "attempt"
KINDS = (
    *(NOTE, "decision", "bugfix", "feature", "refactor", "discovery", "change", "lesson", ATTEMPT),
    "session_summary",
)
SOURCES = ("user", "claude", "agent", "hook", "api", "cli", "import", "consolidation", "system")
RELATIONS = ("related_to", "supersedes", "contradicts", "derived_from")
PASSING_KINDS = (NOTE, "change", "session_summary")
"""Kinds that have the tier `mid` unless another is given; a note of another kind is kept for good."""
GLOBAL = "global"
TOON_FIELDS = (
    *("id", "title", "tier", "namespace", "priority", "confidence", "score", "access_count", "tags", "source"),
    *("created_at", "updated_at"),
)
COMPACT_TOON_FIELDS = ("id", "title", "tier", "namespace", "priority", "score", "tags")

_ID = re.compile(r"m?([1-9][0-9]{0,17})")
_LISTED_METADATA = ("domain", "outcome", "confidence_tier")  # of an attempt
_TOON_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}
_TOON_SPECIAL = re.compile(r"[\\|\n\r]")
_CHANGEABLE = (
    *("title", "content", "tier", "namespace", "tags", "kind", "priority", "confidence", "source", "metadata"),
    *("expires_at", FILES),
)
_KEPT_BY_UPDATES = ("tier", "kind", "tags", "priority", "confidence", "metadata", FILES)


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
class Draft:
    """The validated fields of a note that is to be stored. `expires_at` is None where the tier decides."""

    title: str
    content: str
    namespace: str = GLOBAL
    tier: str = MID
    kind: str = "note"
    tags: tuple[str, ...] = ()
    priority: int = limits.DEFAULT_PRIORITY
    confidence: float = 1.0
    source: str = "api"
    expires_at: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: client, session, prompt, repo."""
    defaulted: frozenset[str] = field(default=frozenset(), compare=False)
    """Fields that were not given: a note that has the title already keeps its own."""


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

    def to_wire(self, score: float | None = None) -> dict[str, Any]:
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
        return {
            "id": self.id,
            "tier": draft.tier,
            "namespace": draft.namespace,
            "kind": draft.kind,
            "title": draft.title,
            "content": draft.content,
            "tags": list(draft.tags),
            "priority": draft.priority,
            "confidence": draft.confidence,
            "source": draft.source,
            "access_count": self.access_count,
            "created_at": rfc3339(self.created_at),
            "updated_at": rfc3339(self.updated_at),
            **{name: value for name, value in optional.items() if value not in (None, {})},
        }

    def to_row(self, score: float | None = None) -> dict[str, Any]:
        """The form in a list. It leaves out most metadata of an attempt, which are long and which `memory_get`
        returns."""
        row = self.to_wire(score)
        if self.draft.kind == ATTEMPT and "metadata" in row:
            row["metadata"] = {name: row["metadata"][name] for name in _LISTED_METADATA if name in row["metadata"]}
        return row


def parse_draft(
    fields: Mapping[str, Any], *, now: float, namespace: str = GLOBAL, source: str = "api", top: str | None = None
) -> Draft:
    """Validate the fields of a new note; `namespace` and `source` are the defaults, `top` is the top of the clone that
    absolute paths in `files` are below."""
    given = {name: value for name, value in fields.items() if value is not None}
    expires_at = _expiry(given, now)
    kind = check_kind(given.get("kind", NOTE))
    default_tier = MID if expires_at is not None else tier_of_kind(kind)
    return Draft(
        title=check_title(given.get("title")),
        content=check_content(given.get("content")),
        namespace=check_namespace(given["namespace"]) if "namespace" in given else namespace,
        tier=check_choice(given.get("tier", default_tier), TIERS, "tier"),
        kind=kind,
        tags=check_tags(given.get("tags", ())),
        priority=check_priority(given.get("priority", limits.DEFAULT_PRIORITY)),
        confidence=check_confidence(given.get("confidence", 1.0)),
        source=check_choice(given.get("source", source), SOURCES, "source"),
        expires_at=expires_at,
        metadata=_metadata(given, top),
        origin=check_metadata(given.get("origin", {}), "origin"),
        defaulted=frozenset(_KEPT_BY_UPDATES).difference(given),
    )


def _metadata(given: Mapping[str, Any], top: str | None) -> dict[str, Any]:
    metadata = check_metadata(given.get("metadata", {}))
    return check_metadata(with_files(metadata, check_files(given[FILES], top))) if FILES in given else metadata


def tier_of_kind(kind: str) -> str:
    """Return the tier of a note for which neither a tier nor an expiry is given."""
    return MID if kind in PASSING_KINDS else LONG


def parse_changes(fields: Mapping[str, Any], *, now: float, top: str | None = None) -> dict[str, Any]:
    """Validate only the fields that an update names; `top` is as in `parse_draft`."""
    checks: dict[str, Callable[[object], Any]] = {
        "title": check_title,
        "content": check_content,
        "namespace": check_namespace,
        "tier": lambda value: check_choice(value, TIERS, "tier"),
        "kind": check_kind,
        "tags": check_tags,
        "priority": check_priority,
        "confidence": check_confidence,
        "source": lambda value: check_choice(value, SOURCES, "source"),
        "metadata": check_metadata,
        "expires_at": lambda value: check_expiry(value, now),
        FILES: lambda value: check_files(value, top),
    }
    return {name: checks[name](fields[name]) for name in _CHANGEABLE if fields.get(name) is not None}


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
    texts = [
        ("title", draft.title),
        ("content", draft.content),
        *((f"tags[{number}]", tag) for number, tag in enumerate(draft.tags)),
        ("metadata", json.dumps(dict(draft.metadata), ensure_ascii=False) if draft.metadata else ""),
    ]
    findings = ((field, find_secret(text)) for field, text in texts if text)
    return next(((field, kind) for field, kind in findings if kind), None)


def check_title(value: object) -> str:
    return check_text(value, "title", limits.MAX_TITLE_BYTES)


def check_content(value: object) -> str:
    return check_text(value, "content", limits.MAX_NOTE_BYTES)


def check_namespace(value: object) -> str:
    """Check a name without spaces. Only a directory, the namespace where there is no repository, may have them."""
    namespace = check_text(value, "namespace", limits.MAX_NAMESPACE_BYTES)
    is_directory = namespace.startswith("/") and namespace == namespace.strip()
    if not is_all_visible(namespace) or (" " in namespace and not is_directory):
        raise Invalid("must not contain blanks", field="namespace")
    return namespace


def check_tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [tag.strip() for tag in value.split(",") if tag.strip()]
    if not isinstance(value, list | tuple):
        raise Invalid("must be a list of strings", field="tags")
    if len(value) > limits.MAX_NOTE_TAGS:
        raise Invalid(f"must have at most {limits.MAX_NOTE_TAGS} items", field="tags")
    return tuple(
        dict.fromkeys(check_text(tag, f"tags[{number}]", limits.MAX_NOTE_TAG_BYTES) for number, tag in enumerate(value))
    )


def check_priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_PRIORITY:
        raise Invalid(f"must be 1 to {limits.MAX_PRIORITY}", field="priority")
    return value


def check_confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise Invalid("must be 0 to 1", field="confidence")
    return float(value)


def check_metadata(value: object, name: str = "metadata") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid("must be an object", field=name)
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:  # half a surrogate pair, not a number
        raise Invalid("must be JSON in UTF-8", field=name) from None
    if size > limits.MAX_METADATA_BYTES:
        raise Invalid(f"must be at most {limits.MAX_METADATA_BYTES} bytes of JSON", field=name)
    return value


def check_kind(value: object) -> str:
    return check_choice(value, KINDS, "kind")


def check_relation(value: object) -> str:
    return check_choice(value, RELATIONS, "relation")


def check_expiry(value: object, now: float) -> float:
    """Parse an RFC 3339 time that must be in the future; return Unix seconds."""
    moment = parse_time(value, "expires_at")
    if moment <= now:
        raise Invalid("must be in the future", field="expires_at")
    return moment


def parse_time(value: object, name: str) -> float:
    """Parse an RFC 3339 time, without an offset as UTC; return Unix seconds."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid("must be a time such as 2026-04-06T00:00:00Z", field=name)
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds <= limits.MAX_TIMESTAMP:
        raise Invalid("must be between 1970 and 2200", field=name)
    return seconds


def clamp_time(seconds: float, latest: float = limits.MAX_TIMESTAMP) -> float:
    """Return the nearest time that `parse_time` accepts, no later than `latest`."""
    return min(max(seconds, 0.0), latest)


def rfc3339(seconds: float | None) -> str | None:
    """Format a time for `parse_time`. A time outside its range, which older versions stored, becomes the nearest one in
    it: a single note must not make every list fail."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(clamp_time(seconds), UTC).isoformat(timespec="seconds")


def _expiry(fields: Mapping[str, Any], now: float) -> float | None:
    if "expires_at" in fields:
        return check_expiry(fields["expires_at"], now)
    seconds = fields.get("ttl_secs")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds <= limits.MAX_NOTE_TTL:
        raise Invalid(f"must be 1 to {limits.MAX_NOTE_TTL} seconds", field="ttl_secs")
    return min(now + seconds, limits.MAX_TIMESTAMP)


def check_text(value: object, name: str, most: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid("is required" if value is None else "must not be empty", field=name)
    if "\0" in value:
        raise Invalid("must not contain a null character", field=name)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Invalid("is not text in UTF-8", field=name) from None
    if size > most:
        raise Invalid(f"must be at most {most} bytes", field=name)
    return value


def check_choice(value: object, allowed: tuple[str, ...], name: str) -> str:
    if value not in allowed:
        raise Invalid(f"must be one of {', '.join(allowed)}", field=name)
    return str(value)


# Lists of notes as text


def dump_toon(response: Mapping[str, Any], fields: Sequence[str] = COMPACT_TOON_FIELDS) -> str:
    """Return a recall, search or list response as TOON (Token-Oriented Object Notation): field names once in a header,
    then one row for each object. A `results` array is written as `memories`.

        count:3|mode:keyword
        memories[id|title|tier]:
        12|PostgreSQL config|long

    In a value `\\` is written `\\\\`, `|` is `\\|`, a line feed is `\\n` and a carriage return `\\r`. Text can be
    read back. Other values cannot: null and the empty text are both written as nothing; true and 1, false and 0,
    numbers and their text are written alike; an array is joined with commas, also where a tag has one; an object is
    written as [object].
    """
    rows = response.get("memories", response.get("results", ()))
    scalars = {
        name: value
        for name, value in response.items()
        if not isinstance(value, list | tuple | dict) and value is not None
    }
    lines = (
        ["|".join(f"{_toon_escape(name)}:{_toon_value(value)}" for name, value in scalars.items())] if scalars else []
    )
    lines.append(f"memories[{'|'.join(fields)}]:")
    lines += ["|".join(_toon_value(row.get(name)) for name in fields) for row in rows]
    return "\n".join(lines)


def _toon_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping):
        return "[object]"
    if isinstance(value, str):
        return _toon_escape(value)
    if isinstance(value, Iterable):
        return _toon_escape(",".join(str(item) for item in value))
    return str(value)


def _toon_escape(text: str) -> str:
    return _TOON_SPECIAL.sub(lambda match: _TOON_ESCAPES[match[0]], text)
