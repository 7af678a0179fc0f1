"""Damaged, removed or replaced files, as a person finds them: what was acknowledged is there, and `status` and `doctor`
say what happened. Real processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nudge.settings import config
from tests.harness import Machine, eventually


def value(machine: Machine, key: str) -> object:
    return machine.json("get", "shop", key)["hint"]["value"]


def test_one_changed_byte_in_the_change_log(machine: Machine) -> None:
    """Every other hint is still there after the next start; the damaged file is kept, and both interfaces say so."""
    for key in ("first", "second", "third"):
        machine.cli("set", "--global", "shop", key, f"value of {key}")
    machine.cli("stop")
    log = Path(machine.runtime) / "changes.log"
    data = bytearray(log.read_bytes())
    data[data.index(b"value of second")] ^= 1
    log.write_bytes(data)
    before = machine.cli("doctor", "--json")
    assert "damaged" in before.stdout
    assert [value(machine, key) for key in ("first", "third")] == ["value of first", "value of third"]
    status = machine.json("status")
    assert "changes.log.damaged" in status["warnings"][0] and status["durability"] == "process"
    assert (Path(machine.runtime) / "changes.log.damaged").read_bytes() == data
    found = {item["check"]: item for item in json.loads(machine.cli("doctor", "--json").stdout)["findings"]}
    assert "changes.log.damaged" in found["change log"]["message"]


def test_a_change_log_that_cannot_be_read(machine: Machine) -> None:
    """The server starts in memory and says so; what stands in the log's place is not touched."""
    os.makedirs(os.path.join(machine.runtime, "changes.log"), mode=0o700)
    os.chmod(machine.runtime, 0o700)
    machine.cli("set", "--global", "shop", "test", "make test")
    assert value(machine, "test") == "make test"
    status = machine.json("status")
    assert status["durability"] == "none" and "memory" in status["warnings"][0]
    again = machine.cli("set", "--global", "shop", "lint", "make lint")
    assert "  kept: in memory only, until the server ends (changes.log cannot be written)\n" in again.stdout
    checked = machine.cli("doctor", "--json").stdout
    fixes = {finding["check"]: finding["fix"] for finding in json.loads(checked)["findings"] if finding.get("fix")}
    path = os.path.join(machine.runtime, "changes.log")
    assert fixes["files"] == fixes["change log"] == f"mv {path} {path}.moved"
    assert fixes["server"].startswith("what the other lines say; then nudge export")
    assert os.path.isdir(os.path.join(machine.runtime, "changes.log"))


def test_the_database_is_removed_under_a_server(machine: Machine) -> None:
    """What was recorded is there again, and both interfaces say what happened."""
    client = machine.serve()
    client.initialize()
    for number in range(3):
        assert isinstance(client.call("record", event=recorded(number))["id"], int)
    for path in Path(config.database_file(machine.environ)).parent.glob("nudge.db*"):
        path.unlink()
    assert isinstance(client.call("record", event=recorded(3))["id"], int)
    client.process.kill()
    client.process.wait()
    again = machine.serve()
    again.initialize()
    assert len(again.call("search", query="recorded", project=None)["result"]) == 4


def test_status_tells_of_a_removed_database(machine: Machine) -> None:
    """Without any write."""
    client = machine.serve()
    client.initialize()
    client.call("record", event=recorded(0))
    database = config.database_file(machine.environ)
    os.unlink(database)
    eventually(lambda: machine.json("status")["warnings"], "status tells")
    assert "removed" in machine.json("status")["warnings"][0] and os.path.exists(database)
    assert "removed" in machine.cli("doctor").stdout


