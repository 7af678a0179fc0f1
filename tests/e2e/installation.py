"""An installation of Nudge of its own, with a clock and a boot that a test sets, and a package that it can remove."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from tests.e2e.clients import BIN, Desk
from tests.harness import ROOT, eventually
from tests.processes import is_alive

# Python runs it at the start of every process of the installation, whatever environment a client gives it.
_CLOCK = """
import builtins, json, time

def _install():
    with open(@state@) as file:
        state = json.load(file)
    wall, wall_ns, clock, opener = time.time, time.time_ns, time.clock_gettime, builtins.open
    time.time = lambda: wall() + state["shift"]
    time.time_ns = lambda: wall_ns() + state["shift"] * 1_000_000_000
    time.clock_gettime = lambda which: clock(which) - (state["booted"] if which == time.CLOCK_BOOTTIME else 0)
    def open_(path, *arguments, **options):
        return opener(state["boot_id"] if path == "/proc/sys/kernel/random/boot_id" else path, *arguments, **options)
    builtins.open = open_

_install()
"""
_SCRIPT = "#!{python}\nimport sys\nfrom nudge.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


class Installation:
    """Comes first on the desk's PATH, and is the only `nudge` there."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._place = desk, desk.machine.base / "installed"
        self._state = desk.machine.base / "clock.json"
        self._boot_file = desk.machine.base / "boot_id"
        self._shift, self._boots = 0, 0
        self._set_clock(booted=0.0)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._place)], check=True)
        (packages,) = self._place.glob("lib/python*/site-packages")
        (packages / "sitecustomize.py").write_text(_CLOCK.replace("@state@", repr(str(self._state))))
        self._package = packages / "nudge.pth"
        self.executable = self._place / "bin" / "nudge"
        self.put_back()
        desk.environ["PATH"] = os.pathsep.join([str(self._place / "bin"), str(BIN), os.environ["PATH"]])

    @property
    def boot_id(self) -> str:
        return f"00000000-0000-4000-8000-{self._boots:012}"

    def put_back(self) -> None:
        self._package.write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
        self.executable.write_text(_SCRIPT.format(python=self._place / "bin" / "python"))
        self.executable.chmod(0o755)

    def remove_package(self) -> None:
        """As `pip uninstall` that was interrupted: the script is left, its package is gone."""
        self._package.unlink()

    def remove(self) -> None:
        """As `pip uninstall`."""
        self.executable.unlink()

    def reboot(self, hours: int) -> None:
        """The power goes; the machine is switched on again after so many hours."""
        machine = self._desk.machine
        while pids := machine.pids():
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            eventually(lambda killed=pids: not any(map(is_alive, killed)), "everything has ended")  # type: ignore[misc]
        self._shift += hours * 3_600
        self._set_clock(booted=time.clock_gettime(time.CLOCK_BOOTTIME) - 30)

    def _set_clock(self, booted: float) -> None:
        self._boots += 1
        self._boot_file.write_text(f"{self.boot_id}\n")
        state = {"shift": self._shift, "booted": booted, "boot_id": str(self._boot_file)}
        self._state.write_text(json.dumps(state))


def data_below(*folders: Path) -> bytes:
    """Everything that is in the files of these directories."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(path.read_bytes() for path in files)
