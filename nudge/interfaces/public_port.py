"""The HTTP server's port: open from the start; the server behind it is loaded at the first connection.

aiohttp takes 200 ms of processor time and 14 MB, and most PRIMARYs never get an HTTP request. Until the first
connection there is only a listening socket; the first clients wait in the kernel's queue while the server is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nudge.process.gc_tuning import freeze_imports

if TYPE_CHECKING:
    from nudge.interfaces.http import HttpServer

_log = logging.getLogger(__name__)
_BACKLOG = 128  # connections that wait in the kernel


def listen(ports: Iterable[int]) -> socket.socket | None:
    """Return a socket that listens on the first free port of `ports`; None when all are taken."""
    for port in ports:
        with suppress(OSError):
            listening = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
            listening.setblocking(False)
            return listening
    return None


def _load_http() -> Any:
    with freeze_imports():
        from nudge.interfaces import http
    return http


class PublicPort:
    """A listening port whose HTTP server is made by `make_server` at the first connection.

    `refusing` and `call_delay` are passed on to the server, also to one that is made later.
    """

    def __init__(self, listening: socket.socket, make_server: Callable[[Any], HttpServer]) -> None:
        """`make_server` is given the module nudge.interfaces.http."""
        self._socket, self._make_server = listening, make_server
        self._server: HttpServer | None = None
        self._opening: asyncio.Task[None] | None = None
        self._refusing, self._call_delay = False, 0.0
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_reader(listening, self._first_connection)
        except NotImplementedError:  # Windows cannot be told of a connection without accepting it
            self._open_soon()

    @property
    def number(self) -> int:
        number: int = self._socket.getsockname()[1]
        return number

    @property
    def in_flight(self) -> int:
        return 0 if self._server is None else self._server.in_flight

    @property
    def refusing(self) -> bool:
        return self._refusing

    @refusing.setter
    def refusing(self, refusing: bool) -> None:
        self._refusing = refusing
        if self._server is not None:
            self._server.refusing = refusing

    @property
    def call_delay(self) -> float:
        return self._call_delay

    @call_delay.setter
    def call_delay(self, call_delay: float) -> None:
        self._call_delay = call_delay
        if self._server is not None:
            self._server.call_delay = call_delay

    def _first_connection(self) -> None:
        self._loop.remove_reader(self._socket)
        self._open_soon()

    def _open_soon(self) -> None:
        self._opening = asyncio.create_task(self._open())
        self._opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        """Close the port when the server could not be loaded: clients in the queue would wait forever."""
        if not opening.cancelled() and (error := opening.exception()) is not None:
            _log.error("the HTTP server could not be started", exc_info=error)
            self._socket.close()

    async def _open(self) -> None:
        """Load the server in a thread, so that calls over the private socket are answered meanwhile."""
        server = self._make_server(await asyncio.to_thread(_load_http))
        server.refusing, server.call_delay = self._refusing, self._call_delay
        server.open(self._socket)
        self._server = server

    async def close(self) -> None:
        """Stop accepting connections; calls in flight get a moment to be answered."""
        if self._server is not None:
            await self._server.close()
            return
        if self._opening is not None:
            self._opening.cancel()
        else:
            self._loop.remove_reader(self._socket)
        self._socket.close()
