"""What is answered without the MCP SDK is what the SDK would have answered: handshake, tool calls, refusals."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from nudge.core import strict_json, thin_json
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import Conflict, Invalid, NotFound
from nudge.interfaces import mcp
from nudge.interfaces.mcp_sdk import SdkServer, describe_handshake
from nudge.interfaces.mcp_server import McpCaller, McpServer
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.wire import IpcHandler
from nudge.process.proxy import _ClientCall
from nudge.process.wire import encode_value
from nudge.process.wire_connection import _encode
from tests import effort
from tests.contract.ways import InProcess, connected
from tests.harness import Machine, Stdio

HANDSHAKE_ERA = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VERSIONS = (*HANDSHAKE_ERA, MODERN)
CLIENT = {"name": "tester", "version": "1"}
Message = dict[str, Any]


class Scripted(App):
    """An application whose operations do what their parameters say."""

    async def execute(self, name: str, params: object, call: Call) -> Any:
        assert isinstance(params, dict)
        outcome = params.get("outcome")
        if outcome == "refused":
            raise Invalid("must be 1 to 10", field="meta.priority")
        if outcome == "missing":
            raise NotFound("there is none", keys=["test"], why_not=[{"reason": "é"}])
        if outcome == "conflict":
            raise Conflict("changed meanwhile", version=3)
        if outcome == "bug":
            raise RuntimeError("at /var/lib/nudge")
        if outcome == "list":
            return [1, "two", None]
        if outcome == "hidden":
            return {"count": 1, "memories": [{"id": 1, "title": "a\u202eb \x1b é \ufe0f|", "content": "\u200b\r\n"}]}
        return {"operation": name, "params": params, "client": call.client, "half": 0.5, "text": 'quo"te é \n'}


@pytest.fixture(scope="module")
def app() -> App:
    return Scripted(InProcess().app.lifetime, OPERATIONS)


@pytest.fixture(scope="module")
def sdk(app: App) -> SdkServer:
    return SdkServer(app)


def meta_of(version: str, **more: Any) -> Message:
    """What a request of that version carries."""
    if version != MODERN:
        return more
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": CLIENT,
        **more,
    }


def request(method: str, params: Any, version: str, request_id: Any = 7) -> Message:
    if isinstance(params, dict) and meta_of(version) and method != "initialize":
        params = {"_meta": meta_of(version), **params}
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def caller(version: str = "", tools: str = "default") -> McpCaller:
    return McpCaller(Call(interface="mcp", client="before"), version if version in HANDSHAKE_ERA else None, tools)


def by_sdk(sdk: SdkServer, message: Any, said: McpCaller) -> Any:
    return comparable(asyncio.run(sdk.answer(message, said)))


def without_sdk(app: App, message: Any, said: McpCaller) -> Any:
    """The answer of PRIMARY's interfaces; a failure of the test where it needs the SDK."""
    server = McpServer(app)
    server._load = lambda: pytest.fail("went to the SDK")  # type: ignore[method-assign]
    return comparable(asyncio.run(server.answer(message, said)))


def comparable(answer: Any) -> Any:
    """Two encoders may spell a number of a JSON text in two ways; a text that is no JSON stays as it is."""
    for block in (answer or {}).get("result", {}).get("content", ()):
        with contextlib.suppress(json.JSONDecodeError):
            block["text"] = json.loads(block["text"])
    return answer


# The package data


def test_the_package_data_is_what_the_sdk_answers() -> None:
    """After a change of tools, instructions or SDK: make handshake."""
    assert json.loads(Path(mcp.HANDSHAKE).read_text(encoding="utf-8")) == asyncio.run(describe_handshake())


@pytest.mark.parametrize("version", [*VERSIONS, "2023-01-01", "2027-01-01", ""])
@pytest.mark.parametrize("client", [CLIENT, {**CLIENT, "title": "T", "description": "d"}])
@pytest.mark.parametrize(
    "capabilities", [{}, {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}]
)
def test_initialize(app: App, sdk: SdkServer, version: str, client: Message, capabilities: Message) -> None:
    """Every version that a client may ask for, and those that there are none of."""
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
    message = request("initialize", params, version)
    assert without_sdk(app, message, caller()) == by_sdk(sdk, message, caller())


