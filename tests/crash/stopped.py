"""A PRIMARY that hangs: SIGSTOP."""

from __future__ import annotations

import os
import signal
import time

from tests.crash.writers import Figures, start
from tests.harness import Machine
from tests.processes import is_alive


def stopped_primary() -> Figures:
    """Every call ends within 2 s with a retryable E_UNAVAILABLE that names the pid; the role is not stolen; nothing is
    applied late."""
    machine = Machine()
    try:
        primary, [proxy] = start(machine, 1)
        proxy.call("nudge_set_hint", component="c", key="k", value="before", meta={"scope": {}})
        os.kill(primary.pid, signal.SIGSTOP)
        seconds = []
        for value in ("late-1", "late-2"):
            began = time.monotonic()
            result = proxy.tool("nudge_set_hint", component="c", key="k", value=value, meta={"scope": {}})
            seconds.append(time.monotonic() - began)
            error = result["structuredContent"]["error"]
            assert error["reason"] == "E_UNAVAILABLE" and error["retryable"] and error["pid"] == primary.pid
        began = time.monotonic()
        cli = machine.cli("set", "c", "k", "late-3", "--global")
        seconds.append(time.monotonic() - began)
        assert cli.returncode == 4 and str(primary.pid) in cli.stderr
        assert machine.endpoint().pid == primary.pid and sorted(machine.pids()) == sorted([primary.pid, proxy.pid])  # type: ignore[union-attr]
        os.kill(primary.pid, signal.SIGCONT)
        hint = proxy.call("nudge_get_hint", component="c", key="k")["hint"]
        assert (hint["value"], hint["version"]) == ("before", 1), "a call that timed out was applied afterwards"
        assert max(seconds) < 2.6, f"a call to a stopped PRIMARY took {max(seconds):.2f} s"
        return {"calls": len(seconds), "worst_call_s": round(max(seconds), 2), "applied_late": 0}
    finally:
        machine.close()


def force_stop_of_a_stopped_primary() -> Figures:
    """`nudge stop --force` ends the PRIMARY that hangs, and nobody else; the next call starts another."""
    machine = Machine()
    try:
        primary, [proxy] = start(machine, 1)
        proxy.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        os.kill(primary.pid, signal.SIGSTOP)
        done = machine.cli("stop", "--force")
        assert done.returncode == 0, done.stderr
        primary.process.wait(5)
        assert is_alive(proxy.pid)
        assert proxy.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        return {"killed": 1}
    finally:
        machine.close()
