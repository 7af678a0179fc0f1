"""A time limit for each statement of a connection."""

from __future__ import annotations

import sqlite3
import time

_STEPS = 1_000  # of SQLite's machine, between two looks at the clock


class Deadline:
    """Interrupts a statement of `connection` that takes longer than `seconds` since the last `renew`."""

    def __init__(self, connection: sqlite3.Connection, seconds: float) -> None:
        self._seconds = seconds
        self.renew()
        connection.set_progress_handler(self._is_over, _STEPS)

    def renew(self) -> None:
        self._until = time.monotonic() + self._seconds

    def _is_over(self) -> bool:
        return time.monotonic() > self._until
