"""PRIMARY's own client: its lines are read by one thread and answered by another, so that it can stall nobody but itself."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from nudge.context import Context
from nudge.errors import INTERNAL_ERROR, HandingOver
from nudge.interfaces import wire
from nudge.interfaces.jsonrpc import error_response
from nudge.interfaces.mcp import Facts, McpServer
from nudge.interfaces.proxy import caller_context
from nudge.interfaces.stdio import Pipe, wait_readable
from nudge.limits import MAX_CLIENT_CHARS, MIB, SMALL_JSON_BYTES
from nudge.service.call import Call, EnvNeeded

_log = logging.getLogger(__name__)
_MOST_UNREAD = 8 * MIB  # answers that the client has not taken yet; beyond, its requests wait too
_MANY_TRIES = 3


class StdioServer:
    """Serves one pipe from PRIMARY's event loop. `on_gone` is called on one of its threads."""

    def __init__(self, pipe: Pipe, mcp: McpServer, tools: str, on_gone: Callable[[], None], environ: Mapping[str, str] = os.environ):
        self._pipe, self._mcp, self._tools, self._on_gone, self._environ = pipe, mcp, tools, on_gone, environ
        self._loop = asyncio.get_running_loop()
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unread = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._protocol: str | None = None
        self._client: str | None = None
        self._leftover: list[bytes] = []
        self._wake_reader, self._stop_reader = os.pipe()
        self._reader = threading.Thread(target=self._read, name="stdin", daemon=True)
        self._writer = threading.Thread(target=self._write, name="stdout", daemon=True)

    @property
    def client(self) -> str | None:
        return self._client

    def start(self) -> None:
        self._reader.start()
        self._writer.start()

    async def finish(self, patience: float) -> None:
        """Stop reading, answer what was read, hand back to the pipe what could not be answered any more."""
        os.write(self._stop_reader, b"x")
        await asyncio.to_thread(self._reader.join, patience)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)
        self._answers.put(None)
        await asyncio.to_thread(self._writer.join, patience)
        self._pipe.put_back(self._leftover)

    def _read(self) -> None:
        """The reader thread."""
        while not self._pipe.closed:
            if self._wake_reader in wait_readable(self._pipe, self._wake_reader):
                return
            self._pipe.fill()
            for line in self._pipe.lines():
                self._loop.call_soon_threadsafe(self._begin, line)
            while self._unread > _MOST_UNREAD and not self._pipe.closed:
                time.sleep(0.05)
        self._on_gone()

    def _write(self) -> None:
        """The writer thread."""
        while (answer := self._answers.get()) is not None:
            if not self._pipe.write(answer):
                self._pipe.closed = True
                self._on_gone()
                return
            self._unread -= len(answer)

    def _begin(self, line: bytes | None) -> None:
        task = self._loop.create_task(self._handle(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, line: bytes | None) -> None:
        try:
            answer = await self._answer(line)
        except HandingOver:
            self._leftover.append(line or b"")
            return
        except wire.WireError as error:
            answer = error_response(None, error.code, error.message)
        except Exception:
            _log.exception("a message on stdin failed")
            answer = error_response(None, INTERNAL_ERROR, "Internal error; the server's log has the details")
        if answer is not None:
            encoded = wire.encode(answer)
            self._unread += len(encoded)
            self._answers.put(encoded)

    async def _answer(self, line: bytes | None) -> dict[str, Any] | None:
        if line is None:
            raise wire.WireError(-32700, "Parse error: a line has at most 1 MiB")
        message = wire.decode(line) if len(line) <= SMALL_JSON_BYTES else await asyncio.to_thread(wire.decode_slow, line)
        env: dict[str, str | None] = {}
        for _ in range(_MANY_TRIES):
            try:
                answer = await self._mcp.answer(message, self._facts(message, env))
                self._learn(message, answer)
                return answer
            except EnvNeeded as asked:
                env.update({name: self._environ.get(name) for name in asked.names})
        raise AssertionError("the environment was asked for again and again")

    def _facts(self, message: object, env: dict[str, str | None]) -> Facts:
        calling = isinstance(message, dict) and message.get("method") == "tools/call"
        where = Context.parse(caller_context(message, self._environ)) if calling and isinstance(message, dict) else Context()
        return Facts(Call(defaults=where, env=env, client=self._client, scope_to_repo=True), self._protocol, self._tools)

    def _learn(self, message: object, answer: dict[str, Any] | None) -> None:
        """The handshake is the one moment at which an older client says who it is and what it speaks."""
        if not isinstance(message, dict) or message.get("method") != "initialize" or answer is None or "result" not in answer:
            return
        self._protocol = answer["result"]["protocolVersion"]
        self._client = str(message["params"]["clientInfo"]["name"])[:MAX_CLIENT_CHARS]
