from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.storage.permissions import close_to_others
from tests.unit.doctor.conftest import mode_of


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with a journal and a backup, all closed to others."""
    path = tmp_path / "nudge" / "nudge.db"
    (path.parent / "backups").mkdir(parents=True, mode=0o700)
    path.parent.chmod(0o700)
    for file in (path, path.with_name("nudge.db-wal"), path.parent / "backups" / "nudge-20260101-000000.db"):
        file.touch(0o600)
    return path


def test_the_access_of_others_is_removed(database: Path) -> None:
    """The directory, the database, its journal and its backups lose every bit of others. Only where others could write
    is there a warning, which names the file and its mode."""
    assert close_to_others(str(database), is_moved=False) is None
    opened = [database.parent, database, database.with_name("nudge.db-wal"), *(database.parent / "backups").iterdir()]
    for path in opened:
        path.chmod(0o755)
    assert close_to_others(str(database), is_moved=False) is None
    assert {mode_of(path) for path in opened} == {0o700}
    database.chmod(0o666)
    warning = close_to_others(str(database), is_moved=False)
    assert warning is not None and warning.startswith(f"other users could change {database} (0666)")
    assert mode_of(database) == 0o600 and close_to_others(str(database), is_moved=False) is None


def test_the_directory_of_a_moved_database_stays(database: Path) -> None:
    """A database that the user has put among other files is closed to others; its directory keeps its mode."""
    database.parent.chmod(0o755)
    database.chmod(0o644)
    assert close_to_others(str(database), is_moved=True) is None
    assert (mode_of(database.parent), mode_of(database)) == (0o755, 0o600)


def test_what_is_not_ours_keeps_its_mode(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in place of the database is not followed. A file of another user is not changed, and is a warning as long
    as others can write it."""
    target = tmp_path / "target"
    target.touch(0o644)
    database.unlink()
    database.symlink_to(target)
    assert close_to_others(str(database), is_moved=False) is None and mode_of(target) == 0o644
    database.unlink()
    database.touch()
    database.chmod(0o666)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    assert "they still can" in (close_to_others(str(database), is_moved=False) or "")
    assert mode_of(database) == 0o666
