"""Members: the processes whose connection to this PRIMARY is open."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nudge.limits import MAX_CLIENT_CHARS
from nudge.server import wire
from nudge.server.http_messages import Request

_PID = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Member:
    client: str
    pid: int
    version: str


class Members:
    """An open connection is the membership; it ends with the connection, whatever ended it."""

    def __init__(self) -> None:
        self._by_transport: dict[asyncio.Transport, Member] = {}

    def note(self, request: Request) -> None:
        pid = request.headers.get("nudge-pid")
        if pid is not None and _PID.fullmatch(pid) and not request.transport.is_closing():
            client, version = client_of(request.headers) or "mcp", request.headers.get("nudge-version", "")
            self._by_transport[request.transport] = Member(_sayable(client), int(pid), _sayable(version))

    def forget(self, transport: asyncio.Transport) -> None:
        self._by_transport.pop(transport, None)

    def present(self) -> list[Member]:
        return [member for transport, member in self._by_transport.items() if not transport.is_closing()]

    def to_wire(self) -> list[dict[str, Any]]:
        return [{"client": member.client, "pid": member.pid, "version": member.version} for member in self.present()]


def client_of(headers: Mapping[str, str]) -> str | None:
    """What the caller's client calls itself: in ASCII, and as JSON where that is not enough."""
    plain, full = headers.get("nudge-client"), headers.get("nudge-client-name")
    if full is None:
        return plain
    try:
        name = wire.decode(full.encode("utf-8", "surrogateescape"))
    except wire.WireError:
        return plain
    return name[:MAX_CLIENT_CHARS] if isinstance(name, str) else plain


def _sayable(text: str) -> str:
    """A header may hold bytes that are no text, and what is told here is told to everyone who asks for the status."""
    return "".join(char if char.isprintable() else "?" for char in text[:MAX_CLIENT_CHARS])
