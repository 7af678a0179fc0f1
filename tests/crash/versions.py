"""An older and a newer Nudge side by side."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

from tests.crash.writers import Figures
from tests.harness import ROOT, Machine, Stdio, eventually


def _installation(machine: Machine, version: str) -> dict[str, str]:
    """A copy of the package that calls itself `version`; the environment that runs it."""
    place = machine.base / f"v{version}"
    shutil.copytree(ROOT / "nudge", place / "nudge", ignore=shutil.ignore_patterns("__pycache__"))
    _stamp(place, version)
    return {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}


def _virtual_environment(machine: Machine, version: str) -> str:
    """The same with a Python of its own, as pip or uv installs it; its path."""
    copy, place = _installation(machine, version)["PYTHONPATH"], machine.base / f"venv{version}"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "nudge.pth").write_text(f"{copy}\n{sysconfig.get_path('purelib')}\n")
    return str(place / "bin" / "python")


def _stamp(place: Path, version: str) -> None:
    (place / "nudge" / "__init__.py").write_text(f'"""Nudge."""\n\n__version__ = "{version}"\n')


def newer_code_takes_over() -> Figures:
    """A newer version starts the successor from its own installation; the old PRIMARY serves its client on as a
    PROXY."""
    machine = Machine()
    try:
        older, newer = _installation(machine, "1.0.0"), _installation(machine, "2.0.0")
        old = machine.serve(**older)
        old.initialize()
        old.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        assert machine.ready().version == "1.0.0"
        new = machine.serve(**newer)
        new.initialize()
        eventually(lambda: machine.ready().version == "2.0.0", "the newer version takes over")
        assert new.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        assert old.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        assert old.process.poll() is None
        third = machine.serve(**older)
        third.initialize()
        assert (
            third.call("nudge_set_hint", component="c", key="k", value="w", meta={"scope": {}})["hint"]["version"] == 2
        )
        assert machine.ready().version == "2.0.0"
        return {"killed": 0, "lost": 0}
    finally:
        machine.close()


def older_code_starts_the_newer() -> Figures:
    """The newer PRIMARY dies and only a PROXY of the older version is left: it starts the newer one's installation, so
    that old code never meets a newer log."""
    machine = Machine()
    try:
        older, newer = _virtual_environment(machine, "1.0.0"), _virtual_environment(machine, "2.0.0")
        machine.spawn("serve", "--detach", stdin=subprocess.DEVNULL, environ={}, python=newer)
        assert machine.ready().version == "2.0.0"
        old = Stdio(machine.spawn("serve", environ={}, python=older))
        old.initialize()
        old.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        victim = machine.ready()
        os.kill(victim.pid, signal.SIGKILL)
        assert old.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        started = machine.ready()
        assert (started.version, started.executable) == ("2.0.0", newer) and started.pid != victim.pid
        return {"started": started.version, "lost": 0}
    finally:
        machine.close()


def newer_command_upgrades() -> Figures:
    """Every connection compares versions: a newer command replaces the server, and no call fails."""
    machine = Machine()
    try:
        older, newer = _installation(machine, "1.0.0"), _installation(machine, "2.0.0")
        client = machine.serve(**older)
        client.initialize()
        assert machine.ready().version == "1.0.0"
        assert machine.cli("set", "c", "k", "v", "--global", **newer).returncode == 0
        eventually(lambda: machine.ready().version == "2.0.0", "the newer version takes over")
        assert client.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        assert machine.cli("get", "c", "k", **older).returncode == 0 and machine.ready().version == "2.0.0"
        return {"failed": 0, "lost": 0}
    finally:
        machine.close()


def upgraded_on_disk() -> Figures:
    """The package is upgraded on disk under live processes: they go on, and the next one takes over."""
    machine = Machine()
    try:
        environ = _installation(machine, "1.0.0")
        clients = [machine.serve(**environ) for _ in range(2)]
        for client in clients:
            client.initialize()
        clients[0].call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        _stamp(Path(environ["PYTHONPATH"]), "1.1.0")
        late = machine.serve(**environ)
        late.initialize()
        eventually(lambda: machine.ready().version == "1.1.0", "the upgraded version takes over")
        for client in (*clients, late):
            assert client.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        return {"processes": 3, "failed": 0}
    finally:
        machine.close()


def log_of_a_newer_format() -> Figures:
    """A change log that a newer Nudge wrote is left as it is: nothing is written, and status says why."""
    machine = Machine()
    try:
        os.mkdir(machine.runtime, 0o700)
        header = json.dumps(
            {"format": 99, "session": "s", "created": 0.0, "boot_id": "b", "offset": 0.0, "version": "99"}
        ).encode()
        log = Path(machine.runtime) / "changes.log"
        log.write_bytes(struct.pack(">II", len(header), zlib.crc32(header)) + header)
        before = log.read_bytes()
        refused = machine.cli("set", "a", "b", "c", "--global")
        assert refused.returncode == 3 and "E_STORAGE" in refused.stderr and "newer" in refused.stderr
        assert machine.json("ls")["components"] == []
        assert "newer" in machine.cli("status").stdout
        assert log.read_bytes() == before
        return {"bytes_changed": 0}
    finally:
        machine.close()
