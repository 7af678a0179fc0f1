"""`nudge.get_hint` over HTTP against an empty aiohttp handler, and among many hints against among few."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from nudge import limits
from nudge.ipc import endpoint
from tests.bench import budgets, hints
from tests.bench.report import Row
from tests.bench.timing import ratio, resident_mb, take_turns
from tests.harness import ROOT, Machine

_ROUNDS, _SECONDS = 7, 0.6
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class _Load:
    """One server under load from so many connections; measures requests a second, and keeps what each cost the
    server."""

    pid: int
    port: int
    token: str
    connections: int
    costs: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        before = _cpu_seconds(self.pid)
        command = [sys.executable, "-m", "tests.bench.load", str(self.port), str(self.connections), str(_SECONDS)]
        done = subprocess.run(command, input=self._request(), capture_output=True, cwd=ROOT, check=True)
        result = json.loads(done.stdout)
        self.costs.append((_cpu_seconds(self.pid) - before) / result["requests"])
        return float(result["requests"] / result["seconds"])

    def _request(self) -> bytes:
        body = hints.request("nudge.get_hint", component=hints.COMPONENT, key=hints.KEY, context=hints.CONTEXT)
        head = (
            f"POST / HTTP/1.1\r\nHost: localhost:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def requests(machine: Machine) -> Iterator[Row]:
    small = Machine()
    try:
        empty = _start_empty(machine)
        many, few = _start(machine, limits.MAX_HINTS), _start(small, hints.FEW)
        yield from _compared(empty, many, few)
    finally:
        small.close()


def _compared(empty: tuple[int, int, str], many: tuple[int, int, str], few: tuple[int, int, str]) -> Iterator[Row]:
    loads = {
        "empty 1": _Load(*empty, 1),
        "many 1": _Load(*many, 1),
        "few 1": _Load(*few, 1),
        "empty 8": _Load(*empty, 8),
        "many 8": _Load(*many, 8),
    }
    samples = take_turns(loads, _ROUNDS)
    for connections, words in ((1, "1 connection"), (8, "8 connections")):
        subject, baseline = f"many {connections}", f"empty {connections}"
        cost = f"{_microseconds(loads[subject])}, empty {_microseconds(loads[baseline])}; {resident_mb(many[0]):.0f} MB"
        yield Row(
            "http",
            f"get_hint of {limits.MAX_HINTS:,}, {words}",
            ratio(samples, subject, baseline),
            budgets.REQUESTS,
            "x",
            f"empty handler {median(samples[baseline]):,.0f}/s",
            cost,
            at_least=True,
        )
    flat = median(loads["many 1"].costs) / median(loads["few 1"].costs)
    what = f"get_hint cost, {limits.MAX_HINTS:,} against {hints.FEW} hints"
    yield Row("http", what, flat, budgets.FLATNESS, "x", f"{hints.FEW} hints {_microseconds(loads['few 1'])}")


def _microseconds(load: _Load) -> str:
    return f"{median(load.costs) * 1e6:.0f} us CPU a request"


def _start(machine: Machine, count: int) -> tuple[int, int, str]:
    """A PRIMARY with so many hints: its pid, its port, its token."""
    published = machine.http_only()
    assert machine.json("import", "-", stdin=json.dumps(hints.payload(count)))["imported"] == count
    assert published.port is not None
    return published.pid, published.port, endpoint.read_token(machine.runtime) or ""


def _start_empty(machine: Machine) -> tuple[int, int, str]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("empty_server.py"))], stdout=subprocess.PIPE, env=machine.environ
    )
    machine.processes.append(process)
    assert process.stdout is not None
    return process.pid, int(process.stdout.readline()), "none"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
