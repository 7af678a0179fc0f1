"""PROXY: serves a client on stdio through the PRIMARY in another process. Standard library only, for its whole life.

It keeps one connection open, which makes it a member of the session. `CallQueue` sends its calls, and sends them again
when PRIMARY goes away.
"""

from __future__ import annotations

import contextlib
import os

from nudge.clients import registry
from nudge.core import context, limits, paths, streams
from nudge.core.clock import boot_seconds
from nudge.core.errors import NudgeError
from nudge.core.locks import Flock
from nudge.core.strict_json import JsonError
from nudge.core.visibility import VARIABLES
from nudge.interfaces.mcp import (
    StdioClient,
    cancelled_id,
    is_notification,
    read_session,
    read_tool_call,
    tool_answer,
    tool_envelope,
    tool_failure,
)
from nudge.interfaces.stdio import Pipe, decode_line
from nudge.process import spawn
from nudge.process import wire as protocol
from nudge.process.client import CallQueue, Request
from nudge.settings import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.process.connection import Connection
    from nudge.settings.config import Settings

registry.with_hooks()  # imported now: the package may be upgraded while a PROXY serves

_REJOIN_TIMEOUT = 3.0  # seconds to look for a successor while nothing is waiting to be answered
_REJOIN_PAUSE = 0.1


