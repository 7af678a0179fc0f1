"""Clock steps and a suspend, with real processes: the wall clock is shifted in a process, the boot clock in a time
namespace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.crash.writers import Figures
from tests.harness import NUDGE, Machine, eventually

_SHIFT = (
    "import os, time\n_real = time.time\ntime.time = lambda: _real() + float(os.environ.get('NUDGE_TEST_SHIFT', '0'))\n"
)
DAY = 86_400


def _with_shiftable_clock() -> Machine:
    """Every process of this machine reads the wall clock through `NUDGE_TEST_SHIFT`."""
    machine = Machine()
    site = machine.base / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_SHIFT)
    machine.environ["PYTHONPATH"] = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return machine


def _end(machine: Machine) -> None:
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")


def steps_of_a_day() -> Figures:
    """The wall clock steps a day ahead, then two days back: a TTL neither ends early nor lives on, later writes stay
    later."""
    machine = _with_shiftable_clock()
    try:
        machine.json("set", "c", "ttl", "v", "--ttl", "PT2H", "--global")
        stamps = []
        for shift in (0, DAY, -DAY):
            _end(machine)
            machine.environ["NUDGE_TEST_SHIFT"] = str(shift)
            assert machine.json("get", "c", "ttl")["hint"]["value"] == "v", f"gone after a step of {shift} s"
            stamps.append(machine.json("set", "c", "order", "v", "--global")["hint"]["updated_at"])
        assert stamps == sorted(stamps) and len(set(stamps)) == 3
        machine.json("set", "c", "short", "v", "--ttl", "PT1S", "--global")
        eventually(lambda: machine.cli("get", "c", "short").returncode == 1, "a short TTL ends")
        return {"steps": 2, "ttl_kept": 1, "order_kept": 1}
    finally:
        machine.close()


def suspend_of_a_day() -> Figures:
    """A day passes on the boot clock (as in a suspend): TTLs of hours are over, those of days go on."""
    machine = Machine()
    try:
        machine.json("set", "c", "hours", "v", "--ttl", "PT2H", "--global")
        machine.json("set", "c", "days", "v", "--ttl", "P3D", "--global")
        _end(machine)
        asleep = ["unshare", "--time", "--boottime", str(DAY)]
        command = [*asleep, *NUDGE, "ls", "c", "--json"]
        done = subprocess.run(
            command, env=machine.environ, capture_output=True, text=True, cwd=str(machine.base), check=False
        )
        assert done.returncode == 0, done.stderr
        assert '"days"' in done.stdout and '"hours"' not in done.stdout
        return {"slept_s": DAY}
    finally:
        machine.close()
        assert Path("/proc/self/ns/time").exists()