@pytest.mark.parametrize("tools", ["default", "all", "hints", "history,nudge_stop", "search, nudge.get_hint", "nope"])
@pytest.mark.parametrize("version", VERSIONS)
def test_tools_list(app: App, sdk: SdkServer, version: str, tools: str) -> None:
    """In either era, whatever is chosen; a choice that there is none of is refused alike."""
    message = request("tools/list", {}, version, "list")
    assert without_sdk(app, message, caller(version, tools)) == by_sdk(sdk, message, caller(version, tools))


@pytest.mark.parametrize("version", VERSIONS)
def test_prompts_list(app: App, sdk: SdkServer, version: str) -> None:
    """In either era."""
    message = request("prompts/list", {}, version, "list")
    assert without_sdk(app, message, caller(version)) == by_sdk(sdk, message, caller(version))


def test_discover_and_ping(app: App, sdk: SdkServer) -> None:
    """What the newer era opens with, and what the older one keeps a connection alive with."""
    for message in (
        request("server/discover", {}, MODERN, "server-discover-probe-1"),
        request("ping", {}, "2025-06-18"),
        request("ping", None, "2025-11-25"),
    ):
        assert without_sdk(app, message, caller()) == by_sdk(sdk, message, caller())


@pytest.mark.parametrize(
    ("method", "params", "version"),
    [
        ("server/discover", {}, "2025-11-25"),
        ("ping", {}, MODERN),
        ("prompts/get", {"name": "recall-first"}, "2025-11-25"),
        ("prompts/list", {"cursor": "x"}, "2025-11-25"),
        ("resources/list", {}, MODERN),
        ("nonsense", {}, "2025-11-25"),
        ("tools/list", {"cursor": "x"}, "2025-11-25"),
        ("initialize", {"protocolVersion": 7, "capabilities": {}, "clientInfo": CLIENT}, ""),
        ("initialize", {"protocolVersion": MODERN, "capabilities": {"roots": 1}, "clientInfo": CLIENT}, ""),
        ("tools/call", {"name": "nope", "arguments": {}}, "2025-11-25"),
        ("tools/call", {"name": "nope", "arguments": {}}, MODERN),
        ("tools/call", {"name": "nudge_query", "arguments": []}, "2025-11-25"),
        ("tools/call", {"name": "nudge_query", "arguments": {}, "task": {}}, "2025-11-25"),
        ("tools/call", {"name": "nudge_query", "_meta": {"progressToken": []}}, "2025-11-25"),
        ("tools/call", {"name": 7}, MODERN),
        ("tools/call", {}, "2025-11-25"),
        ("tools/call", None, "2025-11-25"),
    ],
)
def test_what_is_not_recognised_goes_to_the_sdk(method: str, params: Any, version: str) -> None:
    """It knows what is wrong with it, or what it means."""
    message = request(method, params, version)
    assert mcp.answer_handshake(message, "default") is None
    assert mcp.read_tool_call(message) is None


# Tool calls


@pytest.mark.parametrize("outcome", ["done", "refused", "missing", "conflict", "bug", "list"])
@pytest.mark.parametrize("version", VERSIONS)
def test_tool_calls(app: App, sdk: SdkServer, version: str, outcome: str) -> None:
    """Results, failures of tools and of ours, in every version, for tools by each of their names."""
    for name in ("nudge_query", "nudge.query", "search", "nudge.search", "nudge_stop"):
        message = request("tools/call", {"name": name, "arguments": {"outcome": outcome}}, version)
        assert without_sdk(app, message, caller(version)) == by_sdk(sdk, message, caller(version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"arguments": None},
        {"_meta": {"progressToken": 3, "claudecode/toolUseId": "toolu_1"}},
        {"_meta": {"progressToken": "p", "x-codex-turn-metadata": {"workspaces": {}}}},
    ],
)
def test_calls_as_clients_send_them(app: App, sdk: SdkServer, version: str, more: Message) -> None:
    """Tokens for progress and metadata of vendors come with nearly every call, and need no SDK."""
    params = {"name": "nudge_query", **more}
    if "_meta" in more:
        params["_meta"] = meta_of(version, **more["_meta"])
    message = request("tools/call", params, version)
    assert without_sdk(app, message, caller(version)) == by_sdk(sdk, message, caller(version))


