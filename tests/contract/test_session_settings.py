"""Settings belong to the session: whoever starts its next server, and why, changes none of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nudge.core import paths
from nudge.settings import config
from tests.harness import ROOT, Machine, Stdio, eventually, free_port

SECRET = "AKIAIOSFODNN7EXAMPLE"
RETENTION = "command=30"


@pytest.fixture
def given(machine: Machine) -> dict[str, str]:
    """What the first server is given: two flags, three variables. Nobody else's environment says any of it."""
    del machine.environ["NUDGE_PORT"]
    return {"NUDGE_DB": str(machine.base / "elsewhere.db"), "NUDGE_RETENTION": RETENTION, "NUDGE_MAX_HINTS": "2"}


def first(machine: Machine, given: dict[str, str]) -> Stdio:
    flags = ("--port", str(free_port()), "--no-auth", "--no-secret-guard")
    primary = machine.serve(*flags, **given)
    primary.initialize()
    machine.ready()
    return primary


def proxy_of(machine: Machine, **environ: str) -> Stdio:
    proxy = machine.serve(**environ)
    proxy.initialize()
    return proxy


def set_hint(client: Stdio, key: str, value: str = "v") -> str | None:
    """The reason why it was refused; None when it was not."""
    result = client.tool("nudge_set_hint", component="c", key=key, value=value, meta={"scope": {}})
    return result["structuredContent"]["error"]["reason"] if result.get("isError") else None


def assert_kept(machine: Machine, proxy: Stdio, given: dict[str, str], port: int | None) -> None:
    """The server of now goes by what the first one was given: guard, quota, token, port, database, retention."""
    assert set_hint(proxy, "guard", SECRET) is None
    assert [set_hint(proxy, "second"), set_hint(proxy, "third")] == [None, "E_QUOTA"]
    status = machine.json("status")
    assert status["settings"] == {
        "port": str(port),
        "auth": "0",
        "secret_guard": "0",
        "max_hints": "2",
        "db": given["NUDGE_DB"],
        "retention": RETENTION,
    } | {"log_level": "info"}
    assert status["history"]["retention"]["days"]["command"] == 30
    assert os.path.exists(given["NUDGE_DB"]) and not os.path.exists(os.path.join(machine.runtime, "nudge.db"))
    eventually(lambda: machine.ready().port == port, "the public port is open where it was")


def test_kill(machine: Machine, given: dict[str, str]) -> None:
    """`kill -9` of the first server: a PROXY that was given nothing starts the next one."""
    primary = first(machine, given)
    port = machine.ready().port
    proxy = proxy_of(machine)
    os.kill(primary.pid, signal.SIGKILL)
    primary.process.wait()
    assert_kept(machine, proxy, given, port)


@contextmanager
def busy_cores() -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_hand_over_on_a_busy_machine(machine: Machine, given: dict[str, str]) -> None:
    """The first server's client leaves while every core is busy, so that its successor may come too late for it."""
    primary = first(machine, given)
    port = machine.ready().port
    proxy = proxy_of(machine)
    with busy_cores():
        primary.quit()
        assert set_hint(proxy, "guard", SECRET) is None
    assert_kept(machine, proxy, given, port)


def test_hand_over_to_a_proxy_that_was_not_heard_yet(machine: Machine, given: dict[str, str]) -> None:
    """The first server's client leaves before that server has read a word of a PROXY that is there already."""
    primary = first(machine, given)
    port = machine.ready().port
    os.kill(primary.pid, signal.SIGSTOP)
    proxy = proxy_of(machine)
    primary.close_stdin()
    os.kill(primary.pid, signal.SIGCONT)
    primary.process.wait()
    assert_kept(machine, proxy, given, port)


def newer_version(machine: Machine) -> dict[str, str]:
    """The environment in which `nudge` is a newer version."""
    newer = machine.base / "newer"
    shutil.copytree(ROOT / "nudge", newer / "nudge", ignore=shutil.ignore_patterns("__pycache__"))
    (newer / "nudge" / "__init__.py").write_text('"""Nudge."""\n\n__version__ = "99.0.0"\n')
    return {"PYTHONPATH": str(newer), "PYTHONDONTWRITEBYTECODE": "1"}


def upgraded(machine: Machine) -> Stdio:
    proxy = proxy_of(machine, **newer_version(machine))
    eventually(lambda: machine.ready().version == "99.0.0", "the newer version takes over")
    return proxy


def test_upgrade(machine: Machine, given: dict[str, str]) -> None:
    """A newer version takes over, started by a process that was given nothing."""
    primary = first(machine, given)
    port = machine.ready().port
    proxy = upgraded(machine)
    assert_kept(machine, proxy, given, port)
    assert primary.process.poll() is None


