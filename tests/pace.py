"""How fast this machine is at this moment, so that a limit on processor time means the same on every machine."""

from __future__ import annotations

import time

_REFERENCE = 0.0025
"""Processor seconds that one pass takes on the machine that the limits were set on, with nothing else at work."""


def slowness() -> float:
    """How many times slower Python runs here and now than there; at least 1."""
    return max(1.0, min(_one_pass() for _ in range(3)) / _REFERENCE)


def _one_pass() -> float:
    began = time.process_time()
    blanks = 0
    for letter in "word " * 13_000:
        blanks += letter == " "
    assert blanks == 13_000
    return time.process_time() - began
