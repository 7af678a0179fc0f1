"""What every score in Nudge is made of, and the one shape in which it is explained."""

from __future__ import annotations

from math import exp

from nudge.limits import MAX_REASONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

WEEK = 7 * 86_400.0
USES_TO_SATURATE = 10.0


def half_life(age_seconds: float, half: float = WEEK) -> float:
    """1.0 now, 0.5 after `half` seconds. A time in the future counts as now."""
    return float(2.0 ** (-max(age_seconds, 0.0) / half))


def saturation(uses: float) -> float:
    """0.0 for none, rising toward 1.0: the tenth use adds less than the first."""
    return 1.0 - exp(-max(uses, 0.0) / USES_TO_SATURATE)


def explain(
    matched: bool, score: float | None, components: Mapping[str, float], reasons: Sequence[str]
) -> dict[str, Any]:
    """`{"matched", "score", "components", "reasons"}`, rounded so that it reads well and costs few tokens."""
    return {
        "matched": matched,
        "score": None if score is None else round(score, 4),
        "components": {name: round(part, 4) for name, part in components.items()},
        "reasons": list(reasons[:MAX_REASONS]),
    }
