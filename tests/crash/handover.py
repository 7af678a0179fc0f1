"""The role moves when PRIMARY's client leaves, however it leaves and whoever dies on the way."""

from __future__ import annotations

import os
import signal
import threading
import time

from nudge.core.limits import LEAVE_TIMEOUT
from tests.crash.writers import Figures, Ledger, settle, start, wait_for_more, writing
from tests.harness import Machine, Stdio, eventually
from tests.processes import is_alive


def _exit_seconds(client: Stdio) -> list[float]:
    """Filled with the time from now to the process's exit."""
    seconds: list[float] = []
    began = time.monotonic()

    def measure() -> None:
        client.process.wait()
        seconds.append(time.monotonic() - began)

    threading.Thread(target=measure).start()
    return seconds


def _leave(rounds: int, how: str) -> Figures:
    worst_exit, figures, worst_call = 0.0, {}, 0.0
    acks = 0
    for _ in range(rounds):
        machine = Machine()
        try:
            primary, clients = start(machine, 5)
            with writing(clients) as ledgers:
                wait_for_more(ledgers, 10)
                seconds = _exit_seconds(primary)
                if how == "eof":
                    primary.close_stdin()
                else:
                    os.killpg(primary.pid, signal.SIGTERM)
                eventually(lambda seconds=seconds: seconds, "the old process is gone")  # type: ignore[misc]
                wait_for_more(ledgers, 10)
            figures = settle(machine, ledgers)
            worst_exit, worst_call, acks = (
                max(worst_exit, seconds[0]),
                max(worst_call, figures["worst_s"]),
                acks + figures["acks"],
            )
            assert machine.json("status")["owner"] == "detached"
        finally:
            machine.close()
    assert worst_exit <= LEAVE_TIMEOUT, f"the old process lived for {worst_exit:.2f} s"
    return {
        "rounds": rounds,
        "acks": acks,
        "lost": 0,
        "failed": 0,
        "worst_exit_s": round(worst_exit, 2),
        "worst_call_s": worst_call,
    }


def client_closes_stdin(rounds: int = 5) -> Figures:
    """PRIMARY's client closes stdin while five PROXYs call: latency, not errors; the old process is gone within 1.5
    s."""
    return _leave(rounds, "eof")


def sigterm_to_the_group(rounds: int = 3) -> Figures:
    """The same with SIGTERM to PRIMARY's process group."""
    return _leave(rounds, "sigterm")


def _kill_during(delay: float, whom: str) -> list[Ledger]:
    machine = Machine()
    try:
        primary, clients = start(machine, 2)
        with writing(clients) as ledgers:
            wait_for_more(ledgers, 5)
            before = set(machine.pids())
            primary.close_stdin()
            victim = primary.pid if whom == "old" else _successor(machine, before)
            time.sleep(
                delay
            )  # the point in the hand-over at which the blow falls: this is the fault, not a wait for anything
            if is_alive(victim):
                os.kill(victim, signal.SIGKILL)
            wait_for_more(ledgers, 10)
        settle(machine, ledgers)
        return ledgers
    finally:
        machine.close()


def _successor(machine: Machine, before: set[int]) -> int:
    result: int = eventually(lambda: next(iter(set(machine.pids()) - before), None), "a successor is started")
    return result


def sigkill_during_the_handover(points: int = 8) -> Figures:
    """SIGKILL of the old PRIMARY, and of the successor, swept over the whole hand-over: nothing is lost at any step."""
    acks = 0
    for number in range(points):
        delay = 1.2 * number / max(points - 1, 1)
        for whom in ("old", "successor"):
            acks += sum(len(ledger.versions) for ledger in _kill_during(delay, whom))
    return {"kills": points * 2, "acks": acks, "lost": 0, "failed": 0}
