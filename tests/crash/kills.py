"""`kill -9` of PRIMARY, again and again, under load."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial

from tests.crash.writers import Figures, settle, start, wait_for_more, writing
from tests.harness import Machine, eventually

_SEED = 20_261_116


def kill_under_load(kills: int = 200, writers: int = 8) -> Figures:
    """At random points, also while one is starting: none lost, none applied twice, per-key versions linear, no call failed."""
    chance = random.Random(_SEED)
    machine = Machine()
    try:
        primary, clients = start(machine, writers)
        with writing(clients) as ledgers:
            victim = primary.pid
            for _ in range(kills):
                time.sleep(chance.random() * 0.15)  # a random point of the load: the fault itself
                os.kill(victim, signal.SIGKILL)
                victim = eventually(partial(_next_victim, machine, victim, chance.random() < 0.1), "another PRIMARY", 30)
            wait_for_more(ledgers, 5)
        figures = settle(machine, ledgers)
        assert figures["p99_s"] <= 2.0 or kills < 50, f"p99 of a call under kills: {figures['p99_s']} s"
        return {"kills": kills, "writers": writers, **figures}
    finally:
        machine.close()


def _next_victim(machine: Machine, last: int, also_starting: bool) -> int | None:
    current = machine.endpoint()
    if current is None or current.pid == last or not (current.state == "ready" or (also_starting and current.state == "starting")):
        return None
    return current.pid


def smallest_case(kills: int = 10) -> Figures:
    """One PRIMARY and one PROXY."""
    return kill_under_load(kills, writers=1)
