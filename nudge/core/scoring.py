"""The parts that every score is computed from, and the one form in which a score is explained."""

from __future__ import annotations

from math import exp

from nudge.core.limits import MAX_REASONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

WEEK = 7 * 86_400.0
USES_TO_SATURATE = 10.0


def half_life(age_seconds: float) -> float:
    """Return 1.0 for age 0, 0.5 after a week, and so on. A negative age counts as 0."""
    return float(2.0 ** (-max(age_seconds, 0.0) / WEEK))


def saturation(uses: float) -> float:
    """Return 0.0 for no uses, rising toward 1.0: the tenth use adds less than the first."""
    return 1.0 - exp(-max(uses, 0.0) / USES_TO_SATURATE)


def explain(score: float, components: Mapping[str, float], reasons: Sequence[str]) -> dict[str, Any]:
    """Return `{"matched", "score", "components", "reasons"}`, with rounded numbers to save tokens."""
    return {
        "matched": True,
        "score": round(score, 4),
        "components": {name: round(part, 4) for name, part in components.items()},
        "reasons": list(reasons[:MAX_REASONS]),
    }
