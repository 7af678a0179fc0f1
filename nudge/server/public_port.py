"""The public door's port: open from the start; the door behind it is loaded when somebody comes.

aiohttp takes 200 ms of processor time and 14 MB, and most PRIMARYs never see an HTTP request. Until the first
connection there is only a listening socket; whoever connects waits in the kernel's queue while the door is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nudge.server.gc_tuning import freeze_imports

if TYPE_CHECKING:
    from nudge.server.http import PublicDoor

_log = logging.getLogger(__name__)
_BACKLOG = 128  # connections that wait in the kernel


def listen(ports: Iterable[int]) -> socket.socket | None:
    """A socket that listens on the first of `ports` that is free; None when none of them is."""
    for port in ports:
        with suppress(OSError):
            listening = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
            listening.setblocking(False)
            return listening
    return None


def _load_http() -> Any:
    with freeze_imports():
        from nudge.server import http
    return http


class PublicPort:
    """A public door that is made by `make_door` at the first connection.

    `refusing` and `pace` are the door's, and hold for one that is made later too.
    """

    def __init__(self, listening: socket.socket, make_door: Callable[[Any], PublicDoor]) -> None:
        """`make_door` is given the module nudge.server.http."""
        self._socket, self._make_door = listening, make_door
        self._door: PublicDoor | None = None
        self._opening: asyncio.Task[None] | None = None
        self._refusing, self._pace = False, 0.0
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
        return 0 if self._door is None else self._door.in_flight

    @property
    def refusing(self) -> bool:
        return self._refusing

    @refusing.setter
    def refusing(self, refusing: bool) -> None:
        self._refusing = refusing
        if self._door is not None:
            self._door.refusing = refusing

    @property
    def pace(self) -> float:
        return self._pace

    @pace.setter
    def pace(self, pace: float) -> None:
        self._pace = pace
        if self._door is not None:
            self._door.pace = pace

    def _first_connection(self) -> None:
        self._loop.remove_reader(self._socket)
        self._open_soon()

    def _open_soon(self) -> None:
        self._opening = asyncio.create_task(self._open())
        self._opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        """Whoever comes to a port without a door is refused: waiting would never end."""
        if not opening.cancelled() and (error := opening.exception()) is not None:
            _log.error("the public door could not be opened", exc_info=error)
            self._socket.close()

    async def _open(self) -> None:
        """Loaded in a thread: what its import takes is not taken from the calls of the private door."""
        door = self._make_door(await asyncio.to_thread(_load_http))
        door.refusing, door.pace = self._refusing, self._pace
        door.open(self._socket)
        self._door = door

    async def close(self) -> None:
        """Accept nobody else; calls in flight have a moment to be answered."""
        if self._door is not None:
            await self._door.close()
            return
        if self._opening is not None:
            self._opening.cancel()
        else:
            self._loop.remove_reader(self._socket)
        self._socket.close()
