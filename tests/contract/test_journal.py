"""The journal through every interface, two agents, and what stands for each tool, parameter and path of CLAMS."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.cli.app import load_command
from nudge.cli.verbs import find_verb
from nudge.clients import registry
from nudge.core.errors import Conflict
from nudge.interfaces import rest
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.rest import JOURNAL_EXAMPLES, REFUSALS
from nudge.interfaces.schemas import schema_of
from nudge.journal.fields import ROOT_CAUSES
from nudge.storage.database import Database
from tests.contract import readme
from tests.contract.repos import clone
from tests.contract.test_memories import by_rest, in_process, json_rpc, mcp_primary, mcp_proxy
from tests.contract.ways import Http, Outcome, Rest, Way, connected, served
from tests.harness import Machine, Stdio, eventually

JOURNAL = [name for name, operation in OPERATIONS.items() if operation.group == "journal"]
PLAN = {name: JOURNAL_EXAMPLES["nudge.start_ghap"][name] for name in ("goal", "hypothesis", "action", "prediction")}
VARYING = ("created_at", "updated_at", "resolved_at", "started_at", "at", "namespace")

# Calls that are refused after the examples ran: operation, parameters, reason, and the field that is named.
REFUSED: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("start_ghap", {"session_id": "s-3"}, "E_INVALID", "goal"),
    ("start_ghap", {**PLAN, "session_id": "s-3", "domain": "cooking"}, "E_INVALID", "domain"),
    ("start_ghap", {**PLAN, "session_id": "s-4"}, "E_CONFLICT", None),
    ("update_ghap", {"session_id": "s-4"}, "E_INVALID", None),
    ("update_ghap", {"session_id": "nobody", "note": "x"}, "E_NOT_FOUND", None),
    ("update_ghap", {"session_id": "s-1", "id": 1, "note": "x"}, "E_CONFLICT", None),
    ("resolve_ghap", {"session_id": "s-4", "status": "done"}, "E_INVALID", "status"),
    ("resolve_ghap", {"session_id": "nobody", "status": "confirmed"}, "E_NOT_FOUND", None),
    ("resolve_ghap", {"session_id": "s-1", "status": "confirmed"}, "E_CONFLICT", None),
    ("get_orphaned_ghap", {"session_id": "s-3", "adopt": "x"}, "E_INVALID", "adopt"),
    ("get_orphaned_ghap", {"session_id": "s-3", "adopt": 999}, "E_NOT_FOUND", None),
    ("get_orphaned_ghap", {"session_id": "s-3", "adopt": 1}, "E_CONFLICT", None),
    ("get_active_ghap", {"session_id": ""}, "E_INVALID", "session_id"),
    ("list_ghap_entries", {"limit": 101}, "E_INVALID", "limit"),
    ("journal_calibration", {"since": "yesterday"}, "E_INVALID", "since"),
    ("should_check_in", {"session_id": "s-1", "frequency": 0}, "E_INVALID", "frequency"),
    ("increment_tool_count", {"session_id": ""}, "E_INVALID", "session_id"),
    ("reset_tool_count", {"session_id": ""}, "E_INVALID", "session_id"),
]


def comparable(node: Any) -> Any:
    """Without times, without a new session's id, and without the repo that stdio fills in."""
    if isinstance(node, dict):
        return {name: comparable(value) for name, value in node.items() if name not in VARYING}
    if isinstance(node, list):
        return [comparable(item) for item in node]
    return "<uuid>" if isinstance(node, str) and re.fullmatch(r"[0-9a-f-]{36}", node) else node


def run(way: Way) -> list[Outcome]:
    """Every example, an attempt that stays open, then every refusal."""
    calls = [
        *JOURNAL_EXAMPLES.items(),
        ("nudge.start_ghap", {**PLAN, "session_id": "s-4"}),
        *((f"nudge.{name}", params) for name, params, *_ in REFUSED),
    ]
    return [comparable(way.call(operation, params)) for operation, params in calls]


