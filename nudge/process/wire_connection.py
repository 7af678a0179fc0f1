"""PRIMARY's end of one connection of the private wire: lines in, calls started in their order, answers out."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import re
import select
import socket
import struct
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nudge.core import limits
from nudge.core.errors import INTERNAL_ERROR, INTERNAL_MESSAGE, INVALID_REQUEST, Unavailable, protocol_error
from nudge.core.strict_json import JsonError, decode, encode
from nudge.core.text import mask
from nudge.process import wire as protocol

if TYPE_CHECKING:
    from nudge.process.wire_server import WireServer

_log = logging.getLogger(__name__)

_UNPROVEN_LINE_BYTES = limits.KIB

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A process that keeps the session alive while its connection is open."""

    client: str
    pid: int
    version: str
    since: int
    """The time of its first hello, in Unix seconds."""
    differs: tuple[str, ...] = ()
    """Settings of that process that this server does not use."""
    repo: str = ""
    branch: str = ""
    """Where its last call came from."""

    def called_from(self, context: object) -> Member:
        """The member with the place that a call names; itself where that is the one it had."""
        if not isinstance(context, dict):
            return self
        repo, branch = (_printable(context.get(name)) for name in ("repo", "branch"))
        return self if (repo, branch) == (self.repo, self.branch) else replace(self, repo=repo, branch=branch)


