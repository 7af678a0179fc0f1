"""HTTP/1.1 on asyncio: whole requests out of bytes, and bytes out of answers. What a request means is the service's matter.

`httptools` is the parser of Node.js, strict about everything that two readers could understand in two ways. A framework around one
would cost every start of a server 200 ms and 16 MB, and every request more than its hint does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from nudge import limits

_log = logging.getLogger(__name__)

_SAID_ONCE = frozenset(("authorization", "content-encoding", "content-type", "host", "origin"))  # said twice, it could mean two things
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BACKLOG = 128
_QUEUED = 32  # requests that wait on one connection; beyond, it is not read on
_LINGERING = 0.5  # seconds in which a client can take the answer to a request that it has not sent whole
_CLOSING = 0.2  # seconds for answers under way when the listener closes
_NO_BODY = (204, 304)


@dataclass(slots=True)
class Answer:
    """A body in blocks goes out block by block: handed over as a whole it would be copied as a whole, on the event loop."""

    status: int
    body: bytes | list[bytes] = b""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def plain(status: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8", headers or {})


_NOT_UNDERSTOOD = plain(400, "not a request that this server understands")


@dataclass(slots=True)
class Request:
    """`headers` by their names in small letters; `most_body` is for `admit` to change."""

    method: str
    target: str
    headers: dict[str, str]
    transport: asyncio.Transport
    keep_alive: bool
    most_body: int = limits.MAX_BODY_BYTES
    body: bytes = b""
    path: str = field(init=False)

    def __post_init__(self) -> None:
        path = self.raw_path
        self.path = unquote(path, errors="surrogateescape") if "%" in path else path

    @property
    def raw_path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True, errors="surrogateescape")


@dataclass(frozen=True, slots=True)
class Service:
    """`admit` is asked as soon as the head is there: its answer refuses the request, and nobody waits for the body. `respond` answers
    a whole request and raises nothing. `left` hears of each connection that ended."""

    admit: Callable[[Request], Answer | None]
    respond: Callable[[Request], Awaitable[Answer]]
    left: Callable[[asyncio.Transport], None]
    too_large: Answer
    most_head: int
    idle: float | None = None
    """Seconds that a connection may do nothing between two requests."""


class Listener:
    """One address, and its connections."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def on_unix(self, path: str) -> None:
        self._server = await asyncio.get_running_loop().create_unix_server(lambda: _Connection(self), path, backlog=_BACKLOG)

    async def on_tcp(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=_BACKLOG)

    async def close(self) -> None:
        """No newcomers; whoever waits for an answer has a moment to get it."""
        if self._server is not None:
            self._server.close()
        for connection in self.connections:
            connection.finish()
        if self.connections:
            await asyncio.wait([connection.gone for connection in self.connections], timeout=_CLOSING)
        for connection in list(self.connections):
            connection.abort()


