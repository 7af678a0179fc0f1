"""Bodies that no honest client sends: refused with the right code, nothing stored, and the next request served."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import INVALID_REQUEST, PARSE_ERROR
from nudge.core.limits import MAX_BATCH, MAX_BODY_BYTES, MAX_IMPORT_BODY_BYTES
from tests.harness import TIMEOUT
from tests.security.interfaces import INTERFACES, Interface, refusal_of, setting, still_serves
from tests.security.served import TOKEN, Closed, Raw, Served, post, rpc, served

HINT = b'{"component":"c","key":"k","value":%s}'
BROKEN = {
    "100,000 deep": (b'{"type":"json","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", INVALID_REQUEST),
    "100,000 deep and never closed": (b'{"type":"json","data":' + b"[" * 100_000, INVALID_REQUEST),
    "100,000 objects deep": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, INVALID_REQUEST),
    "65 deep": (b'{"type":"json","data":' + b"[" * 65 + b"]" * 65 + b"}", INVALID_REQUEST),
    "NaN": (b'{"type":"json","data":NaN}', PARSE_ERROR),
    "Infinity": (b'{"type":"json","data":Infinity}', PARSE_ERROR),
    "minus Infinity": (b'{"type":"json","data":[-Infinity]}', PARSE_ERROR),
    "a number beyond every float": (b'{"type":"json","data":1e999}', INVALID_REQUEST),
    "5,000 digits": (b'{"type":"json","data":' + b"7" * 5_000 + b"}", INVALID_REQUEST),
    "5,000 digits and a fraction": (b'{"type":"json","data":' + b"7" * 5_000 + b".5}", INVALID_REQUEST),
    "the same key twice": (b'"x","value":"y"', INVALID_REQUEST),
    "the same key twice, deep inside": (b'{"type":"json","data":[{"a":1,"a":2}]}', INVALID_REQUEST),
    "half of a surrogate pair": (b'"\\ud800"', INVALID_REQUEST),
    "the other half": (b'"x\\udc00y"', INVALID_REQUEST),
    "half of a pair as a key": (b'{"type":"json","data":{"\\ud83d":1}}', INVALID_REQUEST),
    "half of a pair in bytes": (b'"\xed\xa0\x80"', PARSE_ERROR),
    "no UTF-8": (b'"\xff\xfe"', PARSE_ERROR),
    "overlong UTF-8": (b'"\xc0\xaf"', PARSE_ERROR),
    "a bare NUL": (b'"a\x00b"', PARSE_ERROR),
    "a bare escape character": (b'"\x1b[31m"', PARSE_ERROR),
    "single quotes": (b"'x'", PARSE_ERROR),
    "a comment": (b'"x"/*y*/', PARSE_ERROR),
    "nothing": (b"", PARSE_ERROR),
}


@pytest.fixture(params=INTERFACES)
def interface(server: Served, request: pytest.FixtureRequest) -> Interface:
    return INTERFACES[request.param](server)


def test_what_is_no_json_is_refused_and_changes_nothing(server: Served, interface: Interface) -> None:
    """JSON too deep, numbers that are none, doubled keys, broken text: parse error or invalid request, the same at
    every interface."""
    server.call("nudge.set_hint", component="c", key="k", value="before")
    before = server.state()
    got = {
        name: refusal_of(interface.ask(setting(interface, HINT % fragment))) for name, (fragment, _) in BROKEN.items()
    }
    assert got == {name: code for name, (_, code) in BROKEN.items()}
    assert server.state() == before
    assert still_serves(interface)


@pytest.mark.parametrize(
    "body", [b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"{} {}", b"{", b"hello", b"\x00" * 100, b"[1,]", b'"x"y']
)
def test_what_is_no_json_at_all(interface: Interface, body: bytes) -> None:
    """Byte order marks, other encodings, two texts, half a text: a parse error."""
    assert refusal_of(interface.ask(body)) == PARSE_ERROR
    assert still_serves(interface)


@pytest.mark.parametrize(
    "body",
    [
        b"1",
        b'"x"',
        b"null",
        b"true",
        b"{}",
        b'{"id":1}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    ],
)
def test_json_that_is_no_request(interface: Interface, body: bytes) -> None:
    """Well-formed JSON that is no JSON-RPC request: invalid request."""
    assert refusal_of(interface.ask(body)) == INVALID_REQUEST
    assert still_serves(interface)


# Batches


@pytest.mark.parametrize("size", [0, MAX_BATCH + 1, 10_000])
def test_a_batch_has_1_to_100_calls(server: Served, size: int) -> None:
    """An empty batch, one of 101 and one of 10,000: one error for all of it, and no call in it is made."""
    call = '{"jsonrpc":"2.0","method":"nudge.set_hint","params":{"component":"c","key":"k%d","value":"x"}}'
    body = f"[{','.join(call % n for n in range(size))}]".encode()
    assert len(body) < MAX_BODY_BYTES
    before = server.state()
    with server.tcp() as link:
        reply = link.ask(post("/", body))
        assert (reply.status, reply.code) == (200, INVALID_REQUEST)
        assert link.ask(post("/", rpc("nudge.list_components", {}))).status == 200
    assert server.state() == before


def test_the_largest_batch_is_served_whatever_is_in_it(server: Served) -> None:
    """Of 100 calls each is answered on its own: a bad neighbor spoils none."""
    good = {"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components"}
    with server.tcp() as link:
        answers = link.ask(
            post("/", json.dumps([good, 1, None, [], {}, "x", {**good, "method": 1}] + [good] * 93).encode())
        ).json
    assert [refusal_of(answer) for answer in answers] == [None] + [INVALID_REQUEST] * 6 + [None] * 93


def test_the_answers_of_a_batch_have_a_limit(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred answers of a mebibyte would hold the server while they are sent: calls behind the limit are not
    executed, and may be sent again."""
    monkeypatch.setattr(limits, "MAX_BATCH_ANSWER_BYTES", 2_000)
    for number in range(3):
        server.call("nudge.set_hint", component="c", key=f"k{number}", value="v" * 1_000)
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components", "params": {"component": "c"}},
        {"jsonrpc": "2.0", "id": 2, "method": "nudge.delete_hint", "params": {"component": "c", "key": "k0"}},
    ]
    with server.tcp() as link:
        first, second = link.ask(post("/", json.dumps(calls).encode())).json
        assert len(first["result"]["hints"]) == 3
        assert (second["id"], second["error"]["data"]) == (2, {"reason": "E_UNAVAILABLE", "retryable": True})
        assert len(link.ask(post("/", json.dumps(calls[0]).encode())).json["result"]["hints"]) == 3


