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

from nudge.settings import config
from nudge.storage import migrations, spool
from nudge.storage.sqlite import check, open_backup
from tests.harness import Machine, eventually
from tests.processes import is_alive


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


def test_notes_are_counted_too(machine: Machine, backup: str) -> None:
    """In the question, in the result and by `nudge status`: a backup holds notes as well as the history."""
    machine.json("remember", "One writer is enough")
    assert {"sessions": 1, "notes": 1}.items() <= machine.json("status")["history"].items()
    assert "1 session, 1 note, kept for " in machine.cli("status").stdout
    later = str(machine.base / "later.db")
    machine.json("backup", later)
    done = machine.cli("restore", later, "--yes")
    assert "✔ restored 2 observations of 1 session, and 1 note from " in done.stdout
    assert machine.json("restore", backup, "--yes")["notes"] == 0


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


_FOREIGN = {
    "trigger": "CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM observations; END",
    "view": "CREATE VIEW evil AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "table": "CREATE TABLE evil (id INTEGER)",
    "index": "CREATE INDEX evil ON notes(source)",
    "other": "DROP TRIGGER notes_inserted; CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN SELECT 1; END",
}


@pytest.mark.parametrize("kind", _FOREIGN)
def test_objects_that_nudge_did_not_make_are_refused(machine: Machine, backup: str, kind: str) -> None:
    """Triggers and views would run with our statements; the error names them, and nothing is replaced."""
    with closing(sqlite3.connect(backup)) as connection:
        connection.executescript(_FOREIGN[kind])
    refused = machine.cli("restore", backup, "--yes")
    assert refused.returncode == 3 and "E_INVALID" in refused.stderr and _known(machine) == ["cargo one", "cargo two"]
    named = "trigger notes_inserted is not as Nudge made it" if kind == "other" else f"did not make: {kind} evil"
    assert named in " ".join(refused.stderr.split())


def test_rows_that_are_not_valid_are_left_out_and_named(machine: Machine, backup: str) -> None:
    """Each note by the rules of an import, the other rows by type and size. The backup still has them."""
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        connection.executescript(
            "INSERT INTO observations (session_id, timestamp, obs_type, content, metadata)"
            " SELECT session_id, 1e300, 'command', 'cargo three', '{}' FROM observations;"
            "INSERT INTO observations (session_id, timestamp, obs_type, content, metadata)"
            " SELECT session_id, 1, 'command', x'00ff', '[]' FROM observations LIMIT 1;"
            "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source,"
            " created_at, updated_at, metadata, origin) VALUES"
            " ('000000000000000000000001', 'long', 'global', 'note', 'kept', 'x', '[]', 5, 1, 'cli', 1, 1, '{}', '{}'),"
            " ('000000000000000000000002', 'long', 'global', 'note', 'bad', 'x', '[]', 99, 1, 'cli', 1, 1, '{}', '{}'),"
            " ('000000000000000000000003', 'long', 'global', 'note', 'huge', printf('%.*c', 2000000, 'x'), '[]', 5, 1,"
            " 'cli', 1, 1, '{}', '{}');"
            "INSERT INTO archived_notes VALUES (9, 'u', 'global', 'gone', 'no JSON', 1, 'forgotten')"
        )
    done = machine.cli("restore", backup, "--yes")
    assert done.returncode == 0, done
    said = " ".join((done.stdout + done.stderr).split())
    assert "restored 1 observation of 1 session, and 1 note from" in said
    assert "2 damaged rows of notes left out" in said and "2 damaged rows of observations left out" in said
    assert "1 damaged row of archived_notes left out" in said
    assert "m2: priority: must be 1 to 10" in said and "m3: is too large" in said
    assert _known(machine) == ["cargo one"]
    assert [note["title"] for note in machine.json("memory", "list")["memories"]] == ["kept"]
    with closing(sqlite3.connect(_database(machine))) as connection:
        assert check(connection) == []


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
