"""The fields of a note, in one table: what each may hold, how it is stored, and how schemas and the command line offer
it. Models, options, rows and exports are made from the table.

A new field is an attribute of `Draft`, a row in `FIELDS`, and a migration that adds its column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.note_files import FILES, check_files, with_files
from nudge.core.text import is_all_visible

SHORT, MID, LONG = "short", "mid", "long"
TIERS = (SHORT, MID, LONG)
NOTE, ATTEMPT = "note", "attempt"
KINDS = (
    *(NOTE, "decision", "bugfix", "feature", "refactor", "discovery", "change", "lesson", ATTEMPT),
    "session_summary",
)
STORED_KINDS = tuple(kind for kind in KINDS if kind != ATTEMPT)
"""Those that may be given: only the journal writes attempts."""
SOURCES = ("user", "claude", "agent", "hook", "api", "cli", "import", "consolidation", "system")
RELATIONS = ("related_to", "supersedes", "contradicts", "derived_from")
PASSING_KINDS = (NOTE, "change", "session_summary")
"""Kinds that have the tier `mid` unless another is given; a note of another kind is kept for good."""
GLOBAL = "global"


class Form(Enum):
    """What the value of a field is. Each form has one check here, one type in the models, one kind of option on the
    command line, and one reader of a stored row."""

    TEXT = auto()
    CHOICE = auto()
    REPO = auto()
    TAGS = auto()
    PATHS = auto()
    WHOLE = auto()
    FRACTION = auto()
    TIME = auto()
    SECONDS = auto()
    OBJECT = auto()
    PARTS = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a note. `most` is the largest number, or the size of a text in bytes. `accepted` are the choices in
    what is given, `offered` those that an option lists.

    `about` is its description in the schema of `memory_store`, `about_change` that of `memory_update`; an `unlisted`
    one is not in the list of tools. `help` is that of its option, which goes on with the default unless it is an
    update; a field without help has no option of its own.
    """

    name: str
    form: Form
    most: int = 0
    accepted: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    about: str = ""
    about_change: str = ""
    parts: tuple[Field, ...] = ()
    """Of an object; a text alone is the last of them."""
    is_required: bool = False
    is_unlisted: bool = False
    is_changeable: bool = True
    is_column: bool = True
    """Whether it is stored in a column of its own."""
    is_kept: bool = False
    """Whether a note that is stored again under its title keeps what is not given."""
    help: str = ""
    metavar: str = ""
    default: str = ""
    """As the help says it."""
    options: tuple[str, ...] = ()
    """The names of its option, where it has others than its own."""

    def check(self, value: object, *, now: float = 0.0, top: str | None = None) -> Any:
        """Return the value as `Draft` has it, or raise Invalid. A time must be after `now`; absolute paths must be
        below `top`, the top of the caller's clone."""
        match self.form:
            case Form.TIME:
                return check_expiry(value, now)
            case Form.PATHS:
                return check_files(value, top)
            case _:
                return _CHECKS[self.form](value, self)


FIELDS = (
    Field(
        "title",
        Form.TEXT,
        limits.MAX_TITLE_BYTES,
        is_required=True,
        about="the same title updates what is given",
    ),
    Field("content", Form.TEXT, limits.MAX_NOTE_BYTES, is_required=True),
    Field(
        "kind",
        Form.CHOICE,
        accepted=KINDS,
        offered=STORED_KINDS,
        is_kept=True,
        help="What the note is, such as a decision or a lesson",
        default="note",
    ),
    Field(
        "tier",
        Form.CHOICE,
        accepted=TIERS,
        offered=TIERS,
        is_kept=True,
        about="6 hours, 7 days, permanent",
        help="How long it is kept: short (6 hours), mid (7 days) or long (for good)",
    ),
    Field(
        "tags",
        Form.TAGS,
        limits.MAX_NOTE_TAG_BYTES,
        is_kept=True,
        help="Labels to filter by",
        metavar="TAG,TAG",
    ),
    Field(
        FILES,
        Form.PATHS,
        is_column=False,  # a part of the metadata
        is_kept=True,
        about="repo paths; default: what you changed last",
        help="Files of the repo that it is about",
        metavar="PATH,PATH",
    ),
    Field(
        "priority",
        Form.WHOLE,
        limits.MAX_PRIORITY,
        is_unlisted=True,
        is_kept=True,
        help="1 to 10",
        metavar="N",
        default="5",
    ),
    Field(
        "confidence",
        Form.FRACTION,
        is_unlisted=True,
        is_kept=True,
        help="How sure it is, 0.0 to 1.0",
        metavar="X",
        default="1.0",
    ),
    Field(
        "namespace",
        Form.REPO,
        limits.MAX_NAMESPACE_BYTES,
        about="default: your repo",
        help="Repo that the note belongs to, or any other name",
        default="the repo you are in",
    ),
    Field(
        "source",
        Form.CHOICE,
        accepted=SOURCES,
        offered=SOURCES,
        is_unlisted=True,
        help="Who writes it",
        default="cli",
    ),
    Field(
        "expires_at",
        Form.TIME,
        is_column=False,  # an attribute of the note: its tier may set it
        about_change="RFC 3339",
        help="When it expires: a date, an ISO time, or 30d (in thirty days)",
        metavar="WHEN",
    ),
    Field("ttl_secs", Form.SECONDS, limits.MAX_NOTE_TTL, is_unlisted=True, is_changeable=False, is_column=False),
    Field(
        "metadata",
        Form.OBJECT,
        is_unlisted=True,
        is_kept=True,
        help="JSON object to store with it",
        metavar="JSON",
    ),
)
ORIGIN = Field("origin", Form.OBJECT)
"""Set by the server: client, session, prompt, repo."""
BY_NAME = {one.name: one for one in (*FIELDS, ORIGIN)}
_FIRST_SHOWN = ("tier", "namespace", "kind")
STORED = (
    *(BY_NAME[name] for name in _FIRST_SHOWN),
    *(one for one in (*FIELDS, ORIGIN) if one.is_column and one.name not in _FIRST_SHOWN),
)
"""The fields that have a column, in the order in which a note shows them."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The validated fields of a note that is to be stored. `expires_at` is None where the tier decides."""

    title: str
    content: str
    namespace: str = GLOBAL
    tier: str = MID
    kind: str = NOTE
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


