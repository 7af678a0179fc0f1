"""A PRIMARY that answers as a test wants it to, on a Unix socket of its own."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from nudge import paths
from nudge.ipc import endpoint
from nudge.ipc.endpoint import Endpoint

Answer = Callable[[dict[str, Any]], bytes | None]


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def result(value: Any) -> bytes:
    return http(json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode())


def error(code: int, reason: str, message: str, **data: Any) -> bytes:
    told = {"code": code, "message": message, "data": {"reason": reason, **data}}
    return http(json.dumps({"jsonrpc": "2.0", "id": 1, "error": told}).encode())


class FakePrimary:
    """`answer` gets each request's JSON and gives the bytes to send; None says nothing at all."""

    def __init__(self, directory: str, answer: Answer, *, state: str = endpoint.READY) -> None:
        paths.ensure_private_dir(directory)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._answer = answer
        path = os.path.join(directory, "s")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._links: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        endpoint.publish(directory, Endpoint(os.getpid(), None, path, "", "g", "0", state))

    def __enter__(self) -> FakePrimary:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self._links.append(link)
            self._serve(link)

    def _serve(self, link: socket.socket) -> None:
        """One connection at a time: a hook makes one."""
        stream = link.makefile("rb")
        while line := stream.readline():
            assert line.startswith(b"POST / ")
            headers = {}
            while (line := stream.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            request = json.loads(stream.read(int(headers["content-length"])))
            self.requests.append(request)
            self.headers.append(headers)
            if (said := self._answer(request)) is None:
                return
            try:
                link.sendall(said)
            except OSError:
                return
