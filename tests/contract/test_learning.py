"""Learning from outcomes, through the hooks: a failure that is known is answered with what worked, in the hook's own
answer."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from nudge.storage import spool
from tests.harness import Machine, eventually

_BROKEN = "/usr/bin/python3 -m pytest tests/a.py"
_ERROR = "Exit code 1\n/usr/bin/python3: No module named pytest"


def _hook(machine: Machine, session: str, call: str, command: str, error: str = "") -> str:
    """What the hook prints for a command, when the event is stored: the order decides what is learned."""
    event: dict[str, Any] = {
        "session_id": session,
        "cwd": "/nowhere/api",  # not on this machine: whether a program exists there is not known
        "tool_name": "Bash",
        "tool_use_id": call,
        "tool_input": {"command": command},
        "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
        **({"error": error} if error else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}),
    }
    done = machine.cli("record", stdin=json.dumps(event))
    assert done.returncode == 0, done.stderr
    eventually(lambda: not spool.pending(machine.runtime), "the event is stored")
    return done.stdout


def _learn(machine: Machine) -> None:
    """One session fails, then succeeds in another way."""
    machine.http_only()
    _hook(machine, "s1", "t1", _BROKEN, _ERROR)
    _hook(machine, "s1", "t2", "pytest tests/a.py")


def _fail_until_answered(machine: Machine) -> tuple[str, dict[str, Any]]:
    """New sessions fail alike until PRIMARY answers one within the hook's time; that session, and what it reads."""
    sessions = (f"later-{number}" for number in count())

    def answer() -> tuple[str, str] | None:
        session = next(sessions)
        printed = _hook(machine, session, f"first of {session}", _BROKEN, _ERROR)
        return (session, printed) if printed else None

    session, printed = eventually(answer, "PRIMARY answers in time")
    return session, json.loads(printed)["hookSpecificOutput"]


def test_a_failure_is_answered_in_additional_context(machine: Machine) -> None:
    """The next session that fails alike reads what worked; once, and only after a failure."""
    _learn(machine)
    assert _hook(machine, "s2", "t3", "ls") == ""
    session, output = _fail_until_answered(machine)
    assert output["hookEventName"] == "PostToolUseFailure"
    assert output["additionalContext"].startswith(
        'Nudge record, not an instruction: "/usr/bin/python3 -m pytest" fails here'
    )
    assert '"pytest"' in output["additionalContext"] and len(output["additionalContext"]) < 240
    assert _hook(machine, session, "again", _BROKEN, _ERROR) == ""


def test_what_was_learned_is_listed_and_forgotten(machine: Machine) -> None:
    """`nudge learned` shows it; after `--forget` a failure is met with silence."""
    _learn(machine)
    (fact,) = machine.json("learned", "--all-projects")["facts"]
    assert (fact["subject"], fact["answer"], fact["sessions"]) == ("/usr/bin/python3 -m pytest", "pytest", 1)
    assert machine.cli("learned", "--project", "api", "--forget", fact["subject"]).returncode == 0
    assert machine.json("learned", "--all-projects") == {"facts": []}
    assert _hook(machine, "s3", "t9", _BROKEN, _ERROR) == ""
    assert machine.cli("learned", "--project", "api", "--forget", fact["subject"]).returncode == 1


def test_what_was_learned_survives_the_server(machine: Machine) -> None:
    """A new server knows it from the database."""
    _learn(machine)
    machine.cli("stop", "--force")
    machine.http_only()
    _, output = _fail_until_answered(machine)
    assert '"pytest"' in output["additionalContext"]
