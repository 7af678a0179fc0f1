"""Writers that keep a ledger: what was acknowledged to them must be there at the end, once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.harness import Machine, Stdio, eventually

Figures = dict[str, Any]


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
