"""Export hints as one JSON payload, at once or in pieces, and import such a payload."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.errors import Invalid
from nudge.core.json_reader import JsonReader
from nudge.core.transfer_files import refuse_page
from nudge.core.visibility import EVERYTHING, Visibility
from nudge.hints.admission import Admission
from nudge.hints.fields import encode, parse_name, parse_object, parse_text, parse_timestamp, printable, require
from nudge.hints.index import HintIndex
from nudge.hints.model import (
    Change,
    Decision,
    Hint,
    Identity,
    hint_from_json,
    is_copied_fact,
    next_version,
)
from nudge.hints.versions import parse_earlier, with_earlier

SCHEMA_VERSION = "1.1"
VERSIONS_SCHEMA = "1.2"  # the version of a payload with earlier versions of hints
SINGLE_VERSION = "1.0"  # the version of a payload without lists of variants

_OLDEST, _NEWEST = (1, 0), (1, 2)  # schema versions that can be read
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
PAYLOAD_FIELDS = ("schema_version", "created_at", "session_id", "components")


# Export


@dataclass(frozen=True, slots=True)
class Form:
    """What of a hint an export has: the values of secrets, and what it said before."""

    reveal: bool = False
    versions: bool = False


PLAIN = Form()


def export_header(session_id: str, created_at: float, hints: Sequence[Hint], form: Form = PLAIN) -> dict[str, Any]:
    """Return the fields of a payload besides its components. With a list of variants it has the newer version."""
    has_variants = len({hint.identity[:2] for hint in hints}) < len(hints)
    version = VERSIONS_SCHEMA if form.versions else SCHEMA_VERSION if has_variants else SINGLE_VERSION
    return {"schema_version": version, "created_at": iso(created_at), "session_id": session_id}


def export_components(hints: Iterable[Hint], form: Form) -> dict[str, Any]:
    """Return the components of a payload. A key holds its hint, or a list of its variants in the order of their
    scopes."""
    components: dict[str, dict[str, list[Any]]] = {}
    for hint in sorted(hints, key=lambda hint: hint.identity):
        variants = components.setdefault(hint.component, {}).setdefault(hint.key, [])
        variants.append(export_hint(hint, form))
    return {
        component: {"hints": {key: hints if len(hints) > 1 else hints[0] for key, hints in keys.items()}}
        for component, keys in components.items()
    }


def export_pieces(header: Mapping[str, Any], hints: Iterable[Hint], form: Form) -> Iterator[str]:
    """Yield the JSON text of a payload of any size, a hint at a time; `hints` are sorted by identity."""
    yield "{" + "".join(f"{encode(name)}:{encode(content)}," for name, content in header.items()) + '"components":{'
    for nth, (component, of_component) in enumerate(groupby(hints, key=lambda hint: hint.component)):
        yield f'{"," if nth else ""}{encode(component)}:{{"hints":{{'
        for number, (key, variants) in enumerate(groupby(of_component, key=lambda hint: hint.key)):
            exported = [export_hint(hint, form) for hint in variants]
            yield f"{',' if number else ''}{encode(key)}:{encode(exported if len(exported) > 1 else exported[0])}"
        yield "}}"
    yield "}}"


def export_hint(hint: Hint, form: Form) -> dict[str, Any]:
    shown = hint.to_json()
    if hint.secret and not form.reveal:
        del shown["value"]
        shown["redacted"] = True
    if form.versions and hint.session:
        shown["session"] = hint.session
    if form.versions and hint.earlier:
        shown["earlier"] = [one.to_json() for one in hint.earlier]
    return shown


# Import: reading


@dataclass(frozen=True, slots=True)
class IncomingHint:
    """A hint of a payload, whether the payload gives its time, and why it is refused, if it is."""

    hint: Hint
    has_time: bool
    refusal: str | None


def read_payload(payload: object, now: float, admission: Admission) -> list[IncomingHint]:
    """Return every hint of a payload. Raises Invalid for the whole payload if one is malformed."""
    reader = JsonReader(io.BytesIO(encode(payload).encode("utf-8", "surrogatepass")))
    return list(PayloadReader(now, admission).read(reader))


class PayloadReader:
    """Reads the hints of one payload of any size. Raises Invalid when something in it is malformed, maybe behind the
    last hint: nothing of it may be stored before."""

    def __init__(self, now: float, admission: Admission) -> None:
        self._now, self._admission = now, admission
        self._has_components = False
        self._seen: set[Identity] = set()

    def read(self, reader: JsonReader) -> Iterator[IncomingHint]:
        """Yield the hints of the payload at the reader's place."""
        for name in reader.members("payload"):
            yield from self.read_member(reader, name)
        self.check_complete()

    def read_member(self, reader: JsonReader, name: str) -> Iterator[IncomingHint]:
        """Yield the hints in one member of the payload; only its components have some."""
        if name != "components":
            _check_header({name: reader.value()})
            return
        if self._has_components:
            raise Invalid("is there twice", field="payload.components")
        self._has_components = True
        for component, key, raw, path in _entries(reader):
            incoming = _read_hint(component, key, raw, self._now, path, self._admission)
            if incoming.hint.identity in self._seen:
                raise Invalid("has the same scope as another variant of this key", field=path)
            self._seen.add(incoming.hint.identity)
            yield incoming

    def check_complete(self) -> None:
        if not self._has_components:
            raise Invalid("is missing", field="payload.components")


