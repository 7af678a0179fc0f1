"""What callers notice when PRIMARY dies, or leaves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from nudge.process import endpoint
from tests.bench import budgets
from tests.bench.report import Row, milliseconds
from tests.bench.timing import Samples, ratio
from tests.crash import starters
from tests.harness import TIMEOUT, Machine, Stdio, eventually

_KILLS, _WAITING, _STARTERS, _HANDOVERS, _PROXIES = 10, 20, 40, 5, 3
_HINT = {"component": "api", "key": "test"}
_GET = {"name": "nudge_get_hint", "arguments": _HINT}


@dataclass
class _Calls:
    """Calls that were made: how long each took, and which failed."""

    seconds: list[float] = field(default_factory=list)
    failures: list[Any] = field(default_factory=list)

    def measure(self, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        try:
            return call()
        except AssertionError as failed:
            self.failures.append(failed)
        finally:
            self.seconds.append(time.perf_counter() - began)


def killed(machine: Machine) -> Iterator[Row]:
    """`kill -9` of PRIMARY, then one call: through a PROXY that was connected to it, through each of many, or through
    a fresh command."""
    machine.http_only()
    proxies = [machine.serve() for _ in range(_WAITING)]
    for proxy in proxies:
        proxy.initialize()
    through_proxy, through_many, through_cli = _Calls(), _Calls(), _Calls()
    lost, first = 0, proxies[0]

    def ask_one() -> Any:
        return first.call("nudge_get_hint", **_HINT)

    def ask_all() -> Any:
        return _ask_all(proxies)

    def ask_cli() -> Any:
        return machine.json("get", _HINT["component"], _HINT["key"])

    rounds: Samples = {"core": [], "one": [], "many": [], "cli": []}
    for _ in range(_KILLS):
        rounds["core"].append(_core_start())
        for calls, ask in ((through_proxy, ask_one), (through_many, ask_all), (through_cli, ask_cli)):
            lost += _kill_and_ask(machine, first, calls, ask)
        rounds["one"].append(through_proxy.seconds[-1])
        rounds["many"].append(through_many.seconds[-1])
        rounds["cli"].append(through_cli.seconds[-1])
    core = f"core {milliseconds(median(rounds['core']))}"
    for what, name, budget in (
        ("kill -9 to next answer, through a PROXY", "one", budgets.FAILOVER),
        (f"kill -9 until {_WAITING} waiting PROXYs are answered", "many", budgets.FAILOVER_OF_MANY),
        ("kill -9 to next answer, through the CLI", "cli", budgets.FAILOVER),
    ):
        note = f"{milliseconds(median(rounds[name]))}, worst {milliseconds(max(rounds[name]))}"
        yield Row("kill", what, ratio(rounds, name, "core"), budget, "x", core, note)
    failed = sum(len(calls.failures) for calls in (through_proxy, through_many, through_cli))
    yield Row("kill", "calls that failed", failed, budgets.FAILED, "", f"{3 * _KILLS} kills")
    yield Row("kill", "acknowledged writes that were lost", lost, budgets.FAILED, "", f"{3 * _KILLS} writes")
    starts = starters.waiting_proxies(_STARTERS)["starts"]
    yield Row("kill", f"servers that {_STARTERS} waiting PROXYs start", starts, budgets.STARTS, "")


def _core_start() -> float:
    """Seconds from the start of `nudge serve --detach` to its first answer on the socket, in a directory of its own."""
    machine = Machine()
    try:
        began = time.perf_counter()
        machine.spawn("serve", "--detach", environ={}, stdin=subprocess.DEVNULL)
        while not _answers(machine):
            time.sleep(0.002)
        return time.perf_counter() - began
    finally:
        machine.close()


def _answers(machine: Machine) -> bool:
    published = machine.endpoint()
    if published is None or published.state != endpoint.READY or published.socket is None:
        return False
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(TIMEOUT)
        link.connect(published.socket)
        link.sendall(b'{"hello":1}\n{"id":1,"op":"nudge.list_components","params":{}}\n')
        with link.makefile("rb") as answers:
            return b"hello" in answers.readline() and b"result" in answers.readline()


def _ask_all(proxies: list[Stdio]) -> Any:
    """Every one asks at once; the answer of the last."""
    for proxy in proxies:
        proxy.send({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": _GET})
    answers = [proxy.receive() for proxy in proxies]
    assert not any(answer["result"]["isError"] for answer in answers), answers
    return answers[-1]["result"]["structuredContent"]


def _kill_and_ask(machine: Machine, proxy: Stdio, calls: _Calls, ask: Callable[[], Any]) -> bool:
    """True when the write that was acknowledged right before the end is gone."""
    written = proxy.call("nudge_set_hint", **_HINT, value="pytest -q", meta={"scope": {}})["hint"]["version"]
    os.kill(machine.ready().pid, signal.SIGKILL)
    answer = calls.measure(ask)
    return bool(answer is not None and answer["hint"]["version"] != written)


def graceful(machine: Machine) -> Iterator[Row]:
    """PRIMARY's client leaves while the clients of three PROXYs call in a loop."""
    calls, leaving = _Calls(), list[float]()
    core = f"core {milliseconds(_core_start())}"
    for _ in range(_HANDOVERS):
        _hand_over(machine, calls, leaving)
        _end_all(machine)
    yield _worst("handover", "graceful hand-over, worst call", calls, budgets.CALL_IN_HANDOVER, core)
    yield Row("handover", "calls that failed", len(calls.failures), budgets.FAILED, "", f"{len(calls.seconds):,} calls")
    yield Row("handover", "PRIMARY gone after its client", max(leaving), budgets.LEAVING, "s", f"{_HANDOVERS} times")


