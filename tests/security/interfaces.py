"""The interfaces through which untrusted bytes reach the server, behind one call: a body in, the error code out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from tests.security.served import Line, Raw, Served, WireLine, post


class Interface(Protocol):
    speaks_mcp: bool

    def ask(self, body: bytes) -> Any:
        """The decoded answer."""
        ...


class HttpDoor:
    """Each body on a connection of its own: a refusal may end one."""

    def __init__(self, connect: Callable[[], Raw], path: str) -> None:
        self._connect, self._path = connect, path
        self.speaks_mcp = path == "/mcp"

    def ask(self, body: bytes) -> Any:
        with self._connect() as link:
            reply = link.ask(post(self._path, body))
        assert reply.status == 200, reply
        return reply.json


class WireDoor:
    """The private wire; JSON-RPC on it has other words."""

    speaks_mcp = False

    def __init__(self, line: WireLine) -> None:
        self._line = line

    def ask(self, body: bytes) -> Any:
        if b'"2.0"' in body:
            body = body.replace(b'"method":', b'"op":', 1)
        return self._line.ask(body)


class LineDoor:
    speaks_mcp = True

    def __init__(self, line: Line) -> None:
        self._line = line

    def ask(self, body: bytes) -> Any:
        return self._line.ask(body)


INTERFACES: dict[str, Callable[[Served], Interface]] = {
    "tcp": lambda server: HttpDoor(server.tcp, "/"),
    "wire": lambda server: WireDoor(server.wire_line()),
    "mcp over tcp": lambda server: HttpDoor(server.tcp, "/mcp"),
    "stdio": lambda server: LineDoor(server.stdio()),
    "stdio through a proxy": lambda server: LineDoor(server.proxy()),
}


def setting(interface: Interface, params: bytes) -> bytes:
    """A message that would set a hint; `params` is JSON text, or something that only looks like it."""
    if interface.speaks_mcp:
        return (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nudge_set_hint","arguments":%s}}' % params
        )
    return b'{"jsonrpc":"2.0","id":1,"method":"nudge.set_hint","params":%s}' % params


def refusal_of(answer: Any) -> int | None:
    """The code that says no; None when the answer says yes."""
    error = answer.get("error") or answer["result"].get("structuredContent", {}).get("error") or {}
    code: int | None = error.get("code")
    return code


def still_serves(interface: Interface) -> bool:
    """The next request, a good one, is answered."""
    name = "nudge_list_components" if interface.speaks_mcp else "nudge.list_components"
    method, params = ("tools/call", {"name": name, "arguments": {}}) if interface.speaks_mcp else (name, {})
    answer = interface.ask(json.dumps({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).encode())
    return bool(answer["id"] == 2 and "result" in answer)
