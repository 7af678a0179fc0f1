"""PROXY: serves a client on stdio through the PRIMARY in another process. Standard library only, for its whole life.

It keeps one connection open, which makes it a member of the session. Calls are sent without waiting for answers, which
are matched by id. When PRIMARY goes away, unanswered calls are sent to the next one, in the original order and with the
same `once` keys.
"""

from __future__ import annotations

import os
from itertools import islice

from nudge import config, context, limits, paths
from nudge.clock import boot_seconds
from nudge.errors import NudgeError, RemoteError
from nudge.ipc import protocol, spawn
from nudge.ipc.client import Request
from nudge.ipc.connection import Connection, Lost, TimedOut
from nudge.ipc.lock import Flock
from nudge.server.mcp import (
    McpToolCall,
    StdioClient,
    cancelled_id,
    has_own_text,
    is_notification,
    read_session,
    read_tool_call,
    tool_answer,
    tool_failure,
)
from nudge.server.stdio import Pipe, decode_line, wait_readable
from nudge.strict_json import JsonError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.config import Settings

_RETRY_PAUSE = 0.01
_REJOIN_TIMEOUT = 3.0  # seconds to look for a successor while nothing is waiting to be answered


class _Pending:
    """A message of the client that PRIMARY has not answered yet."""

    __slots__ = ("cancelled", "message", "request", "sent", "tool")

    def __init__(self, message: Any, tool: McpToolCall | None, request: Request) -> None:
        self.message, self.tool, self.request = message, tool, request
        self.sent = self.cancelled = False

    @property
    def id(self) -> Any:
        return self.message.get("id") if isinstance(self.message, dict) else None

    @property
    def wants_answer(self) -> bool:
        return isinstance(self.message, dict) and "id" in self.message and "method" in self.message


