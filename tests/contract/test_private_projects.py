"""What is private stays where it belongs, whoever started the server."""

from __future__ import annotations

import json
import socket
from typing import Any

from nudge.storage import spool
from tests.contract.repos import clone
from tests.contract.ways import connected
from tests.harness import Machine, eventually
from tests.security.served import Raw, post, rpc


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
        machine.cli("recent", "--all-projects", cwd=api, **hidden).stdout,
        machine.cli("search", "pay OR the", cwd=api, **hidden).stdout,
    ):
        assert "pay everyone" not in said and "the web" in said
    assert "the web" not in machine.cli("inject", cwd=api, NUDGE_CROSS_PROJECT="0").stdout
    assert "the web" not in _start(machine, api, "s2", NUDGE_CROSS_PROJECT="0")
    assert "the api" in (here := machine.cli("recent", cwd=api, **hidden).stdout) and "pay" not in here
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


def test_private_projects_are_not_found_by_id_either(machine: Machine) -> None:
    """Observations, a timeline, a session and a file of a private project: as if they did not exist, but in the project
    and for a caller that names it."""
    payroll, api = clone(machine.base / "payroll"), clone(machine.base / "api")
    port = machine.prepared_server("--private-projects", "payroll").port or 0
    _happened(machine, payroll, "pay everyone")
    edit = {
        "session_id": "pay everyone",
        "cwd": payroll,
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": f"{payroll}/pay.py", "content": "x"},
        "tool_response": {},
    }
    assert machine.cli("record", stdin=json.dumps(edit)).returncode == 0
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    rows = machine.json("search", "pay", cwd=payroll)
    number = str(rows[0]["id"])
    asked = (
        ("show", number),
        ("timeline", number),
        ("trace", "pay everyone"),
        ("trace", "pay"),
        ("history", f"{payroll}/pay.py"),
    )
    for command in asked:
        away, there = machine.cli(*command, cwd=api), machine.cli(*command, cwd=payroll)
        named = machine.cli(*command, "--project", "payroll", cwd=api)
        assert "pay" not in away.stdout.replace(f"{payroll}/pay.py", ""), command
        assert there.returncode == named.returncode == 0, command
        assert there.stdout.split() == named.stdout.replace(f"(in {payroll})", "").split(), command
        assert "touched" in away.stderr if command[0] == "history" else away.returncode == 1, command
    token = machine.cli("token").stdout.strip()
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("nudge.get_observations", {"ids": [int(number)]}),
        ("nudge.timeline", {"anchor": int(number)}),
        ("nudge.session_trace", {"session_id": "pay everyone"}),
        ("nudge.file_history", {"file_path": f"{payroll}/pay.py"}),
        ("nudge.sessions", {"session": "pay"}),
    )
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as connection:
        for method, params in calls:
            elsewhere = connection.ask(post("/", rpc(method, params), token=token)).body
            by_name = connection.ask(post("/", rpc(method, {**params, "project": "payroll"}), token=token)).body
            inside = connection.ask(post("/", rpc(method, {**params, "context": {"cwd": payroll}}), token=token)).body
            assert b"timestamp" not in elsewhere and b"started_at" not in elsewhere, method
            assert b"pay everyone" in by_name and b"pay everyone" in inside, method


def test_a_connected_process_does_not_say_that_it_is_in_a_private_project(machine: Machine) -> None:
    """To an agent elsewhere; to a person at the terminal it does."""
    payroll, api = clone(machine.base / "payroll"), clone(machine.base / "api")
    machine.prepared_server("--private-projects", "payroll")
    inside, elsewhere = connected(machine, cwd=payroll), connected(machine, cwd=api)
    inside.call("nudge_list_components")
    seen = {member["pid"]: member.get("repo", "") for member in elsewhere.call("nudge_status")["members"]}
    assert seen[inside.pid] == "" and seen[elsewhere.pid].endswith("api")
    shown = {member["pid"]: member.get("repo", "") for member in machine.json("status")["members"]}
    assert "payroll" in shown[inside.pid]