def _hand_over(machine: Machine, calls: _Calls, leaving: list[float]) -> None:
    primary = machine.serve()
    primary.initialize()
    old = machine.ready().pid
    proxies = [machine.serve() for _ in range(_PROXIES)]
    for proxy in proxies:
        proxy.initialize()
        proxy.call("nudge_set_hint", **_HINT, value="pytest -q", meta={"scope": {}})
    stop = threading.Event()
    threads = [threading.Thread(target=_call_in_loop, args=(proxy, calls, stop)) for proxy in proxies]
    for thread in threads:
        thread.start()
    leaving.append(_seconds_to_end(primary))
    eventually(lambda: machine.ready().pid != old, "the successor is PRIMARY")
    _await_more(calls, 100)
    stop.set()
    for thread in threads:
        thread.join()


def _call_in_loop(proxy: Stdio, calls: _Calls, stop: threading.Event) -> None:
    while not stop.is_set():
        calls.measure(lambda: proxy.call("nudge_get_hint", **_HINT))


def _seconds_to_end(primary: Stdio) -> float:
    began = time.perf_counter()
    primary.close_stdin()
    primary.process.wait()
    return time.perf_counter() - began


def _await_more(calls: _Calls, more: int) -> None:
    """The successor serves, and every caller has come to it."""
    enough = len(calls.seconds) + more
    eventually(lambda: len(calls.seconds) >= enough, "calls go on")


def _end_all(machine: Machine) -> None:
    """An empty directory again for the next round; the detached successor goes with `stop`."""
    assert machine.cli("stop", "--force").returncode == 0
    for process in machine.processes:
        process.kill()
    eventually(lambda: not machine.pids(), "every process ends")


def _worst(group: str, what: str, calls: _Calls, budget: float, baseline: str) -> Row:
    """An absolute time, so the baseline tells how fast the machine was."""
    note = f"median of {len(calls.seconds):,} {median(calls.seconds):.3f} s"
    return Row(group, what, max(calls.seconds), budget, "s", baseline, note)
