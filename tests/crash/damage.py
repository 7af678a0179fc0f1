"""Files that are damaged, removed or replaced: what was acknowledged is there, or the loss is reported."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from nudge.settings import config
from tests.crash.writers import Figures
from tests.harness import Machine, Stdio, eventually
from tests.processes import is_alive

_SEED = 20_261_116
_PAGE = 4_096


def _set(client: Stdio, key: str) -> None:
    client.call("nudge_set_hint", component="c", key=key, value=f"value of {key}", meta={"scope": {}})


def _keys(machine: Machine) -> set[str]:
    components = machine.json("export")["payload"]["components"]
    return set(components["c"]["hints"]) if components else set()


def _log(machine: Machine) -> Path:
    return Path(machine.runtime) / "changes.log"


def _findings(machine: Machine) -> dict[str, list[dict[str, Any]]]:
    """What `nudge doctor` says is not in order, by check."""
    findings = json.loads(machine.cli("doctor", "--json").stdout)["findings"]
    result: dict[str, list[dict[str, Any]]] = {}
    for finding in findings:
        if finding["level"] != "ok":
            result.setdefault(finding["check"], []).append(finding)
    return result


def _messages(machine: Machine) -> str:
    return " ".join(finding["message"] for findings in _findings(machine).values() for finding in findings)


def _kill(client: Stdio) -> None:
    client.process.kill()
    client.process.wait()


# The change log


def flipped_byte_in_the_log(rounds: int = 6, hints: int = 40) -> Figures:
    """One byte anywhere in the middle of the change log is changed while no server runs: at most the hint of that
    record is lost, the damaged file is kept as it was, and `status` and `doctor` report it."""
    chance = random.Random(_SEED)
    lost = 0
    for _ in range(rounds):
        machine = Machine()
        try:
            client = machine.serve()
            client.initialize()
            for number in range(hints):
                _set(client, f"k{number}")
            _kill(client)
            data = bytearray(_log(machine).read_bytes())
            data[chance.randrange(len(data) // 4, 3 * len(data) // 4)] ^= 1 << chance.randrange(8)
            _log(machine).write_bytes(data)
            assert "damaged" in _messages(machine)
            missing = {f"k{number}" for number in range(hints)} - _keys(machine)
            assert len(missing) <= 1, f"lost {sorted(missing)}"
            assert Path(f"{_log(machine)}.damaged").read_bytes() == data
            assert "changes.log.damaged" in machine.json("status")["warnings"][0]
            assert "changes.log.damaged" in _findings(machine)["change log"][0]["message"]
            machine.json("set", "c", "later", "v", "--global")
            os.kill(machine.ready().pid, signal.SIGKILL)
            assert "later" in _keys(machine), "the log that replaced the damaged one was not used"
            lost += len(missing)
        finally:
            machine.close()
    return {"rounds": rounds, "hints": rounds * hints, "lost": lost, "kept_damaged": rounds, "reported": rounds}


def _as_directory(path: Path) -> None:
    path.mkdir()


def _as_fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _as_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def unreadable_log() -> Figures:
    """Something that is not a file stands in the change log's place: the server starts in memory, says so everywhere,
    and touches nothing; `stop --forget` leaves a directory in which the next server keeps its log."""
    obstacles: dict[str, Callable[[Path], None]] = {"directory": _as_directory, "fifo": _as_fifo, "link": _as_link}
    for name, place in obstacles.items():
        machine = Machine()
        try:
            os.mkdir(machine.runtime, 0o700)
            place(_log(machine))
            machine.json("set", "c", "k", "v", "--global")
            assert machine.json("get", "c", "k")["hint"]["value"] == "v"
            status = machine.json("status")
            assert status["durability"] == "none" and "memory only" in status["warnings"][0], (name, status)
            assert "memory only" in _messages(machine) and "changes.log" in _messages(machine)
            assert os.path.lexists(_log(machine)) and not (_log(machine).is_file() and name != "link")
            machine.cli("stop", "--forget")
            eventually(machine.lock_is_free, "the server ends")
            machine.json("set", "c", "after", "v", "--global")
            assert machine.json("status")["durability"] == "process", f"{name}: the log cannot be used after --forget"
            os.kill(machine.ready().pid, signal.SIGKILL)
            assert _keys(machine) == {"after"}
        finally:
            machine.close()
    return {"obstacles": len(obstacles), "served_from_memory": len(obstacles), "recovered_by_forget": len(obstacles)}


# The database


def flipped_bits_of_the_database(rounds: int = 25) -> Figures:
    """One bit in the pages of the schema is changed while no server runs: the next one starts and answers hints, and
    where the history cannot be used, `doctor` says `nudge restore`."""
    chance = random.Random(_SEED)
    unusable = 0
    machine = Machine()
    try:
        client = machine.serve()
        client.initialize()
        _set(client, "k")
        client.call("record", event=_event(0))
        client.quit()
        eventually(machine.lock_is_free, "the server ends")
        sound = _database(machine).read_bytes()
        schema = [number for number in range(len(sound) // _PAGE) if b"CREATE " in sound[number * _PAGE :][:_PAGE]]
        for _ in range(rounds):
            data = bytearray(sound)
            data[chance.choice(schema) * _PAGE + chance.randrange(_PAGE)] ^= 1 << chance.randrange(8)
            for path in _database(machine).parent.glob("nudge.db-*"):
                path.unlink()
            _database(machine).write_bytes(data)
            assert "k" in _keys(machine)
            works = all(machine.cli(*words).returncode < 3 for words in (("search", "recorded"), ("remember", "a")))
            checked = machine.cli("doctor")
            assert not checked.stderr, checked.stderr
            assert works or "nudge restore" in checked.stdout or "newer Nudge" in checked.stdout, checked.stdout
            unusable += not works
            machine.cli("stop")
            eventually(machine.lock_is_free, "the server ends")
        return {"rounds": rounds, "hints_served": rounds, "unusable": unusable, "reported": unusable}
    finally:
        machine.close()


def _event(number: int) -> dict[str, Any]:
    event = {"event_id": f"e{number}", "session_id": "s", "timestamp": 1_794_000_000 + number, "type": "command"}
    return {**event, "client": "unknown", "cwd": "/", "project": "p", "content": f"recorded {number}", "metadata": {}}


def _database(machine: Machine) -> Path:
    return Path(config.database_file(machine.environ))


def _stored(machine: Machine) -> set[str]:
    with closing(sqlite3.connect(f"file:{_database(machine)}?mode=ro", uri=True)) as connection:
        return {row[0] for row in connection.execute("SELECT content FROM observations")}


class _Recorder:
    """A client that records without a pause, and counts what was acknowledged."""

    def __init__(self, machine: Machine) -> None:
        self.acknowledged: list[int] = []
        self.refused: list[str] = []
        self._client = machine.serve()
        self._client.initialize()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            result = self._client.tool("record", event=_event(number))
            if result.get("isError"):
                self.refused.append(result["structuredContent"]["error"]["reason"])
            else:
                self.acknowledged.append(number)
            number += 1

    def wait_for_more(self, more: int = 20) -> None:
        target = len(self.acknowledged) + more
        eventually(lambda: len(self.acknowledged) >= target, "recording goes on")

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)


def _removed_while_recording(names: str, rounds: int) -> Figures:
    """Remove files of the database while events are recorded; kill the server; count."""
    acknowledged = refused = 0
    for _ in range(rounds):
        machine = Machine()
        try:
            machine.json("ls")
            recorder = _Recorder(machine)
            recorder.wait_for_more()
            for path in _database(machine).parent.glob(names):
                path.unlink()
            recorder.wait_for_more()
            warnings = eventually(lambda: machine.json("status")["warnings"], "status reports it")  # noqa: B023
            assert "removed" in warnings[0], warnings
            assert "removed" in _messages(machine)
            recorder.wait_for_more()
            recorder.end()
            assert set(recorder.refused) <= {"E_UNAVAILABLE", "E_STORAGE"}, recorder.refused
            victim = machine.ready().pid
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: not is_alive(victim), "the server is dead")  # noqa: B023
            machine.json("ls")
            assert machine.json("status")["history"]["read_only"] is None
            missing = {f"recorded {number}" for number in recorder.acknowledged} - _stored(machine)
            assert not missing, f"{len(missing)} of {len(recorder.acknowledged)} acknowledged events are lost"
            assert not [finding for finding in _findings(machine).get("history", ()) if finding["level"] == "fail"]
            acknowledged, refused = acknowledged + len(recorder.acknowledged), refused + len(recorder.refused)
        finally:
            machine.close()
    return {"rounds": rounds, "acknowledged": acknowledged, "refused": refused, "lost": 0, "reported": rounds}


def removed_database(rounds: int = 3) -> Figures:
    """The database is removed under a live PRIMARY that records: no acknowledged event is lost, also by a kill -9
    afterwards, and `status` and `doctor` report it."""
    return _removed_while_recording("nudge.db*", rounds)


def removed_write_ahead_log(rounds: int = 3) -> Figures:
    """The same when only `nudge.db-wal` is removed, which holds what was committed last."""
    return _removed_while_recording("nudge.db-wal", rounds)


def damaged_database() -> Figures:
    """Pages in the middle of the database are overwritten: `backup` refuses and leaves no file, `doctor` names the
    backup to restore, `doctor --fix` restores it, and the damaged file is kept."""
    machine = Machine()
    try:
        client = machine.serve()
        client.initialize()
        for number in range(400):
            client.call("record", event=_event(number))
        backup = machine.json("backup")["path"]
        client.quit()
        eventually(machine.lock_is_free, "the server ends")
        database = _database(machine)
        data = bytearray(database.read_bytes())
        middle = len(data) // _PAGE // 2 * _PAGE
        noise = random.Random(_SEED).randbytes(4 * _PAGE)
        data[middle : middle + len(noise)] = noise
        database.write_bytes(data)
        target = machine.base / "copy.db"
        refused = machine.cli("backup", str(target))
        assert refused.returncode == 3 and "nudge restore" in refused.stderr, refused
        assert not target.exists()
        (finding,) = _findings(machine)["history"]
        assert finding["level"] == "fail" and finding["fix"] == f"nudge restore {backup}", finding
        done = machine.cli("doctor", "--fix", "--yes")
        assert "restored" in done.stdout and "history" not in _findings(machine), done.stdout + done.stderr
        kept = [path for path in database.parent.glob("backups/*.db") if noise in path.read_bytes()]
        assert len(kept) == 1, "the damaged database was not kept"
        assert len(_stored(machine)) == 400
        return {"damaged_bytes": len(noise), "backup_exit": refused.returncode, "restored_events": 400}
    finally:
        machine.close()
