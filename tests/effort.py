"""How much to try: little with every test run and each time the same, so that a red run is about the change; much more,
and at random,
in a soak."""

from __future__ import annotations

import os

VARIABLE = "TESTS_LONG"
_LONGER = 40


def is_long() -> bool:
    return bool(os.environ.get(VARIABLE))


def times(count: int) -> int:
    return count * _LONGER if is_long() else count