class Tools:
    """A way whose tools have their own names: an operation of the journal is no `nudge_...`."""

    def __init__(self, stdio: Stdio) -> None:
        self._stdio = stdio

    def call(self, operation: str, params: Any) -> Outcome:
        result = self._stdio.tool(OPERATIONS[operation].tool, **params)
        payload = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == payload
        if not result.get("isError"):
            return {"result": payload}
        error = dict(payload["error"])
        return {"error": {"code": error.pop("code"), "message": error.pop("message"), "data": error}}


@pytest.fixture(scope="module")
def expected() -> list[Outcome]:
    with in_process() as way:
        return run(way)


def test_every_operation_of_the_journal_has_an_example_that_works(expected: list[Outcome]) -> None:
    """In the order of the examples, on an empty store."""
    assert set(JOURNAL_EXAMPLES) == set(JOURNAL)
    assert [outcome for outcome in expected[: len(JOURNAL_EXAMPLES) + 1] if "result" not in outcome] == []


def test_every_refusal_has_its_reason_and_its_field(expected: list[Outcome]) -> None:
    """What is wrong is named."""
    for (name, params, reason, field), outcome in zip(REFUSED, expected[len(JOURNAL_EXAMPLES) + 1 :], strict=True):
        data = outcome.get("error", {}).get("data", {})
        assert (data.get("reason"), data.get("field")) == (reason, field), (name, params, outcome)


@pytest.mark.parametrize("interface", [mcp_primary, mcp_proxy, json_rpc, by_rest])
def test_the_journal_is_the_same_through_every_interface(interface: Any, expected: list[Outcome]) -> None:
    """Result and error, to the last field; a tool is called by its own name and by the dotted one."""
    with interface() as way:
        assert run(Tools(way.stdio) if hasattr(way, "stdio") else way) == expected


def test_a_tool_is_called_by_its_dotted_name_too(machine: Machine) -> None:
    """As every other."""
    agent = connected(machine)
    assert agent.call("nudge.start_ghap", **PLAN)["status"] == "open"
    assert agent.call("get_active_ghap")["has_active"]
    agent.quit()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Http]:
    with (
        closing(Database.open(str(tmp_path / "notes.db"))) as database,
        served(database) as server,
        server.script() as opened,
    ):
        yield opened


def test_every_documented_status_is_seen(http: Http) -> None:
    """Each success, and for each operation every refusal that the document announces."""
    seen: dict[str, set[int]] = {}
    exchange = http.exchange

    def noted(*args: Any, **kwargs: Any) -> Any:
        reply = exchange(*args, **kwargs)
        seen.setdefault(name, set()).add(reply.status)
        return reply

    http.exchange = noted  # type: ignore[method-assign]
    calls = [*JOURNAL_EXAMPLES.items(), ("nudge.start_ghap", {**PLAN, "session_id": "s-4"})]
    for name, params in [*calls, *((f"nudge.{name}", params) for name, params, *_ in REFUSED)]:
        Rest(http).call(name, params)
    assert seen == {name: {rest.success_of(OPERATIONS[name]), *REFUSALS[name]} for name in JOURNAL}


# Several agents


def test_two_agents_in_one_repo_have_an_attempt_each(machine: Machine) -> None:
    """Neither sees, updates or ends the other's; a subagent, which shares its session's id, says `parallel`."""
    api = clone(machine.base / "api")
    one = connected(machine, cwd=api, CLAUDE_CODE_SESSION_ID="s-one")
    two = connected(machine, cwd=api, CLAUDE_CODE_SESSION_ID="s-two")
    first, second = one.call("start_ghap", **PLAN), two.call("start_ghap", **PLAN)
    assert (first["session_id"], second["session_id"]) == ("s-one", "s-two")
    refused = one.tool("resolve_ghap", id=second["id"], status="confirmed")
    assert refused["isError"] and refused["structuredContent"]["error"]["session_id"] == "s-two"
    sub = one.call("start_ghap", **PLAN, parallel=True)
    assert one.call("get_active_ghap")["open"] == [sub["id"], first["id"]]
    assert two.call("resolve_ghap", status="confirmed")["id"] == second["id"]
    assert one.call("get_orphaned_ghap") == {"has_orphan": False}
    one.quit()
    two.quit()