class Proxy:
    """Carries messages between one client and the current PRIMARY."""

    def __init__(
        self,
        pipe: Pipe,
        settings: Settings,
        directory: str,
        environ: Mapping[str, str] = os.environ,
        client: StdioClient | None = None,
        *,
        flags: Mapping[str, str] | None = None,
    ) -> None:
        """`client` is given when this process has already talked to its client. `flags` are the settings given by flag,
        for the report of those that PRIMARY does not use."""
        self._pipe, self._settings, self._directory, self._environ = pipe, settings, directory, environ
        self._flags = flags or {}
        self._link: Connection | None = None
        self._pending: dict[int, _Pending] = {}
        self._membership = Flock(os.path.join(directory, paths.MEMBERS))
        self._client = client or StdioClient(_utf8(settings.tools), _utf8(environ.get("AI_AGENT") or "mcp"))
        self._env_names: set[str] = set()
        self._rejoin_until = 0.0

    def run(self, link: Connection | None = None) -> int:
        """Serve until the client closes its end and every call is answered; return the exit code."""
        self._link = link
        self._join()
        self._take_lines()
        self._advance()
        while not self._pipe.closed or self._pending:
            self._turn()
        if self._link is not None:
            self._link.close()
        self._membership.release()
        return 0

    def _turn(self) -> None:
        """Wait for input from the client or PRIMARY, or for a timeout, and handle it."""
        sources: list[object] = [] if self._pipe.closed else [self._pipe]
        if self._link is not None:
            sources.append(self._link)
        ready = wait_readable(*sources, timeout=self._timeout())
        if self._link is not None and self._link in ready:
            self._receive()
        if self._pipe in ready:
            self._pipe.fill()
            self._take_lines()
        self._advance()
        self._expire()
        if self._link is None:
            self._reconnect()

    def _timeout(self) -> float | None:
        """Return the seconds to wait; None only while no call is pending: a new connection can be lost before anything
        arrives on it."""
        if self._pending:
            return _RETRY_PAUSE if self._link is None else max(self._first_deadline() - boot_seconds(), 0.0)
        return 0.1 if self._link is None and boot_seconds() < self._rejoin_until else None

    def _first_deadline(self) -> float:
        return next(iter(self._pending.values())).request.deadline

    # From the client

    def _take_lines(self) -> None:
        for line in self._pipe.lines():
            try:
                message = decode_line(line)
            except JsonError as error:
                self._answer({"jsonrpc": "2.0", "id": None, "error": error.to_wire()})
            else:
                self._take_message(line or b"", message)

    def _take_message(self, line: bytes, message: Any) -> None:
        name = self._client.name
        answer = self._client.answer(message)
        if self._client.name != name and self._link is not None:
            self._greet(self._link)
            self._send_line(self._link, b"")
        if answer is not None:
            self._answer(answer)
        elif is_notification(message):
            self._cancel(message)
        else:
            tool = read_tool_call(message)
            if tool is not None and has_own_text(tool.operation):
                tool = None
            op, params = (protocol.MCP, line) if tool is None else (tool.operation, tool.arguments)
            request = Request(op, params, self._caller(message))
            self._pending[request.id] = _Pending(message, tool, request)

    def _caller(self, message: Any) -> dict[str, Any]:
        """Return the envelope's `caller`: who asks and from where, which PRIMARY cannot know by itself."""
        caller: dict[str, Any] = {
            "door": "mcp",
            "client": self._client.name,
            "tools": self._client.tools,
            "env": context.requested_env(self._environ, sorted(self._env_names)),
        }
        if self._client.protocol:
            caller["protocol"] = self._client.protocol
        if isinstance(message, dict) and message.get("method") == "tools/call":
            caller["context"] = caller_context(message, self._environ)
            caller["connection"], caller["client_process"] = self._client.connection, os.getppid()
            if (session := read_session(message)) is not None:
                caller["session"] = session
        return caller

    def _cancel(self, message: Mapping[str, Any]) -> None:
        """Drop the answer to a cancelled request; its write is still applied."""
        if (request_id := cancelled_id(message)) is not None:
            for pending in self._pending.values():
                pending.cancelled |= pending.wants_answer and pending.id == request_id

    # To PRIMARY

    def _join(self) -> None:
        """Send the hello on a new connection. The shared lock shows a later PRIMARY that the session still has a
        process."""
        if self._link is None:
            return
        if self._membership.fd is None:
            self._membership.acquire(shared=True, wait=True)
        self._greet(self._link)
        self._send_line(self._link, b"")
        self._send_unsent()

    def _greet(self, link: Connection) -> None:
        """Queue the hello, with the settings of this process that PRIMARY does not use: `nudge status` shows them,
        since clients hide stderr."""
        try:
            differences = config.differences(self._environ, self._flags, link.endpoint.port)
        except NudgeError:  # config.toml was edited since the start and cannot be read
            differences = []
        link.greet(self._client.name, member=True, differs=[_utf8(line) for line in differences])

    def _advance(self) -> None:
        """Send calls and handle the answers that have arrived; each answer makes room for another call."""
        self._send_unsent()
        while (answer := self._next_answer()) is not None:
            self._handle(answer)
            self._send_unsent()

    def _next_answer(self) -> dict[str, Any] | None:
        try:
            return None if self._link is None else self._link.take()
        except Lost:
            self._drop_link()
            return None

    def _send_unsent(self) -> None:
        """Send pending calls, at most MAX_CALLS_IN_FLIGHT without an answer: a call's timeout starts when it is
        sent."""
        for pending in list(islice(self._pending.values(), limits.MAX_CALLS_IN_FLIGHT)):
            if self._link is not None and not pending.sent:
                self._send(self._link, pending)

    def _send(self, link: Connection, pending: _Pending) -> None:
        pending.sent = self._send_line(link, pending.request.encode(boot_seconds() + limits.CALL_TIMEOUT))

    def _send_line(self, link: Connection, line: bytes) -> bool:
        try:
            link.send(line)
        except (Lost, TimedOut):
            self._drop_link()
            return False
        return True

    # From PRIMARY

    def _receive(self) -> None:
        assert self._link is not None
        try:
            self._link.fill(boot_seconds() + limits.CALL_TIMEOUT)
        except (Lost, TimedOut):
            self._drop_link()
            self._rejoin_until = boot_seconds() + _REJOIN_TIMEOUT

    def _handle(self, answer: Mapping[str, Any]) -> None:
        assert self._link is not None
        call_id = answer.get("id")
        if call_id is None:  # PRIMARY refuses the connection as a whole, and closes it
            self._fail_all(RemoteError(answer.get("error") or {}))
            self._drop_link()
            return
        pending = self._pending.get(call_id)
        if pending is None:
            return
        if "retry" in answer:  # a PRIMARY that is leaving: go to the next one
            self._drop_link()
            return
        if "need_env" in answer:
            self._learn_env(answer["need_env"])
            pending.request.add_env(self._environ, answer["need_env"])
            self._send(self._link, pending)
            return
        del self._pending[call_id]
        self._complete(pending, answer)

    def _complete(self, pending: _Pending, answer: Mapping[str, Any]) -> None:
        if "error" in answer:
            self._fail(pending, RemoteError(answer["error"]))
            return
        result = answer.get("result")
        if pending.cancelled:
            return
        if pending.tool is not None:
            self._answer(tool_answer(pending.message, result))
        elif isinstance(result, dict):  # null: the message wants no answer
            self._client.note_protocol(pending.message, result)
            self._answer(result)

    def _learn_env(self, names: list[str]) -> None:
        """Remember the variables that scopes ask for; later calls send them unasked. Beyond MAX_ENV_NAMES the older
        names are dropped."""
        names_now = self._env_names | set(names)
        self._env_names = names_now if len(names_now) <= limits.MAX_ENV_NAMES else set(names)

    # When PRIMARY is gone

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        for pending in self._pending.values():
            pending.sent = False

    def _reconnect(self) -> None:
        """Connect to a PRIMARY. One is started only when calls are pending: an idle PROXY must not undo `nudge
        stop`."""
        try:
            if self._pending:
                self._link = spawn.ensure_primary(self._directory, start=self._settings.autostart)
            elif boot_seconds() < self._rejoin_until:
                self._link = spawn.ensure_primary(self._directory, start=False, timeout=0.0)
        except NudgeError as error:
            self._fail_all(error)
            return
        self._join()

    def _expire(self) -> None:
        """Fail the calls that PRIMARY did not answer in time. PRIMARY does not apply them later: each carries its
        deadline."""
        if self._link is None or not self._pending:
            return
        first = next(iter(self._pending.values()))
        if first.sent and first.request.deadline <= boot_seconds():
            published = self._link.endpoint
            self._drop_link()
            if not spawn.is_settling(self._directory, published):  # else everything is sent again, with more time
                self._fail_all(spawn.no_answer(published))

    def _fail_all(self, error: NudgeError) -> None:
        failed, self._pending = self._pending, {}
        for pending in failed.values():
            self._fail(pending, error)

    def _fail(self, pending: _Pending, error: NudgeError) -> None:
        if pending.wants_answer and not pending.cancelled:
            self._answer(_failure(pending.message, error))

    def _answer(self, message: Mapping[str, Any]) -> None:
        if not self._pipe.write(protocol.encode_value(message)):
            self._pipe.closed = True
            self._pending.clear()


def caller_context(message: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the caller of one message. It is resolved for each message: the branch may change while the
    process lives."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    arguments = params.get("arguments")
    explicit = arguments.get("context") if isinstance(arguments, dict) else None
    cwd = explicit.get("cwd") if isinstance(explicit, dict) else None
    meta = params.get("_meta")
    where = context.caller_cwd(environ, cwd if isinstance(cwd, str) else None, meta if isinstance(meta, dict) else None)
    return context.resolve(where).to_wire()


def _utf8(text: str) -> str:
    """Return the text, cut, with `?` for bytes that are not UTF-8: the environment may hold any bytes."""
    return text[: limits.KIB].encode("utf-8", "replace").decode()


def _failure(message: Mapping[str, Any], error: NudgeError) -> dict[str, Any]:
    """Return the answer for a failed call: a result with `isError` for a tool, otherwise a JSON-RPC error."""
    if message.get("method") == "tools/call":
        return tool_failure(message, error.to_wire())
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": error.to_wire()}
