"""Connections that say nothing, by the hundred, against a server that may have 256 file descriptors."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from nudge.core import limits
from nudge.process import endpoint
from tests.crash.starters import cpu_seconds
from tests.crash.writers import Figures
from tests.harness import NUDGE, Machine, eventually
from tests.security.served import Raw, post, rpc

DESCRIPTORS = 256


def idle_connections(connections: int = 364, commands: int = 20) -> Figures:
    """On the port: the owner is answered there and on the socket meanwhile, no core is used up, the log has one line
    about them."""
    machine = Machine()
    try:
        pid = _serve_with_few_descriptors(machine)
        port = machine.ready().port or 0
        most, before = 0, cpu_seconds(pid)
        with ExitStack() as held:
            for _ in range(connections):
                link = held.enter_context(socket.socket())
                link.setblocking(False)
                link.connect_ex(("127.0.0.1", port))
            eventually(lambda: _reported(machine), "the server logs that it takes no more connections")
            for number in range(commands):
                assert machine.json("set", "c", f"k{number}", "v", "--global")["hint"]["version"] == 1
                most = max(most, len(os.listdir(f"/proc/{pid}/fd")))
                assert _ask(machine, port) == 200
            assert most < DESCRIPTORS - limits.MAX_UNAUTHENTICATED_CONNECTIONS
            # The calls take milliseconds; the accept loop of asyncio would have used all the time that they took.
            used = cpu_seconds(pid) - before
            assert used < 1, f"{used} s of CPU"
            assert _reported(machine) == 1
        return {"connections": connections, "answered": commands, "descriptors": most, "cpu_s": round(used, 2)}
    finally:
        machine.close()


def silent_connections(connections: int = 400, commands: int = 20) -> Figures:
    """On the private socket, by the same user: commands are answered at once, a member stays, descriptors are left, the
    log has one line about them."""
    machine = Machine()
    try:
        pid = _serve_with_few_descriptors(machine)
        path = machine.ready().socket or ""
        member = machine.serve()
        member.initialize()
        eventually(lambda: len(machine.json("status")["members"]) == 1, "the PROXY is a member")
        log = Path(machine.runtime) / "log/nudge.log"
        most, size = 0, log.stat().st_size
        with ExitStack() as held:
            for _ in range(connections):
                link = held.enter_context(socket.socket(socket.AF_UNIX))
                link.connect(path)
            for number in range(commands):
                assert machine.json("set", "c", f"k{number}", "v", "--global")["hint"]["version"] == 1
                most = max(most, len(os.listdir(f"/proc/{pid}/fd")))
            assert member.call("nudge.get_hint", component="c", key="k0")["hint"]["value"] == "v"
            assert most < DESCRIPTORS * 3 // 4
            assert log.read_text().count("connections on the private wire") == 1
            assert log.stat().st_size - size < 10_000
        return {"connections": connections, "answered": commands, "descriptors": most}
    finally:
        machine.close()


def _ask(machine: Machine, port: int) -> int:
    token = endpoint.read_token(machine.runtime)
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as connection:
        return connection.ask(post("/", rpc("nudge.list_components", {}), token=token)).status


def _serve_with_few_descriptors(machine: Machine) -> int:
    command = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *NUDGE, "serve", "--http-only"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=machine.environ
    )
    machine.processes.append(process)
    return machine.ready().pid


def _reported(machine: Machine) -> int:
    return (Path(machine.runtime) / "log/nudge.log").read_text().count("connections on the port")
