"""A disk without room: hints are served from memory, every interface says so, and with room again they are kept."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from nudge.process import endpoint
from tests.harness import NUDGE, Machine, eventually

NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_CAN_CHANGE_LIMITS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes limits of another process")


def _no_room() -> None:
    """Files can be created, and nothing written to them, by this process and those that it starts."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


@pytest.fixture
def run(machine: Machine) -> Callable[..., subprocess.CompletedProcess[str]]:
    os.mkdir(machine.runtime, 0o700)

    def run(*words: str, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        """A command for which, and for whose server, the disk has no room."""
        done = subprocess.run(
            [*NUDGE, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=machine.environ,
            cwd=machine.base,
            preexec_fn=_no_room,
            check=False,
        )
        assert done.returncode == code and "Traceback" not in done.stderr, done
        return done

    return run


def test_hints_live_in_memory_and_status_and_doctor_say_so(
    machine: Machine, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """One server, which all commands find although its endpoint has no room; notes are refused with the reason."""
    said = run("set", "api", "test", "make test", "--global")
    assert "in memory only" in said.stdout
    assert "make test" in run("get", "api", "test").stdout
    status = machine.json("status")
    assert (status["durability"], status["hints"], status["owner"]) == ("none", 1, "detached")
    assert "changes.log cannot be used" in status["warnings"][0] and "memory only" in status["warnings"][0]
    assert "hints are kept in memory only" in run("doctor", code=3).stdout
    assert "E_STORAGE" in run("remember", "a note", code=3).stderr
    run("bump", "api", "test")
    assert [entry["key"] for entry in machine.json("query", "--component", "api")["hints"]] == ["test"]
    assert len([pid for pid in machine.pids() if pid == status["pid"]]) == 1
    agent = machine.serve()
    agent.initialize()
    assert agent.call("nudge_get_hint", component="api", key="test")["hint"]["value"] == "make test"
    agent.quit()
    stopped = run("stop").stdout
    assert "1 hint in its memory is gone" in stopped


@_CAN_CHANGE_LIMITS
def test_with_room_again_hints_are_kept(machine: Machine, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """The server writes its files as soon as it can; what was set in memory outlives it, killed at that."""
    run("set", "api", "test", "make test", "--global")
    first: Any = endpoint.read(machine.runtime)
    assert not endpoint.is_complete(machine.runtime)
    resource.prlimit(first.pid, resource.RLIMIT_FSIZE, NO_LIMIT)
    eventually(lambda: machine.json("status")["durability"] == "process", "the change log is written")
    eventually(lambda: endpoint.is_complete(machine.runtime), "the endpoint is written")
    assert machine.json("status")["warnings"] == []
    assert machine.cli("remember", "a note").returncode == 0
    os.kill(first.pid, 9)
    assert machine.json("get", "api", "test")["hint"]["value"] == "make test"
    assert machine.json("status")["pid"] != first.pid


@_CAN_CHANGE_LIMITS
def test_a_stop_keeps_what_it_can(machine: Machine, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """A stop tries to write once more what is in memory only, and does not say that it is gone."""
    run("set", "api", "test", "make test", "--global")
    first: Any = endpoint.read(machine.runtime)
    resource.prlimit(first.pid, resource.RLIMIT_FSIZE, NO_LIMIT)
    assert "hints stay for the session" in machine.cli("stop").stdout
    assert machine.json("get", "api", "test")["hint"]["value"] == "make test"