TEXTS = st.sampled_from(["", "x", "nudge_query", "search", MODERN, "2025-11-25", "tester", "é"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1, 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
CAPABILITIES = st.dictionaries(
    st.sampled_from(["roots", "sampling", "elicitation", "experimental", "tasks", "extensions", "x"]),
    JSON | st.fixed_dictionaries({}, optional={"listChanged": JSON, "form": JSON, "context": st.just({})}),
    max_size=2,
)
INFO = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("name", "version", "title", "description", "websiteUrl", "icons", "x"), TEXTS | JSON)
)
META = JSON | st.fixed_dictionaries(
    {},
    optional={
        "progressToken": JSON,
        "vendor/key": JSON,
        "io.modelcontextprotocol/protocolVersion": st.just(MODERN) | TEXTS | JSON,
        "io.modelcontextprotocol/clientCapabilities": st.just({}) | CAPABILITIES | JSON,
        "io.modelcontextprotocol/clientInfo": st.just(CLIENT) | INFO | JSON,
        "io.modelcontextprotocol/logLevel": JSON,
    },
)
PARAMS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("nudge_query") | TEXTS | JSON,
        "arguments": st.just({"outcome": "refused"}) | JSON,
        "_meta": META,
        "cursor": JSON,
        "task": JSON,
        "protocolVersion": TEXTS | JSON,
        "capabilities": st.just({}) | CAPABILITIES | JSON,
        "clientInfo": st.just(CLIENT) | INFO | JSON,
    },
)
MESSAGES = JSON | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": st.sampled_from([*mcp._HANDSHAKE, "tools/call"]) | JSON},
    optional={"id": st.integers(1, 3) | JSON, "params": PARAMS, "x": JSON},
)


