"""The hint with its meta and its forms (JSON, record), and the change that a write makes. All are immutable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from nudge.core import limits
from nudge.core.clock import SESSION, iso, parse_lifetime
from nudge.core.errors import Invalid
from nudge.hints.fields import (
    copy_json,
    parse_choice,
    parse_fraction,
    parse_list,
    parse_object,
    parse_text,
    parse_timestamp,
    parse_value,
    parse_whole,
    require,
    search_text,
)
from nudge.hints.scope import Scope, parse_scope, scope_of
from nudge.hints.versions import EarlierVersion

# Component, key and the scope's key: unique for each variant.
Identity = tuple[str, str, str]

SECRET = "secret"
SENSITIVITIES = ("normal", SECRET)
SOURCES = ("user", "agent", "tool-output", "file-import")

_HINT_RESULTS = ("hint", "previous")  # fields of a write's result that hold hints
_TIMES = ("created_at", "updated_at", "last_used_at")
_FIELDS = ("value", "meta", "version", *_TIMES, "use_count")
_JSON_FIELDS = (*_FIELDS, "failure_count")
_RECORD_FIELDS = ("component", "key", *_FIELDS, "last_seen")
_OPTIONAL_FIELDS = ("failure_count", "basis", "credits", "session")  # of a record


# Meta


def parse_meta(raw: object, field: str = "meta") -> dict[str, Any]:
    """Return the given fields, without defaults: a stored default could never change. Null counts as not given, and an
    empty scope as no scope."""
    fields = parse_object({} if raw is None else raw, field, tuple(_META_PARSERS))
    meta = {
        name: parse(fields[name], f"{field}.{name}")
        for name, parse in _META_PARSERS.items()
        if fields.get(name) is not None
    }
    if not meta.get("scope", True):
        del meta["scope"]
    return meta


def merge_meta(meta: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Add parsed fields to parsed meta, in the order of `parse_meta`."""
    merged = {**meta, **more}
    return {name: merged[name] for name in _META_PARSERS if name in merged}


def _parse_tags(raw: object, field: str) -> list[str]:
    return parse_list(raw, field, limits.MAX_TAGS, lambda tag, at: parse_text(tag, at, limits.MAX_TAG_CHARS, least=1))


def _parse_ttl_text(raw: object, field: str) -> str:
    parse_ttl(raw, field)
    return str(raw)


_META_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "reason": lambda raw, field: parse_text(raw, field, limits.MAX_REASON_CHARS),
    "tags": _parse_tags,
    "priority": lambda raw, field: parse_whole(raw, field, limits.MIN_PRIORITY, limits.MAX_PRIORITY),
    "confidence": parse_fraction,
    "ttl": _parse_ttl_text,
    "sensitivity": lambda raw, field: parse_choice(raw, field, SENSITIVITIES),
    "scope": lambda raw, field: parse_scope(raw, field).fields,
    "source": lambda raw, field: parse_choice(raw, field, SOURCES),
    "added_by": lambda raw, field: parse_text(raw, field, limits.MAX_ADDED_BY_CHARS),
}


# The hint


