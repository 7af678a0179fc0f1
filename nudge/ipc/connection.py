"""One HTTP/1.1 connection to PRIMARY over a raw socket. `http.client` would cost every hook and every `nudge get` 25
ms."""

from __future__ import annotations

# what is under `socket`, which turns hundreds of numbers into enums first: a tenth of the time that a hook takes
import _socket
import os
import sys

from nudge import limits
from nudge.clock import boot_seconds
from nudge.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from nudge.ipc.endpoint import Endpoint

_CHUNK = 65_536


class Response:
    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def retryable(self) -> bool:
        """PRIMARY is handing over: the same request, sent again in a moment, will be served."""
        return self.status == 503 and "nudge-retry" in self.headers


class Lost(Exception):
    """The connection ended before the answer did; whether the request was applied is unknown."""


class TimedOut(Exception):
    """PRIMARY did not answer in time."""


class Connection:
    """Requests may be sent ahead of their answers (pipelining); answers come back in the order of the requests."""

    __slots__ = ("_awaited", "_buffer", "_credentials", "endpoint", "socket")

    def __init__(self, endpoint: Endpoint, token: str | None) -> None:
        self.endpoint = endpoint
        self._buffer = bytearray()
        self._awaited = 0  # bytes without which no answer can be complete
        self._credentials = ""
        link = _dial_unix(endpoint.socket) if endpoint.socket and sys.platform != "win32" else None
        if link is None:  # no Unix sockets here, or somebody removed its name: TCP is the way round
            link = _dial_tcp(endpoint.port)
            self.socket = link
            self._authenticate(token)
        self.socket = link

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def send(self, path: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST") -> None:
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines) + "\r\n" + self._credentials + "\r\n"
        unsent = memoryview(head.encode("latin-1") + body)
        deadline = boot_seconds() + limits.CALL_TIMEOUT
        while unsent:
            unsent = unsent[self._send_some(unsent, deadline) :]

    def _send_some(self, data: memoryview, deadline: float) -> int:
        """How much of it went out. Answers that come meanwhile are taken in: while nobody does, PRIMARY does not read
        on either."""
        try:
            self.socket.setblocking(False)
            return self.socket.send(data)
        except BlockingIOError:
            self._wait_for_room(deadline)
            return 0
        except OSError:
            raise Lost from None

    def _wait_for_room(self, deadline: float) -> None:
        import select  # late: what a command sends fits

        readable, writable, _ = select.select([self.socket], [self.socket], [], max(deadline - boot_seconds(), 0.0))
        if readable:
            self.fill(deadline)
        elif not writable:
            raise TimedOut

    def receive(self, deadline: float) -> Response:
        """The next answer, by `deadline` on the boot clock."""
        while (response := self.take()) is None:
            self.fill(deadline)
        return response

    def take(self) -> Response | None:
        """An answer that is already complete in the buffer. A long one comes in hundreds of pieces, and is not looked
        at for each."""
        end = self._buffer.find(b"\r\n\r\n") if len(self._buffer) >= self._awaited else -1
        if end < 0:
            return None
        status_line, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status, length = _number(status_line[9:12]), _number(headers.get("content-length", "0"))
        self._awaited = end + 4 + length
        if len(self._buffer) < self._awaited:
            return None
        body = bytes(self._buffer[end + 4 : self._awaited])
        del self._buffer[: self._awaited]
        self._awaited = 0
        return Response(status, headers, body)

    def fill(self, deadline: float) -> None:
        remaining = deadline - boot_seconds()
        if remaining <= 0:
            raise TimedOut
        self.socket.settimeout(remaining)
        try:
            received = self.socket.recv(_CHUNK)
        except TimeoutError:
            raise TimedOut from None
        except OSError:
            raise Lost from None
        if not received:
            raise Lost
        self._buffer += received

    def exchange(
        self, path: str, body: bytes, headers: Mapping[str, str], deadline: float, *, method: str = "POST"
    ) -> Response:
        self.send(path, body, headers, method=method)
        return self.receive(deadline)

    def _authenticate(self, token: str | None) -> None:
        """Let the other side prove that it knows the token before we show it: a stranger may sit on the port."""
        import hashlib
        import hmac

        if not token:
            raise Unavailable("there is no token to talk to the server with; run: nudge serve")
        nonce = os.urandom(16).hex()
        answer = self.exchange(f"/proof/{nonce}", b"", {}, boot_seconds() + limits.CALL_TIMEOUT, method="GET")
        expected = hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
        if answer.status != 200 or not hmac.compare_digest(answer.body.decode("ascii", "replace"), expected):
            raise Unavailable(f"port {self.endpoint.port} is held by something that is not this Nudge")
        self._credentials = f"Authorization: Bearer {token}\r\n"


def _number(text: str) -> int:
    """A stranger on the port may answer anything; what is no HTTP is no PRIMARY."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Lost
    return int(text)


def _dial_unix(path: str) -> _socket.socket | None:
    """None when nothing has that name; whoever has it and does not answer is an error."""
    if not os.path.exists(path):
        return None
    return _connect(_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), path)


def _dial_tcp(port: int | None) -> _socket.socket:
    if not port:
        raise Lost
    link = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    link.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return _connect(link, ("127.0.0.1", port))


def _connect(link: _socket.socket, address: str | tuple[str, int]) -> _socket.socket:
    link.settimeout(limits.CONNECT_TIMEOUT)
    try:
        link.connect(address)
    except (TimeoutError, BlockingIOError):  # a full backlog: the process is there and does not accept
        link.close()
        raise TimedOut from None
    except OSError:
        link.close()
        raise Lost from None
    return link
