"""HTTP/1.1 connections, with a service that tells what it was asked."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge import limits
from nudge.server.http_messages import Answer, Request, Service, plain
from nudge.server.listener import Listener

GET = b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n"
Talk = Callable[["Line"], Awaitable[Any]]


def get(path: str) -> bytes:
    return GET % path.encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Echo:
    """Tells each request back; `/wait` is answered when `go` is set, `/never/...` is refused at its head, `/blocks` is
    long."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked: list[str] = []
        self.left = 0

    def admit(self, request: Request) -> Answer | None:
        return plain(403, "no") if request.path.startswith("/never") else None

    async def respond(self, request: Request) -> Answer:
        self.asked.append(request.path)
        if request.path == "/wait":
            await self.go.wait()
        if request.path == "/broken":
            raise RuntimeError("a bug")
        if request.path == "/blocks":
            return Answer(200, [b"x" * 100_000] * 100)
        told = {"method": request.method, "path": request.path, "query": request.query, "body": request.body.decode()}
        return Answer(204) if request.path == "/empty" else Answer(200, json.dumps(told).encode())

    def gone(self, _transport: asyncio.Transport) -> None:
        self.left += 1


class Line:
    """A client that writes bytes, and reads answers one by one."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        self.reader, self.writer, self.echo, self.listener = reader, writer, echo, listener

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, head_only: bool = False) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        length = 0 if head_only else int(headers.get("content-length", "0"))
        return int(head[0].split()[1]), headers, await self.reader.readexactly(length)

    async def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((await self.answer())[2])
        return told

    async def closed(self) -> bool:
        return await self.reader.read() == b""


@pytest.fixture
def talk(tmp_path: Path) -> Callable[..., Any]:
    def run(talk: Talk, **options: Any) -> Any:
        return asyncio.run(asyncio.wait_for(_talk(talk, str(tmp_path / "s"), options), 30))

    return run


async def _talk(talk: Talk, path: str, options: dict[str, Any]) -> Any:
    echo = Echo()
    service = Service(echo.admit, echo.respond, echo.gone, plain(413, "large"), **{"most_head": 4_096, **options})
    listener = Listener(service)
    await listener.on_unix(path)
    reader, writer = await asyncio.open_unix_connection(path, limit=2**24)
    try:
        return await talk(Line(reader, writer, echo, listener))
    finally:
        writer.close()
        await listener.close()


# Requests


def test_what_a_request_says(talk: Any) -> None:
    """Method, decoded path, query and body come through, whatever pieces they arrive in."""

    async def session(line: Line) -> list[Any]:
        whole = post("/a%20b?x=1&x=&y=%C3%A9+z", "né".encode())
        line.send(whole)
        first = await line.told()
        for byte in whole:
            line.send(bytes([byte]))
            await line.writer.drain()
        return [first, await line.told()]

    expected = {"method": "POST", "path": "/a b", "query": [["x", "1"], ["x", ""], ["y", "é z"]], "body": "né"}
    assert talk(session) == [expected, expected]


def test_chunks_make_one_body(talk: Any) -> None:
    """What follows the last chunk is no header: it comes too late to say who is asking."""

    async def session(line: Line) -> Any:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        line.send(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\nHost: evil\r\nAuthorization: x\r\n\r\n" + get("/next"))
        return [(await line.told())["body"], (await line.told())["path"]]

    assert talk(session) == ["abcde", "/next"]


def test_answers_come_in_the_order_of_the_requests(talk: Any) -> None:
    """Many requests ahead of their answers, the first of them slow: nothing overtakes it, and nothing is lost."""

    async def session(line: Line) -> list[str]:
        paths = ["/wait", *(f"/{number}" for number in range(200))]
        line.send(b"".join(map(get, paths)))
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.echo.go.set()
        return [(await line.told())["path"] for _ in paths]

    assert talk(session) == ["/wait", *(f"/{number}" for number in range(200))]


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\nHost: h\n\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n x: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nNudge-Env: a\r\nNudge-Env: b\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: h\r\n\r\n",
        b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_could_mean_two_things_is_refused(talk: Any, data: bytes) -> None:
    """Not HTTP/1.1, for another host, or said twice: 400, and the service hears nothing of it."""

    async def session(line: Line) -> Any:
        line.send(data)
        return (await line.answer())[0], await line.closed(), line.echo.asked

    assert talk(session) == (400, True, [])


def test_rubbish_behind_a_request_spoils_the_connection_not_the_request(talk: Any) -> None:
    """The answers that are due come first, then the refusal, then the end."""

    async def session(line: Line) -> Any:
        line.send(get("/a") + b"rubbish rubbish rubbish\r\n\r\n")
        return [(await line.answer())[0], (await line.answer())[0], await line.closed()]

    assert talk(session) == [200, 400, True]


def test_endless_headers_are_refused(talk: Any) -> None:
    """However they come: in one header, or in many."""

    async def session(line: Line) -> Any:
        line.send(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 20_000)
        return (await line.answer())[0], await line.closed(), line.echo.asked

    assert talk(session) == (431, True, [])


# Ends


def test_who_says_goodbye_is_answered_first(talk: Any) -> None:
    """`Connection: close`, HTTP/1.0, and a client that has closed its half: the answer, then the end."""

    async def session(line: Line) -> Any:
        line.send(b"GET /wait HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + get("/ignored"))
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.writer.write_eof()
        line.echo.go.set()
        status, headers, _ = await line.answer()
        return status, headers["connection"], await line.closed(), line.echo.asked

    assert talk(session) == (200, "close", True, ["/wait"])


def test_half_closed_is_not_gone(talk: Any) -> None:
    """What was asked before the client closed its half is answered."""

    async def session(line: Line) -> Any:
        line.send(get("/wait") + get("/b"))
        line.writer.write_eof()
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.echo.go.set()
        return [(await line.told())["path"], (await line.told())["path"], await line.closed()]

    assert talk(session) == ["/wait", "/b", True]


def test_who_leaves_is_missed_and_what_he_asked_goes_on(talk: Any) -> None:
    """An operation under way is not broken off; what was to come after it is not begun, and the service hears of the
    end."""

    async def session(line: Line) -> Any:
        line.send(get("/wait") + get("/not-reached"))
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.writer.transport.abort()
        line.echo.go.set()
        while not line.echo.left:
            await asyncio.sleep(0)
        return line.echo.asked, line.listener.connections

    assert talk(session) == (["/wait"], set())


def test_closing_waits_for_answers_under_way(talk: Any) -> None:
    """An idle connection ends at once; one that is being served gets its answer."""

    async def session(line: Line) -> Any:
        line.send(get("/wait"))
        while not line.echo.asked:
            await asyncio.sleep(0)
        closing = asyncio.ensure_future(line.listener.close())
        await asyncio.sleep(0)
        line.echo.go.set()
        answered = (await line.told())["path"]
        await closing
        return answered, await line.closed()

    assert talk(session) == ("/wait", True)


def test_closing_does_not_wait_for_ever(talk: Any) -> None:
    """What takes longer is cut off."""

    async def session(line: Line) -> Any:
        line.send(get("/wait"))
        while not line.echo.asked:
            await asyncio.sleep(0)
        await line.listener.close()
        return await line.closed()

    assert talk(session) is True


# Bodies


def test_a_refusal_waits_for_no_body(talk: Any) -> None:
    """Refused at its head, a request is answered before its body comes; what still comes is thrown away, and the
    connection ends."""

    async def session(line: Line) -> Any:
        line.send(post("/never", b"", "X: y").replace(b"Content-Length: 0", b"Content-Length: 100000"))
        status = (await line.answer())[0]
        line.send(get("/smuggled") * 3)
        return status, await line.closed(), line.echo.asked

    assert talk(session) == (403, True, [])


def test_a_refused_request_that_came_whole_costs_nothing_else(talk: Any) -> None:
    """The next one on the same connection is served."""

    async def session(line: Line) -> Any:
        line.send(post("/never", b"abc") + get("/next"))
        return (await line.answer())[0], (await line.told())["path"]

    assert talk(session) == (403, "/next")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large(talk: Any, chunked: bool) -> None:
    """By what its length says, or by what comes."""

    async def session(line: Line) -> Any:
        size = limits.MAX_BODY_BYTES + 1
        head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
        line.send(b"POST / HTTP/1.1\r\nHost: h\r\n" + head + b"\r\n\r\n")
        if chunked:
            line.send(b"%x\r\n" % size + b"x" * size)
        return (await line.answer())[0], await line.closed(), line.echo.asked

    assert talk(session) == (413, True, [])


def test_who_asks_whether_to_send_the_body_is_told(talk: Any) -> None:
    """`Expect: 100-continue`, as curl says before a large body: yes, or the refusal at once."""

    async def session(line: Line) -> Any:
        line.send(post("/", b"", "Expect: 100-continue").replace(b"Content-Length: 0", b"Content-Length: 3"))
        first = (await line.answer(head_only=True))[0]
        line.send(b"abc")
        told = (await line.told())["body"]
        line.send(post("/never", b"", "Expect: 100-continue").replace(b"Content-Length: 0", b"Content-Length: 3"))
        return first, told, (await line.answer())[0]

    assert talk(session) == (100, "abc", 403)


def test_nobody_is_invited_out_of_turn(talk: Any) -> None:
    """The invitation to send a body comes behind the answers that are due before it."""

    async def session(line: Line) -> Any:
        second = post("/", b"abc", "Expect: 100-continue")
        line.send(get("/wait") + second[:-3])
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.echo.go.set()
        first, invited = (await line.answer())[0], (await line.answer(head_only=True))[0]
        line.send(b"abc")
        return first, invited, (await line.told())["body"]

    assert talk(session) == (200, 100, "abc")


def test_a_body_that_does_not_come(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its time as a whole; then the client is told."""
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.05)

    async def session(line: Line) -> Any:
        line.send(post("/", b"abc")[:-1])
        return (await line.answer())[0], await line.closed()

    assert talk(session) == (408, True)