@dataclass(frozen=True, slots=True)
class Hint:
    component: str
    key: str
    value: Any
    meta: dict[str, Any]
    version: int
    created_at: float
    updated_at: float
    last_used_at: float | None
    use_count: int
    """How often it worked."""
    failure_count: int
    """How often this value failed."""
    scope: Scope = field(compare=False, repr=False)
    identity: Identity = field(compare=False, repr=False)
    expires_at: float | None
    last_seen: float = field(compare=False, repr=False)
    """When it was last set, credited or returned, to the day: the start of its idle time. Callers do not get it."""
    blob: bytes = field(compare=False, repr=False)
    """Its texts as UTF-8, one per line: a regular expression is matched against this first."""
    basis: dict[str, str] | None = field(default=None, compare=False, repr=False)
    """The files of the repo that it depends on, each with a digest of its content. Callers do not get it."""
    credits: dict[str, int] | None = field(default=None, compare=False, repr=False)
    """How much more often it worked than it failed in each project, if its scope names no place: both counts are sums
    over all projects. Callers do not get it."""
    session: str | None = field(default=None, compare=False, repr=False)
    """The agent session that set this value, if it is known. Callers do not get it."""
    earlier: tuple[EarlierVersion, ...] = field(default=(), compare=False, repr=False)
    """What it said before, the last one first. Callers do not get it."""

    @classmethod
    def of(
        cls,
        component: str,
        key: str,
        value: Any,
        meta: dict[str, Any],
        *,
        version: int = 1,
        created_at: float,
        updated_at: float,
        last_used_at: float | None = None,
        use_count: int = 0,
        failure_count: int = 0,
        last_seen: float | None = None,
        basis: dict[str, str] | None = None,
        credits: dict[str, int] | None = None,
        session: str | None = None,
        earlier: tuple[EarlierVersion, ...] = (),
    ) -> Self:
        """Create a hint from parsed parts; scope, expiry and texts are derived from them."""
        lifetime = parse_ttl(meta.get("ttl", SESSION))
        scope = scope_of(meta.get("scope", {}))
        return cls(
            component,
            key,
            value,
            meta,
            version,
            created_at,
            updated_at,
            last_used_at,
            use_count,
            failure_count,
            scope=scope,
            identity=(component, key, scope.key),
            expires_at=None if lifetime is None else updated_at + lifetime,
            last_seen=max(updated_at, last_used_at or 0.0) if last_seen is None else last_seen,
            blob="\n".join(text for _, text in _texts(component, key, value, meta)).encode("utf-8", "replace"),
            basis=basis,
            credits=credits,
            session=session,
            earlier=earlier,
        )

    @property
    def secret(self) -> bool:
        return self.meta.get("sensitivity") == SECRET

    @property
    def net_use(self) -> int:
        """How much more often it worked than it failed; never negative."""
        return max(self.use_count - self.failure_count, 0)

    @property
    def weight(self) -> int:
        """The number of characters to read for a check of this hint."""
        return self.scope.weight + len(self.blob)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """The texts for searches, each with the name of its field. They are separate, so that `^` and `$` match at the
        ends of each."""
        return _texts(self.component, self.key, self.value, self.meta)

    def live_at(self, now: float) -> bool:
        return self.expires_at is None or now < self.expires_at

    def is_due(self, now: float) -> bool:
        """Whether it is a day or more since `last_seen`, so that a return is to be stored."""
        return now - self.last_seen >= limits.SEEN_AGAIN

    def to_record(self) -> dict[str, Any]:
        """The form in the change log. Times are numbers: a float survives JSON exactly."""
        record = {name: getattr(self, name) for name in _RECORD_FIELDS}
        return {**record, **{name: content for name in _OPTIONAL_FIELDS if (content := getattr(self, name))}}

    def to_whole_record(self) -> dict[str, Any]:
        """The form in a log that has no earlier record of the hint: with what it said before."""
        record = self.to_record()
        return {**record, "earlier": [one.to_record() for one in self.earlier]} if self.earlier else record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `to_record`, without checks: a record is checked before it is written, and has a checksum."""
        optional = {name: record[name] for name in _OPTIONAL_FIELDS if name in record}
        earlier = tuple(map(EarlierVersion.from_record, record.get("earlier", ())))
        return cls.of(**{name: record[name] for name in _RECORD_FIELDS}, **optional, earlier=earlier)

    def to_json(self) -> dict[str, Any]:
        """The form that callers get. A copy, so that a change of the answer does not reach the store."""
        shown: dict[str, Any] = {
            "value": self.value if isinstance(self.value, str) else copy_json(self.value),
            "meta": self._copy_meta(),
            "version": self.version,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        }
        if self.last_used_at is not None:
            shown["last_used_at"] = iso(self.last_used_at)
        if self.use_count:
            shown["use_count"] = self.use_count
        if self.failure_count:
            shown["failure_count"] = self.failure_count
        return shown

    def _copy_meta(self) -> dict[str, Any]:
        """`copy_json(self.meta)`, in a third of the time: only tags and scope are mutable."""
        meta = dict(self.meta)
        if "tags" in meta:
            meta["tags"] = list(meta["tags"])
        if "scope" in meta:
            meta["scope"] = copy_json(meta["scope"])
        return meta


def _texts(component: str, key: str, value: Any, meta: dict[str, Any]) -> list[tuple[str, str]]:
    fields = [("component", component), ("key", key), ("value", search_text(value)), ("reason", meta.get("reason", ""))]
    return [*((name, text) for name, text in fields if text), *(("tag", tag) for tag in meta.get("tags", ()))]


def next_version(current: Hint | None, component: str, key: str, value: Any, meta: dict[str, Any], now: float) -> Hint:
    """Return the hint that replaces `current`, with a new value and meta. It keeps the use count and the time of
    creation, and is always newer. The failures of another value are not kept: the hint was corrected."""
    if current is None:
        return Hint.of(component, key, value, meta, created_at=microseconds(now), updated_at=microseconds(now))
    return Hint.of(
        component,
        key,
        value,
        meta,
        version=min(current.version + 1, limits.MAX_VERSION),  # only an import can reach the limit
        created_at=current.created_at,
        updated_at=microseconds(max(now, current.updated_at + 1e-6)),
        last_used_at=current.last_used_at,
        use_count=current.use_count,
        failure_count=current.failure_count if value == current.value else 0,
        last_seen=microseconds(now),
        credits=current.credits,
    )


def hint_from_json(component: str, key: str, raw: object, now: float, path: str = "hint") -> Hint:
    """The inverse of `to_json`, checked by the rules of a `set`; a missing time is now.

    A time in the future, from a clock that is ahead, becomes now: a TTL starts at the last set and must not end late,
    and every later `set` would have to be later still."""
    fields = parse_object(raw, path, _JSON_FIELDS)
    latest = microseconds(now)
    times = {name: min(parse_timestamp(fields[name], f"{path}.{name}"), latest) for name in _TIMES if name in fields}
    updated_at = times.get("updated_at", latest)
    return Hint.of(
        component,
        key,
        parse_value(require(fields, "value", path), f"{path}.value"),
        parse_meta(fields.get("meta"), f"{path}.meta"),
        version=parse_whole(fields.get("version", 1), f"{path}.version", 1, limits.MAX_VERSION),
        created_at=times.get("created_at", updated_at),
        updated_at=updated_at,
        last_used_at=times.get("last_used_at"),
        use_count=parse_whole(fields.get("use_count", 0), f"{path}.use_count", 0, limits.MAX_USE_COUNT),
        failure_count=parse_whole(fields.get("failure_count", 0), f"{path}.failure_count", 0, limits.MAX_USE_COUNT),
        last_seen=latest,
    )


def microseconds(seconds: float) -> float:
    """Round a time to the precision of JSON, so that an export that is imported again equals the store."""
    return round(seconds, 6)


def is_copied_fact(meta: Mapping[str, Any]) -> bool:
    """Whether an earlier version made the hint of something that it had learned."""
    return (meta.get("source"), meta.get("added_by")) == ("tool-output", "nudge:learned")


# A change to the store


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a write: decided, then logged, then applied. Removals are applied first, so that one change can
    remove and put a variant. `is_whole`: what the puts said before is not in the log yet, so that it is to be written
    with them."""

    puts: tuple[Hint, ...] = ()
    removals: tuple[Identity, ...] = ()
    is_whole: bool = False

    def __len__(self) -> int:
        return len(self.puts) + len(self.removals)

    def to_record(self) -> dict[str, Any]:
        return {
            "puts": [hint.to_whole_record() if self.is_whole else hint.to_record() for hint in self.puts],
            "removals": [list(identity) for identity in self.removals],
        }

    def without_secrets(self) -> Change:
        """The change for the log. Secrets are kept in memory only: in the log, they are removals."""
        secrets = tuple(hint.identity for hint in self.puts if hint.secret)
        if not secrets:
            return self
        puts = tuple(hint for hint in self.puts if not hint.secret)
        return Change(puts, (*self.removals, *secrets), self.is_whole)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `to_record`, without copies of facts, which earlier versions stored as hints."""
        puts = tuple(Hint.from_record(put) for put in record["puts"] if not is_copied_fact(put["meta"]))
        return cls(puts, tuple((component, key, scope_key) for component, key, scope_key in record["removals"]))


def hide_secrets(result: Any) -> Any:
    """Return the result of a write for the log: secret hints without their value, as in an export."""
    if isinstance(result, list):
        return [hide_secrets(item) for item in result]
    if not isinstance(result, dict):
        return result
    if (result.get("meta") or {}).get("sensitivity") == SECRET and "value" in result:
        return {**{name: item for name, item in result.items() if name != "value"}, "redacted": True}
    return {**result, **{name: hide_secrets(result[name]) for name in _HINT_RESULTS if name in result}}


@dataclass(frozen=True, slots=True)
class Decision:
    """A write that is allowed: its change, and the result for the caller once the change is applied."""

    change: Change
    result: dict[str, Any]


def parse_ttl(raw: object, field: str = "meta.ttl") -> float | None:
    """Return seconds, or None for as long as the session lives."""
    try:
        return parse_lifetime(parse_text(raw, field, limits.MAX_TAG_CHARS))
    except ValueError as error:
        raise Invalid(str(error), field=field) from None