class _Unreadable(Exception):
    """What follows on this connection cannot be told apart; the answer is the last one."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class _Reader:
    """Requests out of bytes. `ready` are the whole ones, each with its refusal if it has one; `request` waits for the rest of its body."""

    def __init__(self, transport: asyncio.Transport, service: Service) -> None:
        self._transport, self._service = transport, service
        self._parser = HttpRequestParser(self)
        self.ready: deque[tuple[Request, Answer | None]] = deque()
        self.request: Request | None = None
        self.refusal: Answer | None = None
        self._in_head = False
        self._head_bytes = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._ambiguous = False
        self._body: bytes | bytearray = b""

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            raise _Unreadable(_NOT_UNDERSTOOD) from None
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._service.most_head:
                raise _Unreadable(plain(431, "the headers are too long"))

    # Called by the parser

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._target, self._headers, self._ambiguous, self._body = b"", {}, False, b""

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # behind the body: too late to say anything that counts
        header = name.decode("ascii").lower()
        if header in self._headers:
            self._ambiguous |= header in _SAID_ONCE or header.startswith("nudge-")
        else:
            self._headers[header] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser = self._parser
        target = self._target.decode("utf-8", "surrogateescape")
        keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        request = Request(parser.get_method().decode(), target, self._headers, self._transport, keep_alive)
        self.request = request
        if self._is_odd():
            request.keep_alive, self.refusal = False, _NOT_UNDERSTOOD
        else:
            self.refusal = self._service.admit(request)
        if self.refusal is None and int(self._headers.get("content-length", 0)) > request.most_body:
            self.refusal = self._service.too_large

    def _is_odd(self) -> bool:
        """Another protocol, for another host, or with two meanings. What follows an `Upgrade` the parser takes for no HTTP any more."""
        version = self._parser.get_http_version()
        unnamed = version == "1.1" and "host" not in self._headers
        wrapped = self._headers.get("transfer-encoding", "chunked").lower() != "chunked"
        strange = unnamed or wrapped or self._ambiguous or self._target[:1] != b"/"
        return version not in ("1.0", "1.1") or strange or self._parser.should_upgrade()

    def on_body(self, part: bytes) -> None:
        if self.refusal is not None or self.request is None:
            return
        if not self._body:
            self._body = part
        else:
            self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
            self._body += part
        if len(self._body) > self.request.most_body:
            self.refusal, self._body = self._service.too_large, b""

    def on_message_complete(self) -> None:
        assert self.request is not None
        self.request.body = bytes(self._body)
        self.ready.append((self.request, self.refusal))
        self.request, self.refusal, self._body = None, None, b""


class _Alarm:
    """A deadline that moves with every request: to move it is an assignment, not a timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop, self._ring = loop, ring
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self._start()

    def clear(self) -> None:
        self._due = None

    def stop(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._due is not None
        self._timer = self._loop.call_at(self._due, self._rang)

    def _rang(self) -> None:
        self._timer = None
        if self._due is not None:
            if self._loop.time() < self._due:
                self._start()
            else:
                self._ring()


class _Connection(asyncio.Protocol):
    """Answers one request after the other, in their order."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._service = listener, listener.service
        self._loop = asyncio.get_running_loop()
        self._alarm = _Alarm(self._loop, self._out_of_time)
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport
        self._reader: _Reader
        self._serving: asyncio.Task[None]
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._unsent: deque[bytes] = deque()
        self._half: Request | None = None
        """The request whose body is waited for."""
        self._busy = False
        self._last = False
        """Nothing more is read: the connection ends when what is ready is answered."""
        self._unread = False

    # Coming and going

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._reader = transport, _Reader(transport, self._service)
        # Chunks of one byte take the parser fifty times as long as the same bytes in one: it must not get too many at once.
        transport.max_size = limits.READ_BYTES  # type: ignore[attr-defined]
        self._listener.connections.add(self)
        self._serving = self._loop.create_task(self._serve())
        self._alarm.set(limits.HEADERS_TIMEOUT)
        if len(self._listener.connections) > limits.MAX_CONNECTIONS:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """An operation that is under way goes on: it may have changed something already."""
        self._alarm.stop()
        self._reader.ready.clear()
        self._end()
        self.resume_writing()
        self._listener.connections.discard(self)
        self._service.left(self._transport)
        self.gone.set_result(None)

    def eof_received(self) -> bool:
        """A client may say that it has no more to say, and still wait for its answers."""
        waited_for = self._busy or bool(self._reader.ready)
        self._end()
        return waited_for

    def finish(self) -> None:
        self._end()

    def abort(self) -> None:
        self._transport.abort()
        self._serving.cancel()

    def _end(self) -> None:
        self._last = True
        _wake(self._arrival)

    def _out_of_time(self) -> None:
        """A body that does not come is worth an answer; who never says what he wants gets none."""
        if self._half is not None and not self._last:
            self._end_with(plain(408, "the body did not arrive in time"))
        else:
            self._transport.abort()

    # Reading

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        try:
            self._reader.feed(data)
        except _Unreadable as fault:
            self._end_with(fault.answer)
            return
        if self._reader.request is not self._half:
            self._wait_for_body(self._reader.request)
        if self._reader.refusal is not None:
            self._end_with(self._reader.refusal)
        elif self._reader.ready:
            _wake(self._arrival)
            if len(self._reader.ready) > _QUEUED:
                self._transport.pause_reading()

    def _wait_for_body(self, request: Request | None) -> None:
        self._half = request
        if request is None:
            self._alarm.clear()
            return
        self._alarm.set(limits.BODY_TIMEOUT)
        if self._reader.refusal is None and not self._busy and not self._reader.ready:
            self._invite(request)

    def _invite(self, request: Request) -> None:
        """A client may ask whether its body is wanted before it sends it."""
        if request.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(_CONTINUE)

    def _end_with(self, answer: Answer) -> None:
        """The last answer on this connection: what else is sent on it belongs to a request that was refused, or to none."""
        if self._last:
            return
        refused = self._reader.request or Request("", "", {}, self._transport, keep_alive=False)
        refused.keep_alive = False
        self._unread = True
        self._half = None
        self._reader.ready.append((refused, answer))
        self._alarm.clear()
        self._end()

    # Answering

    async def _serve(self) -> None:
        ready = self._reader.ready
        while ready or await self._more():
            if not ready:
                continue
            request, refusal = ready.popleft()
            self._busy = True
            if self._half is None:
                self._alarm.clear()
            self._start_sending(request, refusal or await self._respond(request))
            while self._unsent or self._room is not None:
                await self._go_on_sending()
            self._busy = False
            if not self._goes_on(request):
                break
            if ready:
                await asyncio.sleep(0)  # others have their turn
            elif self._half is not None:
                self._invite(self._half)
        self._part()

    async def _more(self) -> bool:
        """Wait until something is ready, or never will be."""
        if self._last:
            return False
        self._transport.resume_reading()
        self._arrival = self._loop.create_future()
        await self._arrival
        self._arrival = None
        return True

    def _goes_on(self, answered: Request) -> bool:
        """After an answer: be patient, or end."""
        if not answered.keep_alive:
            self._reader.ready.clear()
            self._last = True
        elif self._service.idle is not None and self._half is None:
            self._alarm.set(self._service.idle)
        return answered.keep_alive

    async def _respond(self, request: Request) -> Answer:
        try:
            return await self._service.respond(request)
        except Exception:
            _log.exception("request failed")
            return plain(500, "internal error; the server's log has the details")

    def _start_sending(self, request: Request, answer: Answer) -> None:
        blocks = answer.body if isinstance(answer.body, list) else [answer.body]
        head = _head(answer, sum(map(len, blocks)), request.keep_alive)
        if request.method == "HEAD" or answer.status in _NO_BODY:
            blocks = [b""]
        self._write(head + blocks[0])
        self._unsent.extend(blocks[1:])

    async def _go_on_sending(self) -> None:
        """A client that does not take its answers gets no further ones."""
        if self._room is not None:
            await self._room
        if self._unsent:
            self._write(self._unsent.popleft())

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    def _part(self) -> None:
        """Closed at once, a connection with unread bytes would take its last answer away from the client."""
        if self._unread and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
            self._alarm.set(_LINGERING)
        else:
            self._transport.close()


def _wake(sleeper: asyncio.Future[None] | None) -> None:
    if sleeper is not None and not sleeper.done():
        sleeper.set_result(None)


def _head(answer: Answer, length: int, keep_alive: bool) -> bytes:
    lines = [_status_line(answer.status), f"Date: {_date(int(time.time()))}", "Server: nudge"]
    if answer.status not in _NO_BODY:
        lines += [f"Content-Type: {answer.kind}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    if not keep_alive:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(second))
