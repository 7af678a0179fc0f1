"""The score of a hint with the reasons for it, and the order of all hints by score.

Ages count in whole minutes. With a half-life of a week that changes a score by less than 0.00003, and the order of all
hints stays the same for a minute, so that a query can walk it and stop at the first matches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop
from operator import attrgetter
from typing import Any

from nudge.core import limits
from nudge.core.clock import ago
from nudge.core.scoring import WEEK, explain, half_life, saturation
from nudge.hints.model import Hint, Identity

WEIGHTS = {"frecency": 0.30, "priority": 0.20, "confidence": 0.20, "specificity": 0.20, "recency": 0.10}
_FRECENCY, _PRIORITY, _CONFIDENCE, _SPECIFICITY, _RECENCY = WEIGHTS.values()
CONDITIONS_OF_FULL_SPECIFICITY = 5
_MINUTE = 60.0

OrderKey = tuple[float, float, Identity]
_Components = tuple[float, float, float, float, float]


@dataclass(slots=True)  # not frozen, which takes four times as long to create: every answer has one
class RankedHint:
    """An eligible hint, with its score and the reasons why it was found."""

    hint: Hint
    score: float
    components: dict[str, float]
    reasons: list[str]

    def explain(self, now: float) -> dict[str, Any]:
        return explain(self.score, self.components, [*self.reasons, *usage_reasons(self.hint, now)])


def rank(hint: Hint, reasons: list[str], now: float) -> RankedHint:
    parts = _components(hint, _minute(now))
    return RankedHint(hint, sum(_weighted(parts)), dict(zip(WEIGHTS, parts, strict=True)), reasons)


def score(hint: Hint, now: float) -> float:
    """The weighted sum of the components."""
    steady, fading = _score_parts(hint, _minute(now))
    return steady + fading


def _score_parts(hint: Hint, moment: float) -> tuple[float, float]:
    """Return the constant part of the score, and the part that halves every week, at an exact moment."""
    return _weighted(_components(hint, moment))


def _weighted(parts: _Components) -> tuple[float, float]:
    frecency, priority, confidence, specificity, recency = parts
    steady = _PRIORITY * priority + _CONFIDENCE * confidence + _SPECIFICITY * specificity
    return steady, _FRECENCY * frecency + _RECENCY * recency


def score_components(hint: Hint, now: float) -> dict[str, float]:
    """Return the parts of the score before they are weighted, each 0 to 1."""
    return dict(zip(WEIGHTS, _components(hint, _minute(now)), strict=True))


def _minute(now: float) -> float:
    return now - now % _MINUTE


def _components(hint: Hint, moment: float) -> _Components:
    """In the order of WEIGHTS."""
    used_at, meta = hint.last_used_at, hint.meta
    return (
        0.0 if used_at is None else saturation(hint.net_use) * half_life(moment - used_at),
        meta.get("priority", limits.DEFAULT_PRIORITY) / limits.MAX_PRIORITY,
        meta.get("confidence", limits.DEFAULT_CONFIDENCE),
        min(hint.scope.size / CONDITIONS_OF_FULL_SPECIFICITY, 1.0),
        half_life(moment - hint.updated_at),
    )


def order_key(hint: Hint, now: float) -> OrderKey:
    """The sort key, best first: by score, then newest first, then by name, so that equal calls get equal answers."""
    return -score(hint, now), -hint.updated_at, hint.identity


def usage_reasons(hint: Hint, now: float) -> list[str]:
    """Return what, besides the scope, raised or lowered the score. How recent a use was counts only for a hint that
    worked more often than it failed."""
    reasons = []
    used_at = hint.last_used_at if hint.use_count else None
    if used_at is not None and hint.net_use:
        age = now - used_at
        reasons.append(f"recently used ({ago(age)})" if age < WEEK else f"last used {ago(age)}")
    here = " here" if hint.scope.names_place else ""  # another hint may have worked elsewhere
    if hint.use_count:
        last = "" if used_at is None else f", last {ago(now - used_at)}"
        reasons.append(f"worked {_times(hint.use_count)}{here}{last}")
    if hint.failure_count:
        reasons.append(f"failed {_times(hint.failure_count)}{here}")
    if "priority" in hint.meta:
        reasons.append(f"priority {hint.meta['priority']}")
    return reasons


def _times(count: int) -> str:
    return f"{count} time{'s' * (count > 1)}"


# The order of all hints


class ScoreOrder:
    """The hints sorted by score, as of one minute. Built when a query first needs it, then kept up to date.

    To move to a new minute is cheap: only the part of each score that decays is multiplied.
    """

    def __init__(self) -> None:
        self._minute: float | None = None
        self._sorted: list[_OrderEntry] = []
        self._entries: dict[Identity, _OrderEntry] = {}

    def walk(self, index: Iterable[Hint], now: float) -> Iterator[Hint]:
        self._refresh(index, now)
        return (entry.hint for entry in self._sorted)

    def best_first(self, index: Iterable[Hint], hints: Iterable[Hint], now: float) -> Iterator[Hint]:
        self._refresh(index, now)
        heap = [(self._entries[hint.identity].key, hint) for hint in hints]  # no two keys are equal
        heapify(heap)
        while heap:
            yield heappop(heap)[1]

    def add(self, hint: Hint) -> None:
        if self._minute is not None:
            entry = self._entries[hint.identity] = _OrderEntry(hint, self._minute)
            insort(self._sorted, entry, key=_KEY)

    def discard(self, hint: Hint) -> None:
        if self._minute is not None:
            del self._sorted[bisect_left(self._sorted, self._entries.pop(hint.identity).key, key=_KEY)]

    def _refresh(self, index: Iterable[Hint], now: float) -> None:
        minute = _minute(now)
        if minute == self._minute:
            return
        if self._minute is None or minute < self._minute:
            self._entries = {hint.identity: _OrderEntry(hint, minute) for hint in index}
            self._sorted = list(self._entries.values())
        else:
            for entry in self._sorted:
                entry.move(minute)
        self._minute = minute
        self._sorted.sort(key=_KEY)  # linear when it was sorted a minute before


class _OrderEntry:
    __slots__ = ("_fading", "_since", "_steady", "hint", "key")

    def __init__(self, hint: Hint, minute: float) -> None:
        self.hint = hint
        self._since = max(minute, hint.updated_at, hint.last_used_at or 0.0)
        self._steady, self._fading = _score_parts(hint, self._since)
        value = self._steady + self._fading if self._since == minute else score(hint, minute)
        self.key: OrderKey = (-value, -hint.updated_at, hint.identity)

    def move(self, minute: float) -> None:
        """Move to a later minute, with less work than computing the score again."""
        if minute >= self._since:
            value = self._steady + self._fading * half_life(minute - self._since)
            self.key = (-value, self.key[1], self.key[2])


_KEY = attrgetter("key")
