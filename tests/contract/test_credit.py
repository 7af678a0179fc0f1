"""The two halves meet: what agents did moves the hints they did it with, and what a hook told is in the session's trace."""

from __future__ import annotations

import json
from typing import Any

from nudge.storage import spool
from tests.harness import Machine, eventually


def _ran(machine: Machine, command: str, session: str, call: str, *, failed: bool = False) -> None:
    event: dict[str, Any] = {
        "session_id": session, "cwd": str(machine.base), "tool_name": "Bash", "tool_use_id": call, "tool_input": {"command": command},
    }  # fmt: skip
    outcome = {"error": "Exit code 2"} if failed else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}
    name = "PostToolUseFailure" if failed else "PostToolUse"
    done = machine.cli("record", stdin=json.dumps({**event, **outcome, "hook_event_name": name}))
    assert done.returncode == 0, done.stderr


def _uses(machine: Machine) -> int:
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    uses: int = machine.json("get", "api", "test")["hint"].get("use_count", 0)
    return uses


def test_a_command_that_worked_raises_its_hint_once_a_session(machine: Machine) -> None:
    """Success raises, failure lowers, each session counts once, other commands count nothing; the explanation tells."""
    machine.json("set", "api", "test", "pytest -q", "--type", "command", "--global")
    _ran(machine, "pytest -q", "s1", "t1")
    _ran(machine, "pytest -q", "s1", "t2")
    _ran(machine, "pytest -x", "s1", "t3")
    eventually(lambda: _uses(machine) == 1, "the hint is credited")
    _ran(machine, "pytest -q", "s2", "t4")
    eventually(lambda: _uses(machine) == 2, "another session credits it again")
    assert "worked 2 times, last now" in machine.json("get", "api", "test")["match_explain"]["reasons"]
    _ran(machine, "pytest -q", "s3", "t5", failed=True)
    eventually(lambda: _uses(machine) == 1, "a failure lowers it")


def test_a_hint_for_elsewhere_is_not_credited(machine: Machine) -> None:
    """Only a hint that is eligible where the command ran."""
    machine.json("set", "api", "test", "pytest -q", "--type", "command", "--scope-cwd-glob", "/elsewhere/**")
    machine.json("set", "api", "mark", "true", "--type", "command", "--global")
    _ran(machine, "pytest -q", "s1", "t1")
    _ran(machine, "true", "s1", "t2")
    eventually(lambda: machine.json("get", "api", "mark")["hint"].get("use_count") == 1, "the later command is credited")
    (listed,) = [row for row in machine.json("ls", "api")["hints"] if row["key"] == "test"]
    assert "use_count" not in listed["hint"]


def test_what_a_hook_told_by_itself_is_in_the_trace(machine: Machine) -> None:
    """A session that starts before any server is told by the hook; the next server keeps what was told."""
    machine.json("set", "api", "test", "pytest -q", "--global")
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    start = {"session_id": "s9", "cwd": str(machine.base), "hook_event_name": "SessionStart", "source": "startup"}
    told = machine.cli("record", stdin=json.dumps(start), NUDGE_AUTOSTART="0")
    assert told.returncode == 0 and "api/test" in told.stdout
    machine.json("ls")
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    (kept,) = machine.json("trace", "s9")["injections"]
    assert kept["text"].strip() == told.stdout.strip()
