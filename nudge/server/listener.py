"""HTTP/1.1 on asyncio: connections that answer one request after the other. What a request means is the service's
matter."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from nudge import limits
from nudge.server.http_messages import NO_BODY, Answer, Reader, Request, Service, Unreadable, head_of, plain

_log = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BACKLOG = 128
_QUEUED = 32  # requests that wait on one connection; beyond, it is not read on
_LINGERING = 0.5  # seconds in which a client can take the answer to a request that it has not sent whole
_CLOSING = 0.2  # seconds for answers under way when the listener closes


class Listener:
    """One address, and its connections."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def on_unix(self, path: str) -> None:
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: _Connection(self), path, backlog=_BACKLOG
        )

    async def on_tcp(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=_BACKLOG)

    async def close(self) -> None:
        """No newcomers; whoever waits for an answer has a moment to get it."""
        if self._server is not None:
            self._server.close()
        for connection in self.connections:
            connection.end()
        if self.connections:
            await asyncio.wait([connection.gone for connection in self.connections], timeout=_CLOSING)
        for connection in list(self.connections):
            connection.abort()


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
        self._reader: Reader
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
        self._transport, self._reader = transport, Reader(transport, self._service)
        # Chunks of one byte take the parser fifty times as long as the same bytes in one: it must not get too many at
        # once.
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
        self.end()
        self.resume_writing()
        self._listener.connections.discard(self)
        self._service.left(self._transport)
        self.gone.set_result(None)

    def eof_received(self) -> bool:
        """A client may say that it has no more to say, and still wait for its answers."""
        waited_for = self._busy or bool(self._reader.ready)
        self.end()
        return waited_for

    def abort(self) -> None:
        self._transport.abort()
        self._serving.cancel()

    def end(self) -> None:
        """Answer what is ready, and no more."""
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
        except Unreadable as fault:
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
            self._write(_CONTINUE)

    def _end_with(self, answer: Answer) -> None:
        """The last answer on this connection: what else is sent on it belongs to a request that was refused, or to
        none."""
        if self._last:
            return
        refused = self._reader.request or Request("", "", {}, self._transport, keep_alive=False)
        refused.keep_alive = False
        self._unread = True
        self._half = None
        self._reader.ready.append((refused, answer))
        self._alarm.clear()
        self.end()

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
        head = head_of(answer, sum(map(len, blocks)), request.keep_alive)
        if request.method == "HEAD" or answer.status in NO_BODY:
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
