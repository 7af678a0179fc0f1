"""The database's files are for its owner only; backups are of a sound database, or there is none."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from nudge.core.errors import Invalid, StorageFailed
from nudge.storage import migrations
from nudge.storage.database_files import close_to_others, examine_backup, replace_database, write_backup
from nudge.storage.sqlite import open_readonly, open_writable
from tests.unit.doctor.conftest import mode_of


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
    assert examine_backup(target) == {"observations": 0, "sessions": 0, "notes": 0}
    assert replace_database(target, str(tmp_path / "elsewhere" / "nudge.db"), lambda _: "clean") == (None, "clean")


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
        replace_database(target, database, lambda _: None)
    assert Path(database).read_bytes() == before
    assert not Path(f"{database}.restoring").exists()
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (2_000,)


# Access modes


@pytest.fixture
def private_files(tmp_path: Path) -> Path:
    """A database with a journal and a backup, all closed to others."""
    path = tmp_path / "nudge" / "nudge.db"
    (path.parent / "backups").mkdir(parents=True, mode=0o700)
    path.parent.chmod(0o700)
    for file in (path, path.with_name("nudge.db-wal"), path.parent / "backups" / "nudge-20260101-000000.db"):
        file.touch(0o600)
    return path


def test_the_access_of_others_is_removed(private_files: Path) -> None:
    """The directory, the database, its journal and its backups lose every bit of others. Only where others could write
    is there a warning, which names the file and its mode."""
    assert close_to_others(str(private_files), is_moved=False) is None
    opened = [
        private_files.parent,
        private_files,
        private_files.with_name("nudge.db-wal"),
        *(private_files.parent / "backups").iterdir(),
    ]
    for path in opened:
        path.chmod(0o755)
    assert close_to_others(str(private_files), is_moved=False) is None
    assert {mode_of(path) for path in opened} == {0o700}
    private_files.chmod(0o666)
    warning = close_to_others(str(private_files), is_moved=False)
    assert warning is not None and warning.startswith(f"other users could change {private_files} (0666)")
    assert mode_of(private_files) == 0o600 and close_to_others(str(private_files), is_moved=False) is None


def test_the_directory_of_a_moved_database_stays(private_files: Path) -> None:
    """A database that the user has put among other files is closed to others; its directory keeps its mode."""
    private_files.parent.chmod(0o755)
    private_files.chmod(0o644)
    assert close_to_others(str(private_files), is_moved=True) is None
    assert (mode_of(private_files.parent), mode_of(private_files)) == (0o755, 0o600)


def test_what_is_not_ours_keeps_its_mode(private_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in place of the database is not followed. A file of another user is not changed, and is a warning as long
    as others can write it."""
    target = tmp_path / "target"
    target.touch(0o644)
    private_files.unlink()
    private_files.symlink_to(target)
    assert close_to_others(str(private_files), is_moved=False) is None and mode_of(target) == 0o644
    private_files.unlink()
    private_files.touch()
    private_files.chmod(0o666)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    assert "they still can" in (close_to_others(str(private_files), is_moved=False) or "")
    assert mode_of(private_files) == 0o666