def test_upgrade_of_a_server_in_the_background(machine: Machine) -> None:
    """It has no client that goes on as a PROXY, and it is replaced at once, however young it is."""
    flags = ("--no-auth", "--no-secret-guard", "--max-hints", "2")
    assert machine.cli("serve", "--daemon", *flags).returncode == 0
    proxy = upgraded(machine)
    assert set_hint(proxy, "guard", SECRET) is None
    assert [set_hint(proxy, "second"), set_hint(proxy, "third")] == [None, "E_QUOTA"]
    assert settings(machine) == {"auth": "0", "secret_guard": "0", "max_hints": "2"}


def test_upgrade_of_a_session_without_grace(machine: Machine) -> None:
    """The process that gives its role away is one of the session's: neither its hints nor its settings go."""
    primary = machine.serve("--max-hints", "7", NUDGE_SESSION_GRACE="0")
    primary.initialize()
    assert set_hint(primary, "kept") is None
    session = machine.json("status")["session"]["id"]
    command = machine.cli("ls", **newer_version(machine))
    assert command.returncode == 0, command.stderr
    eventually(lambda: machine.ready().version == "99.0.0", "the newer version takes over")
    status = eventually(lambda: (found := machine.json("status"))["members"] and found, "the old one is a member")
    assert (status["session"]["id"], status["hints"]) == (session, 1)
    assert {name: status["settings"][name] for name in ("max_hints", "session_grace")} == {
        "max_hints": "7",
        "session_grace": "0",
    }
    assert primary.call("nudge_get_hint", component="c", key="kept")["hint"]["value"] == "v"


def test_the_environment_of_a_proxy(machine: Machine) -> None:
    """A PROXY's own variables say nothing to the server that it starts: the guard stays on for everybody."""
    primary = machine.serve()
    primary.initialize()
    machine.ready()
    proxy = proxy_of(machine, NUDGE_SECRET_GUARD="0", NUDGE_MAX_HINTS="1", NUDGE_AUTH="0", NUDGE_DB="/nowhere/x.db")
    os.kill(primary.pid, signal.SIGKILL)
    primary.process.wait()
    assert set_hint(proxy, "guard", SECRET) == "E_SECRET_REJECTED"
    assert [set_hint(proxy, "one"), set_hint(proxy, "two")] == [None, None]
    assert set(machine.json("status")["settings"]) == {"port", "log_level"}


def new_session(machine: Machine) -> None:
    """Nothing is stored: what starts a server has its own environment only."""
    machine.store_settings({})
    shutil.rmtree(machine.runtime)
    machine.environ["NUDGE_RUNTIME_DIR"] = machine.runtime = str(machine.base / "fresh")


