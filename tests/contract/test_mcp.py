"""MCP on raw pipes, to PRIMARY and through a PROXY: the two must not be told apart."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from nudge import __version__
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import Invalid
from nudge.interfaces import mcp_server
from nudge.interfaces.mcp import StdioClient
from nudge.interfaces.mcp_server import McpCaller, McpServer
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.stdio import Pipe
from tests.contract.ways import InProcess, Served, connected, served
from tests.harness import Machine, Stdio

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "probe", "version": "1"},
}


@pytest.fixture(scope="module", params=["primary", "proxy"])
def pipe(request: pytest.FixtureRequest) -> Iterator[Stdio]:
    machine = Machine()
    if request.param == "proxy":
        machine.prepared_server()
    yield connected(machine)
    machine.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as running:
        yield running


def modern(pipe: Stdio, method: str, **params: Any) -> dict[str, Any]:
    return pipe.request(method, {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}})


# The two ways to begin


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_a_handshake_agrees_on_the_clients_version(pipe: Stdio, version: str) -> None:
    """`initialize` answers in the version that the client speaks, with name, capabilities and instructions."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    result = pipe.request("initialize", hello)["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "nudge" and result["serverInfo"]["version"] == __version__
    assert result["capabilities"]["tools"] == {"listChanged": False}
    assert "nudge_get_hint" in result["instructions"]


def test_a_handshake_in_an_unknown_version_offers_a_known_one(pipe: Stdio) -> None:
    """A client from another time is told what is spoken here."""
    hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    assert pipe.request("initialize", hello)["result"]["protocolVersion"] == HANDSHAKE


def test_a_client_without_handshake_discovers(pipe: Stdio) -> None:
    """`server/discover` answers what the newer protocol asks first: versions, capabilities, instructions, who we
    are."""
    result = modern(pipe, "server/discover")["result"]
    assert result["supportedVersions"] == [MODERN]
    assert "tools" in result["capabilities"] and "nudge_get_hint" in result["instructions"]
    assert result["resultType"] == "complete"
    assert result["_meta"][f"{META}serverInfo"]["name"] == "nudge"


def test_both_protocols_share_one_pipe(pipe: Stdio) -> None:
    """Which protocol a message belongs to is written on the message, so that any next server can answer it."""
    old, new = pipe.request("tools/list")["result"], modern(pipe, "tools/list")["result"]
    assert old["tools"] == new["tools"]
    assert "resultType" not in old and new["resultType"] == "complete"


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({f"{META}protocolVersion": "2031-01-01"}, -32022),
        ({f"{META}protocolVersion": 7}, -32602),
    ],
)
def test_a_newer_protocol_that_is_not_spoken_is_refused_by_name(pipe: Stdio, meta: dict[str, Any], code: int) -> None:
    """A version in the envelope that is unknown, or is no version, is not served as if it were another."""
    assert modern(pipe, "tools/list", _meta=meta)["error"]["code"] == code


def test_an_envelope_must_be_whole(pipe: Stdio) -> None:
    """A message that names the newer version must say what its client can do."""
    assert pipe.request("tools/list", {"_meta": {f"{META}protocolVersion": MODERN}})["error"]["code"] == -32602


def test_the_instructions_are_short(pipe: Stdio) -> None:
    """Every session pays for them: under 1,000 characters, naming the tools to get, set, bump and query, to store and
    recall, and those of the history."""
    result = modern(pipe, "server/discover")["result"]["instructions"]
    assert len(result) < 1_000
    assert {"nudge_get_hint", "nudge_set_hint", "nudge_bump", "nudge_query"} <= set(re.findall(r"nudge_\w+", result))
    assert {"search", "recent_context", "file_history", "session_trace"} <= set(re.findall(r"\w+", result))
    assert {"memory_store", "memory_recall"} <= set(re.findall(r"memory_\w+", result))


# What is said to a message


def test_a_ping_is_answered(pipe: Stdio) -> None:
    """A client that asks whether we live is told so."""
    assert pipe.request("ping")["result"] == {}