@settings(max_examples=effort.times(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(message=MESSAGES, version=st.sampled_from(["", *HANDSHAKE_ERA]))
@example(message=request("tools/call", {"name": "nudge_query", "_meta": None}, "2025-11-25"), version="2025-11-25")
def test_whatever_is_answered_here_the_sdk_answers_alike(app: App, sdk: SdkServer, message: Any, version: str) -> None:
    """Whatever a client sends: what this side takes upon itself has the answer that the SDK gives."""
    said = caller(version)
    server = McpServer(app)
    server._load = lambda: (_ for _ in ()).throw(LookupError)  # type: ignore[method-assign]
    try:
        answer = comparable(asyncio.run(server.answer(message, said)))
    except LookupError:
        return
    assert answer == by_sdk(sdk, message, said)


# Through a PROXY: it sends an operation, and makes the envelope of what comes back

OWN_TEXT = sorted(operation.tool for operation in OPERATIONS.values() if operation.as_text is not None)
OUTCOMES = ("done", "refused", "missing", "conflict", "bug", "list", "hidden")


def through_proxy(app: App, message: Any, said: McpCaller) -> Any:
    """The answer that a PROXY gives, with all that is encoded and decoded between the two processes."""
    client = mcp.read_client(message) or said.call.client
    call = _ClientCall(json.dumps(message).encode(), message, {"door": "mcp", "client": client})
    assert call.tool is not None
    sent = strict_json.decode(call.encode())
    answer = asyncio.run(IpcHandler(app, McpServer(app)).answer(sent, env_asked=False))
    assert call.read_answer(thin_json.loads(_encode({"id": sent["id"], **answer})), {})
    return json.loads(encode_value(call.answer()))


def test_the_tools_with_a_text_of_their_own() -> None:
    assert OWN_TEXT == ["memory_archive_list", "memory_list", "memory_recall", "memory_search"]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_proxy_answers_as_the_sdk_does(app: App, sdk: SdkServer, version: str, outcome: str) -> None:
    """Every tool whose text the server makes, as TOON and as JSON, and two whose text is the JSON of the result."""
    said = caller(version)
    for name in (*OWN_TEXT, "nudge.memory_recall", "nudge_query", "nudge_stop"):
        for more in ({}, {"format": "toon"}, {"format": "json"}):
            message = request("tools/call", {"name": name, "arguments": {"outcome": outcome, **more}}, version)
            if outcome == "list" and name.removeprefix("nudge.") in OWN_TEXT:
                continue  # their results are objects
            assert comparable(through_proxy(app, message, said)) == by_sdk(sdk, message, said), (name, more)


@settings(max_examples=effort.times(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from([*OWN_TEXT, "nudge_query"]), params=PARAMS, version=st.sampled_from(VERSIONS))
def test_whatever_a_proxy_sends_as_an_operation_the_sdk_answers_alike(
    app: App, sdk: SdkServer, name: str, params: Any, version: str
) -> None:
    """Parameters of any shape: those that are no plain call go to the server as they came."""
    message = request("tools/call", {**params, "name": name} if isinstance(params, dict) else params, version)
    if mcp.read_tool_call(message) is not None:
        assert comparable(through_proxy(app, message, caller(version))) == by_sdk(sdk, message, caller(version))


def test_the_result_beside_a_text_is_encoded_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the server, which needs the JSON to look for invisible characters; the line takes it as it is."""
    encoded: list[Any] = []

    def noting(value: Any) -> bytes:
        encoded.append(value)
        return to_json(value)

    monkeypatch.setattr(strict_json, "_to_json", noting)
    call = {"id": 1, "op": "nudge.memory_recall", "params": {"context": "x"}, "caller": {"text": True}}
    answer = asyncio.run(IpcHandler(app, McpServer(app)).answer(call, env_asked=False))
    line = json.loads(_encode({"id": 1, **answer}))
    assert [value for value in encoded if "params" in json.dumps(value)] == [line["result"]]
    assert line["text"].startswith("operation:nudge.memory_recall|")


def test_a_caller_that_asks_for_no_text_gets_none(app: App) -> None:
    """The command line prints results in its own way."""
    call = {"id": 1, "op": "nudge.memory_recall", "params": {}, "caller": {"door": "cli"}}
    assert asyncio.run(IpcHandler(app, McpServer(app)).answer(call, env_asked=False)).keys() == {"result"}


# Real processes


def test_primary_and_proxy_answer_alike(machine: Machine) -> None:
    """A handshake and calls of every outcome, through PRIMARY's own pipe and through a PROXY, in both eras."""
    ends = [connected(machine), connected(machine)]
    ends[1].call("memory_store", title="of a\u202etool|", content="one two")
    calls: list[tuple[str, Any]] = [
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}),
        ("tools/list", {}),
        ("ping", {}),
        ("tools/call", {"name": "nudge_get_hint", "arguments": {"component": "no", "key": "no"}}),
        ("tools/call", {"name": "nudge_get_hint", "arguments": {"component": 7}}),
        ("tools/call", {"name": "nudge_list_components"}),
        *(
            ("tools/call", {"name": name, "arguments": {**asked_for, **how}})
            for name, asked_for in (
                ("memory_recall", {"context": "two", "touch": False}),
                ("memory_recall", {"context": "absent", "touch": False}),
                ("memory_search", {"query": "two"}),
                ("memory_list", {"limit": 2}),
                ("memory_archive_list", {}),
                ("memory_list", {"limit": "many"}),
            )
            for how in ({}, {"format": "toon"}, {"format": "json"}, {"format": "xml"})
        ),
        ("tools/call", {"name": "nope"}),
        ("tools/call", {"name": "nudge_query", "arguments": []}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "recall-first", "arguments": {"namespace": "api"}}),
        ("prompts/get", {"name": "nope"}),
        ("resources/list", {}),
    ]
    for version in ("2025-06-18", MODERN):
        for method, params in calls:
            message = request(method, params, version, request_id=1)
            first, second = (asked(end, message) for end in ends)
            assert comparable(first) == comparable(second), message
    recalled = asked(ends[1], request("tools/call", {"name": "memory_recall", "arguments": {"context": "two"}}, MODERN))
    assert "|of a\\\\u202etool\\||" in recalled["result"]["content"][0]["text"]


