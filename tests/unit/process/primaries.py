"""A PRIMARY that answers as a test wants it to, on a Unix socket of its own."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from nudge import __version__
from nudge.core import paths
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint

Answer = Callable[[dict[str, Any]], bytes | None]
HANG_UP = b"hang up"


def line(**answer: Any) -> bytes:
    return json.dumps({"id": 1, **answer}).encode() + b"\n"


def result(value: Any) -> bytes:
    return line(result=value)


def error(code: int, reason: str, message: str, **data: Any) -> bytes:
    return line(error={"code": code, "message": message, "data": {"reason": reason, **data}})


class FakePrimary:
    """`answer` gets each call and gives the bytes to send, for its id where they say 1; None says nothing at all,
    HANG_UP ends the connection."""

    def __init__(
        self, directory: str, answer: Answer, *, state: str = endpoint.READY, version: str = __version__
    ) -> None:
        paths.ensure_private_dir(directory)
        self.calls: list[dict[str, Any]] = []
        self.hellos: list[dict[str, Any]] = []
        self._answer = answer
        path = os.path.join(directory, "s")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._links: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        endpoint.publish(directory, Endpoint(os.getpid(), None, path, "", "g", version, state))

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
        lines = link.makefile("rb")
        self.hellos.append(json.loads(lines.readline() or b"null"))
        for line in lines:
            call = json.loads(line)
            self.calls.append(call)
            if (answer := self._answer(call)) is None:
                return
            if answer == HANG_UP:
                link.shutdown(socket.SHUT_RDWR)
                return
            try:
                link.sendall(answer.replace(b'"id": 1,', b'"id": %d,' % call["id"]))
            except OSError:
                return
