"""The load generator, a process of its own: a number of connections, each with one request in flight, for some seconds.

    python -m tests.bench.load ADDRESS CONNECTIONS SECONDS

ADDRESS is a loopback port, for HTTP, or the path of a Unix socket, for the private wire. The request comes on stdin as
it is sent; on the wire its first line, the hello, is sent once. How many were answered, and how long that took, goes to
stdout.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

_LENGTH = b"content-length: "


class _Http:
    """One connection that speaks HTTP."""

    def __init__(self, port: str, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._received = b""

    def ask(self) -> None:
        self._received = b""
        self.socket.sendall(self._request)

    def answered(self) -> bool:
        """Take what has come in, and return whether the answer is complete."""
        self._received += self.socket.recv(65_536)
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return False
        assert head.startswith(b"HTTP/1.1 200 "), head
        after = head.lower().partition(_LENGTH)[2]
        return len(body) >= int(after.partition(b"\r\n")[0])


class _Wire:
    """One connection that speaks the private wire."""

    def __init__(self, path: str, request: bytes) -> None:
        hello, _, self._request = request.partition(b"\n")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(hello + b"\n")
        self._received = b""
        while not self._received.endswith(b"\n"):
            self._received += self.socket.recv(65_536)

    def ask(self) -> None:
        self._received = b""
        self.socket.sendall(self._request)

    def answered(self) -> bool:
        self._received += self.socket.recv(65_536)
        if not self._received.endswith(b"\n"):
            return False
        assert b'"result"' in self._received, self._received
        return True


def generate(address: str, connections: int, seconds: float, request: bytes) -> dict[str, float]:
    connect = _Http if address.isdecimal() else _Wire
    poll = selectors.DefaultSelector()
    for link in [connect(address, request) for _ in range(connections)]:
        poll.register(link.socket, selectors.EVENT_READ, link)
        link.ask()
    count, began = 0, time.perf_counter()
    until = began + seconds
    while time.perf_counter() < until:
        for key, _ in poll.select():
            if key.data.answered():
                count += 1
                key.data.ask()
    return {"requests": count, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    print(json.dumps(generate(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.stdin.buffer.read())))
