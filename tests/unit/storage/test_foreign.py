"""Files that somebody else wrote: bounded in time and size."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid, StorageFailed
from nudge.storage.database import Database
from nudge.storage.foreign import open_foreign

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"


@pytest.fixture
def path(tmp_path: Path) -> str:
    Database.open(str(tmp_path / "nudge.db")).close()
    return str(tmp_path / "nudge.db")


def test_each_statement_has_a_deadline(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not end is interrupted; the next has its whole time again."""
    monkeypatch.setattr(limits, "FOREIGN_READ_TIMEOUT", 0.3)  # time for a short one on a busy machine
    with open_foreign(path) as opened:
        for _ in range(2):
            with pytest.raises(StorageFailed, match="takes too long"):
                opened.rows(_ENDLESS)
            assert opened.rows("SELECT 1") == [(1,)]


def test_a_value_has_a_largest_size(path: str) -> None:
    """A larger one is the row's error, not the file's."""
    with open_foreign(path) as opened, pytest.raises(Invalid, match="too large"):
        opened.rows("SELECT zeroblob(?)", (limits.LONGEST_FOREIGN_VALUE + 1,))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE mine (id)", "did not make: table mine"),
        ("DROP TRIGGER notes_inserted", "the trigger notes_inserted is missing"),
        ("PRAGMA user_version = 0", "the file has no format"),
        ("PRAGMA user_version = 99", "a newer Nudge"),
    ],
)
def test_a_schema_that_is_not_ours_is_refused(path: str, statement: str, said: str) -> None:
    """With the object in which it differs."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(Invalid, match=said), open_foreign(path):
        pass
