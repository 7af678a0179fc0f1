"""Connections of the HTTP server: how many are allowed, and how long one may stay without showing the token. aiohttp
parses and writes HTTP."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from nudge.core import limits
from nudge.process.wire_server import AcceptLoop, descriptor_limit

_log = logging.getLogger(__name__)

_READ_BUFFER = bytearray(16 * limits.KIB)  # 100,000 chunks of one byte, parsed in one go, take 100 ms
_LINGER = 0.5  # seconds in which the client can send the rest of a body that was refused, and read why
_CLOSE_TIMEOUT = 0.1  # seconds for calls in flight when the listener closes

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """Accepts connections on `listening` and gives their requests to `handler`."""

    def __init__(self, handler: Handler, listening: socket.socket) -> None:
        self.connections: set[HttpConnection] = set()
        self.unauthenticated: dict[HttpConnection, None] = {}
        """Oldest first."""
        self._server = web.Server(handler)
        self._accept_loop = AcceptLoop(listening, self._connect, has_room=self._has_room, name="port")

    def _connect(self) -> HttpConnection:
        requests = _Requests(
            self._server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.KEEPALIVE,
            lingering_time=_LINGER,
            max_headers=limits.MAX_HEADERS,
            auto_decompress=False,  # a compressed kilobyte can hold a gigabyte
            access_log=None,  # type: ignore[arg-type]
            logger=_log,
        )
        return HttpConnection(self, requests)

    async def close(self) -> None:
        await self._accept_loop.close()
        self._server.pre_shutdown()
        await self._server.shutdown(_CLOSE_TIMEOUT)

    def _has_room(self) -> bool:
        """Whether a new connection can be taken, if necessary in place of one that has not shown the token. The other
        descriptors of the process are for the private socket and the database."""
        return bool(self.unauthenticated) or len(self.connections) < self._most()

    def _most(self) -> int:
        return min(limits.MAX_CONNECTIONS, descriptor_limit() // 2)

    def register(self, connection: HttpConnection) -> None:
        """Register a new connection. When there are too many, the oldest that has not shown the token is closed:
        otherwise idle connections could keep the owner's next request waiting."""
        most = min(limits.MAX_UNAUTHENTICATED_CONNECTIONS, descriptor_limit() // 4)
        if len(self.unauthenticated) >= most or len(self.connections) >= self._most():
            self._accept_loop.warn_once(
                "too many connections on the port; the oldest that have not shown the token are closed"
            )
            if self.unauthenticated:
                self._evict(next(iter(self.unauthenticated)))
        self.connections.add(connection)
        self.unauthenticated[connection] = None

    def _evict(self, connection: HttpConnection) -> None:
        self.unregister(connection)
        connection.abort()

    def mark_authenticated(self, connection: HttpConnection) -> None:
        self.unauthenticated.pop(connection, None)

    def unregister(self, connection: HttpConnection) -> None:
        self.connections.discard(connection)
        self.unauthenticated.pop(connection, None)
        self._accept_loop.notify_room()


class HttpConnection(asyncio.BufferedProtocol):
    """One connection: it hands what it reads to aiohttp's protocol. It has `limits.TOKEN_TIMEOUT` seconds to show the
    token, or it is cut off."""

    __slots__ = ("_listener", "_requests", "_token_timer", "_transport", "authenticated", "busy", "on_end")

    def __init__(self, listener: Listener, requests: _Requests) -> None:
        self._listener, self._requests = listener, requests
        requests.connection = self
        self._transport: asyncio.Transport | None = None
        self.authenticated = self.busy = False
        self.on_end: Callable[[], None] | None = None
        """Of an answer without end: called when the client is gone."""
        self._token_timer = asyncio.get_running_loop().call_later(limits.TOKEN_TIMEOUT, self.abort)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._requests.connection_made(transport)
        self._listener.register(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._token_timer.cancel()
        self._listener.unregister(self)
        if self.on_end is not None:
            self.on_end()
        self._requests.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002
        """All connections read into the same memory: what was read is taken out of it at once."""
        return _READ_BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self.busy = True  # until a request is answered: aiohttp starts on it in a later turn of the event loop
        self._requests.data_received(bytes(_READ_BUFFER[:nbytes]))

    def eof_received(self) -> bool:
        """Keep the connection while a call runs: a client may close its sending half and still read the answer
        (`nc -N`); aiohttp would close at once. An answer without end is over."""
        if self.on_end is not None:
            self.on_end()
        elif self.busy:
            self._requests.close()
            return True
        return False

    def pause_writing(self) -> None:
        self._requests.pause_writing()

    def resume_writing(self) -> None:
        self._requests.resume_writing()

    def authenticate(self) -> None:
        self.authenticated = True
        self._token_timer.cancel()
        self._listener.mark_authenticated(self)

    def abort(self) -> None:
        """End the connection now. `close` would wait until the client has read what was sent."""
        if self._transport is not None:
            self._transport.abort()


class _Requests(web.RequestHandler):
    """aiohttp's protocol, with error pages of our own."""

    __slots__ = ("connection",)

    connection: HttpConnection

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002
    ) -> web.StreamResponse:
        """Answer an error without quoting the request, as aiohttp's page and log line do: it may hold a secret."""
        if isinstance(exc, HttpProcessingError) or status < 500:
            response = text_response(400, "not a request that this server understands")
        else:
            _log.error("request failed", exc_info=exc)
            response = text_response(500, "internal error; the server's log has the details")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun")
        response.force_close()
        return response


def connection_of(request: web.BaseRequest) -> HttpConnection:
    """Return the connection that a request came on."""
    requests = request.protocol
    assert isinstance(requests, _Requests)
    return requests.connection


def text_response(status: int, text: str, **headers: str) -> web.Response:
    """Return a response with one line of plain text."""
    return web.Response(
        status=status,
        body=f"{text}\n".encode(),
        headers={"Content-Type": "text/plain; charset=utf-8", "Server": "nudge", **headers},
    )
