"""The hint: a value and what is known about it, immutable; its scope is compiled and its texts are laid out once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from nudge import limits
from nudge.clock import iso
from nudge.errors import Invalid
from nudge.hints.fields import parse_name, parse_object, parse_text, parse_whole, require
from nudge.hints.meta import SECRET, parse_meta
from nudge.hints.scope import Scope, scope_of
from nudge.hints.ttl import SESSION, parse_ttl
from nudge.hints.value import fresh, parse_value, search_text

__all__ = [
    "Hint",
    "Identity",
    "hint_from_wire",
    "microseconds",
    "next_version",
    "parse_meta",
    "parse_name",
    "parse_timestamp",
    "parse_ttl",
    "parse_value",
]

# Component, key and the scope's key: what tells one variant from every other.
Identity = tuple[str, str, str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("created_at", "updated_at", "last_used_at")
_WIRE_FIELDS = ("value", "meta", "version", *_TIMES, "use_count")


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
    scope: Scope = field(compare=False, repr=False)
    identity: Identity = field(compare=False, repr=False)
    expires_at: float | None
    texts: tuple[tuple[str, str], ...] = field(compare=False, repr=False)

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
    ) -> Self:
        """From parts that were parsed already; what follows from them is worked out here."""
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
            scope=scope,
            identity=(component, key, scope.key),
            expires_at=None if lifetime is None else updated_at + lifetime,
            texts=_texts(component, key, value, meta),
        )

    @property
    def secret(self) -> bool:
        return self.meta.get("sensitivity") == SECRET

    @property
    def weight(self) -> int:
        """Characters to read: what work on this hint costs."""
        return self.scope.weight + sum(len(text) for _, text in self.texts)

    def live_at(self, now: float) -> bool:
        return self.expires_at is None or now < self.expires_at

    def to_wire(self) -> dict[str, Any]:
        """What callers see: a copy, so that nothing done to an answer reaches the store."""
        wire: dict[str, Any] = {
            "value": fresh(self.value),
            "meta": fresh(self.meta),
            "version": self.version,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        }
        if self.last_used_at is not None:
            wire["last_used_at"] = iso(self.last_used_at)
        if self.use_count:
            wire["use_count"] = self.use_count
        return wire


def next_version(held: Hint | None, component: str, key: str, value: Any, meta: dict[str, Any], now: float) -> Hint:
    """The hint that takes the place of `held`: what it says is new, its history goes on, and its time never stands
    still."""
    if held is None:
        return Hint.of(component, key, value, meta, created_at=microseconds(now), updated_at=microseconds(now))
    return Hint.of(
        component,
        key,
        value,
        meta,
        version=min(
            held.version + 1, limits.MAX_VERSION
        ),  # only an import can bring it there; beyond, nothing could read it back
        created_at=held.created_at,
        updated_at=microseconds(max(now, held.updated_at + 1e-6)),
        last_used_at=held.last_used_at,
        use_count=held.use_count,
    )


def _texts(component: str, key: str, value: Any, meta: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Where each text stands, for the reasons of a search; kept apart, so that `^` and `$` mean one of them."""
    labelled = [
        ("component", component),
        ("key", key),
        ("value", search_text(value)),
        ("reason", meta.get("reason", "")),
    ]
    return (*((label, text) for label, text in labelled if text), *(("tag", tag) for tag in meta.get("tags", ())))


def hint_from_wire(component: str, key: str, raw: object, now: float, path: str = "hint") -> Hint:
    """The inverse of `to_wire`, for input from anywhere: checked by the rules of a `set`; what is missing starts now.

    A clock elsewhere may run ahead. Here nothing was set or used later than now, or a TTL, which starts at the last
    set, would not
    end in its time, and every later `set` would have to be later still."""
    given = parse_object(raw, path, _WIRE_FIELDS)
    latest = microseconds(now)
    times = {name: min(parse_timestamp(given[name], f"{path}.{name}"), latest) for name in _TIMES if name in given}
    updated_at = times.get("updated_at", latest)
    return Hint.of(
        component,
        key,
        parse_value(require(given, "value", path), f"{path}.value"),
        parse_meta(given.get("meta"), f"{path}.meta"),
        version=parse_whole(given.get("version", 1), f"{path}.version", 1, limits.MAX_VERSION),
        created_at=times.get("created_at", updated_at),
        updated_at=updated_at,
        last_used_at=times.get("last_used_at"),
        use_count=parse_whole(given.get("use_count", 0), f"{path}.use_count", 0, limits.MAX_USE_COUNT),
    )


def parse_timestamp(raw: object, path: str) -> float:
    """ISO-8601 with `Z`, an offset, or neither, which is UTC."""
    text = parse_text(raw, path, limits.MAX_TAG_CHARS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid("must be a time such as 2026-11-16T08:30:00Z", field=path) from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    if not timedelta(0) <= seconds < timedelta(seconds=limits.MAX_TIMESTAMP):
        raise Invalid("must be between 1970 and 2200", field=path)
    return seconds // timedelta(microseconds=1) / 1_000_000


def microseconds(seconds: float) -> float:
    """A moment as the wire can write it: only then does an export that is read back equal the store."""
    return round(seconds, 6)
