"""Connections without a token, by the hundred, against a server that may have 256 file descriptors."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nudge import limits
from nudge.ipc import endpoint
from tests.harness import NUDGE, Machine, eventually
from tests.security.served import Raw, post, rpc

DESCRIPTORS = 256
STRANGERS = 364
_TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def poor(machine: Machine) -> Machine:
    """A machine whose server may open few files."""
    command = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *NUDGE, "serve", "--http-only"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=machine.environ
    )
    machine.processes.append(process)
    machine.ready()
    return machine


@pytest.fixture
def strangers(poor: Machine) -> Iterator[ExitStack]:
    """Connections that say nothing; closed by the test, or at its end."""
    with ExitStack() as held:
        for _ in range(STRANGERS):
            link = held.enter_context(socket.socket())
            link.setblocking(False)
            link.connect_ex(("127.0.0.1", poor.ready().port or 0))
        yield held


def open_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def test_idle_strangers_shut_nobody_out(poor: Machine, strangers: ExitStack) -> None:
    """The owner is answered on the socket while they wait, no core is burnt, the log has one line about them, and the
    port answers again when they are gone."""
    pid = poor.ready().pid
    eventually(lambda: "connections on the port" in log_of(poor), "the door is full, and says so")
    before = cpu_seconds(pid)
    most = 0
    for number in range(20):
        assert poor.json("set", "c", f"k{number}", "v", "--global")["hint"]["version"] == 1
        most = max(most, open_descriptors(pid))
    assert most < DESCRIPTORS - limits.MAX_UNAUTHENTICATED_CONNECTIONS
    # 20 calls take milliseconds; the accept loop of asyncio would have used all the time that these commands took.
    assert cpu_seconds(pid) - before < 1
    assert log_of(poor).count("connections on the port") == 1
    strangers.close()
    token = endpoint.read_token(poor.runtime)
    with Raw(socket.create_connection(("127.0.0.1", poor.ready().port or 0), 60)) as link:
        assert link.ask(post("/", rpc("nudge.list_components", {}), token=token)).status == 200


def log_of(machine: Machine) -> str:
    return (Path(machine.runtime) / "log/nudge.log").read_text()
