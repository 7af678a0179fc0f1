"""The history through every interface: the same call gives the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.contract.repos import clone
from tests.contract.ways import Http, connected
from tests.harness import Machine, eventually


def _edited(machine: Machine, cwd: str, number: int) -> None:
    event = {
        "session_id": "s-1",
        "cwd": cwd,
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": f"{cwd}/src/{number}.py"},
        "tool_response": {},
    }
    assert machine.cli("record", stdin=json.dumps(event)).returncode == 0


def _recorded(machine: Machine) -> str:
    """Three edits in a clone, and where it is."""
    here = clone(machine.base / "api")
    machine.json("ls")
    for number in range(3):
        _edited(machine, here, number)
    eventually(lambda: len(machine.json("search", "src", "--project", "api")) == 3, "the edits are stored")
    return here


def test_the_timeline_of_an_observation_over_rest(machine: Machine) -> None:
    """The id in the path is a number; a word is wrong, and an id that nothing has is not found."""
    here = _recorded(machine)
    first, middle, last = sorted(row["id"] for row in machine.json("recent", cwd=here))
    http = Http.to(machine)
    reply = http.exchange("GET", f"/api/v1/observations/{middle}/timeline?before=1&after=1")
    around = reply.json
    assert (reply.status, around["anchor"]["id"]) == (200, middle)
    assert [row["id"] for row in (*around["before"], *around["after"])] == [first, last]
    assert http.exchange("GET", "/api/v1/observations/x/timeline").json["data"]["field"] == "anchor"
    assert http.exchange("GET", "/api/v1/observations/99999/timeline").status == 404
    http.close()


def test_rows_have_their_branch_and_clone_at_every_interface(machine: Machine) -> None:
    """Also where they are the caller's own: the answer to a call does not depend on where the caller is."""
    here = _recorded(machine)
    agent, http = connected(machine, cwd=here), Http.to(machine)
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": "src", "project": "api"},
        "recent_context": {"project": "api"},
        "file_history": {"file_path": str(Path(here, "src/0.py"))},
    }
    for name, params in calls.items():
        answers = [
            _rows(agent.call(name, **params)),
            _rows(agent.call(name, **params, context={"cwd": here, "branch": "main"})),
            _rows(http.call(f"nudge.{name}", params)["result"]),
        ]
        assert all((row["branch"], row["clone"]) == ("main", here) for row in answers[0]), answers[0]
        assert answers[0] and answers[0] == answers[1] == answers[2]
    assert _rows(machine.json("search", "src", cwd=here)) == _rows(agent.call("search", **calls["search"]))
    agent.quit()
    http.close()


def _rows(result: Any) -> list[dict[str, Any]]:
    """The rows of an answer without their scores, which fall with age."""
    rows: Any = result.get("result", result) if isinstance(result, dict) else result
    if isinstance(rows, dict):
        rows = [touch for session in rows["sessions"] for touch in session["touches"]]
    return [{name: value for name, value in row.items() if name != "score"} for row in rows]