def test_a_body_that_came_in_time_waits_for_its_turn(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is over once it is there, however long the request before it takes."""
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.05)

    async def session(line: Line) -> Any:
        second = post("/", b"abc")
        line.send(get("/wait") + second[:-1])
        while not line.echo.asked:
            await asyncio.sleep(0)
        line.send(second[-1:])
        await asyncio.sleep(0.15)  # three times what a body has
        line.echo.go.set()
        return (await line.told())["path"], (await line.told())["body"]

    assert talk(session) == ("/wait", "abc")


# Patience


def test_an_idle_connection_ends_where_patience_does(talk: Any) -> None:
    """With a limit it is closed after it; without, it stays."""

    async def session(line: Line) -> bool:
        line.send(get("/"))
        await line.answer()
        try:
            return await asyncio.wait_for(line.closed(), 0.3)
        except TimeoutError:
            line.send(get("/again"))
            return bool((await line.told())["path"] != "/again")

    assert talk(session, idle=0.05) is True
    assert talk(session, idle=None) is False


def test_who_never_asks_is_not_kept(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request has its time, idle or dripping."""
    monkeypatch.setattr(limits, "HEADERS_TIMEOUT", 0.05)

    async def session(line: Line) -> bool:
        line.send(b"GET / HT")
        return await line.closed()

    assert talk(session) is True


def test_a_client_that_does_not_read_is_waited_for(talk: Any) -> None:
    """Long answers go out as fast as they are taken; its later requests wait, and all arrive whole."""

    async def session(line: Line) -> Any:
        line.send(get("/blocks") * 5)
        while not line.echo.asked:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        served_unread = len(line.echo.asked)
        return served_unread, [len((await line.answer())[2]) for _ in range(5)]

    unread, lengths = talk(session)
    assert unread < 5 and lengths == [10_000_000] * 5


def test_a_bug_is_no_end(talk: Any) -> None:
    """What a service raises is a 500 without its words, and the next request is served."""

    async def session(line: Line) -> Any:
        line.send(get("/broken") + get("/next"))
        status, _, body = await line.answer()
        return status, b"bug" in body, (await line.told())["path"]

    assert talk(session) == (500, False, "/next")


def test_heads_without_bodies(talk: Any) -> None:
    """HEAD says how long the answer would be; 204 says nothing."""

    async def session(line: Line) -> Any:
        line.send(b"HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n" + get("/empty") + get("/next"))
        head = await line.answer(head_only=True)
        empty = await line.answer()
        return (
            head[0],
            int(head[1]["content-length"]) > 0,
            empty[0],
            "content-length" in empty[1],
            (await line.told())["path"],
        )

    assert talk(session) == (200, True, 204, False, "/next")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


def test_a_port_that_is_taken(taken: int) -> None:
    """The caller hears of it, and may try another."""
    service = Service(lambda _: None, Echo.respond, lambda _: None, plain(413, "large"), 4_096)  # type: ignore[arg-type]

    async def bind() -> None:
        await Listener(service).on_tcp(taken)

    with pytest.raises(OSError):
        asyncio.run(bind())