def test_mcp_takes_no_batches(server: Served) -> None:
    """On stdio and on /mcp one line is one message."""
    for name in ("mcp over tcp", "stdio", "stdio through a proxy"):
        interface = INTERFACES[name](server)
        assert refusal_of(interface.ask(b"[" + rpc("ping", {}) + b"]")) == INVALID_REQUEST
        assert still_serves(interface)


# Size


def padded(size: int) -> bytes:
    body = rpc("nudge.set_hint", {"component": "c", "key": "k", "value": "x"})
    return body[:-1] + b" " * (size - len(body)) + b"}"


def chunked(path: str, body: bytes, size: int = 60_000, end: bytes = b"0\r\n\r\n") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        f"{TOKEN}\r\nContent-Type: application/json\r\n"
    )
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return (
        head.encode()
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
        + end
    )


@pytest.fixture
def link(server: Served) -> Iterator[Raw]:
    with server.tcp() as raw:
        yield raw


def test_a_body_has_a_mebibyte(server: Served, link: Raw) -> None:
    """One byte more is refused, with a length and in chunks; a whole mebibyte is read."""
    before = server.state()
    assert link.ask(post("/", padded(MAX_BODY_BYTES + 1))).status == 413
    assert link.ask(chunked("/", padded(MAX_BODY_BYTES + 1))).status == 413
    assert server.state() == before
    assert link.ask(post("/", padded(MAX_BODY_BYTES))).status == 200
    assert link.ask(chunked("/", padded(MAX_BODY_BYTES))).json["result"]["hint"]["version"] == 2


