"""The MCP pipe: lines in and out, on descriptors that nothing else in the process uses. Standard library only."""

from __future__ import annotations

import os
import sys

from nudge.core import streams
from nudge.core.errors import INVALID_REQUEST
from nudge.core.limits import KIB, MAX_STDIO_LINE_BYTES, SWITCH_INTERVAL
from nudge.core.strict_json import JsonError, decode
from nudge.interfaces.mcp import is_notification
from nudge.process import wire as protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nudge.interfaces.mcp import StdioClient

_CHUNK = 65_536
_EARLY_SWITCH = 0.0005  # seconds
_EARLY_PAUSE = 0.005  # seconds between an answer and the next request of its client
_EARLY_BYTES = 16 * KIB  # that are written before the server is loaded; with one more answer, a pipe is full
_OVERLONG = b"\0overlong "  # with the id of the request behind it: stands for a line over the limit
_ENDS = KIB  # bytes of an overlong line that are kept of its beginning and of its end: the id is in one of them


class Pipe:
    """The connection to the client. What was read but not handled stays in the buffer, so that another reader can take
    over."""

    __slots__ = ("_at", "_buffer", "_head", "_tail", "closed", "reader", "writer")

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self.closed = False
        self._buffer = b""
        self._at = 0  # start of the next line; cutting each line off the buffer would copy all the others each time
        self._head = self._tail = b""  # the ends of an overlong line that is arriving

    def fileno(self) -> int:
        return self.reader

    def fill(self) -> None:
        """Read what is available; blocks when nothing is. End of file or a broken pipe sets `closed`."""
        try:
            received = self._read()
        except OSError:
            received = b""
        self.closed = not received
        self._keep(received)

    def _read(self) -> bytes:
        """A client may share a pipe that it made non-blocking: Node does so with its own stdout."""
        while True:
            try:
                return os.read(self.reader, _CHUNK)
            except BlockingIOError:
                streams.wait_ready([self.reader])

    def put_back(self, lines: list[bytes]) -> None:
        """Return lines that were taken but not handled, for the next reader."""
        self._buffer = b"".join(line + b"\n" for line in lines) + self._buffer[self._at :]
        self._at = 0

    def _keep(self, received: bytes) -> None:
        self._buffer = self._buffer[self._at :] + received
        self._at = 0

    def lines(self) -> Iterator[bytes]:
        """Yield the complete lines in the buffer. A line over the limit is dropped; a stand-in for it, from which
        `decode_line` makes the error, takes its place."""
        while (line := self._next()) is not None:
            if self._head or len(line) > MAX_STDIO_LINE_BYTES:
                yield _OVERLONG + _find_id(self._head or line[:_ENDS], (self._tail + line[-_ENDS:])[-_ENDS:])
                self._head = self._tail = b""
            elif line.strip():
                yield line
        self._drop_if_too_long()

    def _next(self) -> bytes | None:
        """Return the next line; None when it is incomplete. The last line needs no newline once the client has
        closed."""
        end = self._buffer.find(b"\n", self._at)
        if end < 0 and (not self.closed or self._at >= len(self._buffer)):
            return None
        line = self._buffer[self._at :] if end < 0 else self._buffer[self._at : end]
        self._at += len(line) + 1
        return line

    def _drop_if_too_long(self) -> None:
        """Drop an overlong line as it arrives, but for its ends, instead of holding it in memory."""
        if len(self._buffer) - self._at > (0 if self._head else MAX_STDIO_LINE_BYTES):
            rest = self._buffer[self._at :]
            self._head = self._head or rest[:_ENDS]
            self._tail = (self._tail + rest[-_ENDS:])[-_ENDS:]
            self._buffer, self._at = b"", 0

    def write(self, message: bytes) -> bool:
        """Send one line; False when the client is gone."""
        remaining = memoryview(message + b"\n")
        try:
            while remaining:
                remaining = remaining[self._write(remaining) :]
        except OSError:
            return False
        return True

    def _write(self, data: memoryview) -> int:
        """Write a part and return its length; of a non-blocking pipe that is full, none."""
        try:
            return os.write(self.writer, data)
        except BlockingIOError:
            streams.wait_ready([], [self.writer])
            return 0


