from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge import doctor
from nudge.core import paths
from nudge.core.clock import boot_id, boot_seconds
from nudge.doctor import data
from nudge.settings.config import Settings
from nudge.storage import spool
from nudge.storage.changelog import ChangeLog
from nudge.storage.database import Database
from tests.unit.doctor.conftest import Make, levels, only

# The change log and the clock


def write_log(run: Path, **header: Any) -> Path:
    path = run / paths.CHANGE_LOG
    here = {"format": 1, "session": "s", "created": 0.0, "boot_id": boot_id(), "offset": time.time() - boot_seconds()}
    ChangeLog.create(str(path), {**here, **header}, [{"t": 1.0}]).close()
    return path


def test_the_change_log(make: Make, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, whole, torn, damaged, newer, large, unreadable: each has its own finding."""
    seen = [only(data.check_change_log(make())).level]
    path = write_log(run)
    seen.append(only(data.check_change_log(make())).level)
    monkeypatch.setattr("nudge.core.limits.LARGE_LOG_BYTES", 10)
    seen.append(only(data.check_change_log(make())).fix or "")
    with path.open("ab") as file:
        file.write(b"\0\0\0")
    seen.append(only(data.check_change_log(make())).message)
    path.write_bytes(b"rubbish")
    seen.append(only(data.check_change_log(make())).message)
    write_log(run, format=99)
    seen.append(only(data.check_change_log(make())).message)
    path.unlink()
    path.mkdir()
    seen.append(only(data.check_change_log(make())).level)
    assert seen[:3] == ["ok", "ok", "nudge export > hints.json; nudge stop --forget"]
    assert seen[3].startswith("changes.log ends in an incomplete record") and seen[4].endswith(
        "keeps the damaged file beside it"
    )
    assert "newer Nudge" in seen[5] and seen[6] == "fail"


@pytest.mark.usefixtures("held")
def test_a_living_server_may_be_writing(make: Make, run: Path) -> None:
    """An incomplete record at the end is not reported while a server runs."""
    with write_log(run).open("ab") as file:
        file.write(b"\0\0\0")
    assert only(data.check_change_log(make())).level == "ok"


@pytest.mark.parametrize(
    ("stepped", "level", "words"),
    [(0.0, "ok", "steady"), (-86_400.0, "warn", "forward by 1d"), (86_400.0, "warn", "back by")],
)
def test_a_clock_that_was_moved(make: Make, run: Path, stepped: float, level: str, words: str) -> None:
    """A step since the session began is named with its size; another boot's session says nothing about this clock."""
    write_log(run, offset=time.time() - boot_seconds() + stepped)
    result = only(data.check_clock(make()))
    assert result.level == level and words in result.message
    write_log(run, offset=0.0, boot_id="another")
    assert only(data.check_clock(make())).level == "ok"


def test_a_clock_that_was_never_set(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system clock in 1970 is a failure: every shown time would be wrong."""
    monkeypatch.setattr("nudge.core.limits.EARLIEST_CLOCK", time.time() + 1_000)
    assert only(data.check_clock(make())).level == "fail"


# The spool and the database


def test_what_waits_is_taken_in_by_a_server(make: Make, run: Path) -> None:
    """The fix is a command that starts a server, or `nudge serve` where autostart is off."""
    assert levels(data.check_spool(make())) == ["ok"]
    spool.write(str(run), {"event_id": "1"})
    assert only(data.check_spool(make())).fix == "nudge ls"
    assert only(data.check_spool(make())).message.startswith("1 event waits for a server")
    assert only(data.check_spool(make(settings=Settings({"autostart": False})))).fix == "nudge serve"
    assert levels(data.check_spool(make(status={"pid": 41}))) == ["ok"]


def test_dropped_events_are_reported_until_reset(make: Make, run: Path) -> None:
    """They cannot be recovered; the fix resets the count."""
    spool.count_dropped(str(run))
    _, dropped = data.check_spool(make())
    assert (
        dropped.level == "warn"
        and dropped.message.startswith("1 event was dropped: ")
        and dropped.fix == "nudge doctor --fix"
    )
    assert (doctor.fix([dropped])) == [("dropped events", "reset the count of dropped events")]
    assert levels(data.check_spool(make())) == ["ok"]


def test_history_is_checked(tmp_path: Path, make: Make) -> None:
    """A damaged database is named with what to do; a whole one is fine; none is fine too."""
    path = tmp_path / "nudge.db"
    here = make(environ={"NUDGE_DB": str(path)})
    assert levels(data.check_history(here)) == ["ok"]
    Database.open(str(path)).close()
    assert levels(data.check_history(here)) == ["ok", "ok"]
    path.write_bytes(path.read_bytes()[:3_000] + b"\xff" * 9_000)
    assert "fail" in levels(data.check_history(here))


def test_objects_that_nudge_did_not_make_are_named(tmp_path: Path, make: Make) -> None:
    """A trigger that came with a file of somebody else runs with our statements; the fix drops it."""
    path = tmp_path / "nudge.db"
    Database.open(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM events; END")
        connection.execute('CREATE TABLE "a ""b" (c)')
        connection.execute('CREATE INDEX "of a" ON "a ""b" (c)')
        connection.execute("CREATE VIEW v AS SELECT 1")
    here = make(environ={"NUDGE_DB": str(path)})
    finding, _ = data.check_history(here)
    assert finding.level == "warn" and "trigger evil" in finding.message
    assert finding.fix == "nudge stop; nudge doctor --fix" and finding.question is not None
    assert doctor.fix([finding]) == []
    ((_, done),) = doctor.fix([finding], lambda question: "trigger evil" in question)
    assert done.startswith("dropped ") and "view v" in done
    assert levels(data.check_history(here)) == ["ok", "ok"]


def test_a_database_that_is_a_symbolic_link_is_named(tmp_path: Path, make: Make) -> None:
    """The server records nothing through a link, whether or not there is a file behind it: doctor says that it is a
    link and what to do, and the server's own reason names the link too."""
    path, target = tmp_path / "nudge.db", tmp_path / "elsewhere.db"
    path.symlink_to(target)
    here = make(environ={"NUDGE_DB": str(path)})
    dangling = only(data.check_history(here))
    assert (dangling.level, dangling.fix) == ("fail", f"nudge stop; rm {path}")
    assert f"{path} is a symbolic link" in dangling.message and f"{target} does not exist" in dangling.message
    Database.open(str(target)).close()
    live = only(data.check_history(here))
    assert (live.level, live.fix) == ("fail", f"nudge stop; export NUDGE_DB={target}")
    assert f"{path} is a symbolic link" in live.message
    database = Database.open(str(path))
    assert database.reason == "the database cannot be opened: its path is a symbolic link"
    database.close()


def test_a_damaged_database_names_restore(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest backup that can be used is named; `--fix` restores it only after asking, and keeps the damaged one."""
    path = tmp_path / "nudge.db"
    monkeypatch.setenv("NUDGE_DB", str(path))
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(tmp_path / "runtime"))
    here = make(environ={"NUDGE_DB": str(path)})
    Database.open(str(path)).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:3_000] + b"\xff" * 9_000)
    (damage, _) = data.check_history(here)
    assert "there is no backup" in (damage.fix or "") and damage.repair is None
    backups = tmp_path / "backups"
    backups.mkdir()
    (backups / "nudge-20260101-000000.db").write_bytes(whole)
    (backups / "nudge-20260102-000000.db").write_bytes(b"not a database")
    (damage, _) = data.check_history(here)
    assert damage.fix == f"nudge restore {backups / 'nudge-20260101-000000.db'}"
    assert doctor.fix([damage]) == [] and path.read_bytes() != whole
    ((check, did),) = doctor.fix([damage], lambda question: question.startswith("Restore the backup"))
    assert check == "history" and "is kept" in did
    assert levels(data.check_history(here)) == ["ok", "ok"]
