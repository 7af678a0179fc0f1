"""When a long walk over hints should pause. Counted in text too: a hundred hints may be eight kilobytes or eight
hundred."""

from __future__ import annotations

from nudge import limits
from nudge.hints.model import Hint


class Pace:
    __slots__ = ("_chars", "_hints")

    def __init__(self) -> None:
        self._hints = self._chars = 0

    def due(self, hint: Hint) -> bool:
        """Whether, with this hint handled, others should have their turn."""
        self._hints += 1
        self._chars += hint.weight
        if self._hints < limits.HINTS_PER_BREATH and self._chars < limits.CHARS_PER_BREATH:
            return False
        self._hints = self._chars = 0
        return True
