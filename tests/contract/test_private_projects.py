"""What is private stays where it belongs, whoever started the server."""

from __future__ import annotations

import json

from nudge.storage import spool
from tests.contract.repos import clone
from tests.harness import Machine, eventually


def _happened(machine: Machine, cwd: str, command: str) -> None:
    event = {
        "session_id": command,
        "cwd": cwd,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": ""},
    }
    assert machine.cli("record", stdin=json.dumps(event)).returncode == 0


def _start(machine: Machine, cwd: str, session: str, **environ: str) -> str:
    event = {"session_id": session, "cwd": cwd, "hook_event_name": "SessionStart", "source": "startup"}
    return machine.cli("record", stdin=json.dumps(event), **environ).stdout


def test_the_settings_of_whoever_asks(machine: Machine) -> None:
    """A server runs already, started with other settings: `inject`, a starting session, `recent` and a tool heed the
    caller's."""
    payroll, api, web = (clone(machine.base / name) for name in ("PayRoll", "api", "web"))
    machine.json("ls", NUDGE_PRIVATE_PROJECTS="web")
    for cwd, command in ((payroll, "pay everyone"), (api, "make api"), (web, "make web")):
        _happened(machine, cwd, command)
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    told = machine.cli("inject", cwd=api).stdout
    assert "pay everyone" in told and "make web" in told
    hidden = {"NUDGE_PRIVATE_PROJECTS": "Payroll"}
    for said in (
        machine.cli("inject", cwd=api, **hidden).stdout,
        _start(machine, api, "s1", **hidden),
        machine.cli("recent", cwd=api, **hidden).stdout,
        machine.cli("recent", "--all-projects", cwd=api, **hidden).stdout,
        machine.cli("search", "pay OR make", cwd=api, **hidden).stdout,
    ):
        assert "pay everyone" not in said and "make web" in said
    assert "make web" not in machine.cli("inject", cwd=api, NUDGE_CROSS_PROJECT="0").stdout
    assert "make web" not in _start(machine, api, "s2", NUDGE_CROSS_PROJECT="0")
    assert "pay everyone" in machine.cli("search", "pay", cwd=payroll, **hidden).stdout
    assert "pay everyone" in machine.cli("recent", "--project", "PayRoll", cwd=api, **hidden).stdout
    agent = machine.serve(cwd=api, **hidden)
    agent.initialize()
    assert agent.call("search", query="pay", project=None) == {"result": []}
    assert (
        "pay everyone" not in json.dumps(agent.call("recent_context"))
        and agent.call("search", query="pay", project="payroll")["result"]
    )
    agent.quit()
