"""A PRIMARY that watches its own event loop, and the requests and files that are to hold it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.client import HTTPConnection

from nudge.process import endpoint
from nudge.process.endpoint import Endpoint
from tests.harness import ROOT, Machine, eventually

_FIRST_WORDS = 400  # bytes of an answer
_TICKS = os.sysconf("SC_CLK_TCK")


class Watched:
    """The watched PRIMARY of a machine, and a connection to it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.watched_primary"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=machine.environ,
            cwd=ROOT,
        )
        machine.processes.append(self._process)
        self._published: Endpoint = machine.ready()

    def ask(self, body: bytes, expected: bytes, verb: str = "POST", path: str = "/") -> None:
        """Over HTTP, as somebody with a stolen token would. `expected` is in the first words of the answer: an attack
        that is turned away at the interface measures the interface."""
        link = HTTPConnection("127.0.0.1", self._published.port, timeout=300)
        token = endpoint.read_token(self._machine.runtime)
        link.request(verb, path, body, {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
        answer = link.getresponse().read()
        assert expected in answer[:_FIRST_WORDS], answer[:_FIRST_WORDS]
        link.close()

    def command(self, *words: str, stdin: str = "") -> str:
        """Over the private wire, through a file where it is large."""
        done = self._machine.cli(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def gap(self) -> dict[str, float]:
        """The longest since the last time, in milliseconds; only once the log, if it is being compacted, is whole
        again."""
        eventually(
            lambda: not any(name.endswith(".tmp") for name in os.listdir(self._machine.runtime)), "the log is compacted"
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b".")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._process.stdout.readline())
        return told

    def processor_seconds(self) -> float:
        """What the process has used until now, in all its threads (Linux)."""
        with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