@pytest.mark.parametrize("method", ["resources/list", "nudge.get_hint", "fly"])
def test_an_unknown_method_is_refused_and_never_ignored(pipe: Stdio, method: str) -> None:
    """-32601 in both protocols: a client that waits for an answer must get one."""
    assert pipe.request(method)["error"]["code"] == -32601
    assert modern(pipe, method)["error"]["code"] == -32601


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "fly"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
        b"   ",
    ],
)
def test_what_is_no_request_gets_no_answer(pipe: Stdio, message: Any) -> None:
    """Notifications, answers to requests that were never sent and empty lines are passed over: the next line answers
    the next request."""
    pipe.send(message)
    assert pipe.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', -32700),
        (b"7", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"method": "ping"}', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b'{"x": ' * 70 + b"1" + b"}" * 71, -32600),
        (b'"' + b"x" * 1_100_000 + b'"', -32600),
    ],
)
def test_nonsense_is_called_by_its_number(pipe: Stdio, line: bytes, code: int) -> None:
    """A line that is no message is answered once with what is wrong, and the pipe goes on."""
    pipe.send(line)
    assert pipe.receive()["error"]["code"] == code
    assert pipe.request("ping")["result"] == {}


@pytest.mark.parametrize("request_id", [77, "seventy-seven"])
@pytest.mark.parametrize("order", ["jsonrpc id method params", "method params jsonrpc id", "jsonrpc method id params"])
def test_a_message_over_the_limit_is_answered_by_its_id(pipe: Stdio, order: str, request_id: int | str) -> None:
    """However long it is and wherever the id stands: a client waits for that answer, which says how to send more."""
    payload = {"components": {"c": {"hints": {"k": "x" * 3_000_000, "id": 5}}}}
    params = {"name": "nudge_import", "arguments": {"payload": payload}}
    message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    pipe.send({name: message[name] for name in order.split()})
    answer = pipe.receive()
    assert (answer["id"], answer["error"]["code"]) == (request_id, -32600)
    assert "nudge import FILE" in answer["error"]["message"]
    assert pipe.request("ping")["result"] == {}


def test_answers_to_many_requests_find_their_way(pipe: Stdio) -> None:
    """Requests may be sent ahead of their answers; each answer carries the id of its request."""
    names = [f"call-{number}" for number in range(50)]
    for name in names:
        pipe.send(
            {
                "jsonrpc": "2.0",
                "id": name,
                "method": "tools/call",
                "params": {"name": "nudge_get_hint", "arguments": {"component": "none", "key": name}},
            }
        )
    answers = {answer["id"]: answer["result"] for answer in (pipe.receive() for _ in names)}
    assert {name: answers[name]["structuredContent"]["error"]["key"] for name in names} == {
        name: name for name in names
    }


# Tools


@pytest.fixture(scope="module")
def tools(pipe: Stdio) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = pipe.request("tools/list")["result"]["tools"]
    return listed


def test_what_an_agent_needs_in_its_work_is_listed(tools: list[dict[str, Any]]) -> None:
    """Four operations on hints, six on the history, four on notes and two on attempts by default; the others stay
    callable, and `all` lists them."""
    hints = {f"nudge_{method}" for method in ("get_hint", "set_hint", "query", "bump")}
    history = {"search", "get_observations", "timeline", "recent_context", "session_trace", "file_history"}
    memories = {"memory_store", "memory_recall", "memory_get", "memory_explain"}
    assert {tool["name"] for tool in tools} == hints | history | memories | {"start_ghap", "resolve_ghap"}


def test_tools_that_remove_things_are_destructive() -> None:
    """Those that delete, or overwrite what the call does not name one by one; a client may ask before it calls one."""
    destructive = {
        *("nudge_delete_hint", "nudge_import", "nudge_scan", "nudge_stop"),
        *("memory_delete", "memory_forget", "memory_gc", "memory_archive_purge", "memory_import", "memory_sync"),
        *("memory_consolidate", "memory_auto_consolidate", "memory_delete_link", "forget_learned", "purge"),
        "team_leave",
        "semantic_off",
    }
    assert {operation.tool for operation in OPERATIONS.values() if operation.effect == "delete"} == destructive


def test_every_tool_says_what_it_does(tools: list[dict[str, Any]]) -> None:
    """Annotations that follow from the effect, a schema for what goes in and one for what comes out."""
    effects = {operation.tool: operation.effect for operation in OPERATIONS.values()}
    for tool in tools:
        effect = effects[tool["name"]]
        change = {} if effect == "read" else {"destructiveHint": effect == "delete"}
        assert tool["annotations"] == {"readOnlyHint": effect == "read", "openWorldHint": False, **change}
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object" and "$ref" not in json.dumps(schema)


