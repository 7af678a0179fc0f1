"""Each fix that `nudge doctor` prints mends what it found: it is run in a shell as it is printed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.harness import Machine, eventually

_OUR_PROGRAM = os.path.dirname(sys.executable)


def _database(machine: Machine) -> Path:
    return Path(machine.environ["NUDGE_DB"])


def _fill(machine: Machine) -> None:
    machine.json("remember", "Sessions live in Redis")
    assert machine.cli("stop").returncode == 0


def _empty(machine: Machine) -> None:
    _fill(machine)
    _database(machine).write_bytes(b"")


def _empty_with_a_backup(machine: Machine) -> None:
    machine.json("remember", "Sessions live in Redis")
    machine.json("backup")
    assert machine.cli("stop").returncode == 0
    _database(machine).write_bytes(b"")


def _directory(machine: Machine) -> None:
    _database(machine).mkdir(parents=True, mode=0o700)


def _pipe(machine: Machine) -> None:
    _fill(machine)
    _database(machine).unlink()
    os.mkfifo(_database(machine))


def _dangling_link(machine: Machine) -> None:
    _fill(machine)
    _database(machine).unlink()
    _database(machine).symlink_to(machine.base / "nowhere.db")


def _foreign_objects(machine: Machine) -> None:
    _fill(machine)
    with closing(sqlite3.connect(_database(machine))) as connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM notes; END")


def _readable_by_others(machine: Machine) -> None:
    _fill(machine)
    _database(machine).chmod(0o644)


def _open_directory(machine: Machine) -> None:
    _fill(machine)
    Path(machine.runtime).chmod(0o777)


def _log_is_a_directory(machine: Machine) -> None:
    os.makedirs(os.path.join(machine.runtime, "changes.log"), mode=0o700)
    os.chmod(machine.runtime, 0o700)


def _settings_are_a_pipe(machine: Machine) -> None:
    file = machine.base / "config.toml"
    os.mkfifo(file)
    machine.environ["NUDGE_CONFIG"] = str(file)


def _unknown_variable(machine: Machine) -> None:
    machine.environ["NUDGE_PRT"] = "1"


def _bad_variable(machine: Machine) -> None:
    machine.environ["NUDGE_AUTOSTART"] = "perhaps"


def _killed_server(machine: Machine) -> None:
    published = machine.http_only()
    os.kill(published.pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the lock is free")


def _waiting_events(machine: Machine) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/tmp", "prompt": "hello there"}
    machine.cli("record", stdin=json.dumps(event))


def _open_token(machine: Machine) -> None:
    machine.json("set", "a", "b", "c", "--global")
    machine.cli("token")
    Path(machine.runtime, "token").chmod(0o666)


STATES: dict[str, tuple[str, Callable[[Machine], None]]] = {
    "an empty database": ("history", _empty),
    "an empty database with a backup": ("history", _empty_with_a_backup),
    "a directory for a database": ("history", _directory),
    "a pipe for a database": ("history", _pipe),
    "a dangling link for a database": ("history", _dangling_link),
    "objects of somebody else": ("history", _foreign_objects),
    "a database that others can read": ("data", _readable_by_others),
    "a directory that others can change": ("directory", _open_directory),
    "a directory for the change log": ("change log", _log_is_a_directory),
    "a pipe for the settings": ("settings", _settings_are_a_pipe),
    "a misspelled variable": ("settings", _unknown_variable),
    "a variable that is not understood": ("settings", _bad_variable),
    "a killed server's endpoint": ("endpoint", _killed_server),
    "a killed server's files": ("leftovers", _killed_server),
    "events that wait": ("spool", _waiting_events),
    "a token that others can change": ("token", _open_token),
}


def _fixes(machine: Machine, check: str) -> list[str]:
    """The fixes of a check that finds something."""
    rows = json.loads(machine.cli("doctor", "--json").stdout)["findings"]
    return [row["fix"] for row in rows if row["check"] == check and row["fix"] is not None]


def _run_as_printed(machine: Machine, command: str) -> None:
    """In one shell with the environment, in which `nudge` is found; a question is answered with yes."""
    answered = command.replace("nudge doctor --fix", "nudge doctor --fix --yes")
    answered = f"{answered} --yes" if answered.startswith("nudge restore ") else answered
    path = f"{_OUR_PROGRAM}{os.pathsep}{os.environ['PATH']}"
    script = f"{answered}\nenv -0 > {machine.base}/after"
    environ = {**machine.environ, "PATH": path}
    done = subprocess.run(["sh", "-c", script], env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr, done
    after = dict(one.partition("=")[::2] for one in (machine.base / "after").read_text().split("\0") if one)
    for name in [name for name in machine.environ if name.startswith("NUDGE_") and name not in after]:
        del machine.environ[name]


@pytest.mark.parametrize("state", STATES)
def test_a_fix_fixes(machine: Machine, state: str) -> None:
    """Its command is run, and the finding is gone; afterwards a hint and a note can be stored."""
    check, make = STATES[state]
    machine.environ.setdefault("NUDGE_DB", str(machine.base / "data" / "nudge.db"))
    _database(machine).parent.mkdir(mode=0o700, exist_ok=True)
    make(machine)
    fixes = _fixes(machine, check)
    assert fixes
    for fix in fixes:
        _run_as_printed(machine, fix)
    for fix in _fixes(machine, check):  # of the log that the check itself has made, with the mode of the database
        assert fix not in fixes
        _run_as_printed(machine, fix)
    assert _fixes(machine, check) == []
    machine.json("set", "a", "c", "d", "--global")
    machine.json("remember", "And a note")
    assert _fixes(machine, check) == []
