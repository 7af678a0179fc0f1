"""What callers notice when PRIMARY dies, or leaves."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.bench import budgets
from tests.bench.report import Row
from tests.bench.starts import minimal_server
from tests.harness import Machine, Stdio, eventually

_KILLS, _HANDOVERS, _PROXIES = 10, 5, 3
_HINT = {"component": "api", "key": "test"}


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
    """`kill -9` of PRIMARY, then one call: through a PROXY that was connected to it, or through a fresh command."""
    machine.http_only()
    proxy = machine.serve()
    proxy.initialize()
    through_proxy, through_cli, minimal = _Calls(), _Calls(), _Calls()
    lost = 0
    for _ in range(_KILLS):
        minimal.measure(minimal_server(machine))
        lost += _kill_and_ask(machine, proxy, through_proxy, lambda: proxy.call("nudge_get_hint", **_HINT))
        lost += _kill_and_ask(
            machine, proxy, through_cli, lambda: machine.json("get", _HINT["component"], _HINT["key"])
        )
    for words, calls in (("through a PROXY", through_proxy), ("through the CLI", through_cli)):
        yield _worst("kill", f"kill -9 to next answer, {words}", calls, budgets.ANSWER_AFTER_KILL, minimal)
    failed = len(through_proxy.failures) + len(through_cli.failures)
    yield Row("kill", "calls that failed", failed, budgets.FAILED, "", f"{2 * _KILLS} kills")
    yield Row("kill", "acknowledged writes that were lost", lost, budgets.FAILED, "", f"{2 * _KILLS} writes")


def _kill_and_ask(machine: Machine, proxy: Stdio, calls: _Calls, ask: Callable[[], Any]) -> bool:
    """True when the write that was acknowledged right before the end is gone."""
    written = proxy.call("nudge_set_hint", **_HINT, value="pytest -q", meta={"scope": {}})["hint"]["version"]
    os.kill(machine.ready().pid, signal.SIGKILL)
    answer = calls.measure(ask)
    return bool(answer is not None and answer["hint"]["version"] != written)


def graceful(machine: Machine) -> Iterator[Row]:
    """PRIMARY's client leaves while the clients of three PROXYs call in a loop."""
    calls, minimal, leaving = _Calls(), _Calls(), list[float]()
    for _ in range(_HANDOVERS):
        minimal.measure(minimal_server(machine))
        _hand_over(machine, calls, leaving)
        _end_all(machine)
    yield _worst("handover", "graceful hand-over, worst call", calls, budgets.CALL_IN_HANDOVER, minimal)
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


def _worst(group: str, what: str, calls: _Calls, budget: float, minimal: _Calls) -> Row:
    """An absolute time, so the baseline tells how fast the machine was: a new PRIMARY cannot start sooner than the
    `mcp` SDK does."""
    baseline = f"minimal mcp server {median(minimal.seconds):.2f} s"
    note = f"median of {len(calls.seconds):,} {median(calls.seconds):.3f} s"
    return Row(group, what, max(calls.seconds), budget, "s", baseline, note)