def test_the_environment_of_a_command(machine: Machine) -> None:
    """A command that needs the first server of a session starts it as `nudge serve` would start: its variables count,
    are kept with the session, and win over those of later commands. What it stores is where it says."""
    new_session(machine)
    db = str(machine.base / "x.db")
    given = {"NUDGE_DB": db, "NUDGE_MAX_HINTS": "1", "NUDGE_SECRET_GUARD": "0", "NUDGE_PRIVATE_PROJECTS": "payroll"}
    done = machine.cli("remember", "Ports are in compose.yml", **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.path.exists(db) and not os.path.exists(os.path.join(machine.runtime, "nudge.db"))
    assert machine.cli("set", "c", "guard", SECRET, "--global", NUDGE_SECRET_GUARD="1").returncode == 0
    assert "E_QUOTA" in machine.cli("set", "c", "two", "v", "--global", NUDGE_MAX_HINTS="9").stderr
    assert settings(machine) == {"db": db, "max_hints": "1", "secret_guard": "0", "private_projects": "payroll"}
    assert machine.ready().port == int(machine.environ["NUDGE_PORT"])


def test_the_environment_of_a_command_in_a_session_that_lives(machine: Machine) -> None:
    """Its server has ended, and the command starts the next one: what is stored wins, and the command says so once; for
    the database, where notes go, each command says it."""
    machine.http_only("--max-hints", "7")
    machine.json("set", "c", "one", "v", "--global")
    stop(machine)
    started = machine.cli("ls", NUDGE_MAX_HINTS="9", NUDGE_DB="/nowhere/x.db")
    assert "Not taken: NUDGE_MAX_HINTS=9 (the server has 7), NUDGE_DB=/nowhere/x.db" in started.stderr
    assert machine.cli("ls", NUDGE_MAX_HINTS="9").stderr == ""
    elsewhere = machine.cli("remember", "x", NUDGE_MAX_HINTS="9", NUDGE_DB="/nowhere/x.db")
    assert elsewhere.returncode == 0 and "NUDGE_MAX_HINTS" not in elsewhere.stderr
    assert "the running server has another database. Not taken: NUDGE_DB=/nowhere/x.db" in elsewhere.stderr
    assert settings(machine) == {"max_hints": "7"} and machine.json("status")["hints"] == 1


def test_the_environment_of_a_command_after_the_session(machine: Machine) -> None:
    """The session ended with its last process, or was forgotten: the next one begins with its own settings."""
    new_session(machine)
    assert machine.cli("ls", NUDGE_SESSION_GRACE="0", NUDGE_MAX_HINTS="3").returncode == 0
    stop(machine)
    assert "Not taken" not in machine.cli("ls", NUDGE_MAX_HINTS="4").stderr
    assert settings(machine) == {"max_hints": "4"}
    assert machine.cli("stop", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server ends")
    assert "Not taken" not in machine.cli("ls", NUDGE_MAX_HINTS="5").stderr
    assert settings(machine) == {"max_hints": "5"}


FROM_A_REPOSITORY = {
    "NUDGE_AUTH": "0",
    "NUDGE_SECRET_GUARD": "0",
    "NUDGE_MAX_HINTS": "1",
    "NUDGE_PRIVATE_PROJECTS": "",
    "NUDGE_RETENTION": "command=1",
}
"""A client's settings in a repository may set the environment of its hooks and servers."""


def test_the_environment_of_a_hook(machine: Machine) -> None:
    """The server that it starts takes a database and a port from it, and nothing that weakens a server."""
    new_session(machine)
    db, port = str(machine.base / "x.db"), str(free_port())
    event = {"session_id": "s", "cwd": str(machine.base), "hook_event_name": "SessionStart", "source": "startup"}
    given = {**FROM_A_REPOSITORY, "NUDGE_DB": db, "NUDGE_PORT": port}
    done = machine.cli("record", stdin=json.dumps(event), **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.ready().port == int(port)
    assert machine.json("status")["settings"] == {"db": db, "port": port}


def test_the_environment_of_a_proxy_after_the_session(machine: Machine) -> None:
    """The same for the server that a PROXY starts when its session was forgotten."""
    machine.http_only("--max-hints", "7")
    proxy = proxy_of(machine, **FROM_A_REPOSITORY, NUDGE_DB=str(machine.base / "x.db"))
    assert machine.cli("stop", "--force", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server ends")
    assert set_hint(proxy, "guard", SECRET) == "E_SECRET_REJECTED"
    assert settings(machine) == {"db": str(machine.base / "x.db")}


# A server that starts


def test_the_first_server_keeps_the_role_from_its_first_answer(machine: Machine) -> None:
    """It is stopped as soon as it has answered `initialize`: a second one without flags does not take its place."""
    first = machine.serve("--max-hints", "7")
    first.initialize()
    os.kill(first.pid, signal.SIGSTOP)
    second = machine.serve()
    second.initialize()
    eventually(lambda: not machine.lock_is_free(), "the role is taken")
    os.kill(first.pid, signal.SIGCONT)
    eventually(lambda: machine.ready().pid == first.pid, "the first one serves")
    assert set_hint(second, "one") is None and settings(machine) == {"max_hints": "7"}


def test_a_server_that_dies_after_its_first_answer(machine: Machine) -> None:
    """What it was told is stored by then: the next server goes by it, whatever it is told itself."""
    first = machine.serve("--max-hints", "7", "--no-secret-guard", NUDGE_RETENTION=RETENTION)
    first.initialize()
    first.process.kill()
    first.process.wait()
    second = machine.serve("--max-hints", "9")
    second.initialize()
    assert set_hint(second, "guard", SECRET) is None
    assert settings(machine) == {"max_hints": "7", "secret_guard": "0", "retention": RETENTION}


def test_a_server_that_is_not_needed_leaves_no_settings(machine: Machine) -> None:
    """A client that only looks whether the server starts leaves nothing behind that a next one would go by as if it
    had crashed, and none without a token."""
    machine.http_only("--max-hints", "7")
    machine.json("set", "c", "one", "v", "--global")
    stop(machine)
    stored = config.read_stored(machine.runtime)
    looking = machine.serve("--max-hints", "9", "--no-auth")
    looking.initialize()
    looking.quit()
    eventually(machine.lock_is_free, "it has left")
    assert stored is not None and stored.values["max_hints"] == "7"
    after = config.read_stored(machine.runtime)
    assert after is not None and not after.is_starting and "auth" not in after.values


def test_private_projects_of_the_session(machine: Machine) -> None:
    """A caller that sets nothing, or another project, sees no more of what the session keeps private."""
    machine.http_only("--private-projects", "payroll")
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "cwd": str(machine.base / "payroll"),
        "tool_name": "Bash",
        "tool_input": {"command": "pay everyone"},
        "tool_response": {"stdout": ""},
    }
    (machine.base / "payroll").mkdir()
    (machine.base / "web").mkdir()
    assert machine.cli("record", stdin=json.dumps(event)).returncode == 0
    eventually(lambda: "pay" in machine.cli("search", "pay", "--project", "payroll").stdout, "it is recorded")
    web = str(machine.base / "web")
    for environ in ({}, {"NUDGE_PRIVATE_PROJECTS": ""}, {"NUDGE_PRIVATE_PROJECTS": "web"}):
        for words in (("recent", "--all-projects"), ("search", "pay"), ("sessions",), ("inject",)):
            assert "pay" not in machine.cli(*words, cwd=web, **environ).stdout
        agent = machine.serve(cwd=web, **environ)
        agent.initialize()
        assert agent.call("search", query="pay", project=None)["result"] == []
        assert agent.call("recent_context", project=None)["result"] == []


# After a clean end


def stop(machine: Machine) -> None:
    assert machine.cli("stop", "--force").returncode == 0
    eventually(machine.lock_is_free, "the server ends")


def settings(machine: Machine) -> dict[str, Any]:
    machine.json("ls")
    found: dict[str, Any] = machine.json("status")["settings"]
    return {name: text for name, text in found.items() if name not in ("port", "log_level")}


def test_what_outlives_a_clean_end(machine: Machine) -> None:
    """Quotas and places do; a server without token or guard is asked for each time."""
    machine.http_only("--no-auth", "--no-secret-guard", "--max-hints", "7")
    assert settings(machine) == {"auth": "0", "secret_guard": "0", "max_hints": "7"}
    stop(machine)
    assert settings(machine) == {"max_hints": "7"}
    assert "E_SECRET_REJECTED" in machine.cli("set", "c", "guard", SECRET, "--global").stderr


def test_what_a_new_start_takes(machine: Machine) -> None:
    """Flags, then variables, then what is stored, then config.toml, then the default; the outcome is stored."""
    file = machine.home / "config.toml"
    file.write_text("max_hints = 1\nidle_exit = 11\nsession_grace = 12\ndefault_ttl = 'PT3H'\n")
    machine.environ["NUDGE_CONFIG"] = str(file)
    machine.http_only("--max-hints", "7", "--idle-exit", "70", NUDGE_SESSION_GRACE="700")
    stop(machine)
    machine.http_only("--max-hints", "8", NUDGE_MAX_HINTS="9", NUDGE_IDLE_EXIT="90")
    assert settings(machine) == {"max_hints": "8", "idle_exit": "90", "session_grace": "700"}
    stop(machine)
    assert settings(machine) == {"max_hints": "8", "idle_exit": "90", "session_grace": "700"}
    stored = Path(machine.runtime, paths.SETTINGS)
    assert stored.stat().st_mode & 0o777 == 0o600 and "default_ttl" not in stored.read_text()


def test_a_switch_that_is_set_to_its_default(machine: Machine) -> None:
    """A variable wins over config.toml, and over what is stored, also for a server in the background."""
    file = machine.home / "config.toml"
    file.write_text("secret_guard = false\n")
    machine.environ["NUDGE_CONFIG"] = str(file)
    assert machine.cli("serve", "--daemon", "--cross-project", NUDGE_SECRET_GUARD="1").returncode == 0
    assert settings(machine) == {"secret_guard": "1", "cross_project": "1"}
    assert "E_SECRET_REJECTED" in machine.cli("set", "c", "guard", SECRET, "--global").stderr
    stop(machine)
    assert machine.cli("serve", "--daemon", NUDGE_CROSS_PROJECT="0").returncode == 0
    assert settings(machine)["cross_project"] == "0"


def test_a_forgotten_session_takes_its_settings_along(machine: Machine) -> None:
    """They belong to it."""
    machine.http_only("--max-hints", "7")
    assert machine.cli("stop", "--force", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server ends")
    assert settings(machine) == {}


# While a server runs


def test_differences_are_shown(machine: Machine) -> None:
    """`status` and `doctor` say what a process was told and the server does not go by; clients hide a server's
    stderr."""
    machine.http_only("--max-hints", "7")
    assert machine.json("status")["differences"] == []
    shown = machine.json("status", NUDGE_MAX_HINTS="9", NUDGE_DB="/x/y.db")["differences"]
    assert shown == ["NUDGE_MAX_HINTS=9 (the server has 7)", "NUDGE_DB=/x/y.db (the server has none)"]
    assert "NUDGE_MAX_HINTS=9 (the server has 7)" in machine.cli("status", NUDGE_MAX_HINTS="9").stdout
    assert "NUDGE_MAX_HINTS=9 (the server has 7)" in machine.cli("doctor", NUDGE_MAX_HINTS="9").stdout
    assert machine.json("ls", NUDGE_MAX_HINTS="9") is not None and settings(machine) == {"max_hints": "7"}


def test_a_proxy_reports_its_differences(machine: Machine) -> None:
    """The flags in a client's configuration are known to its PROXY alone."""
    machine.http_only("--max-hints", "7")
    proxy_of(machine, NUDGE_MAX_HINTS="9")

    def reported() -> list[str]:
        return [line for member in machine.json("status")["members"] for line in member.get("differs", [])]

    assert eventually(reported, "a member differs") == ["NUDGE_MAX_HINTS=9 (the server has 7)"]
    for verb in ("status", "doctor"):
        assert "NUDGE_MAX_HINTS=9 (the server has 7)" in machine.cli(verb).stdout


def test_a_line_of_the_file_that_the_session_does_not_use_is_reported(machine: Machine) -> None:
    """A flag of the first server is kept with the session and wins over config.toml, which may be edited later."""
    written = machine.home / "config.toml"
    machine.environ["NUDGE_CONFIG"] = str(written)
    machine.http_only("--max-hints", "7")
    written.write_text("max_hints = 9\n")
    line = "max_hints = 9 in config.toml (the session has 7)"
    assert machine.json("status")["differences"] == [line]
    assert line in machine.cli("doctor").stdout
    written.write_text("max_hints = 7\n")
    assert machine.json("status")["differences"] == []
    written.write_text('max_hints = "many"\n')
    assert "max_hints" in machine.json("status")["differences"][0]
    done = machine.cli("doctor", "--json")
    [found] = [found for found in json.loads(done.stdout)["findings"] if found["check"] == "settings"]
    assert done.returncode == 3 and found["level"] == "fail" and found["fix"] == f"${{EDITOR:-vi}} {written}"
    assert found["message"].startswith(f"max_hints in {written}: must be ")


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        ("{", "is damaged"),
        ('{"session": null, "settings": {"max_hints": "many"}}', "max_hints in settings.json must be"),
        ('{"session": null, "settings": {"color": "red"}}', "color in settings.json is not a setting"),
        ('{"session": null, "settings": {"tools": "all"}}', "tools in settings.json is not a setting"),
    ],
)
def test_what_cannot_be_read_is_ignored(machine: Machine, content: str, warning: str) -> None:
    """With a warning: a server that does not start helps nobody."""
    paths.ensure_private_dir(machine.runtime)
    stored = Path(machine.runtime, paths.SETTINGS)
    stored.write_text(content)
    stored.chmod(0o600)
    machine.http_only()
    assert any(warning in text for text in machine.json("status")["warnings"])
    assert set(machine.json("status")["settings"]) == {"port", "log_level"}


def test_flags_after_a_crash(machine: Machine) -> None:
    """The session goes on as it was told at first; whoever wins the lock with other flags is told what differs."""
    primary = machine.serve("--max-hints", "7")
    primary.initialize()
    machine.ready()
    os.kill(primary.pid, signal.SIGKILL)
    primary.process.wait()
    again = machine.serve("--max-hints", "9")
    again.initialize()
    assert settings(machine) == {"max_hints": "7"}
    again.close_stdin()
    assert again.process.stderr is not None
    assert "--max-hints=9 (the server has 7)" in again.process.stderr.read().decode()


def test_stored_settings_are_read_by_hooks(make_machine: Callable[..., Machine]) -> None:
    """The database that a hook looks into by itself, when no server runs, is the session's."""
    machine = make_machine()
    machine.http_only(NUDGE_DB=str(machine.base / "elsewhere.db"))
    assert config.database_file(machine.environ) == str(machine.base / "elsewhere.db")


def test_status_names_unknown_settings(machine: Machine) -> None:
    """A name in config.toml that is no setting is in the warnings of the server's status."""
    machine.environ["NUDGE_CONFIG"] = str(machine.base / "config.toml")
    (machine.base / "config.toml").write_text("max_hint = 3\n")
    machine.http_only()
    assert machine.json("status")["warnings"] == [
        "config.toml has names that are no settings: max_hint. fix: nudge doctor"
    ]
