"""The comparison of sessions that were told with shadow sessions, which were not: means, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

# Standard errors of a 95 % interval, by degrees of freedom: Student's t, since there may be few sessions.
_STUDENT: tuple[float, ...] = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
_COMPARED = ("failures", "commands")

Counts = Sequence[tuple[int, int]]
"""Failures and commands of each session."""


def compare(regular: Counts, shadow: Counts) -> dict[str, Any]:
    differences = map(_difference, _columns(regular), _columns(shadow))
    difference = dict(zip(_COMPARED, differences, strict=True))
    return {"told": _side(regular), "shadow": _side(shadow), "difference": difference}


def _side(rows: Counts) -> dict[str, Any]:
    return {"sessions": len(rows), **dict(zip(_COMPARED, map(_interval, _columns(rows)), strict=True))}


def _columns(rows: Counts) -> list[tuple[int, ...]]:
    return list(zip(*rows, strict=True))


def _interval(values: Sequence[int]) -> dict[str, float | None]:
    """The mean and the ends of its 95 % interval; there are no negative counts."""
    interval = _around(_mean(values), _squared_error(values), len(values) - 1)
    return {**interval, "low": None if interval["low"] is None else max(interval["low"], 0.0)}


def _difference(regular: Sequence[int], shadow: Sequence[int]) -> dict[str, float | None]:
    """Welch's 95 % interval of a difference of means, which allows for different variances."""
    errors = [_squared_error(values) for values in (regular, shadow)]
    least = min(len(regular), len(shadow)) - 1
    squares = sum(error**2 / max(len(values) - 1, 1) for error, values in zip(errors, (regular, shadow), strict=True))
    freedom = int(sum(errors) ** 2 / squares + 1e-9) if squares and least else least
    return _around(_mean(regular) - _mean(shadow), sum(errors), freedom)


def _around(mean: float, squared_error: float, freedom: int) -> dict[str, float | None]:
    if freedom < 1:
        return {"mean": round(mean, 2), "low": None, "high": None}
    error = _student(freedom) * math.sqrt(squared_error)
    return {"mean": round(mean, 2), "low": round(mean - error, 2), "high": round(mean + error, 2)}


def _student(freedom: int) -> float:
    """The quantile for these degrees of freedom; beyond the table, an approximation that is correct to two digits."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def _squared_error(values: Sequence[int]) -> float:
    """The squared standard error of the mean; 0 for a single value."""
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1) / len(values)