def test_one_tool_is_loaded_up_front(tools: list[dict[str, Any]]) -> None:
    """Clients defer tools; the one to ask before guessing must be at hand."""
    assert {tool["name"]: tool.get("_meta") for tool in tools if "_meta" in tool} == {
        "nudge_get_hint": {"anthropic/alwaysLoad": True}
    }


@pytest.mark.parametrize("name", ["nudge_set_hint", "nudge.set_hint"])
def test_a_tool_answers_to_both_spellings(pipe: Stdio, name: str) -> None:
    """Dotted names are the methods' own; some clients cannot say a dot."""
    assert pipe.call(name, component="spelling", key=name, value="x")["hint"]["value"] == "x"


def test_a_result_comes_structured_and_as_the_same_text(pipe: Stdio, tools: list[dict[str, Any]]) -> None:
    """The structured content is the operation's result and keeps to the schema; the text block is it as JSON."""
    result = pipe.tool("nudge_set_hint", component="shape", key="k", value="größe")
    assert result["isError"] is False and json.loads(result["content"][0]["text"]) == result["structuredContent"]
    schema = next(tool["outputSchema"] for tool in tools if tool["name"] == "nudge_set_hint")
    Draft202012Validator(schema).validate(result["structuredContent"])


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("nudge_get_hint", {"component": "none", "key": "x"}, {"code": 40401, "reason": "E_NOT_FOUND", "why_not": []}),
        (
            "nudge_set_hint",
            {"component": "x", "key": "x", "value": 7},
            {"code": 40001, "reason": "E_INVALID", "field": "value"},
        ),
        (
            "nudge_set_hint",
            {"component": "x", "key": "x", "value": "x", "if_match_version": 4},
            {"code": 40901, "reason": "E_CONFLICT"},
        ),
    ],
)
def test_a_failed_tool_is_a_result_that_says_so(
    pipe: Stdio, name: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    """`isError`, with code, reason, sentence and whatever helps to go on: a model must be able to read it and act."""
    result = pipe.tool(name, **arguments)
    error = result["structuredContent"]["error"]
    assert result["isError"] is True and error["message"]
    assert {field: error[field] for field in expected} == expected


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": "nudge_query", "arguments": []}, {"name": "nudge_query", "_meta": []}]
)
def test_a_call_that_is_none_is_refused(pipe: Stdio, params: dict[str, Any]) -> None:
    """Without a tool's name, or with arguments that are no object, nothing is called."""
    assert pipe.request("tools/call", params)["error"]["code"] == -32602


def test_an_unknown_tool_is_an_unknown_method(pipe: Stdio) -> None:
    """It is refused by name."""
    error = pipe.request("tools/call", {"name": "nudge_fly", "arguments": {}})["error"]
    assert error["code"] == -32601 and "nudge_fly" in error["message"]


def test_an_agent_signs_what_it_sets(pipe: Stdio) -> None:
    """Who set a hint matters when two disagree: the client's name is added, from the handshake or from the message
    itself."""
    pipe.initialize()
    old = pipe.call("nudge_set_hint", component="sign", key="old", value="x")
    assert old["hint"]["meta"] == {"source": "agent", "added_by": "agent:test"}
    call = {"name": "nudge_set_hint", "arguments": {"component": "sign", "key": "new", "value": "x"}}
    signed = modern(pipe, "tools/call", **call)["result"]["structuredContent"]["hint"]["meta"]
    assert signed == {"source": "agent", "added_by": "agent:probe"}
    own = pipe.call("nudge_set_hint", component="sign", key="own", value="x", meta={"source": "user", "added_by": "me"})
    assert own["hint"]["meta"] == {"source": "user", "added_by": "me"}


def test_a_directory_with_an_endless_name_is_answered_too(pipe: Stdio) -> None:
    """What is found out about the caller must never keep its call from being answered."""
    result = pipe.tool("nudge_get_hint", component="none", key="x", context={"cwd": "/" + "x" * 3_000})
    assert result["structuredContent"]["error"]["reason"] == "E_NOT_FOUND"


