"""The whole store, or a part of it, as one JSON payload; and such a payload back into a store."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from nudge import limits
from nudge.clock import iso
from nudge.errors import Invalid
from nudge.hints.admission import Admission
from nudge.hints.change import Change, Decision
from nudge.hints.fields import parse_choice, parse_name, parse_object, parse_text, printable, require
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint, Identity, hint_from_wire, parse_timestamp
from nudge.hints.pace import Pace

SCHEMA_VERSION = "1.0"
MODES = ("merge", "replace", "skip")

_OLDEST, _NEWEST = (1, 0), (1, 0)  # schema versions that can be read
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
_PAYLOAD_FIELDS = ("schema_version", "created_at", "session_id", "components")


# Out


def export_components(hints: list[Hint], reveal: bool) -> Generator[None, None, dict[str, Any]]:
    """A key holds its hint, or a list of its variants in the order of their scopes."""
    grouped: dict[str, list[Hint]] = {}
    for hint in hints:
        grouped.setdefault(hint.component, []).append(hint)
    components: dict[str, Any] = {}
    pace = Pace()
    for component in sorted(grouped):
        keys: dict[str, list[Any]] = {}
        for hint in sorted(grouped[component], key=lambda hint: hint.identity):
            keys.setdefault(hint.key, []).append(_exported(hint, reveal))
            if pace.due(hint):
                yield
        components[component] = {"hints": {key: found if len(found) > 1 else found[0] for key, found in keys.items()}}
    return components


def payload_of(components: dict[str, Any], session_id: str, created_at: float) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "created_at": iso(created_at),
        "session_id": session_id,
        "components": components,
    }


def _exported(hint: Hint, reveal: bool) -> dict[str, Any]:
    wire = hint.to_wire()
    if hint.secret and not reveal:
        del wire["value"]
        wire["redacted"] = True
    return wire


# In


@dataclass(frozen=True, slots=True)
class _Incoming:
    """A hint of the payload, whether that says when it was last set, and the reason to leave it out if there is one."""

    hint: Hint
    dated: bool
    refusal: str | None


@dataclass(slots=True)
class _Report:
    """Skipped hints are all counted, and the first of them explained."""

    puts: list[Hint] = field(default_factory=list)
    skipped: int = 0
    removed: int = 0
    reasons: list[dict[str, str]] = field(default_factory=list)

    def skip(self, hint: Hint, reason: str) -> None:
        self.skipped += 1
        if len(self.reasons) < limits.MAX_IMPORT_REASONS:
            self.reasons.append({"component": hint.component, "key": hint.key, "reason": reason})

    def to_wire(self) -> dict[str, Any]:
        return {"imported": len(self.puts), "skipped": self.skipped, "removed": self.removed, "reasons": self.reasons}


def decide_import(
    index: HintIndex, admission: Admission, now: float, payload: object, mode: object
) -> Generator[None, None, Decision]:
    """Pauses now and then, in which the store must not change."""
    chosen = parse_choice(mode, "mode", MODES)
    incoming = yield from _read(payload, now, admission)
    report = yield from _settle(index, now, incoming, chosen)
    gone = (yield from _unnamed(index, incoming)) if chosen == "replace" else []
    report.removed = sum(hint.live_at(now) for hint in gone)
    yield
    change = Change(tuple(report.puts), tuple(hint.identity for hint in gone))
    return Decision(admission.make_room(index, change, now), report.to_wire())


def _settle(index: HintIndex, now: float, incoming: list[_Incoming], mode: str) -> Generator[None, None, _Report]:
    report = _Report()
    for number, one in enumerate(incoming):
        if number % limits.HINTS_PER_BREATH == 0:
            yield
        held = index.live(one.hint.identity, now)
        reason = one.refusal or _why_it_stays(held, one, mode)
        if reason:
            report.skip(one.hint, reason)
        else:
            report.puts.append(one.hint if held is None else _numbered_after(held, one.hint))
    return report


def _numbered_after(held: Hint, new: Hint) -> Hint:
    """A number that somebody has seen here never comes to mean something else: who has it in hand must be told of the
    change."""
    changed = held.value != new.value or held.meta != new.meta
    return replace(new, version=min(max(new.version, held.version + changed), limits.MAX_VERSION))


def _why_it_stays(held: Hint | None, new: _Incoming, mode: str) -> str | None:
    if held is None or mode == "replace":
        return None
    if mode == "skip":
        return "already here"
    if not new.dated:
        return "already here; the payload gives no time"
    return None if new.hint.updated_at > held.updated_at else "not newer than the one here"


def _unnamed(index: HintIndex, incoming: list[_Incoming]) -> Generator[None, None, list[Hint]]:
    """What a payload that replaces everything takes away. A hint that it names and cannot bring, such as a secret that
    was exported
    without its value, is not among them."""
    named = {one.hint.identity for one in incoming}
    yield
    return [hint for hint in index if hint.identity not in named]


def _read(payload: object, now: float, admission: Admission) -> Generator[None, None, list[_Incoming]]:
    """Every hint of the payload. A malformed one refuses the whole."""
    incoming: dict[Identity, _Incoming] = {}
    pace = Pace()
    for component, key, raw, path in _entries(_components(payload)):
        one = _read_hint(component, key, raw, now, path, admission)
        if one.hint.identity in incoming:
            raise Invalid("has the same scope as another variant of this key", field=path)
        incoming[one.hint.identity] = one
        if pace.due(one.hint):
            yield
    return list(incoming.values())


def _components(payload: object) -> object:
    given = parse_object(payload, "payload", _PAYLOAD_FIELDS)
    _check_version(require(given, "schema_version", "payload"))
    if "created_at" in given:
        parse_timestamp(given["created_at"], "payload.created_at")
    if "session_id" in given:
        parse_text(given["session_id"], "payload.session_id", limits.MAX_NAME_CHARS)
    return require(given, "components", "payload")


def _check_version(raw: object) -> None:
    """A newer minor version too may say what this one would lose in silence."""
    path = "payload.schema_version"
    found = _VERSION.fullmatch(parse_text(raw, path, limits.MAX_TAG_CHARS))
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < _OLDEST:
        raise Invalid(f'must be a version such as "{SCHEMA_VERSION}"', field=path)
    if version > _NEWEST:
        raise Invalid(f"is from a newer Nudge; this one reads {SCHEMA_VERSION}", field=path)


def _entries(components: object) -> Iterator[tuple[str, str, object, str]]:
    """Component, key, raw hint and the path to it."""
    for component, content, at in _members(components, "payload.components"):
        hints = require(parse_object(content, at, ("hints",)), "hints", at)
        for key, raw, path in _members(hints, f"{at}.hints"):
            several = (
                [(variant, f"{path}[{nth}]") for nth, variant in enumerate(raw)]
                if isinstance(raw, list)
                else [(raw, path)]
            )
            yield from ((component, key, variant, place) for variant, place in several)


def _members(raw: object, path: str) -> Iterator[tuple[str, Any, str]]:
    if not isinstance(raw, dict):
        raise Invalid("must be an object", field=path)
    for name, content in raw.items():
        yield parse_name(name, f"{path}.{printable(name)}"), content, f"{path}.{name}"


def _read_hint(component: str, key: str, raw: object, now: float, path: str, admission: Admission) -> _Incoming:
    """A redacted hint has no value, and every other rule holds for it too."""
    if not isinstance(raw, dict):
        raise Invalid("must be an object", field=path)
    redacted = raw.get("redacted", False)
    if not isinstance(redacted, bool):
        raise Invalid("must be true or false", field=f"{path}.redacted")
    stated = {name: content for name, content in raw.items() if name != "redacted"}
    hint = hint_from_wire(component, key, {"value": "redacted", **stated} if redacted else stated, now, path)
    return _Incoming(hint, "updated_at" in raw, _refusal(hint, redacted, now, admission))


def _refusal(hint: Hint, redacted: bool, now: float, admission: Admission) -> str | None:
    if redacted:
        return "redacted: it was exported without its value"
    if not hint.live_at(now):
        return "expired"
    finding = admission.secret_in(hint)
    return f"{finding.field} {finding.phrase()}" if finding else None
