"""When a long walk over hints should pause, so that the event loop gets its turn."""

from __future__ import annotations

from nudge import limits


class Slices:
    """Counts work in hints and in characters: a hundred hints may be eight kilobytes or eight hundred."""

    __slots__ = ("_chars", "_hints")

    def __init__(self) -> None:
        self._hints = self._chars = 0

    def due(self, chars: int) -> bool:
        """Whether a slice is full, now that one more hint with so many characters was handled."""
        self._hints += 1
        self._chars += chars
        if self._hints < limits.HINTS_PER_SLICE and self._chars < limits.CHARS_PER_SLICE:
            return False
        self._hints = self._chars = 0
        return True