@pytest.mark.parametrize(
    "failure", [RuntimeError("at /var/lib/nudge"), Invalid("is nonsense", field="context")], ids=["crash", "refusal"]
)
def test_a_failure_around_a_message_is_answered_with_its_id(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong before a message reaches its operation, its sender does not wait for ever."""

    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(mcp_server, "caller_context", fail)
    answer = asyncio.run(
        _asked_on_a_pipe({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "nudge_query"}})
    )
    assert answer["id"] == 5 and "error" in answer and "/var" not in json.dumps(answer)


async def _asked_on_a_pipe(message: dict[str, Any]) -> dict[str, Any]:
    """PRIMARY's end of a client's pipe, in this process."""
    (reader, asking), (answering, writer) = os.pipe(), os.pipe()
    server = mcp_server.StdioServer(Pipe(reader, writer), McpServer(InProcess().app), StdioClient(), lambda: None, {})
    server.start()
    os.write(asking, json.dumps(message).encode() + b"\n")
    answer: dict[str, Any] = json.loads(await asyncio.to_thread(os.read, answering, 65_536))
    await server.finish(1.0)
    for descriptor in (reader, asking, answering, writer):
        os.close(descriptor)
    return answer


# POST /mcp


def test_a_bare_call_by_post_works(server: Served) -> None:
    """A hook needs no handshake and no header but token and content type: one POST of `tools/call`, one answer; a
    notification is accepted with 202."""
    call = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {"name": "nudge_set_hint", "arguments": {"component": "hook", "key": "k", "value": "v"}},
    }
    with server.script() as script:
        answer = script.post("/mcp", call).json
        quiet = script.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert answer["id"] == 9 and answer["result"]["structuredContent"]["hint"]["value"] == "v"
    assert (quiet.status, quiet.body) == (202, b"")


def test_facts_that_are_nonsense_are_refused_with_the_requests_id(server: Served) -> None:
    """A header that cannot be read fails the one request, in the form its sender waits for."""
    with server.script() as script:
        for headers in (
            {"Nudge_Deadline": "soon"},
            {"Nudge_Request_Id": "x" * 65},
            {"Nudge_Session": "x" * 257},
        ):
            answer = script.post("/mcp", {"jsonrpc": "2.0", "id": 4, "method": "ping"}, **headers).json
            assert (answer["id"], answer["error"]["data"]["reason"]) == (4, "E_INVALID")


def test_an_array_is_wrapped() -> None:
    """Structured content must be an object."""

    class Listing(App):
        async def execute(self, name: str, params: object, call: Call) -> Any:  # noqa: ARG002
            return [1, 2]

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nudge_query", "arguments": {}}}
    answer = asyncio.run(McpServer(Listing(InProcess().app.lifetime, {})).answer(call, McpCaller(Call())))
    assert answer is not None and answer["result"]["structuredContent"] == {"result": [1, 2]}


@pytest.mark.parametrize("char", ["\u202e", "\u200b", "\u2066", "\u3164", "\U000e0041"])
def test_invisible_characters_are_escaped_in_every_result(machine: Machine, char: str) -> None:
    """Invisible and bidirectional characters of stored text reach no model as they are."""
    client = machine.serve()
    client.initialize()
    value = {"type": "json", "data": {"note": f"a{char}b"}}
    client.tool("nudge_set_hint", component="api", key="k", value=value, meta={"scope": {}})
    result = client.tool("nudge_get_hint", component="api", key="k")
    hint = result["structuredContent"]["hint"]
    assert hint["value"]["data"] == {"note": "a" + char.encode("unicode_escape").decode() + "b"}
    assert char not in result["content"][0]["text"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    event = {"event_id": "e1", "session_id": "s", "timestamp": 1_794_000_000, "type": "command", "client": "unknown"}
    shown = {"cwd": "/", "project": "p", "content": f"make {char}x", "metadata": {"error": f"a{char}b"}}
    client.call("record", event={**event, **shown})
    for tool, arguments in (
        ("nudge_query", {"component": "api"}),
        ("nudge_export", {}),
        ("search", {"query": "make", "project": None}),
        ("get_observations", {"ids": [1]}),
        ("recent_context", {"project": None}),
        ("session_trace", {"session_id": "s"}),
        ("nudge_get_hint", {"component": f"a{char}pi", "key": "k"}),
    ):
        answer = client.tool(tool, **arguments)
        assert char not in json.dumps(answer, ensure_ascii=False), tool
        assert answer["structuredContent"] not in ({}, {"result": []}), tool
