"""The least that an `mcp` SDK server on stdio can be: eight tools, listed and never called."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"component": {"type": "string"}, "key": {"type": "string"}}}
_TOOLS = [types.Tool(name=f"tool_{number}", description="One of eight.", input_schema=_SCHEMA) for number in range(8)]


async def _list_tools(
    _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_TOOLS)


async def _serve() -> None:
    server = Server[Any]("minimal", version="1", on_list_tools=_list_tools)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_serve())
