"""`kill -9` of PRIMARY, again and again, under load."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
import urllib.request
from functools import partial
from statistics import median

from tests.crash.writers import Figures, Ledger, settle, start, wait_for_more, writing
from tests.harness import TIMEOUT, Machine, eventually

_SEED = 20_261_116
_AGAIN = 0.15  # how often the next PRIMARY is killed before anybody got an answer from it


def kill_under_load(kills: int = 200, writers: int = 8) -> Figures:
    """At random points, also while one is starting: none lost, none applied twice, per-key versions linear, no call
    failed."""
    chance = random.Random(_SEED)
    recoveries: list[float] = []
    machine = Machine()
    try:
        primary, clients = start(machine, writers)
        with writing(clients) as ledgers:
            victim = primary.pid
            for _ in range(kills):
                time.sleep(chance.random() * 0.15)  # a random point of the load: the fault itself
                again = chance.random() < _AGAIN
                victim = _kill(machine, victim, ledgers, None if again else recoveries)
            wait_for_more(ledgers, 5)
        figures = settle(machine, ledgers)
        recoveries.sort()
        p99 = recoveries[int(len(recoveries) * 0.99)]
        recovery = {"recovery_p50_s": round(median(recoveries), 2), "recovery_p99_s": round(p99, 2)}
        return {"kills": kills, "writers": writers, **figures, **recovery}
    finally:
        machine.close()


def _kill(machine: Machine, victim: int, ledgers: list[Ledger], recoveries: list[float] | None) -> int:
    """Kill; then let every writer have its next answer and note how long that took, or go for the next one as soon as
    it shows up."""
    began = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    if recoveries is not None:
        wait_for_more(ledgers)
        recoveries.append(time.monotonic() - began)
    result: int = eventually(partial(_next_victim, machine, victim, recoveries is None), "another PRIMARY", 30)
    return result


def _next_victim(machine: Machine, last: int, also_starting: bool) -> int | None:
    current = machine.endpoint()
    if (
        current is None
        or current.pid == last
        or not (current.state == "ready" or (also_starting and current.state == "starting"))
    ):
        return None
    return current.pid


def killed_while_http_loads(kills: int = 5) -> Figures:
    """PRIMARY is killed each time while the first connection to its port waits for the public port to be loaded:
    nothing is lost, no call fails, commands are answered, and the last server answers on its port."""
    machine = Machine()
    try:
        primary, clients = start(machine, 2)
        port, last = int(machine.environ["NUDGE_PORT"]), primary.pid
        with writing(clients) as ledgers:
            os.kill(last, signal.SIGKILL)
            for _ in range(kills):
                last = eventually(partial(_next_victim, machine, last, False), "the next PRIMARY")
                with socket.create_connection(("127.0.0.1", port)) as waiting:
                    waiting.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    os.kill(last, signal.SIGKILL)
                wait_for_more(ledgers)
            assert machine.json("set", "c", "k", "v", "--global")["hint"]["version"] == 1
            with urllib.request.urlopen(f"http://127.0.0.1:{machine.ready().port}/health", timeout=TIMEOUT) as answer:
                assert answer.status == 200
            wait_for_more(ledgers, 5)
        assert machine.ready().port == port
        return {"kills": kills, "port": "answers again", **settle(machine, ledgers)}
    finally:
        machine.close()


def smallest_case(kills: int = 10) -> Figures:
    """One PRIMARY and one PROXY."""
    return kill_under_load(kills, writers=1)
