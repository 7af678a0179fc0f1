"""Members: the processes whose connection to this PRIMARY is open."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Member:
    client: str
    pid: int
    version: str


class Members:
    """An open connection is the membership; it ends with the connection, whatever ended it."""

    def __init__(self) -> None:
        self._by_transport: dict[asyncio.Transport, Member] = {}

    def note(self, request: web.BaseRequest) -> None:
        pid = request.headers.get("Nudge-Pid")
        if pid is not None and pid.isdigit() and request.transport is not None:
            client, version = request.headers.get("Nudge-Client", "mcp"), request.headers.get("Nudge-Version", "")
            self._by_transport[request.transport] = Member(client[:64], int(pid), version[:32])

    def present(self) -> list[Member]:
        for transport in [transport for transport in self._by_transport if transport.is_closing()]:
            del self._by_transport[transport]
        return list(self._by_transport.values())

    def to_wire(self) -> list[dict[str, Any]]:
        return [{"client": member.client, "pid": member.pid, "version": member.version} for member in self.present()]
