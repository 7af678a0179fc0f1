"""Many processes wait for a server that is not there: one of them starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nudge.core import limits, paths
from tests.crash.writers import Figures
from tests.harness import Machine, Stdio, eventually

# Python runs it before anything else, in every process of the machine: it notes each server that somebody starts.
_NOTE_STARTS = """
import os, sys
if "--detach" in sys.orig_argv:
    with open(os.environ["PYTHONPATH"] + "/starts", "a") as file:
        file.write(f"{os.getpid()}\\n")
"""
_TICKS = os.sysconf("SC_CLK_TCK")


class Starts:
    """A machine on which every start of a detached server is counted."""

    def __init__(self) -> None:
        self.machine = Machine()
        self._notes = self.machine.base / "notes"
        self._notes.mkdir()
        (self._notes / "sitecustomize.py").write_text(_NOTE_STARTS)
        self.machine.environ["PYTHONPATH"] = str(self._notes)

    def count(self) -> int:
        path = self._notes / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.machine.pids()))


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _call(proxy: Stdio) -> bool:
    return not proxy.tool("nudge_set_hint", component="c", key=str(proxy.pid), value="v").get("isError")


def waiting_proxies(count: int) -> Figures:
    """PRIMARY is gone and every PROXY has a call to answer: exactly one server is started, and no call fails."""
    starts = Starts()
    try:
        machine = starts.machine
        machine.json("ls")
        proxies = [machine.serve() for _ in range(count)]
        for proxy in proxies:
            proxy.initialize()
            assert _call(proxy)
        eventually(lambda: len(machine.json("status")["members"]) == count, "all are members")
        primary, before = machine.ready().pid, starts.count()
        used = starts.cpu_seconds() - cpu_seconds(primary)
        os.kill(primary, signal.SIGKILL)
        began = time.monotonic()
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(_call, proxies))
        last = time.monotonic() - began
        assert all(answers), "a call failed"
        assert starts.count() - before == 1, f"{starts.count() - before} servers were started"
        return {
            "proxies": count,
            "starts": starts.count() - before,
            "cpu_s": round(starts.cpu_seconds() - used, 2),
            "last_answer_s": round(last, 2),
        }
    finally:
        starts.machine.close()


def leaving_primary(count: int) -> Figures:
    """PRIMARY's client leaves while every PROXY calls: the successor that it raises is the only server that is
    started."""
    starts = Starts()
    try:
        machine = starts.machine
        primary = machine.serve()
        primary.initialize()
        machine.ready()
        proxies = [machine.serve() for _ in range(count)]
        for proxy in proxies:
            proxy.initialize()
            assert _call(proxy)
        primary.close_stdin()
        with ThreadPoolExecutor(count) as pool:
            while primary.process.poll() is None:
                assert all(pool.map(_call, proxies)), "a call failed"
            assert all(pool.map(_call, proxies)), "a call failed"
        assert starts.count() == 1, f"{starts.count()} servers were started"
        return {"proxies": count, "starts": starts.count()}
    finally:
        starts.machine.close()


def waiting_commands(count: int) -> Figures:
    """Commands that need a server and find none, all at once: exactly one server is started, and all are answered."""
    starts = Starts()
    try:
        machine = starts.machine
        began = time.monotonic()
        with ThreadPoolExecutor(count) as pool:
            codes = list(pool.map(lambda number: machine.cli("set", "c", f"k{number}", "v").returncode, range(count)))
        last = time.monotonic() - began
        assert codes == [0] * count, "a command failed"
        assert starts.count() == 1, f"{starts.count()} servers were started"
        return {"commands": count, "starts": starts.count(), "last_answer_s": round(last, 2)}
    finally:
        starts.machine.close()


_HOLD = (
    "import sys, time; from nudge.process.spawn import Starter; s = Starter(sys.argv[1]); "
    "print(s.hold(), flush=True); time.sleep(60)"
)


def stopped_starter() -> Figures:
    """The process that holds the start lock is stopped before it started anything: after 2 s another one starts."""
    starts = Starts()
    machine = starts.machine
    paths.ensure_private_dir(machine.runtime)
    starter = subprocess.Popen([sys.executable, "-c", _HOLD, machine.runtime], stdout=subprocess.PIPE)
    try:
        assert starter.stdout is not None and starter.stdout.readline() == b"True\n"
        os.kill(starter.pid, signal.SIGSTOP)
        began = time.monotonic()
        with ThreadPoolExecutor(5) as pool:
            codes = list(pool.map(lambda number: machine.cli("set", "c", f"k{number}", "v").returncode, range(5)))
        waited = time.monotonic() - began
        assert codes == [0] * 5 and waited >= limits.START_LOCK_TIMEOUT
        assert starts.count() == 1, f"{starts.count()} servers were started"
        return {"commands": 5, "starts": starts.count(), "waited_s": round(waited, 2)}
    finally:
        starter.kill()
        starter.communicate()
        machine.close()
