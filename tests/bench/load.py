"""The load generator, a process of its own: so many connections, each with one request under way, for so many seconds.

The request, headers and all, comes on stdin; how many were answered, and how long that took, goes to stdout.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

_LENGTH = b"content-length: "


class _Link:
    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._received = b""

    def ask(self) -> None:
        self._received = b""
        self.socket.sendall(self._request)

    def answered(self) -> bool:
        """Whether, with what has come in now, the answer is complete."""
        self._received += self.socket.recv(65_536)
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return False
        assert head.startswith(b"HTTP/1.1 200 "), head
        after = head.lower().partition(_LENGTH)[2]
        return len(body) >= int(after.partition(b"\r\n")[0])


def generate(port: int, connections: int, seconds: float, request: bytes) -> dict[str, float]:
    poll = selectors.DefaultSelector()
    for link in [_Link(port, request) for _ in range(connections)]:
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
    print(json.dumps(generate(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.stdin.buffer.read())))
