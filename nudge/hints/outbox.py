"""The changes of hints that others are to be sent. The change log itself holds them: each of its records carries the
number of its first change, and a compaction writes the changes that were not taken yet once more, with their numbers.

Off unless a team shares hints; then a record has 50 bytes more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nudge.hints.model import Identity
from nudge.hints.scope import scope_of

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HintChange:
    """A hint as it was set, as a record of the change log, or None when it was deleted; and when."""

    identity: Identity
    put: dict[str, Any] | None
    time: float


@dataclass(slots=True)
class HintOutbox:
    """`log` names the log that counts; empty: nothing is numbered. `last` is the last number."""

    log: str = ""
    last: int = 0
    _waiting: dict[int, HintChange] = field(default_factory=dict)

    def number(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record for the change log with its number, if changes are numbered. `replay` it when it is in the
        log."""
        if not self.log or not (record["puts"] or record["removals"]):
            return record
        return {**record, "n": [self.log, self.last + 1]}

    def replay(self, record: Record) -> None:
        """Take over the numbered changes of a record that is in the log."""
        if "n" not in record:
            return
        log, first = record["n"]
        if log != self.log:
            self.log, self.last = log, 0
            self._waiting.clear()
        changes = list(_changes(record))
        self._waiting.update(enumerate(changes, first))
        self.last = max(self.last, first + len(changes) - 1)

    def waiting(self, after: int, most: int) -> list[tuple[int, HintChange]]:
        """Return the changes behind a number, in their order."""
        self._drop(after)
        return [(n, self._waiting[n]) for n in sorted(self._waiting)[:most]]

    def identities(self, after: int) -> set[Identity]:
        """Return whose changes are behind a number."""
        return {change.identity for n, change in list(self._waiting.items()) if n > after}

    def copy(self) -> HintOutbox:
        return HintOutbox(self.log, self.last, dict(self._waiting))

    def records(self) -> Iterator[dict[str, Any]]:
        """All of it for a new log: the numbers, and the changes that wait."""
        if not self.log:
            return
        for n, change in list(self._waiting.items()):
            yield {"n": [self.log, n], "waiting": [*change.identity], "put": change.put, "t": change.time}
        yield {"n": [self.log, self.last + 1]}

    def _drop(self, until: int) -> None:
        for n in [n for n in self._waiting if n <= until]:
            del self._waiting[n]


def _changes(record: Record) -> Iterator[HintChange]:
    """The changes in a record, in the order of their numbers."""
    if "waiting" in record:
        component, key, scope_key = record["waiting"]
        yield HintChange((component, key, scope_key), record["put"], record["t"])
        return
    for component, key, scope_key in record.get("removals", ()):  # first, as in a `Change`
        yield HintChange((component, key, scope_key), None, record["t"])
    for put in record.get("puts", ()):
        yield HintChange(_identity_of(put), put, record["t"])


def _identity_of(put: Record) -> Identity:
    return put["component"], put["key"], scope_of(put["meta"].get("scope", {})).key