class EarlyReader:
    """Answers the handshake on a thread while the server is still being imported. Other lines wait.

    It writes no more than a pipe holds, so that a client that does not read cannot block it."""

    def __init__(self, pipe: Pipe, client: StdioClient) -> None:
        import threading  # late: a PROXY needs none

        self.pipe, self.client = pipe, client
        self._waiting: list[bytes] = []
        self._room = _EARLY_BYTES
        self._held = 0
        self._outstanding = False  # whether a line that waits may want an answer
        self._left = False
        self._leaving = threading.Lock()
        self._on_left: Callable[[], None] | None = None
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._read, name="handshake", daemon=True)

    def start(self) -> None:
        """Answer the requests that are already there, then start the thread. Each answer leaves the client a moment for
        its next request: during an import, which holds the interpreter for milliseconds at a time, an answer takes ten
        times as long."""
        timeout = 0.0
        while self._may_read() and streams.wait_ready([self.pipe], timeout=timeout)[0]:
            self._take()
            timeout = _EARLY_PAUSE
        sys.setswitchinterval(_EARLY_SWITCH)
        self._thread.start()

    def watch_client(self, on_left: Callable[[], None]) -> None:
        """Call `on_left`, on the reader's thread, when the client has left and waits for no answer; until
        `unwatch_client`."""
        with self._leaving:
            self._on_left = on_left
            if self._left:
                on_left()

    def unwatch_client(self) -> None:
        """Stop watching. When this returns, `on_left` is not running and will not be called."""
        with self._leaving:
            self._on_left = None

    def stop(self) -> None:
        """End the thread and put the lines that it could not answer back into the pipe."""
        os.write(self._stop_writer, b"x")
        self._thread.join()
        os.close(self._stop_reader)
        os.close(self._stop_writer)
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.pipe.put_back(self._waiting)

    def _read(self) -> None:
        while self._may_read():
            if self._stop_reader in streams.wait_ready([self.pipe, self._stop_reader])[0]:
                return
            self._take()
        with self._leaving:
            self._left = self.pipe.closed and not self._outstanding
            if self._left and self._on_left is not None:
                self._on_left()

    def _take(self) -> None:
        self.pipe.fill()
        for line in self.pipe.lines():
            if not self._answer(line):
                self._waiting.append(line)
                self._held += len(line)
                self._outstanding |= not _is_notification(line)

    def _may_read(self) -> bool:
        return not self.pipe.closed and self._room > 0 and self._held < MAX_STDIO_LINE_BYTES

    def _answer(self, line: bytes) -> bool:
        if self._room <= 0:
            return False
        try:
            answer = self.client.answer(decode(line))
        except JsonError:
            return False
        if answer is None:
            return False
        encoded = protocol.encode_value(answer)
        self._room -= len(encoded)
        self.pipe.write(encoded)
        return True


def _is_notification(line: bytes) -> bool:
    try:
        return len(line) <= KIB and is_notification(decode(line))
    except JsonError:
        return False


def _find_id(head: bytes, tail: bytes) -> bytes:
    """Return the JSON of the id of a request, from the ends of its line; b"null" where it is in neither. It stands
    before the parameters or, as the TypeScript SDK writes it, last."""
    import re  # late: 5 ms that a PROXY does not need to start

    value = rb'"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\]{0,200}")\s*'
    before_params = rb'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*' + value + rb","
    match = re.match(before_params, head) or re.search(rb",\s*" + value + rb"\}\s*$", tail)
    return match[1] if match else b"null"


def check_length(line: bytes) -> None:
    """Raise JsonError, with the id of the request where that is known, for the stand-in of a line over the limit."""
    if line.startswith(_OVERLONG):
        error = JsonError(INVALID_REQUEST, f"Invalid request: a message has at most 1 MiB; {protocol.IN_A_FILE}")
        error.request_id = decode(line.removeprefix(_OVERLONG))
        raise error


def decode_line(line: bytes) -> Any:
    """Return the message in a line of `Pipe.lines`, or raise JsonError."""
    check_length(line)
    return decode(line)


def take_over() -> Pipe:
    """Move stdin and stdout to private descriptors: a stray `print` then goes to stderr and cannot break the
    protocol."""
    reader, writer = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if sys.platform == "win32":
        reader = _selectable(reader)
    return Pipe(reader, writer)


def _selectable(reader: int) -> int:
    """Return a socket that gets the bytes of `reader`, copied by a thread: on Windows `select` takes sockets only."""
    import socket
    import threading

    near, far = socket.socketpair()

    def carry() -> None:
        while received := os.read(reader, _CHUNK):
            far.sendall(received)
        far.close()

    threading.Thread(target=carry, daemon=True).start()
    return near.detach()
