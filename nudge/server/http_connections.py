"""Connections of the HTTP server: how many there may be, and for how long without the token. aiohttp speaks HTTP on
them."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from nudge import limits

_log = logging.getLogger(__name__)

_READ_BYTES = 16 * limits.KIB  # 100,000 chunks of one byte, parsed in one go, would hold the event loop for 100 ms
_LINGER = 0.5  # seconds in which the client can send the rest of a body that was refused, and read why
_CLOSE_TIMEOUT = 0.1  # seconds for calls in flight when the listener closes
_ACCEPT_RETRY = 1.0  # seconds after the process ran out of descriptors

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """Accepts connections on `listening` and gives their requests to `handler`."""

    def __init__(self, handler: Handler, listening: socket.socket) -> None:
        self.connections: set[HttpConnection] = set()
        self.unauthenticated: set[HttpConnection] = set()
        self._room = asyncio.Event()
        self._warned = False
        self._socket = listening
        self._server = web.Server(handler, request_factory=_make_request)
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        self._accepting.cancel()
        self._socket.close()
        self._server.pre_shutdown()
        await self._server.shutdown(_CLOSE_TIMEOUT)

    async def _accept(self) -> None:
        """Take newcomers while there is room; the others wait in the kernel's queue.

        asyncio's own accept loop does not stop at EMFILE: each wakeup logs it and starts another timer 128 times over,
        and each timer wakes the loop up again. With 364 idle connections at `ulimit -n 256` that took a whole core.
        """
        loop = asyncio.get_running_loop()
        while True:
            while not self._has_room():
                self._warn_once("too many connections on the port; new ones wait")
                self._room.clear()
                await self._room.wait()
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except ConnectionAbortedError:
                continue
            except OSError as error:  # EMFILE and its like
                self._warn_once(f"new connections on the port wait: {error.strerror}")
                await asyncio.sleep(_ACCEPT_RETRY)
                continue
            try:
                await loop.connect_accepted_socket(lambda: HttpConnection(self, self._server, loop), accepted)
            except OSError:
                accepted.close()

    def _has_room(self) -> bool:
        """What is left of the process's descriptors is for the private socket and the database."""
        descriptors = _descriptor_limit()
        most = min(limits.MAX_CONNECTIONS, descriptors // 2)
        most_unauthenticated = min(limits.MAX_UNAUTHENTICATED_CONNECTIONS, descriptors // 4)
        return len(self.connections) < most and len(self.unauthenticated) < most_unauthenticated

    def _warn_once(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("%s (logged once)", what)

    def opened(self, connection: HttpConnection) -> None:
        self.connections.add(connection)
        self.unauthenticated.add(connection)

    def authenticated(self, connection: HttpConnection) -> None:
        self.unauthenticated.discard(connection)
        self._room.set()

    def closed(self, connection: HttpConnection) -> None:
        self.connections.discard(connection)
        self.unauthenticated.discard(connection)
        self._room.set()


class HttpConnection(web.RequestHandler):
    """aiohttp's connection. It has `limits.TOKEN_TIMEOUT` seconds to show the token, or it is cut off."""

    __slots__ = ("_listener", "_reaper", "authenticated", "busy")

    def __init__(self, listener: Listener, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.KEEPALIVE,
            lingering_time=_LINGER,
            max_headers=limits.MAX_HEADERS,
            auto_decompress=False,  # a compressed kilobyte can hold a gigabyte
            access_log=None,  # type: ignore[arg-type]
            logger=_log,
        )
        self._listener = listener
        self.authenticated = self.busy = False
        self._reaper = loop.call_later(limits.TOKEN_TIMEOUT, self.abort)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]  # of asyncio's selector transport
        self._listener.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._reaper.cancel()
        self._listener.closed(self)
        super().connection_lost(exc)

    def eof_received(self) -> None:
        """A client may close its half and still read the answer (`nc -N`); aiohttp would close at once."""
        if self.busy:
            self.close()
            return True  # type: ignore[return-value]
        return None

    def authenticate(self) -> None:
        self.authenticated = True
        self._reaper.cancel()
        self._listener.authenticated(self)

    def abort(self) -> None:
        """Not close(): that waits until the client has read what was sent."""
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002
    ) -> web.StreamResponse:
        """aiohttp's own page and log line quote what the client sent, a secret perhaps."""
        if isinstance(exc, HttpProcessingError) or status < 500:
            response = plain(400, "not a request that this server understands")
        else:
            _log.error("request failed", exc_info=exc)
            response = plain(500, "internal error; the server's log has the details")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        response.force_close()
        return response


def _make_request(message: Any, payload: Any, protocol: web.RequestHandler, writer: Any, task: Any) -> web.BaseRequest:
    assert isinstance(protocol, HttpConnection)
    protocol.busy = True
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limits.MAX_BODY_BYTES)


def plain(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(
        status=status,
        body=f"{text}\n".encode(),
        headers={"Content-Type": "text/plain; charset=utf-8", "Server": "nudge", **headers},
    )


def _descriptor_limit() -> int:
    """File descriptors that this process may have; many, where the system does not say."""
    if sys.platform == "win32":
        return 1 << 20
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
