"""Reading a database file that another machine, another program or another person wrote.

Its schema is ours, each value is of a bounded size, and each statement has a deadline. What fails is the file's fault.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid, StorageFailed
from nudge.storage.deadline import Deadline
from nudge.storage.schema import load_expected, refuse_foreign
from nudge.storage.sqlite import STATEMENT_ERRORS, DatabaseDamaged, error_name, open_readonly


class ForeignDatabase:
    """A connection for reading such a file: bounded values, and `seconds` for each statement."""

    def __init__(self, connection: sqlite3.Connection, seconds: float) -> None:
        self.connection = connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.LONGEST_FOREIGN_VALUE)
        connection.text_factory = _decode
        self._deadline = Deadline(connection, seconds)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of one statement. Raises Invalid for a value that is too large, StorageFailed for the rest
        that may be wrong with the file."""
        self._deadline.renew()
        with _refusing_damage():
            return self.connection.execute(sql, values).fetchall()


@contextmanager
def open_foreign(path: str) -> Iterator[ForeignDatabase]:
    """Open the file for reading one state of it. Raises Invalid or StorageFailed when it is not a database as Nudge
    makes it."""
    with _refusing_damage():
        connection = open_readonly(path, limits.BUSY_TIMEOUT)
    with closing(connection):
        load_expected()
        opened = ForeignDatabase(connection, limits.FOREIGN_READ_TIMEOUT)
        with _refusing_damage():
            refuse_foreign(connection)
            connection.execute("BEGIN")
        yield opened


@contextmanager
def _refusing_damage() -> Iterator[None]:
    """Raise an error about the file for what reading a damaged one, or one with endless queries, raises; for a value
    that is too large, Invalid."""
    try:
        yield
    except sqlite3.DataError:
        raise Invalid("is too large") from None
    except (DatabaseDamaged, *STATEMENT_ERRORS) as error:
        if error_name(error) == "SQLITE_INTERRUPT":
            raise StorageFailed("the file takes too long to read") from None
        raise StorageFailed("the file is damaged, or no database of Nudge") from None


def _decode(text: bytes) -> str:
    """Bytes that are not UTF-8 become half surrogate pairs, which validation refuses in the one row."""
    return text.decode("utf-8", "surrogateescape")