def test_an_import_has_no_more(server: Served, link: Raw) -> None:
    """What is larger goes elsewhere; the announced length alone is refused, before a byte of the body is read."""
    before = server.state()
    assert link.ask(post("/", b"", Content_Length=str(MAX_BODY_BYTES + 1))).status == 413
    assert link.drained()
    assert server.state() == before


def test_chunks_without_end_are_refused(server: Served) -> None:
    """A body that never says its length ends where the limit is."""
    with server.tcp() as link:
        link.send(chunked("/", b" " * (16 * MAX_BODY_BYTES), end=b""))
        assert link.reply().status == 413
    with server.tcp() as link:
        assert link.ask(post("/", rpc("nudge.list_components", {}))).status == 200


def test_rest_bodies_have_the_same_limits(server: Served) -> None:
    """PUT and POST below /api/v1 too, and an MCP message."""
    before = server.state()
    for path in ("/api/v1/hints/c/k/bump", "/api/v1/hints/import", "/mcp"):
        most = MAX_IMPORT_BODY_BYTES if path.endswith("/import") else MAX_BODY_BYTES
        with server.tcp() as link:
            assert link.ask(post(path, b"", Content_Length=str(most + 1))).status == 413
    assert server.state() == before


def test_a_line_has_a_mebibyte(server: Served) -> None:
    """On stdio a longer line is an invalid request, however long, and the next one is read; PRIMARY and PROXY alike."""
    for line in (server.stdio(), server.proxy()):
        line.send(b"x" * (3 * MAX_BODY_BYTES) + b"\n")
        first, second = line.until("after")
        assert (refusal_of(first), second["id"]) == (INVALID_REQUEST, "after")


def test_newlines_without_end_cost_next_to_nothing(server: Served) -> None:
    """A million empty lines are no million pieces of work: they take less than forty times the processor time in which
    Python reads them from memory, one by one."""
    lines = b"\n" * 1_000_000
    began = time.process_time()
    assert sum(1 for _ in io.BytesIO(lines)) == len(lines)
    one_pass = time.process_time() - began
    for line in (server.stdio(), server.proxy()):
        line.until("loaded")
        began = time.process_time()
        line.send(lines)
        assert [answer["id"] for answer in line.until("after")] == ["after"]
        assert time.process_time() - began < 40 * one_pass


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
def test_a_compressed_body_is_refused(server: Served, link: Raw, encoding: str) -> None:
    """Thirty kilobytes of gzip hold thirty megabytes: nothing is unpacked."""
    bomb = gzip.compress(padded(30 * MAX_BODY_BYTES))
    before = server.state()
    assert link.ask(post("/", bomb, Content_Encoding=encoding)).status == 415
    assert server.state() == before
    assert link.ask(post("/", padded(200), Content_Encoding="identity")).status == 200


# Lies about the length


def test_a_length_that_is_too_short(server: Served, link: Raw) -> None:
    """What follows the announced end is no request: whatever is answered, nothing was stored, and the next connection
    is served."""
    before = server.state()
    body = padded(200)
    link.send(post("/", body, Content_Length="100"))
    replies = replies_until_closed(link)
    assert replies and all(reply.status == 400 or reply.code == PARSE_ERROR for reply in replies)
    assert server.state() == before
    with server.tcp() as another:
        assert another.ask(post("/", body)).status == 200


def replies_until_closed(link: Raw) -> list[Any]:
    replies = []
    try:
        while True:
            replies.append(link.reply())
    except Closed:
        return replies


