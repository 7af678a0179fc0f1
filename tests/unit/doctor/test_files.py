from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge import doctor
from nudge.core import paths
from nudge.core.locks import Flock
from nudge.doctor import files
from tests.unit.doctor.conftest import Make, levels, mode_of, only


@pytest.mark.parametrize(
    ("mode", "level"),
    [(0o700, "ok"), (0o750, "warn"), (0o755, "warn"), (0o770, "fail"), (0o777, "fail"), (0o500, "fail")],
)
def test_the_mode_of_the_directory(make: Make, run: Path, mode: int, level: str) -> None:
    """Others may neither read nor write the directory, and its owner must be able to use it."""
    run.chmod(mode)
    result = next(iter(files.check_directories(make())))
    assert result.level == level
    assert result.fix == (None if level == "ok" else f"chmod 700 {run}")
    run.chmod(0o700)


def test_a_directory_that_is_none_of_ours(
    make: Make, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link, a file, or another user's directory is a failure without a repair."""
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        result = next(iter(files.check_directories(make(directory=str(tmp_path / name)))))
        assert (result.level, result.repair, result.fix) == ("fail", None, f"rm {tmp_path / name}")
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    result = next(iter(files.check_directories(make())))
    assert (result.level, result.repair) == ("fail", None) and "another user" in result.message


def test_a_directory_that_is_not_there(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing directory is OK when it can be created, and a failure when it cannot."""
    snapshot = make(directory=str(tmp_path / "a" / "b"))
    assert levels(files.check_directories(snapshot)) == ["ok", "ok"]
    assert list(files.check_files(snapshot)) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "cannot be created" in next(iter(files.check_directories(snapshot))).message


def test_files(make: Make, run: Path) -> None:
    """Each file that others could read is named; a link in a file's place is a failure."""
    assert levels(files.check_files(make())) == ["ok"]
    (run / paths.CHANGE_LOG).touch(0o644)
    (run / paths.LOCK).symlink_to(run / "elsewhere")
    wrong = list(files.check_files(make()))
    assert sorted(levels(wrong)) == ["fail", "warn"]


def test_the_fix_looks_again(make: Make, run: Path, tmp_path: Path) -> None:
    """A link that was put in the file's place after the check is not followed: its target keeps its mode."""
    victim = tmp_path / "victim"
    victim.touch(0o644)
    (run / paths.CHANGE_LOG).touch(0o644)
    findings = list(files.check_files(make()))
    (run / paths.CHANGE_LOG).unlink()
    (run / paths.CHANGE_LOG).symlink_to(victim)
    assert (doctor.fix(findings)) == []
    assert mode_of(victim) == 0o644


@pytest.mark.parametrize(("mode", "level"), [(0o600, "ok"), (0o400, "ok"), (0o640, "fail"), (0o604, "fail")])
def test_the_mode_of_the_token(make: Make, run: Path, mode: int, level: str) -> None:
    """A token that others can read is reported: they could use the port with it."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(mode)
    assert only(files.check_token(make())).level == level


def test_a_token_that_others_could_write(make: Make, run: Path, held: Flock) -> None:
    """A token that others could write is removed, not repaired, and only while no server runs."""
    (run / "token").write_text("planted")
    (run / "token").chmod(0o666)
    assert only(files.check_token(make())).repair is None
    held.release()
    result = only(files.check_token(make()))
    assert result.level == "fail" and (doctor.fix([result])) == [("token", f"removed {run / 'token'}")]


def test_no_token(make: Make) -> None:
    """A missing token is OK before the first server, and a warning while a server runs."""
    assert only(files.check_token(make())).level == "ok"
    assert only(files.check_token(make(status={"pid": 1}))).level == "warn"


def test_a_file_without_a_token(make: Make, run: Path) -> None:
    """An empty or shortened file counts as a missing token: the next server, or the running one, makes a new one."""
    (run / "token").touch(mode=0o600)
    assert only(files.check_token(make())).message == "none yet; the first server creates one"
    result = only(files.check_token(make(status={"pid": 1})))
    assert result.level == "warn" and result.message.startswith("the file holds no token; ")


def test_leftovers(make: Make, run: Path, held: Flock) -> None:
    """Leftover files are reported only while no server holds the lock."""
    (run / "s-0a.sock").touch()
    assert list(files.check_leftovers(make())) == []
    held.release()
    assert only(files.check_leftovers(make())).message == "a server that was killed left s-0a.sock"


@pytest.mark.parametrize(("free", "level"), [(1_000, "fail"), (100 * 1024**2, "warn"), (10 * 1024**3, "ok")])
def test_the_disk(make: Make, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    """Little space is a warning, almost none a failure."""

    class Usage:
        pass

    usage = Usage()
    usage.free = free  # type: ignore[attr-defined]
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    assert only(files.check_disk(make())).level == level


def test_the_data_files(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data directory, the database, its journals and backups, and the log are reported when others can read them,
    and are a failure when others can write them; the fix closes them all."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder, log = tmp_path / ".local/share/nudge", tmp_path / "run/log"
    for directory in (folder / "backups", log):
        directory.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    names = ("nudge.db", "nudge.db-wal", "nudge.db-shm", "backups/nudge-20260101-000000.db")
    opened = [folder, folder / "backups", *(folder / name for name in names), log / "nudge.log"]
    for file in opened[2:]:
        file.touch(0o600)
    assert only(files.check_data_files(make())).level == "ok"
    for path in opened:
        path.chmod(path.stat().st_mode | 0o044)
    (folder / "nudge.db").chmod(0o666)
    findings = list(files.check_data_files(make()))
    assert sorted(levels(findings)) == ["fail", *["warn"] * 6]
    assert f"{folder / 'nudge.db'} can be changed by others (0666)" in [finding.message for finding in findings]
    assert len(doctor.fix(findings)) == 7
    assert only(files.check_data_files(make())).level == "ok" and mode_of(folder / "nudge.db") == 0o600


def test_settings_that_others_can_write(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """config.toml holds no secrets, so others may read it; when they can write it, it is a failure."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".config/nudge/config.toml"
    file.parent.mkdir(parents=True)
    file.parent.chmod(0o755)
    file.touch()
    file.chmod(0o644)
    assert only(files.check_data_files(make())).level == "ok"
    file.chmod(0o664)
    result = only(files.check_data_files(make()))
    assert (result.level, result.fix) == ("fail", f"chmod 644 {file}")
    assert doctor.fix([result]) and mode_of(file) == 0o644


def test_a_moved_database_in_a_shared_directory(make: Make, tmp_path: Path) -> None:
    """Others who can write to the directory of a moved database could replace it: a warning without a repair, because
    the directory is the user's."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    result = only(files.check_data_files(make(environ={"NUDGE_DB": str(shared / "nudge.db")})))
    assert (result.level, result.repair, result.fix) == ("warn", None, f"chmod go-w {shared}")
