"""Writers that keep a ledger: what was acknowledged to them must be there at the end, once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.harness import Machine, Stdio, eventually

Figures = dict[str, Any]

_ROUND = 0.15  # seconds; a round of an agent takes less on an idle machine


@dataclass
class Ledger:
    """One writer's own key, and the versions that were acknowledged for it, in order."""

    key: str
    versions: list[int] = field(default_factory=list)
    failures: list[Any] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def _write(client: Stdio, ledger: Ledger, stop: threading.Event) -> None:
    while not stop.is_set():
        began = time.monotonic()
        result = client.tool("nudge_set_hint", component="load", key=ledger.key, value=ledger.key, meta={"scope": {}})
        ledger.seconds.append(time.monotonic() - began)
        if result.get("isError"):
            ledger.failures.append(result["structuredContent"])
        else:
            ledger.versions.append(result["structuredContent"]["hint"]["version"])


@contextmanager
def writing(clients: list[Stdio]) -> Iterator[list[Ledger]]:
    """Each client writes its own key in a loop until the block ends."""
    ledgers = [Ledger(f"k{number}") for number in range(len(clients))]
    stop = threading.Event()
    threads = [
        threading.Thread(target=_write, args=(c, ledger, stop)) for c, ledger in zip(clients, ledgers, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield ledgers
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def wait_for_more(ledgers: list[Ledger], more: int = 1) -> None:
    """Until every writer has had `more` answers since now."""
    targets = [len(ledger.seconds) + more for ledger in ledgers]
    eventually(
        lambda: all(len(ledger.seconds) >= target for ledger, target in zip(ledgers, targets, strict=True)),
        "writers go on",
        60,
    )


def settle(machine: Machine, ledgers: list[Ledger]) -> Figures:
    """Hold every ledger against the store: nothing lost, nothing applied twice, versions linear, no call failed."""
    for ledger in ledgers:
        assert ledger.failures == [], ledger.failures[:2]
        assert ledger.versions == list(range(1, len(ledger.versions) + 1)), f"{ledger.key}: versions are not linear"
        kept = machine.json("get", "load", ledger.key)["hint"]["version"]
        assert kept == len(ledger.versions), f"{ledger.key}: {len(ledger.versions)} acknowledged, {kept} kept"
    seconds = sorted(second for ledger in ledgers for second in ledger.seconds)
    return {
        "acks": sum(len(ledger.versions) for ledger in ledgers),
        "lost": 0,
        "twice": 0,
        "failed": 0,
        "p99_s": round(seconds[int(len(seconds) * 0.99)], 3),
        "worst_s": round(seconds[-1], 3),
    }


def start(machine: Machine, proxies: int) -> tuple[Stdio, list[Stdio]]:
    """A PRIMARY inside a client, and PROXYs beside it."""
    primary = machine.serve()
    primary.initialize()
    machine.ready()
    clients = [machine.serve() for _ in range(proxies)]
    for client in clients:
        client.initialize()
    return primary, clients


Work = Callable[[int, Stdio, list[Any], list[Any], threading.Event], None]
"""What an agent does in rounds until the event is set: its number, its client, the rounds it completed, failures."""


def rounds_under_kills(machine: Machine, work: Work, *, agents: int, kills: int, seed: int) -> list[Any]:
    """Let agents behind PROXYs work while PRIMARY is killed at random points. Return every completed round; no call may
    fail."""
    chance = random.Random(seed)
    _, clients = start(machine, agents)
    stop = threading.Event()
    rounds: list[list[Any]] = [[] for _ in clients]
    failures: list[Any] = []
    threads = [
        threading.Thread(target=work, args=(number, client, rounds[number], failures, stop))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        _wait_for_a_round(rounds)
        time.sleep(chance.random() * _ROUND)  # a random point of a call: the fault itself
        os.kill(machine.ready().pid, signal.SIGKILL)
    _wait_for_a_round(rounds)
    stop.set()
    for thread in threads:
        thread.join(120)
    assert failures == [], failures[:2]
    return [one for completed in rounds for one in completed]


def _wait_for_a_round(rounds: list[list[Any]]) -> None:
    targets = [len(completed) + 1 for completed in rounds]
    eventually(
        lambda: all(len(completed) >= target for completed, target in zip(rounds, targets, strict=True)),
        "agents go on",
        60,
    )
