"""What is deleted with `nudge disconnect --all --delete-data`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.process import owned_files


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with nothing else of ours."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(tmp_path / "runtime"))
    for name in ("NUDGE_DB", "NUDGE_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_files_that_were_moved_among_others_go_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database on another disk, a settings file in a repository: only they, and what belongs to the database."""
    for name in ("my.db", "my.db-wal", "my.db.lock", "my.dbx", "nudge.toml", "nudge.toml.old"):
        (tmp_path / name).write_text("x")
    monkeypatch.setenv("NUDGE_DB", str(tmp_path / "my.db"))
    monkeypatch.setenv("NUDGE_CONFIG", str(tmp_path / "nudge.toml"))
    result = [os.path.basename(file.path) for file in owned_files.find()]
    assert result == ["my.db", "my.db-wal", "my.db.lock", "nudge.toml"]


@pytest.mark.parametrize(
    ("others", "expected"), [([], ["backups"]), (["holiday.zip"], ["nudge-1.db", "nudge-1.db-wal"])]
)
def test_backups_go_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: list[str], expected: list[str]
) -> None:
    """They hold the whole history: all of them, and their folder where nothing else is in it."""
    (tmp_path / "backups").mkdir()
    for name in ("my.db", *(f"backups/{name}" for name in ("nudge-1.db", "nudge-1.db-wal", *others))):
        (tmp_path / name).write_text("x")
    monkeypatch.setenv("NUDGE_DB", str(tmp_path / "my.db"))
    result = owned_files.find()
    assert [os.path.basename(file.path) for file in result] == ["my.db", *expected]
    owned_files.delete(result)
    assert not (tmp_path / "my.db").exists()
    assert (tmp_path / "backups").exists() == bool(others) and (
        not others or os.listdir(tmp_path / "backups") == others
    )
