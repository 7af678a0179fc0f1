"""Earlier versions of a hint: what it said before, who set that, when and in which session.

A variant keeps its last MAX_EARLIER_VERSIONS of them. They are not found by searches, not told and not sent to a team;
they go with the hint when it is deleted, expires or is forgotten. Of a hint that is a secret, or was one, only who set
it and when is kept.

In the change log a hint is followed by the next one of the same identity, so what it said before is in the records
already: only the records of a compaction have the earlier versions beside the hint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.errors import Invalid
from nudge.hints.fields import (
    copy_json,
    encode,
    parse_object,
    parse_text,
    parse_timestamp,
    parse_value,
    parse_whole,
    require,
)

if TYPE_CHECKING:
    from nudge.hints.model import Hint

_FIELDS = ("version", "value", "reason", "set_at", "by", "session")


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """`value` and `reason` are None where the hint was a secret."""

    version: int
    value: Any
    reason: str | None
    set_at: float
    by: str | None
    session: str | None

    @classmethod
    def of(cls, hint: Hint) -> Self:
        by = hint.meta.get("added_by") or hint.meta.get("source")
        return cls(hint.version, hint.value, hint.meta.get("reason"), hint.updated_at, by, hint.session)

    @property
    def is_redacted(self) -> bool:
        return self.value is None

    @property
    def weight(self) -> int:
        """About how many bytes it takes in the log."""
        return len(encode(self.to_record()).encode("utf-8", "surrogatepass"))

    def redacted(self) -> Self:
        return replace(self, value=None, reason=None)

    def to_record(self) -> dict[str, Any]:
        return {name: content for name in _FIELDS if (content := getattr(self, name)) is not None}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        fields: dict[str, Any] = {name: record.get(name) for name in _FIELDS}
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        wire = {**self.to_record(), "set_at": iso(self.set_at)}
        return {**wire, "redacted": True} if self.is_redacted else {**wire, "value": copy_json(self.value)}

    @classmethod
    def from_json(cls, raw: object, now: float, path: str) -> Self:
        """The inverse of `to_json`, checked by the rules of a `set`. `redacted` says no more than that the value is
        missing."""
        fields = parse_object(raw, path, (*_FIELDS, "redacted"))

        def text(name: str, most: int) -> str | None:
            return parse_text(fields[name], f"{path}.{name}", most) if name in fields else None

        return cls(
            parse_whole(require(fields, "version", path), f"{path}.version", 1, limits.MAX_VERSION),
            parse_value(fields["value"], f"{path}.value") if "value" in fields else None,
            text("reason", limits.MAX_REASON_CHARS),
            min(parse_timestamp(require(fields, "set_at", path), f"{path}.set_at"), now),
            text("by", limits.MAX_ADDED_BY_CHARS),
            text("session", limits.MAX_SESSION_ID_CHARS),
        )


def parse_earlier(raw: object, now: float, path: str) -> tuple[EarlierVersion, ...]:
    """Parse the earlier versions of a hint in an import."""
    if not isinstance(raw, list):
        raise Invalid("must be a list", field=path)
    if len(raw) > limits.MAX_EARLIER_VERSIONS:
        raise Invalid(f"must have at most {limits.MAX_EARLIER_VERSIONS} items", field=path)
    return tuple(EarlierVersion.from_json(one, now, f"{path}[{index}]") for index, one in enumerate(raw))


def inherit(current: Hint, new: Hint) -> Hint:
    """Return the hint that replaces `current` with what that one said before. One that has earlier versions of its own,
    as in the log of a compaction and in an import, keeps those."""
    if new.earlier or not current.live_at(new.updated_at):
        return new
    earlier = current.earlier
    if (new.value, new.meta.get("reason")) != (current.value, current.meta.get("reason")):
        before = EarlierVersion.of(current)
        earlier = (before.redacted() if current.secret else before, *earlier)
    return with_earlier(new, earlier)


def with_earlier(hint: Hint, earlier: tuple[EarlierVersion, ...]) -> Hint:
    """Return the hint with earlier versions, the last one first: as many as may be kept."""
    if hint.secret:
        earlier = tuple(one.redacted() for one in earlier)
    kept = _last(earlier)
    return hint if kept == hint.earlier else replace(hint, earlier=kept)


def _last(earlier: tuple[EarlierVersion, ...]) -> tuple[EarlierVersion, ...]:
    """The last versions that have room. One value of the largest size always has."""
    room = limits.EARLIER_VERSIONS_BYTES
    for place, one in enumerate(earlier[: limits.MAX_EARLIER_VERSIONS]):
        room -= one.weight
        if room < 0:
            return earlier[:place]
    return earlier[: limits.MAX_EARLIER_VERSIONS]
