"""MCP for whoever asks for it. The SDK takes longer to import than all the rest of a server, and a command or a hook
that starts one
needs none of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from nudge.server.facts import Facts
from nudge.server.lasting import LastingImports
from nudge.usecases.app import App

if TYPE_CHECKING:
    from nudge.server.mcp import McpServer


class Mcp(Protocol):
    async def answer(self, message: object, facts: Facts) -> dict[str, Any] | None: ...


class LateMcp:
    """Answers like an `McpServer`, which is loaded with the first message, or when somebody who will send one has
    come."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loading: asyncio.Task[McpServer] | None = None

    def expect(self) -> asyncio.Task[McpServer]:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        return self._loading

    async def ready(self, timeout: float | None = None) -> bool:
        """Whether it is there, or is within so many seconds; None: wait for it."""
        loading = self.expect()
        return loading.done() or bool((await asyncio.wait((loading,), timeout=timeout))[0])

    async def answer(self, message: object, facts: Facts) -> dict[str, Any] | None:
        loading = self.expect()
        server = loading.result() if loading.done() else await asyncio.shield(loading)
        return await server.answer(message, facts)

    async def _load(self) -> McpServer:
        await asyncio.to_thread(load)
        from nudge.server.mcp import McpServer

        return McpServer(self._app)


def load() -> None:
    with LastingImports():
        import nudge.server.mcp  # noqa: F401
