"""A server as a person finds it: `status`, `stop --force`, `stop --forget` and `doctor`. Real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nudge import __version__
from nudge.core import limits, paths
from nudge.core.limits import CALL_TIMEOUT
from nudge.core.locks import Flock
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint
from nudge.storage.changelog import ChangeLog
from tests.harness import Machine, eventually
from tests.processes import is_alive

T = TypeVar("T")


@pytest.fixture
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's process, whose number an old file happens to name."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", "nudge serve"], stdin=subprocess.PIPE
    )
    yield process
    process.kill()
    process.communicate()


def findings(machine: Machine, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """By check; of several lines about one, the last."""
    done = machine.cli("doctor", "--json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}


def name_stranger(machine: Machine, pid: int, *, port: int | None = None) -> None:
    """An endpoint file that outlived its server."""
    os.makedirs(machine.runtime, mode=0o700, exist_ok=True)
    gone = os.path.join(machine.runtime, "s-0a1b2c.sock")
    Path(gone).touch()
    endpoint.publish(
        machine.runtime, Endpoint(pid, port, gone, "2026-01-01T00:00:00.000000Z", "0a1b2c", "0.0.1", "ready")
    )


# status


def test_status_of_a_clients_server(machine: Machine) -> None:
    """Who owns it, since when, how long the session lasts, who is connected and how much is in it."""
    began = time.monotonic()
    client = machine.serve()
    client.initialize()
    machine.ready()
    proxy = machine.serve()
    proxy.initialize()
    proxy.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    status = machine.json("status")
    assert 0 <= status["uptime"] <= time.monotonic() - began
    assert (status["role"], status["pid"], status["owner"], status["client"]) == (
        "PRIMARY",
        client.pid,
        "client",
        "test",
    )
    assert (status["version"], status["hints"], status["durability"]) == (__version__, 1, "process")
    assert status["spool"] == {"files": 0, "bytes": 0, "dropped": 0} and status["history"]["read_only"] is None
    assert status["last_error"] is None and status["log_bytes"] > 100
    assert [(member["client"], member["pid"]) for member in status["members"]] == [("test", proxy.pid)]
    session = status["session"]
    assert session["grace"] == limits.SESSION_GRACE and 0 <= session["age"] < 60 and session["read_only"] is None
    assert session["created"] < session["ends_earliest"]
    shown = machine.cli("status").stdout
    assert (
        "hints       1\n" in shown
        and f"test: 1 (pid {proxy.pid})" in shown
        and "ends 30d after the last process" in shown
    )


def test_status_without_grace(make_machine: Callable[..., Machine]) -> None:
    """Grace 0: the session ends with the last process, and status says so."""
    machine = make_machine(NUDGE_SESSION_GRACE="0")
    machine.http_only()
    shown = machine.cli("status").stdout
    assert "ends with the last process" in shown and "owner       terminal" in shown


def test_status_of_a_stopped_primary(machine: Machine) -> None:
    """It says which pid hangs, with exit code 4, in the time of one call."""
    pid = machine.http_only().pid
    answered, usual = _timed(lambda: machine.cli("status"))
    os.kill(pid, signal.SIGSTOP)
    done, seconds = _timed(lambda: machine.cli("status"))
    os.kill(pid, signal.SIGCONT)
    assert answered.returncode == 0 and machine.cli("status").returncode == 0
    assert done.returncode == 4 and f"pid {pid}" in done.stderr and "suspended" in done.stderr
    # A second call would be another CALL_TIMEOUT; starting an interpreter takes what it takes now.
    assert seconds < 1.5 * CALL_TIMEOUT + 2 * usual


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.monotonic()
    return work(), time.monotonic() - began


# stop --force


def test_force_ends_a_stopped_primary(machine: Machine) -> None:
    """The one that hangs is killed and nobody else; its leftovers are cleared; no hint is lost."""
    owner = machine.serve()
    owner.initialize()
    owner.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    bystander = machine.serve()
    bystander.initialize()
    pid = machine.ready().pid
    os.kill(pid, signal.SIGSTOP)
    assert machine.cli("stop").returncode == 4
    assert is_alive(pid)
    done = machine.cli("stop", "--force")
    assert done.returncode == 0 and f"killed the server (pid {pid})" in done.stdout
    eventually(lambda: not is_alive(pid), "the server is gone")
    assert is_alive(bystander.pid)
    assert bystander.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"


def test_force_and_forget(machine: Machine) -> None:
    """One that hangs can be ended together with its session; the hints are kept once."""
    machine.json("set", "a", "b", "c", "--global")
    os.kill(machine.ready().pid, signal.SIGSTOP)
    assert machine.json("stop", "--force", "--forget")["killed"] is True
    assert machine.cli("get", "a", "b").returncode == 1
    assert machine.json("import", "--previous")["imported"] == 1


def test_a_recycled_pid_survives_force(machine: Machine, innocent: subprocess.Popen[bytes]) -> None:
    """The file names a number that belongs to another process by now: with the lock free there is no server to end."""
    name_stranger(machine, innocent.pid)
    done = machine.cli("stop", "--force")
    assert (done.returncode, done.stdout) == (0, "no server is running\n") and innocent.poll() is None


def test_a_recycled_pid_survives_while_the_lock_is_held(machine: Machine, innocent: subprocess.Popen[bytes]) -> None:
    """Even when somebody holds the lock and nobody answers: whoever is named must be the holder, else the refusal is a
    sentence."""
    name_stranger(machine, innocent.pid)
    lock = Flock(os.path.join(machine.runtime, paths.LOCK))
    assert lock.acquire()
    done = machine.cli("stop", "--force")
    lock.release()
    assert done.returncode == 3
    assert f"pid {innocent.pid} does not hold the server's lock; nothing was killed" in done.stderr
    assert innocent.poll() is None


# stop --forget


def test_forget_counts_what_goes_and_what_stays(machine: Machine) -> None:
    """Hints with a ttl outlive the session: `stop --forget` says how many go and how many stay, and a session that
    loses nothing leaves the hints of the one before it for `import --previous`."""
    machine.json("set", "a", "b", "c", "--global")
    machine.json("set", "a", "short", "c", "--global", "--ttl", "PT1H")
    first, back = machine.cli("stop", "--forget").stdout.splitlines()
    assert first.endswith("; 1 hint forgotten; 1 with a ttl stays")
    assert back == "bring the forgotten hints back with: nudge import --previous"
    machine.json("set", "a", "later", "c", "--global", "--ttl", "PT1H")
    ended = machine.json("stop", "--forget")
    assert (ended["forgotten"], ended["kept"]) == (0, 2)
    assert machine.json("import", "--previous")["imported"] == 1
    assert machine.cli("get", "a", "b", "--value-only").stdout == "c\n"
    machine.json("delete", "a", "b")
    assert "import --previous" not in machine.cli("stop", "--forget").stdout  # nothing was kept this time


def test_forget_without_a_server(machine: Machine) -> None:
    """A session can be ended when nothing runs; it starts nothing, and says when there is none."""
    machine.json("set", "a", "b", "c", "--global")
    assert machine.cli("stop").returncode == 0
    eventually(lambda: not machine.pids(), "the server ends")  # it gives up the lock before it ends
    assert machine.json("stop", "--forget") == {"stopping": False, "pid": None, "forgotten": 1, "kept": 0}
    assert machine.pids() == []
    assert machine.json("stop", "--forget") == {"stopping": False, "pid": None}
    assert machine.cli("get", "a", "b").returncode == 1
    assert machine.json("import", "--previous")["imported"] == 1


def test_forget_with_a_server_that_cannot_read_the_session(machine: Machine) -> None:
    """A log of a newer format makes the server read-only, which status says; --forget ends that session too, as it is
    told to."""
    os.makedirs(machine.runtime, mode=0o700)
    log = os.path.join(machine.runtime, paths.CHANGE_LOG)
    ChangeLog.create(log, {"format": 99}).close()
    machine.http_only()
    assert "durability  read-only: the change log was written by a newer Nudge" in machine.cli("status").stdout
    assert findings(machine)["server"]["level"] == "warn"
    assert machine.cli("set", "a", "b", "c", "--global").returncode == 3
    assert machine.cli("stop", "--forget").returncode == 0
    assert not os.path.exists(log)
    assert machine.cli("set", "a", "b", "c", "--global").returncode == 0


# doctor


def test_doctor_of_a_healthy_machine(machine: Machine) -> None:
    """Before, beside and after a server nothing fails; it never starts one."""
    assert {finding["level"] for finding in findings(machine).values()} <= {"ok", "warn"}
    assert machine.pids() == []
    published = machine.http_only()
    result = findings(machine)
    assert result["lock"]["message"] == f"held by the server (pid {published.pid})"
    assert published.generation in result["endpoint"]["message"]
    for check in (
        "directory",
        "files",
        "lock",
        "endpoint",
        "socket",
        "token",
        "server",
        "change log",
        "clock",
        "versions",
    ):
        assert result[check]["level"] == "ok", result[check]
    had_its_port = (
        str(published.port) == machine.environ["NUDGE_PORT"]
    )  # other programs of this machine may have it just then
    assert result["port"]["level"] == ("ok" if had_its_port else "warn")
    assert machine.cli("stop").returncode == 0
    assert findings(machine)["endpoint"]["level"] == "ok"


def test_doctor_fixes_modes(machine: Machine) -> None:
    """A directory that others may write to and a token that they may read: failures with the command that fixes them,
    or --fix."""
    token = Path(machine.runtime, paths.TOKEN)
    machine.http_only()
    Path(machine.runtime).chmod(0o777)
    token.chmod(0o644)
    result = findings(machine, code=3)
    assert (result["directory"]["level"], result["directory"]["fix"]) == ("fail", f"chmod 700 {machine.runtime}")
    assert (result["token"]["level"], result["token"]["fix"]) == ("fail", f"chmod 600 {token}")
    fixed = json.loads(machine.cli("doctor", "--fix", "--json").stdout)
    assert fixed["ok"] and {entry["check"] for entry in fixed["fixed"]} == {"directory", "token"}
    assert stat.S_IMODE(os.stat(machine.runtime).st_mode) == 0o700 and stat.S_IMODE(token.stat().st_mode) == 0o600
    assert machine.cli("token").returncode == 0


def test_doctor_of_a_stopped_primary(machine: Machine) -> None:
    """One that hangs is a failure, and nothing of its own is touched."""
    published = machine.http_only()
    os.kill(published.pid, signal.SIGSTOP)
    done = machine.cli("doctor", "--fix", "--json")
    result = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 3 and str(published.pid) in result["server"]["message"]
    assert result["server"]["fix"] == "nudge stop --force"
    assert is_alive(published.pid) and os.path.exists(str(published.socket))
    os.kill(published.pid, signal.SIGCONT)
    assert machine.cli("status").returncode == 0


def test_doctor_clears_after_a_killed_server(machine: Machine) -> None:
    """A stale endpoint and a socket that nobody listens on: told with the pid, cleared by --fix, and the next server
    just starts."""
    published = machine.http_only()
    os.kill(published.pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the lock is free")
    result = findings(machine)
    assert result["endpoint"]["level"] == "warn" and f"pid {published.pid}" in result["endpoint"]["message"]
    assert os.path.basename(str(published.socket)) in result["leftovers"]["message"]
    assert "leftovers" not in findings(machine, "--fix")
    current = machine.endpoint()
    assert current is not None and current.state == "stopped" and not os.path.exists(str(published.socket))
    assert machine.cli("set", "a", "b", "c", "--global").returncode == 0


def test_doctor_tells_a_recycled_pid(machine: Machine, innocent: subprocess.Popen[bytes]) -> None:
    """The number belongs to another program: said, and left alone by --fix."""
    name_stranger(machine, innocent.pid)
    assert f"now another program (pid {innocent.pid})" in findings(machine)["endpoint"]["message"]
    assert findings(machine, "--fix")["endpoint"]["level"] == "ok"
    assert innocent.poll() is None


def test_doctor_sees_a_stranger_on_the_port(make_machine: Callable[..., Machine]) -> None:
    """Somebody else has the port: the server took the next one, and the line says who to look for."""
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        wanted = other_program.getsockname()[1]
        machine = make_machine(NUDGE_PORT=str(wanted))
        assert "will take the next free one" in findings(machine)["port"]["message"]
        listening = machine.http_only().port
        result = findings(machine)["port"]
        assert result["message"] == f"{wanted} is held by another program; the server listens on {listening}"
        assert str(wanted) in result["look"] and result["fix"] is None


def test_doctor_with_settings_that_cannot_be_read(make_machine: Callable[..., Machine]) -> None:
    """It says so, and where; what needs them is refused, what only looks for a server is not."""
    machine = make_machine(NUDGE_PORT="eighty")
    assert [machine.cli(verb).returncode for verb in ("ls", "status", "stop")] == [3, 4, 0]
    assert findings(machine, code=3)["settings"]["fix"] == "unset NUDGE_PORT"


def test_a_database_that_others_could_write(machine: Machine) -> None:
    """The server closes the database to others before it opens it, and its status says that others could have changed
    it."""
    machine.use_default_directory()
    machine.json("set", "a", "b", "c", "--global")
    assert machine.cli("stop").returncode == 0
    database = machine.home / ".local/share/nudge/nudge.db"
    database.chmod(0o666)
    database.parent.chmod(0o777)
    machine.json("set", "a", "b", "d", "--global")
    [warning] = machine.json("status")["warnings"]
    assert warning.startswith("other users could change ") and "they no longer can" in warning
    assert database.stat().st_mode & 0o777 == 0o600 and database.parent.stat().st_mode & 0o777 == 0o700
