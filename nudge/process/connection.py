"""One connection to PRIMARY: sends lines and receives messages over a raw socket. Standard library only."""

from __future__ import annotations

# Not `socket`: it turns hundreds of constants into enums at import, which takes a tenth of a hook's time.
import _socket
import os
import sys

from nudge.core import limits, thin_json
from nudge.core.clock import boot_seconds
from nudge.core.errors import Unavailable
from nudge.process import wire as protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.process.endpoint import Endpoint

_CHUNK = 65_536
_LONGEST_PROOF = limits.KIB  # bytes of the line in which a server proves that it knows the token


class ConnectionLost(Exception):
    """The connection ended before the answer came; whether the call was applied is unknown."""


class TimedOut(Exception):
    """PRIMARY did not answer in time."""


class Connection:
    """A connection to the PRIMARY of an endpoint. Several calls may be in flight; an answer names its call by `id`.

    The constructor raises ConnectionLost, TimedOut, or Unavailable when the other side is not this Nudge."""

    __slots__ = ("_buffer", "_hello", "_scanned", "endpoint", "socket")

    def __init__(self, endpoint: Endpoint, token: str | None) -> None:
        self.endpoint = endpoint
        self._buffer = bytearray()
        self._scanned = 0  # bytes of it that hold no newline
        self._hello = b""
        if endpoint.socket and sys.platform != "win32":
            self.socket = _connect_socket(_socket.AF_UNIX, endpoint.socket)
        elif not token:
            raise Unavailable("there is no token to talk to the server with; run: nudge serve")
        else:
            self.socket = _connect_tcp(endpoint.wire_port)
            try:
                self._authenticate(token)
            except BaseException:
                self.socket.close()
                raise

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def queue_hello(self, client: str, *, member: bool = False, differs: Sequence[str] = ()) -> None:
        """Queue a hello; it is sent with the next line."""
        self._hello += protocol.client_hello(client, member=member, differs=differs)

    def send(self, line: bytes = b"") -> None:
        """Send a line, after a queued hello. Raises ConnectionLost or TimedOut."""
        unsent = memoryview(self._hello + line)
        self._hello = b""
        deadline = boot_seconds() + limits.CALL_TIMEOUT
        while unsent:
            unsent = unsent[self._send_some(unsent, deadline) :]

    def _send_some(self, data: memoryview, deadline: float) -> int:
        """Send a part and return its length. While the socket is full, answers are received: PRIMARY stops reading
        until they are."""
        try:
            self.socket.setblocking(False)
            return self.socket.send(data)
        except BlockingIOError:
            self._wait_for_room(deadline)
            return 0
        except OSError:
            raise ConnectionLost from None

    def _wait_for_room(self, deadline: float) -> None:
        from nudge.core import streams  # late: the calls of a command fit into the socket's buffer

        timeout = max(deadline - boot_seconds(), 0.0)
        readable, writable = streams.wait_ready([self.socket], [self.socket], timeout=timeout)
        if readable:
            self.fill(deadline)
        elif not writable:
            raise TimedOut

    def receive(self, deadline: float) -> dict[str, Any]:
        """Return the next message. `deadline` is on the boot clock. Raises ConnectionLost or TimedOut."""
        while (message := self.take()) is None:
            self.fill(deadline)
        return message

    def take(self) -> dict[str, Any] | None:
        """Return the next message if it is complete in the buffer, else None; the server's hello is skipped.
        Raises ConnectionLost for anything that is not a message: the other side is not a PRIMARY."""
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._scanned = 0
            try:
                message = thin_json.loads(line)
            except (ValueError, RecursionError):
                raise ConnectionLost from None
            if not isinstance(message, dict):
                raise ConnectionLost
            if "hello" not in message:
                return message
        self._scanned = len(self._buffer)
        return None

    def fill(self, deadline: float) -> None:
        """Receive what has arrived into the buffer, or wait for it. Raises ConnectionLost or TimedOut. What has
        arrived is received after the deadline too: this process may have been suspended meanwhile."""
        self.socket.settimeout(max(deadline - boot_seconds(), 0.0))
        try:
            received = self.socket.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            raise TimedOut from None
        except OSError:
            raise ConnectionLost from None
        if not received:
            raise ConnectionLost
        self._buffer += received

    def _authenticate(self, token: str) -> None:
        """Prove that both sides know the token. The server proves it first: another program may listen on the port."""
        import hmac

        port, generation, nonce = self.endpoint.wire_port or 0, self.endpoint.generation, os.urandom(16).hex()
        self.send(protocol.encode({"nonce": nonce}))
        deadline = boot_seconds() + limits.CALL_TIMEOUT
        while (answer := self.take()) is None:
            if len(self._buffer) > _LONGEST_PROOF:  # a program that sends without end
                raise Unavailable(f"port {port} is held by something that is not this Nudge")
            self.fill(deadline)
        theirs = str(answer.get("nonce"))
        expected = protocol.proof(token, "server", nonce, theirs, port, generation)
        if not hmac.compare_digest(str(answer.get("proof")).encode("utf-8", "replace"), expected.encode()):
            raise Unavailable(f"port {port} is held by something that is not this Nudge")
        self._hello = protocol.encode({"proof": protocol.proof(token, "client", nonce, theirs, port, generation)})


def _connect_tcp(port: int | None) -> _socket.socket:
    if not port:
        raise ConnectionLost
    sock = _connect_socket(_socket.AF_INET, ("127.0.0.1", port))
    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return sock


def _connect_socket(family: int, address: str | tuple[str, int]) -> _socket.socket:
    sock = _socket.socket(family, _socket.SOCK_STREAM)
    sock.settimeout(limits.CONNECT_TIMEOUT)
    try:
        sock.connect(address)
    except (TimeoutError, BlockingIOError):  # a full backlog: the process is there and does not accept
        sock.close()
        raise TimedOut from None
    except OSError:
        sock.close()
        raise ConnectionLost from None
    return sock
