"""Which of the eligible hints is best, and why."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nudge import limits
from nudge.clock import ago
from nudge.decay import WEEK, half_life, saturation
from nudge.explanation import explain
from nudge.hints.model import Hint, Identity

WEIGHTS = {"frecency": 0.30, "priority": 0.20, "confidence": 0.20, "specificity": 0.20, "recency": 0.10}
CONDITIONS_OF_FULL_SPECIFICITY = 5


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hint that passed every gate, with its score and the reasons that let it pass."""

    hint: Hint
    score: float
    components: dict[str, float]
    reasons: list[str]

    def explain(self, now: float) -> dict[str, Any]:
        return explain(True, self.score, self.components, [*self.reasons, *usage_reasons(self.hint, now)])


def score(hint: Hint, now: float) -> tuple[float, dict[str, float]]:
    """The weighted total, and its parts before they are weighted, each 0 to 1."""
    components = {
        "frecency": _frecency(hint, now),
        "priority": hint.meta.get("priority", limits.DEFAULT_PRIORITY) / limits.MAX_PRIORITY,
        "confidence": hint.meta.get("confidence", limits.DEFAULT_CONFIDENCE),
        "specificity": min(hint.scope.size / CONDITIONS_OF_FULL_SPECIFICITY, 1.0),
        "recency": half_life(now - hint.updated_at),
    }
    return sum(WEIGHTS[name] * part for name, part in components.items()), components


def _frecency(hint: Hint, now: float) -> float:
    return 0.0 if hint.last_used_at is None else saturation(hint.use_count) * half_life(now - hint.last_used_at)


def judge(hint: Hint, reasons: list[str], now: float) -> Ranked:
    return Ranked(hint, *score(hint, now), reasons)


def rank(judged: Iterable[Ranked], limit: int) -> list[Ranked]:
    """The best first."""
    return heapq.nsmallest(limit, judged, key=_order)


def best(judged: Iterable[Ranked]) -> Ranked:
    return min(judged, key=_order)


def _order(one: Ranked) -> tuple[float, float, Identity]:
    """By score, then the newer, then by name, so that equal calls get equal answers."""
    return -one.score, -one.hint.updated_at, one.hint.identity


def usage_reasons(hint: Hint, now: float) -> list[str]:
    """What, beside the scope, raised or lowered it. A use that was taken back is none."""
    reasons = []
    used_at = hint.last_used_at if hint.use_count else None
    if used_at is not None:
        age = now - used_at
        reasons.append(f"recently used ({ago(age)})" if age < WEEK else f"last used {ago(age)}")
    if hint.use_count:
        here = " here" if hint.scope.size else ""  # a hint for everywhere may have worked anywhere
        last = "" if used_at is None else f", last {ago(now - used_at)}"
        reasons.append(f"worked {hint.use_count} time{'s' * (hint.use_count > 1)}{here}{last}")
    if "priority" in hint.meta:
        reasons.append(f"priority {hint.meta['priority']}")
    return reasons
