"""MCP in PRIMARY. `McpServer` answers the messages of every interface: `nudge.interfaces.mcp` answers what it can, the
SDK everything else. `StdioServer` serves PRIMARY's own client with it: one thread reads its lines and another writes
the answers, so that a client that does not read or write stalls only itself."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nudge.core import limits, streams, strict_json
from nudge.core.app import App
from nudge.core.call import OWN_VARIABLES, Call, EnvNeeded
from nudge.core.context import NO_CONTEXT, Context, requested_env
from nudge.core.errors import INTERNAL_ERROR, INTERNAL_MESSAGE, HandingOver, NudgeError
from nudge.core.strict_json import JsonError
from nudge.interfaces import mcp
from nudge.interfaces.jsonrpc import error_response, id_of, refusal
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.stdio import Pipe, check_length
from nudge.process.gc_tuning import freeze_imports
from nudge.process.proxy import caller_context

if TYPE_CHECKING:
    from nudge.interfaces.mcp_sdk import SdkServer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpCaller:
    """The sender of an MCP message, as its transport knows it: the protocol version that was negotiated in the
    handshake, and the choice of tools to list. `wants_text`: a PROXY makes the envelope of a tool's answer, and needs
    the text for it."""

    call: Call
    protocol: str | None = None
    tools: str = "default"
    wants_text: bool = False


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
            return mcp.tool_failure(message, error.to_json())
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
        from nudge.interfaces.mcp_sdk import SdkServer

        return SdkServer(self._app)


def text_renderer(operation: str, arguments: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str | None] | None:
    """Return the function that makes the text block of an answer from a result; None where the text is the JSON of
    the result."""
    known = OPERATIONS.get(operation)
    as_text = None if known is None else known.as_text
    return None if as_text is None else lambda result: as_text(arguments, result)


def _import_sdk() -> None:
    with freeze_imports():
        import nudge.interfaces.mcp_sdk  # noqa: F401


# PRIMARY's own client


class StdioServer:
    """Serves one pipe from PRIMARY's event loop. `on_gone` is called on one of its threads."""

    def __init__(
        self,
        pipe: Pipe,
        server: McpServer,
        client: mcp.StdioClient,
        on_gone: Callable[[], None],
        environ: Mapping[str, str] = os.environ,
    ):
        self._pipe, self._server, self._client, self._on_gone, self._environ = pipe, server, client, on_gone, environ
        # An operation that asks for its caller's variables is begun twice: those that most want are there at once.
        self._env = requested_env(environ, OWN_VARIABLES)
        self._loop = asyncio.get_running_loop()
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._backlog = _Backlog()
        self._tasks: set[asyncio.Task[None]] = set()
        self._active: set[str | int | None] = set()
        self._cancelled: set[str | int | None] = set()
        self._leftover: list[bytes] = []
        self._wake_reader, self._stop_reader = os.pipe()
        self._reader = threading.Thread(target=self._read, name="stdin", daemon=True)
        self._writer = threading.Thread(target=self._write, name="stdout", daemon=True)

    def start(self) -> None:
        self._reader.start()
        self._writer.start()

    async def finish(self, timeout: float) -> None:
        """Stop reading, answer the lines that were read, and put those that could not be answered back into the
        pipe."""
        os.write(self._stop_reader, b"x")
        self._backlog.stop_waiting()
        await asyncio.to_thread(self._reader.join, timeout)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)
        self._answers.put(None)
        await asyncio.to_thread(self._writer.join, timeout)
        self._pipe.put_back(self._leftover)

    def _read(self) -> None:
        """Run the reader thread. Lines that an earlier reader left in the pipe come first."""
        while self._take_lines():
            if self._pipe.closed:
                self._on_gone()
                return
            if self._wake_reader in streams.wait_ready([self._pipe, self._wake_reader])[0]:
                return
            self._pipe.fill()

    def _take_lines(self) -> bool:
        """Hand complete lines to the event loop; False when waiting for room was stopped."""
        for line in self._pipe.lines():
            if not self._backlog.take(line):
                self._leftover.append(line)
                return False
            self._loop.call_soon_threadsafe(self._begin, line)
        return True

    def _write(self) -> None:
        """Run the writer thread."""
        while (answer := self._answers.get()) is not None:
            if not self._pipe.write(answer):
                self._pipe.closed = True
                self._backlog.stop_waiting()
                self._on_gone()
                return
            self._backlog.read(answer)

    def _begin(self, line: bytes) -> None:
        task = self._loop.create_task(self._handle(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, line: bytes) -> None:
        answer = await self._answer_to(line)
        encoded = b"" if answer is None else strict_json.encode(answer)
        self._backlog.answered(line, encoded)
        if encoded:
            self._answers.put(encoded)

    async def _answer_to(self, line: bytes) -> dict[str, Any] | None:
        message: object = None
        try:
            check_length(line)
            message = await strict_json.decode_any(line)
            return await self._answer(message)
        except HandingOver:
            self._leftover.append(line)
            return None
        except JsonError as error:
            return error_response(error.request_id, error.code, error.message)
        except NudgeError as error:
            return refusal(id_of(message), error)
        except Exception:
            _log.exception("a message on stdin failed")
            return error_response(id_of(message), INTERNAL_ERROR, INTERNAL_MESSAGE)

    async def _answer(self, message: Any) -> dict[str, Any] | None:
        if (answer := self._client.answer(message)) is not None:
            return answer
        if mcp.is_notification(message):
            self._cancelled |= {mcp.cancelled_id(message)} & self._active
            return None
        request_id = id_of(message)
        if not isinstance(request_id, str | int):
            return await self._call(message)
        self._active.add(request_id)
        try:
            answer = await self._call(message)
            return None if request_id in self._cancelled else answer
        finally:
            self._active.discard(request_id)
            self._cancelled.discard(request_id)

    async def _call(self, message: object) -> dict[str, Any] | None:
        answer = await run_with_env(
            partial(self._server.answer, message), self._caller(message), partial(requested_env, self._environ)
        )
        if answer is not None:
            self._client.note_protocol(message, answer)
        return answer

    def _caller(self, message: object) -> McpCaller:
        calling = isinstance(message, dict) and message.get("method") == "tools/call"
        context = (
            Context.parse(caller_context(message, self._environ))
            if calling and isinstance(message, dict)
            else NO_CONTEXT
        )
        call = Call(
            interface="mcp",
            context=context,
            env=self._env,
            client=self._client.name or None,
            session=mcp.read_session(message),
            connection=self._client.connection,
            client_process=os.getppid(),
        )
        return McpCaller(call, self._client.protocol or None, self._client.tools)


class _Backlog:
    """Counts the bytes of unanswered requests and unread answers. Above the limits further requests wait in the pipe: a
    flood of them would be one long turn of the event loop."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._unanswered = self._unread = 0
        self._is_waiting_allowed = True

    def take(self, line: bytes) -> bool:
        """Wait for room and count the line; False when waiting was stopped."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._unanswered += _weight(line)
            return self._is_waiting_allowed

    def _has_room(self) -> bool:
        return not self._is_waiting_allowed or (
            self._unanswered < limits.STDIO_UNANSWERED_BYTES and self._unread <= limits.STDIO_UNREAD_BYTES
        )

    def answered(self, line: bytes, answer: bytes) -> None:
        with self._changed:
            self._unanswered -= _weight(line)
            self._unread += len(answer)
            self._changed.notify()

    def read(self, answer: bytes) -> None:
        with self._changed:
            self._unread -= len(answer)
            self._changed.notify()

    def stop_waiting(self) -> None:
        with self._changed:
            self._is_waiting_allowed = False
            self._changed.notify()


def _weight(line: bytes) -> int:
    """Return the cost of a line in bytes: its length, and a constant for handling it."""
    return limits.STDIO_LINE_COST_BYTES + len(line)