class ServerConnection(asyncio.Protocol):
    """One connection of `server`. Calls start in the order of their lines; answers are sent as they are ready."""

    def __init__(self, server: WireServer, *, tcp: bool = False) -> None:
        self._server, self._tcp = server, tcp
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._scanned = 0  # bytes of it that hold no newline
        self._running: dict[asyncio.Task[Answer], tuple[int | str, str]] = {}
        """The id and the operation of each call without an answer."""
        self._env_asked: set[int | str] = set()
        self._max_line = _UNPROVEN_LINE_BYTES if tcp else limits.MAX_LINE_BYTES
        self._nonces: tuple[str, str] | None = None
        self._proven = not tcp
        self._greeted = False
        self._decoding = False
        self._full = False  # more is unsent than MAX_UNSENT_BYTES
        self._reading = True
        self._ended = False  # no more lines will come
        self._silence_timer: asyncio.TimerHandle | None = None  # ends a connection that says nothing
        self.member: Member | None = None
        self.gone: asyncio.Future[None] = self._loop.create_future()

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=limits.MAX_UNSENT_BYTES)
        server = self._server
        server.connections.add(self)
        if server.closed:  # it was accepted in the same round of the event loop
            self.abort()
        elif not self._tcp and not _is_same_user(transport):
            self._refuse(protocol_error(INVALID_REQUEST, "Invalid request: this socket belongs to another user"))
        elif not server.make_room():
            self._refuse(Unavailable("the server has too many connections; try again in a moment").to_json())
        else:
            server.without_hello[self] = None
            self._silence_timer = self._loop.call_later(
                limits.PROOF_TIMEOUT if self._tcp else limits.HELLO_TIMEOUT, self.abort
            )
            if self._tcp:
                self._limit_unproven()

    def _limit_unproven(self) -> None:
        unproven = self._server.unproven
        unproven[self] = None
        if len(unproven) > limits.MAX_UNPROVEN_CONNECTIONS:
            oldest = next(iter(unproven))
            del unproven[oldest]
            oldest.abort()

    def _stop_silence_timer(self) -> None:
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._silence_timer = None

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Cancel the reads that are running, since no caller waits for them; writes are finished."""
        self._server.connections.discard(self)
        self._server.unproven.pop(self, None)
        self._server.without_hello.pop(self, None)
        self._stop_silence_timer()
        self.member = None
        self._ended = True
        self._buffer.clear()
        for task, (_, op) in list(self._running.items()):
            if self._server.handler.is_read(op):
                task.cancel()
        if not self.gone.done():
            self.gone.set_result(None)

    def eof_received(self) -> bool:
        """Keep the connection until all answers are sent when the client closed only its sending side (`nc`). A member
        that closes it is leaving."""
        self._ended = True
        self.member = None
        if self._is_closed_by_client():
            return False
        self._process()
        return not self._is_finished()

    def _is_closed_by_client(self) -> bool:
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))  # POLLHUP: both directions are closed

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._process()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # Lines

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._process()

    def _process(self) -> None:
        """Start calls while there are lines and room for their answers; stop reading when there is no room."""
        while not self._is_blocked() and (line := self._next_line()) is not None:
            self._read(line)
        self._regulate_reading()

    def _is_blocked(self) -> bool:
        return (
            self._full
            or self._decoding
            or len(self._running) >= limits.MAX_CALLS_IN_FLIGHT
            or self._transport.is_closing()
        )

    def _regulate_reading(self) -> None:
        wanted = not self._is_blocked()
        if wanted == self._reading or self._ended or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _next_line(self) -> bytes | None:
        if not self._buffer:
            return None
        end = self._buffer.find(b"\n", self._scanned)
        if (len(self._buffer) if end < 0 else end) > self._max_line:
            self._refuse(protocol.overlong(self._max_line))
            return None
        if end < 0:
            self._scanned = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        return line

    def _read(self, line: bytes) -> None:
        if len(line) > limits.SMALL_JSON_BYTES:
            self._decoding = True
            self._loop.create_task(self._read_large(line))
            return
        try:
            message = _decode(line)
        except JsonError as error:
            self._send(_id_of(line, error), {"error": error.to_json()})
        else:
            self._handle(message)

    async def _read_large(self, line: bytes) -> None:
        try:
            message = await asyncio.to_thread(_decode_large, line)
        except JsonError as error:
            self._send(_id_of(line, error), {"error": error.to_json()})
        else:
            self._handle(message)
        self._decoding = False
        self._process()
        self._close_if_finished()

    # Messages

    def _handle(self, message: Any) -> None:
        if not isinstance(message, dict):
            self._send(None, {"error": protocol_error(INVALID_REQUEST, "Invalid request: a line is one JSON object")})
        elif not self._proven:
            self._authenticate(message)
        elif "hello" in message:
            self._queue_hello(message)
        elif not self._greeted:
            self._refuse(protocol_error(INVALID_REQUEST, "Invalid request: the first line is a hello"))
        else:
            self._begin(message)

    def _authenticate(self, message: dict[str, Any]) -> None:
        """Prove that both sides know the token. The server proves it first, so that the client shows its proof to no
        other program."""
        server, port = self._server, self._server.port or 0
        if self._nonces is None:
            theirs, ours = str(message.get("nonce"))[:128], os.urandom(16).hex()
            self._nonces = theirs, ours
            proof = protocol.proof(server.token(), "server", theirs, ours, port, server.generation)
            self._transport.write(protocol.encode({"nonce": ours, "proof": proof}))
            return
        expected = protocol.proof(server.token(), "client", *self._nonces, port, server.generation)
        if not hmac.compare_digest(str(message.get("proof")).encode("utf-8", "replace"), expected.encode()):
            self._refuse(protocol_error(INVALID_REQUEST, "Invalid request: the proof is wrong"))
            return
        self._proven, self._max_line = True, limits.MAX_LINE_BYTES
        server.unproven.pop(self, None)
        self._stop_silence_timer()
        self._silence_timer = self._loop.call_later(limits.HELLO_TIMEOUT, self.abort)

    def _queue_hello(self, hello: dict[str, Any]) -> None:
        """Handle a hello. A later one replaces the first: a PROXY connects before it knows its client's name."""
        self._greeted = True
        self._server.without_hello.pop(self, None)
        self._stop_silence_timer()
        pid = hello.get("pid")
        if hello.get("member") is True and isinstance(pid, int) and not self._ended:
            self.member = Member(
                _printable(hello.get("client")) or "mcp",
                pid,
                _printable(hello.get("version")),
                int(time.time()) if self.member is None else self.member.since,
                _parse_differences(hello.get("differs")),
            )
        self._transport.write(protocol.encode(self._server.hello()))

    def _begin(self, call: dict[str, Any]) -> None:
        call_id, op = call.get("id"), call.get("op")
        if not _is_id(call_id) or not isinstance(op, str):
            rule = "Invalid request: a call has an id (text or a whole number) and an op"
            self._send(call_id if _is_id(call_id) else None, {"error": protocol_error(INVALID_REQUEST, rule)})
            return
        assert isinstance(call_id, int | str)
        server = self._server
        if server.refusing:
            self._send(call_id, {"retry": "the server is leaving"})
            return
        if self.member is not None and isinstance(caller := call.get("caller"), dict):
            self.member = self.member.called_from(caller.get("context"))
        server.on_call()
        server.in_flight += 1
        work = server.handler.answer(call, env_asked=call_id in self._env_asked)
        if server.call_delay and op != protocol.ROLE:
            work = self._delay(work)
        task = self._loop.create_task(work)
        self._running[task] = call_id, op
        task.add_done_callback(self._answered)

    async def _delay(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            await asyncio.sleep(self._server.call_delay)
            return await work
        finally:
            work.close()

    def _answered(self, task: asyncio.Task[Answer]) -> None:
        call_id, _ = self._running.pop(task)
        self._server.in_flight -= 1
        if task.cancelled():
            pass
        elif (error := task.exception()) is not None:
            _log.error("a call failed", exc_info=error)
        else:
            self._finish(call_id, task.result())
        if self._buffer or not self._reading:
            self._process()
        self._close_if_finished()

    def _finish(self, call_id: int | str, answer: Answer) -> None:
        if "need_env" in answer:
            self._env_asked.add(call_id)
        elif self._env_asked:
            self._env_asked.discard(call_id)
        self._send(call_id, answer)

    # Answers

    def _send(self, call_id: int | str | None, answer: Answer) -> None:
        if not self._transport.is_closing():
            self._transport.write(_encode({"id": call_id, **answer}) + b"\n")

    def _refuse(self, error: dict[str, Any]) -> None:
        """Send the error and close."""
        self._send(None, {"error": error})
        self._transport.close()

    def _is_finished(self) -> bool:
        """Whether the client sends no more and all its calls are answered."""
        return self._ended and not (self._running or self._decoding or self._full)

    def _close_if_finished(self) -> None:
        if self._is_finished():
            self._transport.close()


def _encode(answer: Answer) -> bytes:
    result = answer.get("result")
    try:
        if isinstance(result, protocol.JsonText):
            rest = {name: value for name, value in answer.items() if name != "result"}
            return encode(rest)[:-1] + b',"result":' + result + b"}"
        return encode(answer)
    except ValueError:
        _log.exception("an answer is not JSON")
        return encode({"id": answer["id"], "error": protocol_error(INTERNAL_ERROR, INTERNAL_MESSAGE)})


def _decode(line: bytes) -> Any:
    """Decode a line. An MCP message, which may have MAX_JSON_DEPTH levels itself, is one level below the envelope."""
    return decode(line, depth=limits.MAX_JSON_DEPTH + 1)


def _id_of(line: bytes, error: JsonError) -> int | str | None:
    """Return the id of a call that is JSON and is refused: the clients of this package send it first. An error without
    an id would fail every call of the connection."""
    if error.request_id is not None or error.code != INVALID_REQUEST:
        return error.request_id
    match = re.match(rb'\{"id":(\d{1,15}),', line)
    return None if match is None else int(match[1])


def _decode_large(line: bytes) -> Any:
    """Decode a line on a thread. Raises JsonError for parameters over the limit: a line may be longer than they, since
    the envelope has the caller's context and environment."""
    message = _decode(line)
    if len(line) > limits.MAX_BODY_BYTES and isinstance(message, dict) and "params" in message:
        size = len(json.dumps(message["params"], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
        if size > limits.MAX_BODY_BYTES:
            error = JsonError(INVALID_REQUEST, f"Invalid request: params have at most 1 MiB; {protocol.IN_A_FILE}")
            error.request_id = call_id if _is_id(call_id := message.get("id")) else None
            raise error
    return message


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= limits.MAX_REQUEST_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_differences(raw: object) -> tuple[str, ...]:
    lines = raw[: limits.MAX_DIFFERENCES] if isinstance(raw, list) else []
    return tuple(mask(line[: limits.MAX_DIFFERENCE_CHARS]) for line in lines if isinstance(line, str))


def _printable(text: object) -> str:
    """Return a text of the client in a form that is safe to print: `nudge status` shows it."""
    if not isinstance(text, str):
        return ""
    return mask(text[: limits.MAX_CLIENT_CHARS])


def _is_same_user(transport: asyncio.Transport) -> bool:
    """Whether the process at the other end belongs to this user, by the kernel's word. The directory is owner-only;
    this check holds also after its mode was changed."""
    sock = transport.get_extra_info("socket")
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return bool(struct.unpack("3i", credentials)[1] == os.getuid())
    if sys.platform == "darwin":  # pragma: no cover
        credentials = sock.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, uid, groups
        return bool(struct.unpack_from("=II", credentials)[1] == os.getuid())
    return True
