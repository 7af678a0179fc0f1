"""Disks that are full, read-only or not there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.crash.writers import Figures
from tests.harness import Machine, Stdio, eventually


def full_disk() -> Figures:
    """The disk of change log and database is full: writes are refused with E_STORAGE, reads go on, and it recovers by
    itself."""
    machine = Machine()
    os.mkdir(machine.runtime, 0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "nudge-test", machine.runtime], check=False
    )
    assert mounted.returncode == 0, "needs root, to mount a small disk"
    try:
        client = machine.serve()
        client.initialize()
        client.call("nudge_set_hint", component="c", key="first", value="1", meta={"scope": {}})
        ballast = Path(machine.runtime) / "ballast"
        _fill(ballast)
        refused = _until_refused(client)
        assert refused["reason"] == "E_STORAGE" and machine.runtime not in refused["message"]
        assert client.call("nudge_get_hint", component="c", key="first")["hint"]["value"] == "1"
        assert machine.json("status")["last_error"]
        assert _recording_refused(client) == "E_STORAGE"
        assert client.call("search", query="anything", project=None)["result"] == []
        ballast.unlink()
        assert isinstance(client.call("record", event=_event(0))["id"], int)
        client.call("nudge_set_hint", component="c", key="after", value="2", meta={"scope": {}})
        kept = client.call("nudge_export")["payload"]
        client.process.kill()
        client.process.wait()
        again = machine.serve()
        again.initialize()
        assert again.call("nudge_export")["payload"]["components"] == kept["components"]
        return {"refused_with": refused["reason"], "reads_served": 1, "recovered": 1}
    finally:
        machine.processes[0].wait() if machine.processes and machine.processes[0].poll() is not None else None
        for pid in machine.pids():
            os.kill(pid, 9)
        subprocess.run(["umount", "-l", machine.runtime], check=False)
        machine.close()


def full_disk_at_the_start() -> Figures:
    """The disk is full before the first server: clients and commands are served from memory, and status says so. With
    room again what was set meanwhile is kept, and everything is as usual."""
    machine = Machine()
    os.mkdir(machine.runtime, 0o700)
    # An empty database with its log takes half of it.
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "nudge-test", machine.runtime]
    assert subprocess.run(mount, check=False).returncode == 0, "needs root, to mount a small disk"
    try:
        ballast = Path(machine.runtime) / "ballast"
        _fill(ballast)
        client = machine.serve()
        client.initialize()
        client.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        status = client.call("nudge_status")
        assert status["durability"] == "none" and "the disk is full" in status["warnings"][0]
        assert machine.json("get", "c", "k")["hint"]["value"] == "v"
        client.process.kill()
        client.process.wait()
        assert machine.cli("set", "c", "again", "v", "--global").returncode == 0
        assert machine.cli("doctor").returncode == 3
        ballast.unlink()
        eventually(lambda: machine.json("status")["durability"] == "process", "the change log is written")
        assert machine.cli("remember", "kept").returncode == 0
        os.kill(machine.json("status")["pid"], 9)
        assert machine.json("get", "c", "again")["hint"]["value"] == "v"
        return {"served_from_memory": 2, "recovered": 1}
    finally:
        for pid in machine.pids():
            os.kill(pid, 9)
        subprocess.run(["umount", "-l", machine.runtime], check=False)
        machine.close()


def forget_on_a_full_disk(hints: int = 60) -> Figures:
    """There is room for an endpoint but not for a new change log, and the old one is damaged: its hints are served from
    memory. `stop --forget` cannot save them for `import --previous`: it says why and leaves the log as it was. With
    room again the hints are back, and `stop --forget` forgets them."""
    machine = Machine()
    os.mkdir(machine.runtime, 0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "nudge-test", machine.runtime]
    assert subprocess.run(mount, check=False).returncode == 0, "needs root, to mount a small disk"
    try:
        client = machine.serve()
        client.initialize()
        for number in range(hints):
            client.call("nudge_set_hint", component="c", key=f"k{number}", value="x" * 1_000, meta={"scope": {}})
        client.process.kill()
        client.process.wait()
        log = Path(machine.runtime) / "changes.log"
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
        ballast = Path(machine.runtime) / "ballast"
        _fill(ballast)
        os.truncate(ballast, ballast.stat().st_size - 6 * 4_096)
        assert machine.json("get", "c", "k0")["hint"]["value"] == "x" * 1_000
        status = machine.json("status")
        assert status["durability"] == "none" and "the disk is full" in status["warnings"][0], status["warnings"]
        refused = machine.cli("stop", "--forget")
        assert refused.returncode == 3 and "E_STORAGE" in refused.stderr, refused
        assert log.read_bytes() == data
        ballast.unlink()
        kept = machine.json("status")["hints"] if machine.cli("ls").returncode == 0 else 0
        assert kept == status["hints"] >= hints - 1 and machine.json("status")["durability"] == "process"
        assert machine.cli("stop", "--forget").returncode == 0
        assert machine.json("ls")["components"] == []
        assert machine.json("import", "--previous")["imported"] == kept
        return {"hints": hints, "kept": kept, "refused_with": "E_STORAGE", "recovered": 1}
    finally:
        for pid in machine.pids():
            os.kill(pid, 9)
        subprocess.run(["umount", "-l", machine.runtime], check=False)
        machine.close()


def _event(number: int) -> dict[str, object]:
    return {
        "event_id": f"e{number}",
        "session_id": "s",
        "client": "unknown",
        "cwd": "/",
        "repo": None,
        "project": "p",
        "timestamp": 1_794_000_000,
        "source_event": "PostToolUse",
        "prompt_id": None,
        "agent_id": None,
        "type": "command",
        "tool_name": "Bash",
        "file_path": None,
        "content": f"{number} " + "x" * 400,
        "metadata": {},
        "start_source": None,
    }


def _recording_refused(client: Stdio) -> str:
    """The database has some room of its own; then it is over for it too."""
    for number in range(1, 3_000):
        result = client.tool("record", event=_event(number))
        if result.get("isError"):
            reason: str = result["structuredContent"]["error"]["reason"]
            return reason
    raise AssertionError("a full disk took every event")


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4_096)
        except OSError:
            return


def _until_refused(client: Stdio) -> dict[str, str]:
    """The last page of the log has room for some more; then it is over."""
    for number in range(200):
        result = client.tool("nudge_set_hint", component="c", key=f"k{number}", value="x" * 4_000, meta={"scope": {}})
        if result.get("isError"):
            error: dict[str, str] = result["structuredContent"]["error"]
            return error
    raise AssertionError("a full disk refused nothing")


def read_only_home() -> Figures:
    """No directory to meet in: our own client is served from memory, with a word on stderr; the CLI says what to do."""
    machine = Machine()
    try:
        blocked = machine.base / "file"
        blocked.write_text("")
        nowhere = str(blocked / "run")
        client = machine.serve(NUDGE_RUNTIME_DIR=nowhere)
        client.initialize()
        client.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        assert client.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        assert client.call("nudge_status")["durability"] == "none"
        assert client.quit() == 0
        refused = machine.cli("set", "a", "b", "c", NUDGE_RUNTIME_DIR=nowhere)
        assert refused.returncode == 3 and "NUDGE_RUNTIME_DIR" in refused.stderr
        return {"served_from_memory": 1}
    finally:
        machine.close()
