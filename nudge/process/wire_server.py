"""The server of the private wire: it listens on the owner-only Unix socket, or on loopback TCP where there is none, and
limits its connections. `server_connection` reads and writes the lines; a `Handler` answers the calls.

`AcceptLoop` accepts the connections, also those of the public port."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol

from nudge import __version__
from nudge.core import limits
from nudge.process import wire as protocol
from nudge.process.wire_connection import Answer, Member, ServerConnection

_log = logging.getLogger(__name__)

_BACKLOG = 512
_CLOSE_TIMEOUT = 0.2  # seconds to send the remaining answers when the server closes
_ACCEPT_RETRY = 0.25  # seconds to wait after the process ran out of descriptors


class Handler(Protocol):
    """Answers the calls of a server."""

    def is_read(self, op: str) -> bool:
        """Whether a call of this name only reads: it is cancelled when its caller is gone."""
        ...

    async def answer(self, call: dict[str, Any], *, env_asked: bool) -> Answer:
        """Return the answer without its id. `env_asked`: this call was answered with `need_env` before. Does not
        raise."""
        ...


class WireServer:
    """All connections of one PRIMARY. While `refusing`, every call is answered with `retry`; `call_delay` is a pause in
    seconds before each call but the request for the role."""

    def __init__(self, handler: Handler, *, generation: str, token: Callable[[], str]) -> None:
        self.handler, self.generation, self.token = handler, generation, token
        self.refusing = False
        self.call_delay = 0.0
        self.in_flight = 0
        self.closed = False
        self.on_call: Callable[[], None] = lambda: None
        self.port: int | None = None
        self.connections: set[ServerConnection] = set()
        self.unproven: dict[ServerConnection, None] = {}
        """Connections over TCP that have not proved that they know the token, oldest first."""
        self.without_hello: dict[ServerConnection, None] = {}
        """Connections that have not sent a hello, oldest first."""
        self._unix: AcceptLoop | None = None
        self._tcp: AcceptLoop | None = None

    async def listen_unix(self, path: str) -> None:
        """Listen on a Unix socket, which is owner-only before anybody can connect. The socket before it is closed: its
        file is gone."""
        if self._unix is not None:
            await self._unix.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
        self._unix = AcceptLoop(listener, lambda: ServerConnection(self), name="private socket")

    async def listen_tcp(self) -> int:
        """Listen on a free loopback port and return it; there both sides prove that they know the token."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._tcp = AcceptLoop(listener, lambda: ServerConnection(self, tcp=True), name="private port")
        self.port = self._tcp.port
        return self.port

    async def close(self) -> None:
        """Stop accepting connections, send the answers that are ready, and close."""
        self.closed = True
        for accept_loop in self._accept_loops():
            await accept_loop.close()
        gone = [connection.gone for connection in self.connections]
        for connection in list(self.connections):
            connection.close()
        if gone:
            await asyncio.wait(gone, timeout=_CLOSE_TIMEOUT)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # an aborted transport closes its socket in the next round of the event loop

    def _accept_loops(self) -> list[AcceptLoop]:
        return [accept_loop for accept_loop in (self._unix, self._tcp) if accept_loop is not None]

    def make_room(self) -> bool:
        """Whether a new connection may stay; when there are too many, the oldest without a hello is closed for it."""
        if len(self.connections) <= min(limits.MAX_WIRE_CONNECTIONS, descriptor_limit() * 3 // 8):
            return True
        for accept_loop in self._accept_loops():
            accept_loop.warn_once(
                "too many connections on the private wire; the oldest that have said no hello are closed"
            )
        oldest = next(iter(self.without_hello), None)
        if oldest is None:
            return False
        del self.without_hello[oldest]
        self.connections.discard(oldest)
        oldest.abort()
        return True

    @property
    def has_members(self) -> bool:
        return any(connection.member for connection in self.connections)

    def list_members(self) -> list[dict[str, Any]]:
        members = (connection.member for connection in self.connections if connection.member)
        return [_describe(member) for member in members]

    def hello(self) -> dict[str, Any]:
        return {
            "hello": protocol.VERSION,
            "version": __version__,
            "generation": self.generation,
            "pid": os.getpid(),
            "state": "leaving" if self.refusing or self.call_delay else "ready",
            "max_line": limits.MAX_LINE_BYTES,
            "max_in_flight": limits.MAX_CALLS_IN_FLIGHT,
        }


def _describe(member: Member) -> dict[str, Any]:
    optional = {"repo": member.repo, "branch": member.branch, "differs": list(member.differs)}
    known = {name: value for name, value in optional.items() if value}
    return {"client": member.client, "pid": member.pid, "version": member.version, "since": member.since, **known}


class AcceptLoop:
    """Accepts connections on `listening` and gives each to a protocol of its own.

    asyncio's own accept loop does not stop at EMFILE: each wakeup logs it and starts another timer for every place in
    the backlog, and each timer wakes the loop up again. With 364 idle connections at `ulimit -n 256` that took a whole
    core.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        has_room: Callable[[], bool] = lambda: True,
        name: str,
    ) -> None:
        """While `has_room` is false, a new connection waits until `notify_room` is called, and the others wait in the
        kernel's queue. `name` is the name of the socket in the log."""
        self._socket, self._make_protocol, self._has_room, self._name = listening, make_protocol, has_room, name
        self._room = asyncio.Event()
        self._warned = False
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def notify_room(self) -> None:
        """Tell the loop that a connection has closed: `has_room` is asked again."""
        self._room.set()

    def warn_once(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("%s (logged once)", what)

    async def close(self) -> None:
        """Stop accepting, then close the socket. The task ends first: it waits on the descriptor's number, which the
        next file that is opened may get."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except ConnectionAbortedError:
                continue
            except OSError as error:  # EMFILE and its like
                self.warn_once(f"new connections on the {self._name} wait: {error.strerror}")
                await asyncio.sleep(_ACCEPT_RETRY)
                continue
            try:
                await self._wait_for_room()
                await loop.connect_accepted_socket(self._make_protocol, accepted)
            except BaseException as error:
                accepted.close()
                if not isinstance(error, OSError):
                    raise

    async def _wait_for_room(self) -> None:
        """Wait until there is room; checked once a connection is accepted, since the answer may change before that."""
        while not self._has_room():
            self.warn_once(f"too many connections on the {self._name}; new ones wait")
            self._room.clear()
            await self._room.wait()


def descriptor_limit() -> int:
    """Return how many file descriptors this process may have; a large number where the system has no limit."""
    if sys.platform == "win32":
        return 1 << 20
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