def test_two_sessions_adopt_one_orphan_at_the_same_moment(machine: Machine) -> None:
    """One has it; the others are told who."""
    api = clone(machine.base / "api")
    lost = connected(machine, cwd=api, CLAUDE_CODE_SESSION_ID="s-lost")
    number = lost.call("start_ghap", **PLAN)["id"]
    _end_session(machine, "s-lost", api)
    agents = [connected(machine, cwd=api, CLAUDE_CODE_SESSION_ID=f"s-{name}") for name in range(4)]
    eventually(lambda: agents[0].call("get_orphaned_ghap")["has_orphan"], "the end of the session is recorded")
    assert [agent.call("get_orphaned_ghap")["id"] for agent in agents] == [number] * len(agents)
    together = threading.Barrier(len(agents))
    results: list[dict[str, Any]] = [{} for _ in agents]

    def adopt(place: int) -> None:
        together.wait()
        results[place] = agents[place].tool("get_orphaned_ghap", adopt=number)

    threads = [threading.Thread(target=adopt, args=(place,)) for place in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = [result["structuredContent"]["session_id"] for result in results if not result.get("isError")]
    errors = [result["structuredContent"]["error"] for result in results if result.get("isError")]
    assert len(errors) == len(agents) - 1
    assert {(error["reason"], error["session_id"]) for error in errors} == {(Conflict.reason, winner)}
    assert all(f"belongs to session {winner}" in error["message"] for error in errors)
    for agent in (lost, *agents):
        agent.quit()


def _end_session(machine: Machine, session: str, cwd: str) -> None:
    for event in ("SessionStart", "SessionEnd"):
        payload = {"session_id": session, "hook_event_name": event, "cwd": cwd, "source": "startup", "reason": "other"}
        assert machine.cli("record", stdin=json.dumps(payload), cwd=cwd).returncode == 0


# What CLAMS has, and what stands for it here

_SESSION, _WHERE = {"session_id"}, {"context", "session_id"}
TOOLS: dict[str, tuple[set[str], set[str]]] = {
    # tool: its parameters there, and those that only this one has
    "start_session": (set(), set()),
    "get_orphaned_ghap": (set(), _WHERE | {"adopt", "parallel"}),
    "should_check_in": ({"frequency"}, _WHERE),
    "increment_tool_count": (set(), _WHERE),
    "reset_tool_count": (set(), _WHERE),
    "assemble_context": ({"query", "context_types", "limit", "max_tokens"}, {"context"}),
    "get_active_ghap": (set(), _WHERE),
    "start_ghap": (
        {"domain", "strategy", "goal", "hypothesis", "action", "prediction"},
        _WHERE | {"confidence", "parallel"},
    ),
    "update_ghap": ({"hypothesis", "action", "prediction", "strategy", "note"}, _WHERE | {"id", "confidence"}),
    "resolve_ghap": ({"status", "result", "surprise", "root_cause", "lesson"}, _WHERE | {"id"}),
    "list_ghap_entries": ({"limit", "domain", "outcome", "since"}, _WHERE | {"project"}),
}
# What a tool answers with there.
ANSWERS = {
    "start_session": {"session_id", "started_at"},
    "get_orphaned_ghap": {"has_orphan", "session_id", "goal", "hypothesis", "action", "created_at"},
    "should_check_in": {"should_check_in"},
    "increment_tool_count": {"tool_count"},
    "reset_tool_count": {"tool_count"},
    "assemble_context": {"markdown", "token_count", "item_count", "truncated"},
    "get_active_ghap": {"goal", "hypothesis", "prediction"},
}
PATHS = {("GET", "/health"): 200, ("GET", "/sse"): 410, ("POST", "/mcp"): 200}
# What is left out or different, by a word of the documents' line about it.
DIFFERENT = (
    *(
        "`domain` and `strategy`",
        "`hypothesis` and `action`",
        "`surprise`",
        "`start_session`",
        "counter",
        '{"type": ...}',
        "before each tool",
    ),
    *("`ping`", "`server`", "`/sse`", "CORS", "6334", "install.sh"),
)
LEFT_OUT = ("clusters", "embedding", "the host", "~/.clams/")
# Its hooks, and the event with which Nudge's one command does the same.
HOOKS = {
    "session_start.sh": "SessionStart",
    "user_prompt_submit.sh": "UserPromptSubmit",
    "ghap_checkin.sh": "PostToolUse",
    "outcome_capture.sh": "PostToolUse",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_of_clams_takes_its_parameters(tool: str) -> None:
    """Under the same names; what is added is listed here."""
    theirs, ours = TOOLS[tool]
    [operation] = [operation for operation in OPERATIONS.values() if operation.tool == tool]
    schema = schema_of(operation.params)
    assert set(schema.get("properties", {})) == theirs | ours
    assert set(schema.get("required", ())) <= theirs
    assert ANSWERS.get(tool, set()) <= set(schema_of(operation.result)["properties"])


def test_the_categories_of_a_root_cause_are_in_the_schema() -> None:
    """An agent knows them before it is refused; a sentence is accepted too."""
    schema = schema_of(OPERATIONS["nudge.resolve_ghap"].params, for_tools=True)
    sentence, parts = schema["properties"]["root_cause"]["anyOf"]
    assert sentence == {"type": "string"} and parts["properties"].keys() == {"category", "description"}
    assert tuple(parts["properties"]["category"]["enum"]) == ROOT_CAUSES


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_every_path_of_clams_is_answered(http: Http, method: str, path: str) -> None:
    """`/mcp` takes the bare `tools/call` of its hooks, and answers with the result as text."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_active_ghap", "arguments": {}}}
    reply = http.exchange(method, path, body if method == "POST" else None)
    assert reply.status == PATHS[method, path]
    if method == "POST":
        assert json.loads(reply.json["result"]["content"][0]["text"]) == {"has_active": False}


def test_the_command_line_of_clams() -> None:
    """`clams-server --http --daemon --port 6334`: the same options of `nudge serve`."""
    verb = find_verb("serve")
    assert verb is not None
    options = {name for param in load_command(verb).params for name in param.opts}
    assert {"--http", "--daemon", "--port"} <= options


def test_the_health_of_clams(http: Http) -> None:
    """The words that its hooks and its monitoring look for."""
    health = http.exchange("GET", "/health").json
    assert health["status"] == "healthy" and {"name", "version"} <= health.keys()


def test_every_hook_of_clams_has_its_event() -> None:
    """One command, registered for each."""
    assert set(HOOKS.values()) <= set(registry.get("claude-code").connected_events)


def test_the_hooks_of_clams_work_as_they_are(http: Http) -> None:
    """Count, ask, read the attempt, reset: bare calls of one anonymous session."""

    def call(tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        reply = http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        return json.loads(reply.json["result"]["content"][0]["text"])

    call("start_ghap", **PLAN, domain="debugging", strategy="read-the-error")
    for _ in range(10):
        call("increment_tool_count")
    assert call("should_check_in", frequency=10)["should_check_in"]
    assert {
        name: call("get_active_ghap")[name] for name in ("goal", "hypothesis", "prediction")
    }.items() <= PLAN.items()
    assert call("reset_tool_count") == {"tool_count": 0}
    assert not call("should_check_in", frequency=10)["should_check_in"]


def test_what_is_different_is_documented() -> None:
    """Each with what stands for it, or why nothing does."""
    lines = [" ".join(row) for row in readme.rows("| there |")]
    assert [word for word in (*DIFFERENT, *LEFT_OUT) if not any(word in line for line in lines)] == []