def parse_draft(
    fields: Mapping[str, Any], *, now: float, namespace: str = GLOBAL, source: str = "api", top: str | None = None
) -> Draft:
    """Validate the fields of a new note; `namespace` and `source` are the defaults, `top` is the top of the clone that
    absolute paths in `files` are below."""
    given = {name: value for name, value in fields.items() if value is not None}
    values = {
        one.name: one.check(given.get(one.name), now=now, top=top)
        for one in (*FIELDS, ORIGIN)
        if one.name in given or one.is_required
    }
    seconds, files = values.pop("ttl_secs", None), values.pop(FILES, None)
    if seconds is not None and "expires_at" not in values:
        values["expires_at"] = min(now + seconds, limits.MAX_TIMESTAMP)
    if "tier" not in values:
        values["tier"] = MID if "expires_at" in values else tier_of_kind(values.get("kind", NOTE))
    if files is not None:
        values["metadata"] = check_metadata(with_files(values.get("metadata", {}), files))
    defaulted = frozenset(one.name for one in FIELDS if one.is_kept).difference(given)
    return Draft(**{"namespace": namespace, "source": source, "defaulted": defaulted, **values})


def parse_changes(
    fields: Mapping[str, Any], *, now: float, top: str | None = None, table: Sequence[Field] = FIELDS
) -> dict[str, Any]:
    """Validate only the fields that an update names; `top` is as in `parse_draft`."""
    return {
        one.name: one.check(fields[one.name], now=now, top=top)
        for one in table
        if one.is_changeable and fields.get(one.name) is not None
    }


def tier_of_kind(kind: str) -> str:
    """Return the tier of a note for which neither a tier nor an expiry is given."""
    return MID if kind in PASSING_KINDS else LONG


# Checks, also of what is no field of a note


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


def check_fraction(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise Invalid("must be 0 to 1", field=name)
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


def check_namespace(value: object) -> str:
    """Check a name without spaces. Only a directory, the namespace where there is no repository, may have them."""
    namespace = check_text(value, "namespace", limits.MAX_NAMESPACE_BYTES)
    is_directory = namespace.startswith("/") and namespace == namespace.strip()
    if not is_all_visible(namespace) or (" " in namespace and not is_directory):
        raise Invalid("must not contain blanks", field="namespace")
    return namespace


def check_tags(value: object, name: str = "tags", most: int = limits.MAX_NOTE_TAG_BYTES) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [tag.strip() for tag in value.split(",") if tag.strip()]
    if not isinstance(value, list | tuple):
        raise Invalid("must be a list of strings", field=name)
    if len(value) > limits.MAX_NOTE_TAGS:
        raise Invalid(f"must have at most {limits.MAX_NOTE_TAGS} items", field=name)
    return tuple(dict.fromkeys(check_text(tag, f"{name}[{number}]", most) for number, tag in enumerate(value)))


def _check_whole(value: object, one: Field) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= one.most:
        raise Invalid(f"must be 1 to {one.most}", field=one.name)
    return value


def _check_seconds(value: object, one: Field) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= one.most:
        raise Invalid(f"must be 1 to {one.most} seconds", field=one.name)
    return value


def _check_parts(value: object, one: Field) -> dict[str, Any]:
    names = [part.name for part in one.parts]
    if isinstance(value, str):
        value = {names[-1]: value}
    if not isinstance(value, Mapping):
        raise Invalid(f"must be a string, or an object with {' and '.join(names)}", field=one.name)
    if others := sorted(set(value) - set(names)):
        raise Invalid(f"is not a part of {one.name}", field=f"{one.name}.{others[0][:100]}")
    given = [part for part in one.parts if part.is_required or value.get(part.name) is not None]
    if not given:
        raise Invalid(f"must have {' or '.join(names)}", field=one.name)
    return {part.name: replace(part, name=f"{one.name}.{part.name}").check(value.get(part.name)) for part in given}


_CHECKS: dict[Form, Callable[[object, Field], Any]] = {
    Form.TEXT: lambda value, one: check_text(value, one.name, one.most),
    Form.CHOICE: lambda value, one: check_choice(value, one.accepted, one.name),
    Form.REPO: lambda value, _: check_namespace(value),
    Form.TAGS: lambda value, one: check_tags(value, one.name, one.most),
    Form.WHOLE: _check_whole,
    Form.FRACTION: lambda value, one: check_fraction(value, one.name),
    Form.SECONDS: _check_seconds,
    Form.OBJECT: lambda value, one: check_metadata(value, one.name),
    Form.PARTS: _check_parts,
}


def check_kind(value: object) -> str:
    return check_choice(value, KINDS, "kind")


def check_relation(value: object) -> str:
    return check_choice(value, RELATIONS, "relation")


# Times


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


@lru_cache(maxsize=4_096)  # what is recalled often is shown often: 1.5 us for each of three times in a row
def rfc3339(seconds: float | None) -> str | None:
    """Format a time for `parse_time`. A time outside its range, which older versions stored, becomes the nearest one in
    it: a single note must not make every list fail."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(clamp_time(seconds), UTC).isoformat(timespec="seconds")
