"""History belongs to its repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.contract.repos import git
from tests.harness import Machine, eventually


def _clone(folder: Path, origin: str, branch: str = "main") -> str:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", branch)
    git(folder, "remote", "add", "origin", origin)
    return str(folder)


def _record(machine: Machine, cwd: str, session: str, event: str = "PostToolUse", **fields: Any) -> None:
    payload = {"session_id": session, "cwd": cwd, "hook_event_name": event, **fields}
    assert machine.cli("record", stdin=json.dumps(payload)).returncode == 0


def _ran(machine: Machine, cwd: str, command: str) -> None:
    fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": ""}}
    _record(machine, cwd, f"{command} session", **fields)


def _wait_until_stored(machine: Machine, number: int) -> None:
    eventually(
        lambda: sum(row["observation_count"] for row in machine.json("sessions")) == number, "the events are stored"
    )


def test_two_repos_with_one_short_name_are_two_projects(machine: Machine) -> None:
    """`x/api` and `y/api`: neither is told the other's commands as its own, and a purge takes one of them."""
    x = _clone(machine.base / "one" / "api", "git@example.com:x/api.git")
    y = _clone(machine.base / "two" / "api", "https://example.com/y/api")
    machine.json("ls")
    _ran(machine, x, "deploy x")
    _wait_until_stored(machine, 1)
    assert [row["project"] for row in machine.json("sessions")] == ["api"]
    _ran(machine, y, "deploy y")
    _wait_until_stored(machine, 2)
    assert {row["project"] for row in machine.json("sessions")} == {"x/api", "y/api"}
    told = machine.cli("inject", cwd=x).stdout
    own, _, others = told.partition("## Other projects")
    assert "## Recent (x/api)" in own and "deploy x" in own and "deploy y" not in own
    assert "deploy y" in others and "[y/api]" in others
    ambiguous = machine.cli("search", "deploy", "--project", "api")
    assert ambiguous.returncode == 3 and "name one of x/api, y/api" in ambiguous.stderr
    assert machine.cli("purge", "--project", "api").returncode == 3
    assert len(machine.json("search", "deploy")) == 2
    assert len(machine.json("search", "deploy", "--project", "y/api")) == 1
    assert machine.json("purge", "--project", "y/api", "--confirm")["total"] == 1
    assert [row["project"] for row in machine.json("recent", cwd=x)] == ["api"]
