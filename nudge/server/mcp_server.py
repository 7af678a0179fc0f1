"""MCP for every interface of PRIMARY. `nudge.server.mcp` answers what it can; everything else goes to the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from nudge import strict_json
from nudge.errors import INTERNAL_ERROR, INTERNAL_MESSAGE, HandingOver, NudgeError
from nudge.server import mcp
from nudge.server.gc_tuning import freeze_imports
from nudge.server.jsonrpc import error_response
from nudge.server.operations import OPERATIONS
from nudge.usecases.app import App
from nudge.usecases.call import Call, EnvNeeded

if TYPE_CHECKING:
    from nudge.server.mcp_sdk import SdkServer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpCaller:
    """The sender of an MCP message, as its transport knows it: the protocol version that was negotiated in the
    handshake, and the choice of tools to list."""

    call: Call
    protocol: str | None = None
    tools: str = "default"


_Answer = TypeVar("_Answer")


async def run_with_env(
    run: Callable[[McpCaller], Awaitable[_Answer]],
    caller: McpCaller,
    ask: Callable[[Sequence[str]], Mapping[str, str | None]],
) -> _Answer:
    """Run a call, and run it again with the caller's values of the variables that it turns out to need. `ask` returns
    them, None for one that is unset."""
    while True:
        try:
            return await run(caller)
        except EnvNeeded as needed:
            env = {**ask(needed.names), **(caller.call.env or {})}
            caller = replace(caller, call=replace(caller.call, env=env))


class McpServer:
    """Answers MCP messages for one application. The SDK is imported with the first message that needs it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loading: asyncio.Task[SdkServer] | None = None

    async def answer(self, message: object, caller: McpCaller) -> dict[str, Any] | None:
        """Return the JSON-RPC response; None for a notification. Raises EnvNeeded and HandingOver."""
        if mcp.is_notification(message):
            return None
        if (answer := mcp.answer_handshake(message, caller.tools)) is not None:
            return answer
        if (tool := mcp.read_tool_call(message)) is not None:
            assert isinstance(message, dict)
            return await self._call_tool(message, tool, caller.call)
        loading = self._load()
        sdk = loading.result() if loading.done() else await asyncio.shield(loading)
        return await sdk.answer(message, caller)

    async def can_answer(self, message: object, timeout: float) -> bool:
        """Whether this message needs no SDK, or the SDK is loaded within `timeout` seconds."""
        if mcp.is_notification(message) or mcp.read_tool_call(message) or mcp.answer_handshake(message, "default"):
            return True
        loading = self._load()
        return loading.done() or bool((await asyncio.wait((loading,), timeout=timeout))[0])

    async def _call_tool(self, message: dict[str, Any], tool: mcp.McpToolCall, call: Call) -> dict[str, Any]:
        if (client := mcp.read_client(message)) is not None:  # since 2026-07-28 each request says who sends it
            call = replace(call, client=client)
        try:
            result = await self._app.execute(tool.operation, tool.arguments, call)
        except (EnvNeeded, HandingOver):
            raise
        except NudgeError as error:
            return mcp.tool_failure(message, error.to_wire())
        except Exception:
            _log.exception("a tool failed")
            return error_response(message["id"], INTERNAL_ERROR, INTERNAL_MESSAGE)
        render = text_renderer(tool.operation, tool.arguments)
        return mcp.tool_answer(message, result, encode=strict_json.encode, render=render)

    def _load(self) -> asyncio.Task[SdkServer]:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load_sdk())
        return self._loading

    async def _load_sdk(self) -> SdkServer:
        await asyncio.to_thread(_import_sdk)
        from nudge.server.mcp_sdk import SdkServer

        return SdkServer(self._app)


def text_renderer(operation: str, arguments: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str | None] | None:
    """Return the function that makes the text block of an answer from a result; None for operations whose text is the
    JSON of the result."""
    as_text = OPERATIONS[operation].as_text
    return None if as_text is None else lambda result: as_text(arguments, result)


def _import_sdk() -> None:
    with freeze_imports():
        import nudge.server.mcp_sdk  # noqa: F401
