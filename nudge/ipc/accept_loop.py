"""Accepts connections on a listening socket and pauses when the process runs out of file descriptors. Used for the
private socket and the public port."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable

_log = logging.getLogger(__name__)

_RETRY = 0.25  # seconds to wait after the process ran out of descriptors


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
                await asyncio.sleep(_RETRY)
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
