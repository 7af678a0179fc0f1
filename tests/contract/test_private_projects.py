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
        "tool_input": {"command": f"git commit -m '{command}'"},
        "tool_response": {"stdout": f"[main 1a2b3c4] {command}\n 1 file changed"},
    }
    end = {"session_id": command, "cwd": cwd, "hook_event_name": "SessionEnd", "reason": "other"}
    for payload in (event, end):
        assert machine.cli("record", stdin=json.dumps(payload)).returncode == 0


def _start(machine: Machine, cwd: str, session: str, **environ: str) -> str:
    event = {"session_id": session, "cwd": cwd, "hook_event_name": "SessionStart", "source": "startup"}
    return machine.cli("record", stdin=json.dumps(event), **environ).stdout


def test_the_settings_of_whoever_asks(machine: Machine) -> None:
    """A server runs already, started with other settings: `inject`, a starting session, `recent` and a tool heed the
    caller's."""
    payroll, api, web = (clone(machine.base / name) for name in ("PayRoll", "api", "web"))
    machine.prepared_server("--cross-project")
    for cwd, command in ((payroll, "pay everyone"), (api, "the api"), (web, "the web")):
        _happened(machine, cwd, command)
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    told = machine.cli("inject", cwd=api).stdout
    assert "pay everyone" in told and "the web" in told
    hidden = {"NUDGE_PRIVATE_PROJECTS": "Payroll"}
    for said in (
        machine.cli("inject", cwd=api, **hidden).stdout,
        _start(machine, api, "s1", **hidden),
        machine.cli("recent", cwd=api, **hidden).stdout,
        machine.cli("recent", "--all-projects", cwd=api, **hidden).stdout,
        machine.cli("search", "pay OR the", cwd=api, **hidden).stdout,
    ):
        assert "pay everyone" not in said and "the web" in said
    assert "the web" not in machine.cli("inject", cwd=api, NUDGE_CROSS_PROJECT="0").stdout
    assert "the web" not in _start(machine, api, "s2", NUDGE_CROSS_PROJECT="0")
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
