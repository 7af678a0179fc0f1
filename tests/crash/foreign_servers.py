"""Another program on our port, one that claims to be our server, and a recycled pid."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading

from nudge import __version__
from nudge.core import paths
from nudge.process import endpoint
from tests.crash.writers import Figures
from tests.harness import Machine
from tests.processes import is_alive


class ForeignServer:
    """Listens on a port, answers everything like a PRIMARY would, and keeps what it was told."""

    def __init__(self, port: int = 0) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self.heard += link.recv(65_536)
            answer = {"nonce": "0" * 32, "proof": "0" * 64, "version": __version__, "id": 1, "result": {}}
            link.sendall(json.dumps(answer).encode() + b"\n")
            link.close()

    def close(self) -> None:
        self._listener.close()


def port_is_taken() -> Figures:
    """Another program holds the port: PRIMARY takes the next one, and everything works."""
    foreign = ForeignServer()
    machine = Machine(NUDGE_PORT=str(foreign.port))
    try:
        machine.json("set", "a", "b", "c", "--global")
        taken = machine.ready().port
        assert taken is not None and foreign.port < taken <= foreign.port + 99
        assert machine.json("get", "a", "b")["hint"]["value"] == "c"
        return {"wanted": foreign.port, "taken": taken}
    finally:
        machine.close()
        foreign.close()


def impostor_never_sees_the_token() -> Figures:
    """An endpoint file that points at an impostor's port gives it a nonce and nothing else."""
    machine = Machine(NUDGE_AUTOSTART="0")
    impostor = ForeignServer()
    try:
        paths.ensure_private_dir(machine.runtime)
        token = endpoint.ensure_token(machine.runtime)
        fake = endpoint.Endpoint(
            os.getpid(), impostor.port, None, "2026-01-01T00:00:00Z", "fake", __version__, endpoint.READY
        )
        fake.wire_port = impostor.port
        endpoint.publish(machine.runtime, fake)
        for arguments in (
            ("get", "a", "b"),
            ("set", "a", "b", "hello"),
            ("-p", str(impostor.port), "get", "a", "b"),
            ("status",),
        ):
            assert machine.cli(*arguments).returncode == 4
        assert token.encode() not in impostor.heard and b"hello" not in impostor.heard
        assert impostor.heard.count(b'{"nonce":') >= 3
        return {"token_seen": 0, "connections": impostor.heard.count(b"\n")}
    finally:
        impostor.close()
        machine.close()


def recycled_pid() -> Figures:
    """A stale endpoint whose pid now belongs to somebody else: nobody is killed or waited for, a new PRIMARY takes
    over."""
    machine = Machine()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        try:
            paths.ensure_private_dir(machine.runtime)
            gone = os.path.join(machine.runtime, "s-gone.sock")
            stale = endpoint.Endpoint(
                bystander.pid, 1, gone, "2026-01-01T00:00:00Z", "stale", __version__, endpoint.READY
            )
            endpoint.publish(machine.runtime, stale)
            assert machine.cli("stop", "--force").stdout == "no server is running\n"
            assert is_alive(bystander.pid)
            machine.json("set", "a", "b", "c", "--global")
            assert machine.ready().pid != bystander.pid and is_alive(bystander.pid)
            return {"killed": 0}
        finally:
            machine.close()
            bystander.kill()
