"""Hooks that record: with a server, without one, with one that is killed on the way, and many at once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from nudge.storage import spool
from tests.crash.writers import Figures
from tests.harness import NUDGE, ROOT, Machine, eventually
from tests.unit.history.payloads import kind_of

PAYLOADS = [
    json.loads(line)
    for name in ("claude_code_2.1.325.jsonl", "codex_0.166.0.jsonl")
    for line in (ROOT / "tests/fixtures" / name).read_text().splitlines()
]


def _record(machine: Machine, payload: dict[str, Any]) -> None:
    done = subprocess.run(
        [*NUDGE, "record"],
        input=json.dumps(payload).encode(),
        env=machine.environ,
        cwd=str(machine.base),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _rows(machine: Machine, sql: str) -> list[Any]:
    path = Path(machine.runtime) / "nudge.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def _types(machine: Machine) -> Counter[str]:
    return Counter(row[0] for row in _rows(machine, "SELECT obs_type FROM observations"))


def _settled(machine: Machine) -> bool:
    return not spool.pending(machine.runtime)


def replayed_payloads(how: str = "up") -> Figures:
    """Every recorded payload of real clients through `nudge record`: each classified, none lost, none twice."""
    machine = Machine()
    try:
        if how != "down":
            machine.json("set", "a", "b", "c", "--global")
        for number, payload in enumerate(PAYLOADS):
            if how == "killed" and number == len(PAYLOADS) // 2:
                os.kill(machine.ready().pid, signal.SIGKILL)
            _record(machine, payload)
            if "tool_use_id" in payload:
                _record(machine, payload)  # a hook that is wired twice
        machine.json("get", "a", "b") if how != "down" else machine.cli("ls")
        eventually(lambda: _settled(machine), "the spool is drained")
        expected = Counter(kind for payload in PAYLOADS if (kind := kind_of(payload)) is not None)
        # The end of each turn replaces that of the turn before: a session has one.
        expected["session_stop"] = len({one["session_id"] for one in PAYLOADS if kind_of(one) == "session_stop"})
        result = _types(machine)
        assert result == expected, (result, expected)
        return {
            "payloads": len(PAYLOADS),
            "classified": len(PAYLOADS),
            "stored": sum(result.values()),
            "lost": 0,
            "twice": 0,
        }
    finally:
        machine.close()


def eight_recorders(recorders: int = 8, each: int = 1_000) -> Figures:
    """Recorders at once, through the same client that the hooks use: every event is a row, and the database is
    sound."""
    machine = Machine()
    try:
        machine.json("set", "a", "b", "c", "--global")
        failures: list[str] = []
        threads = [
            threading.Thread(target=_feed, args=(machine, number, each, failures)) for number in range(recorders)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        eventually(lambda: _settled(machine), "the spool is drained", 60)
        assert _rows(machine, "SELECT count(*) FROM observations") == [(recorders * each,)]
        assert _rows(machine, "PRAGMA integrity_check") == [("ok",)]
        return {"recorders": recorders, "rows": recorders * each, "integrity": "ok"}
    finally:
        machine.close()


_FEEDER = """
import io, json, os, sys
from nudge import hook
number, each = int(sys.argv[1]), int(sys.argv[2])
for count in range(each):
    event = {"session_id": f"s{number}", "cwd": "/", "hook_event_name": "PostToolUse", "tool_name": "Bash",
             "tool_use_id": f"t{number}-{count}",
             "tool_input": {"command": f"echo {number} {count}"}, "tool_response": {"stdout": ""}}
    code = hook.main(io.BytesIO(json.dumps(event).encode()), os.environ)
    if code: sys.exit(f"event {count}: exit code {code}")
"""


def _feed(machine: Machine, number: int, each: int, failures: list[str]) -> None:
    """One process that plays many hooks: starting an interpreter for each would measure interpreters."""
    done = subprocess.run(
        [sys.executable, "-c", _FEEDER, str(number), str(each)],
        env=machine.environ,
        cwd=str(ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        failures.append(done.stderr)
