"""A backup can be gone back to, whatever runs or has died meanwhile, and whatever was there is kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nudge import config
from nudge.storage import migrations, spool
from nudge.storage.sqlite import check, open_backup
from tests.harness import Machine, eventually, is_alive


def _happened(machine: Machine, command: str) -> None:
    event = {
        "session_id": "s1",
        "cwd": str(machine.base),
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": ""},
    }
    assert machine.cli("record", stdin=json.dumps(event)).returncode == 0
    machine.json("ls")
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")


def _known(machine: Machine) -> list[str]:
    return sorted(row["content_preview"] for row in machine.json("search", "cargo"))


def _database(machine: Machine) -> Path:
    return Path(config.database_file(machine.environ))


@pytest.fixture
def backup(machine: Machine) -> str:
    """Of a history that knows of `cargo one`; `cargo two` came later."""
    _happened(machine, "cargo one")
    path = str(machine.base / "backup.db")
    machine.json("backup", path)
    _happened(machine, "cargo two")
    return path


def _kill(machine: Machine) -> None:
    pid = machine.ready().pid
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the server is dead")


@pytest.mark.parametrize("meanwhile", ["served", "stopped", "killed"])
def test_a_backup_takes_the_place_of_the_history(machine: Machine, backup: str, meanwhile: str) -> None:
    """With a server, which is stopped, without one, and with the journal that a kill left: it must not be taken for the
    new one's."""
    if meanwhile == "stopped":
        machine.cli("stop")
    elif meanwhile == "killed":
        _kill(machine)
        assert Path(f"{_database(machine)}-wal").stat().st_size
    eventually(lambda: meanwhile == "served" or machine.lock_is_free(), "the server ends")
    done = machine.json("restore", backup, "--yes")
    assert (done["observations"], done["sessions"], done["stopped"]) == (1, 1, meanwhile == "served")
    assert _known(machine) == ["cargo one"]
    with sqlite3.connect(_database(machine)) as connection:
        assert check(connection) == []
    kept = open_backup(done["kept"])
    assert [row[0] for row in kept.execute("SELECT content FROM observations ORDER BY id")] == [
        "cargo one",
        "cargo two",
    ]
    kept.close()
    assert os.stat(_database(machine)).st_mode & 0o077 == 0
    assert machine.json("restore", done["kept"], "--yes")["observations"] == 2 and _known(machine) == [
        "cargo one",
        "cargo two",
    ]


def test_nothing_was_there(machine: Machine, backup: str) -> None:
    """A new machine, or a database that somebody removed."""
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    for name in ("", "-wal", "-shm"):
        Path(f"{_database(machine)}{name}").unlink(missing_ok=True)
    assert machine.json("restore", backup, "--yes")["kept"] is None and _known(machine) == ["cargo one"]


def test_it_is_asked_first(machine: Machine, backup: str) -> None:
    """Nobody there to ask: nothing is done."""
    refused = machine.cli("restore", backup)
    assert refused.returncode == 2 and "--yes" in refused.stderr and _known(machine) == ["cargo one", "cargo two"]


def test_a_server_inside_a_client_is_left_alone(machine: Machine, backup: str) -> None:
    """End the client first: it would go on with what is no longer there."""
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    client = machine.serve()
    client.initialize()
    machine.ready()
    refused = machine.cli("restore", backup, "--yes")
    assert refused.returncode == 3 and refused.stderr and _known(machine) == ["cargo one", "cargo two"]
    client.quit()


_DAMAGES = {
    "other": "DROP TABLE sessions",
    "newer": f"PRAGMA user_version = {migrations.LATEST + 1}",
    "formless": "PRAGMA user_version = 0",
    "index": "INSERT INTO observations_fts(observations_fts) VALUES ('delete-all')",
}


def _damaged(backup: str, damage: str) -> Path:
    """A copy of a backup with something wrong."""
    path = Path(f"{backup}.{damage}")
    shutil.copyfile(backup, path)
    if damage == "text":
        path.write_text("hello")
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[: 6 * 4096])
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(_DAMAGES[damage])
    return path


def test_what_is_no_backup_replaces_nothing(machine: Machine, backup: str) -> None:
    """It is looked through before anything is touched; the server does not even notice what is no history at all."""
    wrong = [_damaged(backup, damage) for damage in ("text", "torn", *_DAMAGES)]
    folder = _database(machine).parent
    for path in (*wrong, _database(machine)):
        refused = machine.cli("restore", str(path), "--yes")
        assert refused.returncode == 3 and "E_INVALID" in refused.stderr, (path, refused)
        assert _known(machine) == ["cargo one", "cargo two"]
        assert not list(folder.glob("*.restoring*")) and not list(folder.glob("backups/*"))