class _ClientCall(Request):
    """A message of the client that PRIMARY answers; `tool` is set when it goes there as an operation."""

    __slots__ = ("is_cancelled", "message", "tool")

    def __init__(self, line: bytes, message: Any, caller: dict[str, Any]) -> None:
        self.tool = read_tool_call(message)
        if self.tool is None:
            super().__init__(protocol.MCP, line, caller)
        else:
            super().__init__(self.tool.operation, self.tool.arguments, {**caller, "text": True})
        self.message = message
        self.is_cancelled = False

    @property
    def message_id(self) -> Any:
        return self.message.get("id") if isinstance(self.message, dict) else None

    @property
    def wants_answer(self) -> bool:
        is_request = isinstance(self.message, dict) and "id" in self.message and "method" in self.message
        return is_request and not self.is_cancelled

    def answer(self) -> Mapping[str, Any] | None:
        """Return the message for the client; None when it wants none, or was cancelled meanwhile."""
        if self.error is not None:
            return _failure(self.message, self.error) if self.wants_answer else None
        if self.is_cancelled:
            return None
        if self.text is not None:
            return tool_envelope(self.message, self.result, self.text)
        if self.tool is not None:
            return tool_answer(self.message, self.result)
        return self.result if isinstance(self.result, dict) else None


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
        self._calls = CallQueue(directory, environ, self._connect)
        self._calls.env_names |= VARIABLES | set(registry.session_variables())
        self._membership = Flock(os.path.join(directory, paths.MEMBERS))
        self._client = client or StdioClient(_utf8(settings.tools), _utf8(environ.get("AI_AGENT") or "mcp"))
        self._first_connection: Connection | None = None
        self._started_at = 0.0

    def run(self, connection: Connection | None = None) -> int:
        """Serve until the client closes its end and every call is answered; return the exit code. Without a connection
        (a PRIMARY that gave its role away), connect as soon as there is a server: that shows that the session lives."""
        self._first_connection, self._started_at = connection, boot_seconds()
        self._advance()
        self._take_lines()
        self._advance()
        while not self._pipe.closed or self._calls:
            self._turn()
        self._calls.close()
        self._membership.release()
        return 0

    def _turn(self) -> None:
        """Wait for input from the client or PRIMARY, or for a timeout, and handle it."""
        connection = self._calls.connection
        sources = [*(() if self._pipe.closed else (self._pipe,)), *(() if connection is None else (connection,))]
        ready, _ = streams.wait_ready(sources, timeout=self._timeout())
        if connection is not None and connection in ready:
            self._calls.receive()
        if self._pipe in ready:
            self._pipe.fill()
            self._take_lines()
        self._advance()

    def _timeout(self) -> float | None:
        if not self._calls and self._calls.connection is None and self._may_rejoin():
            return _REJOIN_PAUSE
        return self._calls.timeout()

    def _advance(self) -> None:
        for call in self._calls.advance():
            assert isinstance(call, _ClientCall)
            answer = call.answer()
            if answer is not None:
                if call.tool is None and call.error is None:
                    self._client.note_protocol(call.message, answer)
                self._answer(answer)

    # From the client

    def _take_lines(self) -> None:
        for line in self._pipe.lines():
            try:
                message = decode_line(line)
            except JsonError as error:
                self._answer({"jsonrpc": "2.0", "id": error.request_id, "error": error.to_json()})
            else:
                self._take_message(line, message)

    def _take_message(self, line: bytes, message: Any) -> None:
        name = self._client.name
        answer = self._client.answer(message)
        if self._client.name != name and self._calls.connection is not None:
            self._queue_hello(self._calls.connection)
        if answer is not None:
            self._answer(answer)
        elif is_notification(message):
            self._cancel(message)
        else:
            self._calls.add(_ClientCall(line, message, self._caller(message)))

    def _caller(self, message: Any) -> dict[str, Any]:
        """Return the envelope's `caller`: who asks and from where, which PRIMARY cannot know by itself."""
        caller: dict[str, Any] = {
            "door": "mcp",
            "client": self._client.name,
            "tools": self._client.tools,
            "env": context.requested_env(self._environ, sorted(self._calls.env_names)),
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
            for call in self._calls:
                assert isinstance(call, _ClientCall)
                call.is_cancelled |= call.wants_answer and call.message_id == request_id

    def _answer(self, message: Mapping[str, Any]) -> None:
        if not self._pipe.write(protocol.encode_value(message)):
            self._pipe.closed = True
            self._calls.clear()

    # To PRIMARY

    def _connect(self) -> Connection | None:
        """Return a connection to a PRIMARY. One is started only when calls wait: an idle PROXY must not undo `nudge
        stop`; it looks for a successor for a while."""
        connection, self._first_connection = self._first_connection, None
        if connection is None and self._calls:
            for_new = config.for_new_session(self._environ, self._flags, of_command=False)
            connection = spawn.ensure_primary(self._directory, start=self._settings.autostart, for_new=for_new)
        elif connection is None and self._may_rejoin():
            connection = spawn.ensure_primary(self._directory, start=False, timeout=0.0)
        if connection is not None:
            self._join_session()
            self._queue_hello(connection)
        return connection

    def _join_session(self) -> None:
        """Take the lock that shows a later PRIMARY that the session still has a process. Without it (the directory was
        removed, no descriptor is free) the connection does so for the current one."""
        if self._membership.fd is None:
            with contextlib.suppress(OSError):
                self._membership.acquire(shared=True, wait=True)

    def _may_rejoin(self) -> bool:
        return boot_seconds() < max(self._started_at, self._calls.lost_at) + _REJOIN_TIMEOUT

    def _queue_hello(self, connection: Connection) -> None:
        """Queue the hello, with the settings of this process that PRIMARY does not use: `nudge status` shows them,
        since clients hide stderr."""
        try:
            differences = config.differences(self._environ, self._flags, connection.endpoint.port)
        except NudgeError:  # config.toml was edited since the start and cannot be read
            differences = []
        connection.queue_hello(self._client.name, member=True, differs=[_utf8(line) for line in differences])


def caller_context(message: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the caller of one message. It is resolved for each message: the branch may change while the
    process lives. A context among the arguments is for the server."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return context.resolve(registry.call_directory(environ, meta)).to_json()


def _utf8(text: str) -> str:
    """Return the text, cut, with `?` for bytes that are not UTF-8: the environment may hold any bytes."""
    return text[: limits.KIB].encode("utf-8", "replace").decode()


def _failure(message: Mapping[str, Any], error: NudgeError) -> dict[str, Any]:
    """Return the answer for a failed call: a result with `isError` for a tool, otherwise a JSON-RPC error."""
    if message.get("method") == "tools/call":
        return tool_failure(message, error.to_json())
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": error.to_json()}
