"""The official SDK, from both sides: its client is the oracle, and the young parts of it that PRIMARY stands on are
pinned."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_one
from mcp.shared.inbound import InboundLadderRejection, InboundModernRoute, classify_inbound_request
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from nudge.interfaces.mcp_sdk import _Exchange
from tests.contract.ways import Served, served
from tests.harness import Machine

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
VERSION, CAPABILITIES, INFO = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientCapabilities", "clientInfo")
)
ENVELOPE: dict[str, Any] = {VERSION: ERAS["auto"], CAPABILITIES: {}, INFO: {"name": "probe", "version": "1"}}


@pytest.fixture(scope="module")
def busy() -> Iterator[Machine]:
    """A machine that has a PRIMARY: whatever comes is a PROXY."""
    machine = Machine()
    machine.http_only()
    yield machine
    machine.close()


@pytest.mark.parametrize("mode", ERAS)
def test_the_sdks_client_talks_to_primary(make_machine: Callable[..., Machine], mode: str) -> None:
    """`nudge serve` with nobody there becomes PRIMARY, and the official client finds everything it looks for, in either
    protocol."""
    assert asyncio.run(_on_stdio(make_machine(), mode)) == "client"


@pytest.mark.parametrize("mode", ERAS)
def test_the_sdks_client_talks_through_a_proxy(busy: Machine, mode: str) -> None:
    """The same through a PROXY, which the client cannot tell from PRIMARY."""
    assert asyncio.run(_on_stdio(busy, mode)) == "terminal"


@pytest.mark.parametrize("mode", ERAS)
def test_the_sdks_client_talks_http(mode: str) -> None:
    """`POST /mcp` is a streamable HTTP server without sessions and streams, in either protocol."""

    async def over_http(server: Served) -> None:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {server.token}"}) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                assert client.protocol_version == ERAS[mode]
                await _exercise(client)

    with served() as server:
        asyncio.run(over_http(server))


async def _on_stdio(machine: Machine, mode: str) -> str:
    """Whose PRIMARY it was."""
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "nudge", "serve"], env=machine.environ, cwd=str(machine.base)
    )
    with open(os.devnull, "w") as nowhere:
        async with Client(stdio_client(server, errlog=nowhere), mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            assert client.server_info is not None and client.server_info.name == "nudge"
            await _exercise(client)
            status = await client.call_tool("nudge_status", {})
    assert status.structured_content is not None
    return str(status.structured_content["owner"])


async def _exercise(client: Client) -> None:
    """What every client does: read the instructions, list, call, fail, mistake."""
    assert client.instructions and client.server_capabilities.tools is not None
    tools = (await client.list_tools()).tools
    assert "nudge_get_hint" in [tool.name for tool in tools] and all(
        tool.annotations and tool.output_schema for tool in tools
    )
    arguments = {"component": "sdk", "key": f"k-{client.protocol_version}", "value": "v"}
    written = await client.call_tool("nudge_set_hint", arguments)
    assert not written.is_error and written.structured_content is not None
    assert written.structured_content["hint"]["value"] == "v"
    dotted = await client.call_tool("nudge.get_hint", {name: arguments[name] for name in ("component", "key")})
    assert dotted.structured_content is not None and dotted.structured_content["match_explain"]["matched"]
    missed = await client.call_tool("nudge_get_hint", {"component": "sdk", "key": "none"})
    assert missed.is_error and missed.structured_content is not None
    assert missed.structured_content["error"]["reason"] == "E_NOT_FOUND"
    with pytest.raises(MCPError) as refused:
        await client.call_tool("nudge_fly", {})
    assert refused.value.error.code == -32601


# The parts of the SDK that nudge.interfaces.mcp uses


def test_one_message_is_served_by_serve_one() -> None:
    """Server, dispatch context, method and params; connection and lifespan state by name."""
    parameters = inspect.signature(serve_one).parameters
    assert list(parameters) == ["server", "dctx", "method", "params", "connection", "lifespan_state"]
    assert [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY] == [
        "connection",
        "lifespan_state",
    ]


def test_a_connection_is_made_from_an_envelope() -> None:
    """It is ready at once; who the client is stands in it when both its name and its capabilities were said."""
    whole = Connection.from_envelope(ERAS["auto"], {"name": "probe", "version": "1"}, {})
    bare = Connection.from_envelope(LATEST_HANDSHAKE_VERSION, None, None)
    assert whole.protocol_version == ERAS["auto"] and bare.protocol_version == LATEST_HANDSHAKE_VERSION
    assert whole.client_params is not None and whole.client_params.client_info.name == "probe"
    assert bare.client_params is None
    assert LATEST_HANDSHAKE_VERSION in HANDSHAKE_PROTOCOL_VERSIONS


def test_an_envelope_is_classified() -> None:
    """A route with version, client and capabilities; or a rejection with code, message and data."""
    route = classify_inbound_request({"method": "tools/list", "params": {"_meta": ENVELOPE}})
    assert isinstance(route, InboundModernRoute)
    assert (route.protocol_version, route.client_info, route.client_capabilities) == (
        ENVELOPE[VERSION],
        ENVELOPE[INFO],
        {},
    )
    unknown = {**ENVELOPE, VERSION: "2031-01-01"}
    rejection = classify_inbound_request({"method": "tools/list", "params": {"_meta": unknown}})
    assert isinstance(rejection, InboundLadderRejection)
    assert rejection.code == -32022 and rejection.message and rejection.data


@pytest.mark.parametrize(("version", "params"), [(ERAS["auto"], {"_meta": ENVELOPE}), (ERAS["legacy"], {})])
def test_the_lifespan_state_of_one_message_reaches_its_handler(version: str, params: dict[str, Any]) -> None:
    """The facts of a message travel as its lifespan state: nothing else reaches the handler from outside the
    message."""
    facts, seen = object(), []

    async def list_tools(
        context: ServerRequestContext[object], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        seen.append((context.lifespan_context, context.session.client_params))
        return types.ListToolsResult(tools=[])

    server: Server[object] = Server("probe", on_list_tools=list_tools)
    server.middleware.clear()
    connection = Connection.from_envelope(version, ENVELOPE[INFO], {})
    work = serve_one(server, _Exchange(1), "tools/list", params, connection=connection, lifespan_state=facts)
    assert asyncio.run(work)["tools"] == []
    [(state, client)] = seen
    assert state is facts
    assert client is not None and client.client_info.name == "probe"
