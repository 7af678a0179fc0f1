"""Whose session a call belongs to, through real processes: stdio, hooks, HTTP, and a client that clears or resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest

from tests.contract.ways import Http, connected
from tests.harness import Machine, Stdio, eventually

PLAN = {
    "goal": "make login fast",
    "hypothesis": "the lookup has no index",
    "action": "add an index",
    "prediction": "`make bench` passes",
}
_numbers = count()


@pytest.fixture
def served(machine: Machine) -> Machine:
    machine.prepared_server()
    return machine


@pytest.fixture
def script(served: Machine) -> Iterator[Http]:
    with closing(Http.to(served)) as opened:
        yield opened


def start(agent: Stdio, meta: dict[str, Any] | None = None, **arguments: Any) -> str:
    """The session that a new attempt belongs to."""
    params = {"name": "start_ghap", "arguments": {**PLAN, "parallel": True, **arguments}}
    result = agent.request("tools/call", {**params, **({"_meta": meta} if meta else {})})["result"]
    return str(result["structuredContent"]["session_id"])


def hook(machine: Machine, name: str, session: str, **fields: Any) -> None:
    """What the hook of a client does, whose process is this one: it started the servers here too."""
    payload = {"hook_event_name": name, "session_id": session, "cwd": str(machine.base), **fields}
    done = machine.cli("record", stdin=json.dumps(payload), CLAUDE_PID=str(os.getpid()), CLAUDECODE="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", ["primary", "proxy"])
def test_who_says_it_nearest_is_believed(machine: Machine, role: str) -> None:
    """The argument, then the metadata of the call, the environment, and the connection; two connections are two."""
    if role == "proxy":
        machine.prepared_server()
    agent = connected(machine, CLAUDE_CODE_SESSION_ID="of-environment")
    meta = {"sessionId": "of-call"}
    assert start(agent, meta, session_id="of-argument") == "of-argument"
    assert start(agent, meta) == "of-call"
    assert start(agent, {"x-codex-turn-metadata": {"session_id": "of-turn"}}) == "of-turn"
    assert start(agent) == "of-environment"
    one, other = connected(machine), connected(machine)
    assert start(one) == start(one) and start(one).startswith("stdio-")
    assert start(one) != start(other)


def test_a_script_names_its_session_in_a_header(script: Http) -> None:
    """What `start_session` returned; without it all scripts share the anonymous session, in JSON-RPC, REST and MCP."""
    session = script.call("nudge.start_session", {})["result"]["session_id"]
    assert script.post("/api/v1/journal", {**PLAN}, Nudge_Session=session).json["session_id"] == session
    call = {"name": "get_active_ghap", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    active = script.post("/mcp", message, Nudge_Session=session).json["result"]["structuredContent"]
    assert active["has_active"] and active["goal"] == PLAN["goal"]
    assert script.call("nudge.start_session", {})["result"]["session_id"] != session
    assert not script.post("/mcp", message).json["result"]["structuredContent"]["has_active"]
    assert script.call("nudge.start_ghap", PLAN)["result"]["session_id"] == "anonymous"


def test_after_clear_an_attempt_belongs_to_the_session_of_the_hooks(served: Machine) -> None:
    """The server of a client that cleared has the old session in its environment. Its attempts belong to the new one,
    also after another server took over; what was open before is an orphan."""
    agent = connected(served, cwd=str(served.base), CLAUDE_CODE_SESSION_ID="old")
    hook(served, "SessionStart", "old", source="startup")
    assert start(agent) == "old"
    hook(served, "SessionEnd", "old", reason="clear")
    hook(served, "SessionStart", "new", source="clear")
    _eventually_in(served, agent, "new")
    assert eventually(lambda: agent.call("get_orphaned_ghap")["has_orphan"], "the end of the old session is recorded")
    assert agent.call("get_orphaned_ghap")["session_id"] == "old"
    served.cli("stop", "--force")
    eventually(served.lock_is_free, "the server has ended")
    _eventually_in(served, agent, "new")


def _eventually_in(machine: Machine, agent: Stdio, session: str) -> None:
    """A hook that finds no answer in time leaves its event in the spool, without its process: the next one tells it."""

    def attempt() -> bool:
        hook(machine, "UserPromptSubmit", session, prompt="go on", prompt_id=f"p{next(_numbers)}")
        return start(agent) == session

    eventually(attempt, f"the client is known to be in session {session}")


def test_a_resumed_session_has_its_attempt(served: Machine) -> None:
    """The client starts anew, with the same session in the environment of its server and in its hooks."""
    first = connected(served, CLAUDE_CODE_SESSION_ID="s1")
    start(first)
    assert first.quit() == 0
    hook(served, "SessionEnd", "s1", reason="other")
    hook(served, "SessionStart", "s1", source="resume")
    again = connected(served, CLAUDE_CODE_SESSION_ID="s1")
    assert again.call("get_active_ghap")["goal"] == PLAN["goal"]
    assert not again.call("get_orphaned_ghap")["has_orphan"]