def _check_header(fields: dict[str, Any]) -> None:
    """Check fields of a payload besides its components."""
    if "next" in fields:
        refuse_page(fields.pop("next"), "nudge export -o FILE")
    parse_object(fields, "payload", PAYLOAD_FIELDS)
    if "schema_version" in fields:  # a file that was written by hand need not have it
        _check_version(fields["schema_version"])
    if "created_at" in fields:
        parse_timestamp(fields["created_at"], "payload.created_at")
    if "session_id" in fields:
        parse_text(fields["session_id"], "payload.session_id", limits.MAX_NAME_CHARS)


def _check_version(raw: object) -> None:
    """Refuse newer versions, also minor ones: they may have fields that would be lost."""
    path = "payload.schema_version"
    match = _VERSION.fullmatch(parse_text(raw, path, limits.MAX_TAG_CHARS))
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < _OLDEST:
        raise Invalid(f'must be a version such as "{SCHEMA_VERSION}"', field=path)
    if version > _NEWEST:
        raise Invalid(f"is from a newer Nudge; this one reads {SCHEMA_VERSION}", field=path)


def _entries(reader: JsonReader) -> Iterator[tuple[str, str, object, str]]:
    """Component, key, raw hint and the path to it."""
    for component, at in _members(reader, "payload.components"):
        names = []
        for name in reader.members(at):
            parse_object({name: None}, at, ("hints",))
            names.append(name)
            for key, path in _members(reader, f"{at}.hints"):
                kind = reader.kind()
                if kind == "[":
                    yield from ((component, key, reader.value(), f"{path}[{number}]") for number in reader.items(path))
                elif kind in ('"', "{"):
                    yield component, key, reader.value(), path
                else:
                    raise Invalid("must be a text, an object or a list", field=path)
        require(dict.fromkeys(names), "hints", at)


def _members(reader: JsonReader, path: str) -> Iterator[tuple[str, str]]:
    for name in reader.members(path):
        yield parse_name(name, f"{path}.{printable(name)}"), f"{path}.{name}"


