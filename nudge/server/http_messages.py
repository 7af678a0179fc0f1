"""HTTP/1.1, its messages: whole requests out of bytes, and heads of answers. No connection is known here.

`httptools` is the parser of Node.js, strict about everything that two readers could understand in two ways. A framework
around one
would cost every start of a server 200 ms and 16 MB, and every request more than its hint does.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from nudge import limits

_SAID_ONCE = frozenset(
    ("authorization", "content-encoding", "content-type", "host", "origin")
)  # said twice, it could mean two things
NO_BODY = (204, 304)


@dataclass(slots=True)
class Answer:
    """A body in blocks goes out block by block: handed over as a whole it would be copied as a whole, on the event
    loop."""

    status: int
    body: bytes | list[bytes] = b""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def plain(status: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8", headers or {})


_NOT_UNDERSTOOD = plain(400, "not a request that this server understands")


@dataclass(slots=True)
class Request:
    """`headers` by their names in small letters; `most_body` is for `admit` to change."""

    method: str
    target: str
    headers: dict[str, str]
    transport: asyncio.Transport
    keep_alive: bool
    most_body: int = limits.MAX_BODY_BYTES
    body: bytes = b""
    path: str = field(init=False)

    def __post_init__(self) -> None:
        path = self.raw_path
        self.path = unquote(path, errors="surrogateescape") if "%" in path else path

    @property
    def raw_path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True, errors="surrogateescape")


@dataclass(frozen=True, slots=True)
class Service:
    """`admit` is asked as soon as the head is there: its answer refuses the request, and nobody waits for the body.
    `respond` answers
    a whole request and raises nothing. `left` hears of each connection that ended."""

    admit: Callable[[Request], Answer | None]
    respond: Callable[[Request], Awaitable[Answer]]
    left: Callable[[asyncio.Transport], None]
    too_large: Answer
    most_head: int
    idle: float | None = None
    """Seconds that a connection may do nothing between two requests."""


class Unreadable(Exception):
    """What follows on this connection cannot be told apart; the answer is the last one."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class Reader:
    """Requests out of bytes. `ready` are the whole ones, each with its refusal if it has one; `request` waits for the
    rest of its body."""

    def __init__(self, transport: asyncio.Transport, service: Service) -> None:
        self._transport, self._service = transport, service
        self._parser = HttpRequestParser(self)
        self.ready: deque[tuple[Request, Answer | None]] = deque()
        self.request: Request | None = None
        self.refusal: Answer | None = None
        self._in_head = False
        self._head_bytes = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._ambiguous = False
        self._body: bytes | bytearray = b""

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            raise Unreadable(_NOT_UNDERSTOOD) from None
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._service.most_head:
                raise Unreadable(plain(431, "the headers are too long"))

    # Called by the parser

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._target, self._headers, self._ambiguous, self._body = b"", {}, False, b""

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # behind the body: too late to say anything that counts
        header = name.decode("ascii").lower()
        if header in self._headers:
            self._ambiguous |= header in _SAID_ONCE or header.startswith("nudge-")
        else:
            self._headers[header] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser = self._parser
        target = self._target.decode("utf-8", "surrogateescape")
        keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        request = Request(parser.get_method().decode(), target, self._headers, self._transport, keep_alive)
        self.request = request
        if self._is_odd():
            request.keep_alive, self.refusal = False, _NOT_UNDERSTOOD
        else:
            self.refusal = self._service.admit(request)
        if self.refusal is None and int(self._headers.get("content-length", 0)) > request.most_body:
            self.refusal = self._service.too_large

    def _is_odd(self) -> bool:
        """Another protocol, for another host, or with two meanings. What follows an `Upgrade` the parser takes for no
        HTTP any more."""
        version = self._parser.get_http_version()
        unnamed = version == "1.1" and "host" not in self._headers
        wrapped = self._headers.get("transfer-encoding", "chunked").lower() != "chunked"
        strange = unnamed or wrapped or self._ambiguous or self._target[:1] != b"/"
        return version not in ("1.0", "1.1") or strange or self._parser.should_upgrade()

    def on_body(self, part: bytes) -> None:
        if self.refusal is not None or self.request is None:
            return
        if not self._body:
            self._body = part
        else:
            self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
            self._body += part
        if len(self._body) > self.request.most_body:
            self.refusal, self._body = self._service.too_large, b""

    def on_message_complete(self) -> None:
        assert self.request is not None
        self.request.body = bytes(self._body)
        self.ready.append((self.request, self.refusal))
        self.request, self.refusal, self._body = None, None, b""


def head_of(answer: Answer, length: int, keep_alive: bool) -> bytes:
    lines = [_status_line(answer.status), f"Date: {_date(int(time.time()))}", "Server: nudge"]
    if answer.status not in NO_BODY:
        lines += [f"Content-Type: {answer.kind}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    if not keep_alive:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(second))
