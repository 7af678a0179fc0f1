"""`nudge.get_hint` over HTTP and over the private wire, against an empty aiohttp handler; among many hints and few."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from nudge.core import limits
from nudge.process import endpoint
from tests.bench import budgets, hints
from tests.bench.report import Row
from tests.bench.timing import ratio, resident_mb, take_turns
from tests.harness import ROOT, Machine

_ROUNDS, _SECONDS = 7, 0.6
_TICKS = os.sysconf("SC_CLK_TCK")
_INTERFACES = {"http": ("public HTTP", budgets.HTTP_REQUESTS), "wire": ("the private wire", budgets.WIRE_REQUESTS)}


@dataclass(frozen=True, slots=True)
class _Server:
    pid: int
    address: str
    """A port, or the path of a socket."""
    request: bytes


@dataclass
class _Load:
    """One server under load from a number of connections: requests a second, and what each cost the server."""

    server: _Server
    connections: int
    costs: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        before = _cpu_seconds(self.server.pid)
        command = [sys.executable, "-m", "tests.bench.load", self.server.address, str(self.connections), str(_SECONDS)]
        done = subprocess.run(command, input=self.server.request, capture_output=True, cwd=ROOT, check=True)
        result = json.loads(done.stdout)
        self.costs.append((_cpu_seconds(self.server.pid) - before) / result["requests"])
        return float(result["requests"] / result["seconds"])

    @property
    def cost(self) -> str:
        return f"{median(self.costs) * 1e6:.0f} us CPU a request"


def requests(machine: Machine) -> Iterator[Row]:
    small = Machine()
    try:
        servers = {"empty": _start_empty(machine)}
        servers["http"], servers["wire"] = _start(machine, limits.MAX_HINTS)
        servers["http few"], servers["wire few"] = _start(small, hints.FEW)
        yield from _compare(servers)
    finally:
        small.close()


def _compare(servers: dict[str, _Server]) -> Iterator[Row]:
    loads = {
        f"{name} {connections}": _Load(server, connections)
        for name, server in servers.items()
        for connections in (1, 8)
    }
    samples = take_turns(loads, _ROUNDS)
    for interface, (words, budget) in _INTERFACES.items():
        for connections in (1, 8):
            subject, baseline = f"{interface} {connections}", f"empty {connections}"
            cost = f"{loads[subject].cost}, empty {loads[baseline].cost}; {resident_mb(servers[interface].pid):.0f} MB"
            yield Row(
                "http",
                f"get_hint of {limits.MAX_HINTS:,} over {words}, connections: {connections}",
                ratio(samples, subject, baseline),
                budget,
                "x",
                f"empty handler {median(samples[baseline]):,.0f}/s",
                cost,
                at_least=True,
            )
        flat = median(loads[f"{interface} 8"].costs) / median(loads[f"{interface} few 8"].costs)
        what = f"get_hint cost over {words}, {limits.MAX_HINTS:,} against {hints.FEW} hints"
        yield Row("http", what, flat, budgets.FLATNESS, "x", f"{hints.FEW} hints {loads[f'{interface} few 8'].cost}")


def _start(machine: Machine, count: int) -> tuple[_Server, _Server]:
    """A PRIMARY with so many hints, by its port and by its socket."""
    published = machine.http_only()
    assert machine.json("import", "-", stdin=json.dumps(hints.payload(count)))["imported"] == count
    assert published.socket is not None
    params = {"component": hints.COMPONENT, "key": hints.KEY, "context": hints.CONTEXT}
    lines = ({"hello": 1, "client": "bench"}, {"id": 1, "op": "nudge.get_hint", "params": params})
    wire = "".join(json.dumps(line) + "\n" for line in lines).encode()
    token = endpoint.read_token(machine.runtime) or ""
    http = _http_request(token)
    return _Server(published.pid, str(published.port), http), _Server(published.pid, published.socket, wire)


def _start_empty(machine: Machine) -> _Server:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("empty_server.py"))], stdout=subprocess.PIPE, env=machine.environ
    )
    machine.processes.append(process)
    assert process.stdout is not None
    return _Server(process.pid, process.stdout.readline().decode().strip(), _http_request("none"))


def _http_request(token: str) -> bytes:
    body = hints.request("nudge.get_hint", component=hints.COMPONENT, key=hints.KEY, context=hints.CONTEXT)
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