def _read_hint(component: str, key: str, raw: object, now: float, path: str, admission: Admission) -> IncomingHint:
    """A redacted hint has no value, but follows every other rule. A bare text, written by hand, is a value."""
    if isinstance(raw, str):
        raw = {"value": raw}
    if not isinstance(raw, dict):
        raise Invalid("must be a text or an object", field=path)
    redacted = raw.get("redacted", False)
    if not isinstance(redacted, bool):
        raise Invalid("must be true or false", field=f"{path}.redacted")
    fields = {name: content for name, content in raw.items() if name not in ("redacted", "session", "earlier")}
    hint = hint_from_json(component, key, {"value": "redacted", **fields} if redacted else fields, now, path)
    if "session" in raw:
        session = parse_text(raw["session"], f"{path}.session", limits.MAX_SESSION_ID_CHARS)
        hint = replace(hint, session=session)
    if "earlier" in raw:
        earlier = parse_earlier(raw["earlier"], now, f"{path}.earlier")
        hint = with_earlier(hint, tuple(admission.guard_earlier(hint, one) for one in earlier))
    return IncomingHint(hint, "updated_at" in raw, _refusal(hint, redacted, admission))


def _refusal(hint: Hint, redacted: bool, admission: Admission) -> str | None:
    if redacted:
        return "redacted: it was exported without its value"
    if is_copied_fact(hint.meta):
        return "a copy of a fact, made by an earlier version"
    finding = admission.secret_in(hint)
    return f"{finding.field} {finding.phrase()}" if finding else None


# Import: deciding


@dataclass(slots=True)
class _ImportReport:
    """The result of an import. All skipped hints are counted; the first ones have a reason."""

    puts: list[Hint] = field(default_factory=list)
    skipped: int = 0
    removed: int = 0
    reasons: list[dict[str, str]] = field(default_factory=list)

    def skip(self, hint: Hint, reason: str) -> None:
        self.skipped += 1
        if len(self.reasons) < limits.MAX_IMPORT_REASONS:
            self.reasons.append({"component": hint.component, "key": hint.key, "reason": reason})

    def to_json(self) -> dict[str, Any]:
        return {"imported": len(self.puts), "skipped": self.skipped, "removed": self.removed, "reasons": self.reasons}


def decide_import(
    index: HintIndex,
    admission: Admission,
    now: float,
    incoming: Iterable[IncomingHint],
    mode: str,
    visible: Visibility = EVERYTHING,
) -> Decision:
    """Decide what an import changes in the current store. `replace` removes only what the caller may see, as an export
    has no more."""
    report = _ImportReport()
    identities = set()
    for one in incoming:
        identities.add(one.hint.identity)
        current = index.live(one.hint.identity, now)
        reason = one.refusal or ("expired" if not one.hint.live_at(now) else _skip_reason(current, one, mode))
        if reason:
            report.skip(one.hint, reason)
        else:
            report.puts.append(one.hint if current is None else _replacement(current, one, now))
    # A hint that the payload names without being able to set it, such as a secret without its value, is not removed.
    others = (hint for hint in index if mode == "replace" and hint.identity not in identities)
    removed = [hint for hint in others if visible.shows_scope(hint.scope.fields)]
    report.removed = sum(hint.live_at(now) for hint in removed)
    change = Change(tuple(report.puts), tuple(hint.identity for hint in removed), is_whole=True)
    return Decision(admission.make_room(index, change, now), report.to_json())


def _replacement(current: Hint, one: IncomingHint, now: float) -> Hint:
    """A hint without a time, written by hand, replaces the current one like a `set`: its use count is kept."""
    if one.has_time:
        return _numbered_after(current, one.hint)
    new = next_version(current, current.component, current.key, one.hint.value, one.hint.meta, now)
    return replace(new, basis=one.hint.basis)


def _numbered_after(current: Hint, new: Hint) -> Hint:
    """Return the new hint with a version above that of the current one if the content differs: an `if_match_version`
    with a version that a caller has read must then fail."""
    changed = current.value != new.value or current.meta != new.meta
    version = min(max(new.version, current.version + changed), limits.MAX_VERSION)
    return replace(new, version=version, credits=current.credits)


def _skip_reason(current: Hint | None, new: IncomingHint, mode: str) -> str | None:
    if current is None or mode == "replace":
        return None
    if mode == "skip":
        return "already here"
    if not new.has_time:  # written by hand: the file wins
        is_same = (new.hint.value, new.hint.meta) == (current.value, current.meta)
        return "already here, unchanged" if is_same else None
    return None if new.hint.updated_at > current.updated_at else "not newer than the one here"
