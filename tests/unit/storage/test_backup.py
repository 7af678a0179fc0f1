"""Backups are of a sound database, or there is none."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from nudge.errors import Invalid, StorageFailed
from nudge.storage import migrations
from nudge.storage.backup import examine, replace, write_backup
from nudge.storage.sqlite import open_readonly, open_writable


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "nudge.db")
    with contextlib.closing(open_writable(path)) as connection:
        migrations.migrate(connection)
        connection.executemany(
            "INSERT INTO events VALUES (?, ?)", [(f"event {number} {'x' * 200}", number) for number in range(2_000)]
        )
    return path


def spoil(path: str) -> None:
    """Overwrite pages in the middle, behind what is read when a database is opened."""
    with open(path, "r+b") as file:
        file.seek(Path(path).stat().st_size // 2)
        file.write(b"\xa5" * 8_192)


def test_a_backup_of_a_sound_database(database: str, tmp_path: Path) -> None:
    """It can be examined, and put in the database's place."""
    target = str(tmp_path / "copy.db")
    with contextlib.closing(open_readonly(database)) as connection:
        write_backup(connection, target)
    assert examine(target) == {"observations": 0, "sessions": 0}
    assert replace(target, str(tmp_path / "elsewhere" / "nudge.db")) is None


def test_a_damaged_database_has_no_backup(database: str, tmp_path: Path) -> None:
    """The error says so, and no file is left that looks like one."""
    spoil(database)
    target = tmp_path / "copy.db"
    with contextlib.closing(open_readonly(database)) as connection, pytest.raises(StorageFailed) as caught:
        write_backup(connection, str(target))
    assert "damaged" in caught.value.message
    assert not target.exists()


def test_a_damaged_backup_is_not_restored(database: str, tmp_path: Path) -> None:
    """The database stays as it is."""
    target = str(tmp_path / "copy.db")
    with contextlib.closing(open_readonly(database)) as connection:
        write_backup(connection, target)
    spoil(target)
    before = Path(database).read_bytes()
    with pytest.raises(Invalid, match="damaged"):
        replace(target, database)
    assert Path(database).read_bytes() == before
    assert not Path(f"{database}.restoring").exists()
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (2_000,)