def asked(end: Stdio, message: Message) -> Message:
    end.send(message)
    return end.receive()


def test_the_sdk_is_not_loaded_for_a_handshake_and_calls(tmp_path: Path) -> None:
    """A hundred calls through PRIMARY: the SDK stays on the disk. It would take longer than all the rest."""
    script = """
import asyncio, sys
from nudge.settings.config import Sources
from nudge.interfaces.mcp_server import McpCaller, McpServer
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.wire import IpcHandler
from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.lifetime import open_lifetime
import nudge.process.primary

async def main():
    app = App(open_lifetime(sys.argv[1], Sources(sys.argv[1])), OPERATIONS)
    server = McpServer(app)
    handler = IpcHandler(app, server)
    caller = McpCaller(Call(interface="mcp"))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    for method, params in (("initialize", hello), ("tools/list", {}), ("ping", {})):
        assert "result" in await server.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, caller)
    assert await server.answer({"jsonrpc": "2.0", "method": "notifications/initialized"}, caller) is None
    hint = {"component": "c", "key": "k", "value": "v"}
    claude = {  # as Claude Code 2.1.325 sends them
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {
            "name": "claude-code", "title": "Claude Code", "version": "2.1.325", "description": "Anthropic's tool",
            "websiteUrl": "https://claude.com/claude-code",
        },
        "io.modelcontextprotocol/clientCapabilities": {
            "roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}
        },
    }
    for number in range(50):
        meta = {**claude, "claudecode/toolUseId": "toolu_1", "progressToken": number}
        call = {"name": "nudge_set_hint", "arguments": hint, "_meta": meta}
        answer = await server.answer({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, caller)
        assert not answer["result"]["isError"], answer
        params = {"component": "c", "key": "k"}
        answer = await handler.answer({"op": "nudge.get_hint", "params": params}, env_asked=False)
        assert "result" in answer, answer
    assert not {"mcp", "mcp_types", "aiohttp"} & set(sys.modules)

asyncio.run(main())
"""
    tmp_path.chmod(0o700)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_handshake_is_answered_while_the_core_is_imported(machine: Machine) -> None:
    """A client that opens with both requests has its answers before a PRIMARY could be found; later calls follow."""
    stdio = machine.serve()
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    stdio.send(request("initialize", params, "2025-06-18", 1))
    stdio.send(request("tools/list", {}, "2025-06-18", 2))
    stdio.send(request("tools/call", {"name": "nudge_status"}, "2025-06-18", 3))
    assert [stdio.receive()["id"] for _ in range(2)] == [1, 2]
    early = machine.endpoint()
    assert early is None or early.state == "starting"
    assert stdio.receive()["result"]["structuredContent"]["client"] == "tester"


def test_a_cancelled_request_gets_no_answer_and_is_still_done(machine: Machine) -> None:
    """A client that cancels does not wait any more; what the call wrote is written."""
    connected(machine)
    proxy = connected(machine)
    setting = {"component": "c", "key": "k", "value": "v", "meta": {"scope": {}}}
    call = request("tools/call", {"name": "nudge_set_hint", "arguments": setting}, "2025-11-25", "gone")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}}
    reading = {"name": "nudge_get_hint", "arguments": {"component": "c", "key": "k"}}
    check = request("tools/call", reading, "2025-11-25", "check")
    proxy.send(b"\n".join(json.dumps(message).encode() for message in (call, cancel, call, cancel, check)))
    answer = proxy.receive()
    assert answer["id"] == "check" and answer["result"]["structuredContent"]["hint"]["version"] == 2