def test_a_backup_of_a_damaged_database_fails(machine: Machine) -> None:
    """It exits with an error that names `nudge restore`, and leaves no file that looks like a backup; `doctor` offers
    the newest backup that can be used."""
    client = machine.serve()
    client.initialize()
    for number in range(400):
        client.call("record", event={**recorded(number), "metadata": {"error": f"{number} " * 400}})
    machine.cli("backup", str(machine.base / "sound.db"))
    kept = machine.json("backup")["path"]
    assert client.quit() == 0
    database = Path(config.database_file(machine.environ))
    with database.open("r+b") as file:
        file.seek(database.stat().st_size // 2)
        file.write(b"\xa5" * 8_192)
    target = machine.base / "copy.db"
    failed = machine.cli("backup", str(target))
    assert failed.returncode == 3 and "damaged" in failed.stderr and f"fix: nudge restore {kept}" in failed.stderr
    assert not target.exists()
    assert "damaged" in " ".join(machine.json("status")["warnings"])
    os.unlink(kept)
    failed = machine.cli("backup", str(target))
    assert "there is no backup for nudge restore" in failed.stderr and "fix: nudge stop; mv" in failed.stderr
    Path(kept).write_bytes((machine.base / "sound.db").read_bytes())
    machine.cli("stop")
    checked = machine.cli("doctor")
    assert checked.returncode == 3 and f"fix: nudge restore {kept}" in " ".join(checked.stdout.split())


def _flip_in_the_schema(database: Path) -> None:
    """One bit in a name in the schema, which then is not text in UTF-8."""
    data = bytearray(database.read_bytes())
    data[data.index(b"CREATE TABLE notes") + len("CREATE TABLE n")] ^= 0x80
    database.write_bytes(data)


def _empty(database: Path) -> None:
    os.truncate(database, 0)


@pytest.mark.parametrize("damage", [_flip_in_the_schema, _empty])
def test_hints_do_not_depend_on_the_database(machine: Machine, damage: Callable[[Path], None]) -> None:
    """With one changed bit in the database's schema, or 0 bytes where a database was: a server starts and answers
    hints, `status` tells of the damage, `doctor` says `nudge restore`, and that works."""
    machine.cli("remember", "a lesson")
    backup = machine.json("backup")["path"]
    machine.cli("set", "--global", "shop", "test", "make test")
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    damage(Path(config.database_file(machine.environ)))
    assert value(machine, "test") == "make test"
    assert machine.cli("set", "--global", "shop", "lint", "make lint").returncode == 0
    for words in (("recall", "lesson"), ("remember", "another")):
        failed = machine.cli(*words)
        assert failed.returncode == 3 and "the database is damaged" in failed.stderr, failed
    assert "the database is damaged" in json.dumps(machine.json("status"))
    checked = machine.cli("doctor")
    assert checked.returncode == 3 and "Traceback" not in checked.stderr
    assert f"fix: nudge restore {backup}" in " ".join(checked.stdout.split())
    assert machine.cli("restore", backup, "--yes").returncode == 0
    assert "a lesson" in machine.cli("recall", "lesson").stdout and value(machine, "lint") == "make lint"


def recorded(number: int) -> dict[str, Any]:
    event = {"event_id": f"e{number}", "session_id": "s", "timestamp": 1_794_000_000 + number, "type": "command"}
    return {**event, "client": "unknown", "cwd": "/", "project": "p", "content": f"recorded {number}", "metadata": {}}


def test_a_file_that_is_no_database(machine: Machine) -> None:
    """What needs the history is refused with the command that says more; `status` says that it cannot be read."""
    database = Path(config.database_file(machine.environ))
    database.parent.mkdir(parents=True, exist_ok=True)
    database.write_bytes(b"no database" * 1_000)
    for words in (("search", "x"), ("remember", "a lesson")):
        failed = machine.cli(*words)
        assert failed.returncode == 3 and "E_STORAGE" in failed.stderr
        assert failed.stderr.endswith("; see: nudge doctor\n")
    [line] = [line for line in machine.cli("status").stdout.splitlines() if line.startswith("history ")]
    assert line.split(maxsplit=1)[1].startswith("not readable: ")