def test_a_length_that_is_too_long(server: Served, link: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes is waited for as long as a body has, no longer."""
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.1)
    before = server.state()
    reply = link.ask(post("/", padded(200), Content_Length="300"))
    assert reply.status == 408 and reply.headers["connection"] == "close"
    assert link.drained()
    assert server.state() == before


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: -1",
        b"Content-Length: 0x10",
        b"Content-Length: 1e3",
        b"Content-Length: 10\r\nContent-Length: 20",
        b"Content-Length: 10\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked, identity",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Content-Length : 10",
        b"Content-Length: 10\r\n folded: yes",
    ],
)
def test_two_meanings_of_one_length_are_none(server: Served, link: Raw, head: bytes) -> None:
    """Lengths that two readers could understand in two ways end the connection with 400: nothing can be smuggled in
    behind them."""
    before = server.state()
    request = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "
        + TOKEN.encode()
    )
    link.send(request + b"\r\n" + head + b"\r\n\r\n" + padded(200))
    assert [reply.status for reply in replies_until_closed(link)] in ([400], [400, 400], [415])
    assert server.state() == before


def test_broken_chunks(server: Served, link: Raw) -> None:
    """A chunk that lies about its size, or never ends: no answer but 400, and nothing stored."""
    before = server.state()
    whole = chunked("/", padded(200), 50)
    link.send(whole.replace(b"32\r\n", b"zz\r\n", 1))
    assert all(reply.status == 400 for reply in replies_until_closed(link))
    assert server.state() == before


# Slowness


def drip(link: Raw, data: bytes, seconds: float) -> None:
    """A byte at a time, always in the middle of something, until the server has had enough."""
    until = time.monotonic() + seconds
    for place in range(len(data)):
        if time.monotonic() > until:
            raise AssertionError("the server never had enough")
        if place and link.heard_within(0.02):
            return
        link.send(data[place : place + 1])


def test_slow_headers_end_the_connection(monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    """A connection that never completes its first request is closed, bytes dripping in or not, and keeps nobody else
    waiting."""
    monkeypatch.setattr(limits, "TOKEN_TIMEOUT", 0.2)
    with server.tcp() as silent, server.tcp() as slow:
        drip(slow, b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"x" * 10_000, TIMEOUT)
        assert silent.drained()
        with server.tcp() as honest:
            assert honest.ask(post("/", rpc("nudge.list_components", {}))).status == 200


def test_slow_bodies_end_the_connection(monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    """A body has its time as a whole, not from one byte to the next."""
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.2)
    before = server.state()
    with server.tcp() as link:
        link.send(post("/", b"", Content_Length="100000"))
        drip(link, padded(100_000), TIMEOUT)
        assert 408 in [reply.status for reply in replies_until_closed(link)]
    assert server.state() == before


def test_a_later_request_has_its_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One complete request with the token buys no endless second one."""
    monkeypatch.setattr(limits, "KEEPALIVE", 0.2)
    with served() as server, server.tcp() as link:
        assert link.ask(post("/", rpc("nudge.list_components", {}))).status == 200
        drip(link, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"x" * 10_000, TIMEOUT)
        assert link.drained()


def test_a_stranger_is_refused_before_the_body(server: Served) -> None:
    """Without the token not a byte of a body is waited for."""
    with server.tcp() as link:
        assert link.ask(post("/", b"", token=None, Content_Length="100000")).status == 401


# Connections


def test_there_is_a_most_of_connections(monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    """Beyond it newcomers wait; those inside are served, and who leaves makes room for the next."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 10)
    links = [server.tcp() for _ in range(10)]
    assert all(link.ask(post("/", rpc("nudge.list_components", {}))).status == 200 for link in links)
    with server.tcp() as waiting:
        waiting.send(post("/", rpc("nudge.list_components", {})))
        assert links[0].ask(post("/", rpc("nudge.list_components", {}))).status == 200
        assert not waiting.heard_within(0)
        links[0].link.close()
        assert waiting.reply().status == 200
    for link in links:
        link.link.close()
