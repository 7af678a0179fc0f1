"""Half-lives and saturation: the two curves that every score in Nudge is made of."""

from math import exp

WEEK = 7 * 86_400.0
USES_TO_SATURATE = 10.0


def half_life(age_seconds: float, half: float = WEEK) -> float:
    """1.0 now, 0.5 after `half` seconds. A moment in the future counts as now."""
    return float(2.0 ** (-max(age_seconds, 0.0) / half))


def saturation(uses: float) -> float:
    """0.0 for nothing, rising towards 1.0: the tenth use adds less than the first."""
    return 1.0 - exp(-max(uses, 0.0) / USES_TO_SATURATE)
