"""Synchronize the hints of a tool such as `nudge scan` with what it finds. A tool changes only hints that it set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nudge.hints.admission import Admission
from nudge.hints.fields import copy_json, parse_name, parse_value
from nudge.hints.index import HintIndex
from nudge.hints.model import Change, Decision, Hint, Identity, merge_meta, next_version, parse_meta
from nudge.hints.scope import Scope
from nudge.security.secrets import redaction

Entry = tuple[object, object, object, object]  # component, key, value, meta
# The files that entries depend on, by component and key: see `Hint.basis`.
Bases = Mapping[tuple[str, str], dict[str, str]]
# Whether a hint of the tool stays unchanged, given what was found in its place.
Keeps = Callable[[Hint, Hint | None], bool]

SCANNED_BY = "nudge scan"
"""The owner of hints that no user or agent set."""
GUESS_CONFIDENCE = 0.2

_SOURCE = "tool-output"


def is_guess(meta: Mapping[str, Any]) -> bool:
    """Whether `scan` set a hint to the usual command of a language because no manifest names one."""
    return meta.get("added_by") == SCANNED_BY and meta.get("confidence") == GUESS_CONFIDENCE


def keep_none(current: Hint, new: Hint | None) -> bool:
    del current, new
    return False


@dataclass(frozen=True, slots=True)
class Owner:
    """A tool, and the one scope in which it may add, change and remove."""

    scope: Scope
    added_by: str
    default_ttl: dict[str, str]

    def owns(self, hint: Hint) -> bool:
        mine = hint.meta.get("source") == _SOURCE and hint.meta.get("added_by") == self.added_by
        return mine and hint.scope.key == self.scope.key

    def stamp(self, meta: dict[str, Any]) -> dict[str, Any]:
        scope = {"scope": self.scope.fields} if self.scope.size else {}
        return merge_meta({**self.default_ttl, **meta}, source=_SOURCE, added_by=self.added_by, **scope)


@dataclass(slots=True)
class _SyncReport:
    added: list[dict[str, Any]] = field(default_factory=list)
    updated: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        lists = {"added": self.added, "updated": self.updated, "removed": self.removed, "kept": self.kept}
        return {**lists, "unchanged": self.unchanged, **({"skipped": self.skipped} if self.skipped else {})}


def decide_sync(
    index: HintIndex,
    admission: Admission,
    now: float,
    owner: Owner,
    entries: Iterable[Entry],
    keeps: Keeps,
    bases: Bases,
) -> Decision:
    report = _SyncReport()
    incoming = _admit(_read(entries, owner, now, bases), admission, report)
    puts = [_reconcile(index.live(identity, now), new, now, owner, keeps, report) for identity, new in incoming.items()]
    missing = [hint for hint in index if hint.live_at(now) and owner.owns(hint) and hint.identity not in incoming]
    gone = [hint for hint in missing if not keeps(hint, None)]
    report.unchanged += len(missing) - len(gone)
    report.removed = [_describe(hint) for hint in gone]
    change = Change(tuple(hint for hint in puts if hint), tuple(hint.identity for hint in gone))
    return Decision(admission.make_room(index, change, now), report.to_json())


def _read(entries: Iterable[Entry], owner: Owner, now: float, bases: Bases) -> dict[Identity, Hint]:
    """Parse the entries. Of two with one name, the first is used: a tool reads its best source first."""
    incoming: dict[Identity, Hint] = {}
    for index, (component, key, value, meta) in enumerate(entries):
        at = f"commands[{index}]"
        name, parsed = parse_name(component, f"{at}.component"), parse_value(value, f"{at}.value")
        stamped = owner.stamp(parse_meta(meta, f"{at}.meta"))
        hint = next_version(None, name, parse_name(key, f"{at}.key"), parsed, stamped, now)
        incoming.setdefault(hint.identity, replace(hint, basis=bases.get((hint.component, hint.key))))
    return incoming


def _admit(incoming: dict[Identity, Hint], admission: Admission, report: _SyncReport) -> dict[Identity, Hint]:
    """Skip entries with a secret: one in a manifest must not stop the others."""
    admitted = {}
    for identity, hint in incoming.items():
        finding = admission.secret_in(hint)
        if finding:
            report.skipped.append(
                {"component": hint.component, "key": hint.key, "reason": f"{finding.field} {finding.phrase()}"}
            )
        else:
            admitted[identity] = hint
    return admitted


def _reconcile(
    current: Hint | None, new: Hint, now: float, owner: Owner, keeps: Keeps, report: _SyncReport
) -> Hint | None:
    """Return the hint to put, or None when the current one stays."""
    if current is None:
        report.added.append(_describe(new))
        return new
    if owner.owns(current):
        if keeps(current, new):
            report.unchanged += 1
            return None
        if (current.value, current.meta) == (new.value, new.meta):
            report.unchanged += 1
            return None if current.basis == new.basis else replace(current, basis=new.basis)
    else:
        report.kept.append(_describe(current))
        return None
    report.updated.append(_describe(new))
    return replace(next_version(current, new.component, new.key, new.value, new.meta, now), basis=new.basis)


def _describe(hint: Hint) -> dict[str, Any]:
    value = redaction("secret") if hint.secret else copy_json(hint.value)
    return {"component": hint.component, "key": hint.key, "value": value, "reason": hint.meta.get("reason", "")}
