"""An attempt's life by what hooks print: the check-in, the orphan at the next start, the outcome, the lesson."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.contract.ways import connected
from tests.harness import Machine, eventually

_REPO = "/nowhere/api"
_numbers = count()
PLAN = {
    "goal": "make login fast",
    "hypothesis": "the session lookup has no index",
    "action": "add an index",
    "prediction": "`make bench` passes",
}


def record(machine: Machine, name: str, session: str, **fields: Any) -> str:
    """What the hook prints for the model."""
    payload = {"cwd": _REPO, "hook_event_name": name, "session_id": session, **fields}
    done = machine.cli("record", stdin=json.dumps(payload))
    assert done.returncode == 0, done.stderr
    if not done.stdout.startswith("{"):
        return done.stdout
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


def ran(machine: Machine, session: str, command: str) -> str:
    tool = {"tool_name": "Bash", "tool_use_id": f"t{next(_numbers)}", "tool_input": {"command": command}}
    return record(machine, "PostToolUse", session, **tool, tool_response={"stdout": "ok", "stderr": ""})


def _offered(machine: Machine) -> tuple[str, list[str]] | None:
    """A new session, and what it is told at its start, once that has an attempt."""
    session = f"second-{next(_numbers)}"
    start = record(machine, "SessionStart", session, source="startup")
    return (session, start.splitlines()) if "attempt" in start else None


def test_the_life_of_an_attempt(machine: Machine) -> None:
    """Ten actions bring one line. The next session here is told of the attempt first and adopts it; the command that
    it predicts is offered as its outcome; the lesson answers a prompt of a third session."""
    machine.prepared_server()
    first = connected(machine, CLAUDE_CODE_SESSION_ID="s1")
    where = {"project": _REPO}
    number = first.call("start_ghap", **PLAN, context=where)["id"]
    told = [ran(machine, "s1", f"echo {step}") for step in range(9)]
    assert told == [""] * 9
    check_in = eventually(lambda: ran(machine, "s1", "echo more"), "PRIMARY answers in time")
    assert f'attempt m{number} "make login fast" is open' in check_in and "actions since its last update" in check_in
    assert first.quit() == 0
    record(machine, "SessionEnd", "s1", reason="other")

    session, start = eventually(lambda: _offered(machine), "the end of the first session is stored")
    assert start[2] == "## An attempt left open" and f"nudge journal adopt m{number}" in start[3]
    assert '"`make bench` passes"' in start[3]
    adopted = machine.cli("journal", "adopt", f"m{number}", CLAUDE_CODE_SESSION_ID=session)
    assert adopted.returncode == 0, adopted.stderr
    again = record(machine, "SessionStart", session, source="compact").splitlines()
    assert again[2] == "## Your open attempt" and f"m{number}, " in again[3]
    offer = eventually(lambda: ran(machine, session, "make bench"), "PRIMARY answers in time")
    assert f"m{number} " in offer and "looks confirmed" in offer
    second = connected(machine, CLAUDE_CODE_SESSION_ID=session)
    lesson = "Index the columns that the session lookup of login filters by"
    resolved = second.call("resolve_ghap", status="confirmed", lesson=lesson)
    assert resolved["confidence_tier"] == "gold"

    sessions = (f"third-{number}" for number in count())
    prompt = "why is the session lookup of login slow without an index?"
    answer = eventually(
        lambda: record(machine, "UserPromptSubmit", next(sessions), prompt=prompt), "PRIMARY answers in time"
    )
    assert f"m{resolved['lesson_id']} lesson" in answer
    assert answer.count("Index the columns") == 1 and "attempt, confirmed" not in answer, "its lesson is told once"
