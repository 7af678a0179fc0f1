"""The HTTP server's connections: order, ends, bodies, and who may stay, in front of an application that a test
controls."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.call import Call
from nudge.interfaces.http import HttpServer
from nudge.interfaces.http_connections import Listener
from nudge.notes import statistics_ops

TOKEN = "t" * 64
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Application:
    """Answers each call with its parameters; `wait` is answered when `go` is set, `break` fails."""

    directory = None

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.called: list[str] = []
        self.finished: list[str] = []

    async def execute(self, name: str, params: object, call: Call) -> Any:  # noqa: ARG002
        self.called.append(name)
        if name == "wait":
            await self.go.wait()
        if name == "break":
            raise RuntimeError("SELECT secret FROM /var/lib")
        self.finished.append(name)
        return params

    async def answer(self, message: object, facts: Any) -> dict[str, Any] | None:  # noqa: ARG002
        return {"message": message}


class Client:
    """Writes bytes, and reads answers one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self, *, head_only: bool = False) -> tuple[int, dict[str, str], bytes]:
        status_line, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = 0 if head_only else int(headers.get("content-length", "0"))
        return int(status_line.split()[1]), headers, await self._reader.readexactly(length)

    async def status(self) -> int:
        return (await self.reply())[0]

    async def result(self) -> Any:
        return json.loads((await self.reply())[2])["result"]

    async def closed(self) -> bool:
        try:
            return await self._reader.read() == b""
        except ConnectionResetError:
            return True


class Opened:
    """A server that listens, and the application behind it."""

    def __init__(self) -> None:
        self.app = Application()
        self.token = TOKEN
        self.server = HttpServer(self.app, self.app, lambda: self.token)  # type: ignore[arg-type]
        self.port = 0
        self.clients: list[Client] = []

    @property
    def listener(self) -> Listener:
        assert self.server._listener is not None
        return self.server._listener

    async def connect(self) -> Client:
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.clients[-1]


@asynccontextmanager
async def opened() -> AsyncIterator[Opened]:
    one, listening = Opened(), socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    one.port = listening.getsockname()[1]
    one.server.open(listening)
    try:
        yield one
    finally:
        one.app.go.set()
        for client in one.clients:
            client.writer.close()
        await one.server.close()


def run(session: Callable[[Opened], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with opened() as one:
            return await session(one)

    return asyncio.run(asyncio.wait_for(main(), 30))


def call(method: str, *headers: str, token: str | None = TOKEN, length: int | None = None, **params: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    lines = ["POST / HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body if length is None else b"")


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


# Requests and answers


def test_answers_come_in_the_order_of_the_requests() -> None:
    """Many requests ahead of their answers, the first of them slow: nothing overtakes it, and nothing is lost."""

    async def session(one: Opened) -> list[int]:
        client = await one.connect()
        client.send(call("wait", n=-1) + b"".join(call("echo", n=n) for n in range(100)))
        await until(lambda: one.app.called)
        one.app.go.set()
        return [(await client.result())["n"] for _ in range(101)]

    assert run(session) == list(range(-1, 100))


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\nHost: localhost\n\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: i\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n x: y\r\n\r\n",
        b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_could_mean_two_things_is_refused(data: bytes) -> None:
    """Not HTTP/1.1, for another host, said twice, or without end: 400, and not a word about what was sent."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(data)
        status, headers, body = await client.reply()
        return status, headers["server"], body

    assert run(session) == (400, "nudge", b"not a request that this server understands\n")


def test_a_failure_inside_is_an_answer() -> None:
    """500 on a path of REST, without a word of the inside; the next connection is served."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(call("break"))
        return await client.reply()

    status, _, body = run(session)
    assert status == 200 and b"Internal error" in body and b"SELECT" not in body


def test_a_failure_on_a_path_of_rest_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 in the form of every other error there, without a word of the inside; the connection goes on."""

    async def broken(_app: Any) -> bool:
        raise RuntimeError("SELECT 1")

    monkeypatch.setattr(statistics_ops, "is_healthy", broken)

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(HEALTH.replace(b"/health", b"/api/v1/health") + HEALTH)
        return await client.reply(), (await client.reply())[0]

    (status, headers, body), after = run(session)
    assert (status, headers["content-type"], after) == (500, "application/json", 200)
    assert json.loads(body)["data"] == {"reason": "E_INTERNAL"} and b"SELECT" not in body


def test_while_refusing_rest_says_so_in_its_form() -> None:
    """503 with the header that says when to try again."""

    async def session(one: Opened) -> Any:
        one.server.refusing = True
        client = await one.connect()
        client.send(HEALTH.replace(b"/health", b"/api/v1/health"))
        return await client.reply()

    status, headers, body = run(session)
    assert (status, headers["retry-after"], json.loads(body)["data"]) == (503, "1", {"reason": "E_UNAVAILABLE"})


def test_head_is_get_without_its_body() -> None:
    """The same headers, no body, and the connection goes on."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(HEALTH.replace(b"GET", b"HEAD") + HEALTH)
        head, get = await client.reply(head_only=True), await client.reply()
        return head[0], head[1]["content-length"] == get[1]["content-length"], json.loads(get[2])["status"]

    assert run(session) == (200, True, "healthy")


def test_while_refusing_a_call_may_come_back() -> None:
    """503 with the second after which to try again; what was called is not executed."""

    async def session(one: Opened) -> Any:
        one.server.refusing = True
        client = await one.connect()
        client.send(call("echo"))
        status, headers, _ = await client.reply()
        return status, headers["retry-after"], one.app.called

    assert run(session) == (503, "1", [])


def test_a_call_in_flight_is_counted() -> None:
    """PRIMARY waits for these before it ends, and counts each as a sign of life."""

    async def session(one: Opened) -> Any:
        seen: list[int] = []
        one.server.on_call = lambda: seen.append(one.server.in_flight)
        client = await one.connect()
        client.send(call("wait"))
        await until(lambda: one.app.called)
        during = one.server.in_flight
        one.app.go.set()
        await client.status()
        return seen, during, one.server.in_flight

    assert run(session) == ([1], 1, 0)


# The token


def test_the_token_in_force_is_asked_for_each_time() -> None:
    """A connection that showed the old one is refused once there is a new one."""

    async def session(one: Opened) -> list[int]:
        client = await one.connect()
        client.send(call("echo"))
        first = await client.status()
        one.token = "n" * 64
        client.send(call("echo") + call("echo", token=one.token))
        return [first, await client.status(), await client.status()]

    assert run(session) == [200, 401, 200]


def test_no_token_in_force_lets_nobody_in() -> None:
    """Where the token could not be written, an empty one opens nothing."""

    async def session(one: Opened) -> list[int]:
        one.token = ""
        client = await one.connect()
        client.send(call("echo", token="") + call("echo", token=None))
        return [await client.status(), await client.status()]

    assert run(session) == [401, 401]


# Ends


def test_half_closed_is_not_gone() -> None:
    """A client that has closed its half still gets the answer, and then the end."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(call("wait", n=7))
        client.writer.write_eof()
        await until(lambda: one.app.called)
        one.app.go.set()
        return await client.result(), await client.closed()

    assert run(session) == ({"n": 7}, True)


def test_a_client_that_leaves_breaks_nothing_off() -> None:
    """An operation under way is finished: it may have changed something already."""

    async def session(one: Opened) -> list[str]:
        client = await one.connect()
        client.send(call("wait"))
        await until(lambda: one.app.called)
        client.writer.transport.abort()
        await client.writer.wait_closed()
        one.app.go.set()
        await until(lambda: not one.listener.connections)
        return one.app.finished

    assert run(session) == ["wait"]


def test_closing_waits_for_answers_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle connection ends at once; one that is being served gets its answer."""
    monkeypatch.setattr("nudge.interfaces.http_connections._CLOSE_TIMEOUT", 10.0)

    async def session(one: Opened) -> Any:
        idle, busy = await one.connect(), await one.connect()
        idle.send(HEALTH)
        await idle.status()
        busy.send(call("wait", n=1))
        await until(lambda: one.app.called)
        closing = asyncio.ensure_future(one.server.close())
        await asyncio.sleep(0)
        one.app.go.set()
        answered = await busy.result()
        await closing
        return answered, await idle.closed(), await busy.closed()

    assert run(session) == ({"n": 1}, True, True)


def test_closing_does_not_wait_for_ever() -> None:
    """What takes longer is cut off."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(call("wait"))
        await until(lambda: one.app.called)
        await one.server.close()
        return await client.closed(), one.app.finished

    assert run(session) == (True, [])


# Bodies


def test_a_refusal_waits_for_no_body() -> None:
    """Refused at its head, a request is answered before its body comes; what comes then is body, never a request."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(call("echo", token=None, length=100_000))
        status = await client.status()
        client.send(call("smuggled") * 3)
        return status, await client.closed(), one.app.called

    assert run(session) == (401, True, [])


def test_a_refused_request_that_came_whole_costs_nothing_else() -> None:
    """The next one on the same connection is served."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        client.send(call("echo", token=None) + call("echo", n=2))
        return await client.status(), await client.result()

    assert run(session) == (401, {"n": 2})


def test_who_asks_whether_to_send_the_body_is_told() -> None:
    """`Expect: 100-continue`, as curl says before a large body: yes, or the refusal at once."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        whole = call("echo", "Expect: 100-continue", n=3)
        head, body = whole[: whole.index(b"\r\n\r\n") + 4], whole[whole.index(b"\r\n\r\n") + 4 :]
        client.send(head)
        first = (await client.reply(head_only=True))[0]
        client.send(body)
        result = await client.result()
        client.send(call("echo", "Expect: 100-continue", token=None, length=3))
        return first, result, await client.status()

    assert run(session) == (100, {"n": 3}, 401)


def test_trailers_say_nothing() -> None:
    """What follows the last chunk comes too late to say who is asking."""

    async def session(one: Opened) -> list[int]:
        head = (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            b"application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        client = await one.connect()
        client.send(head + b"2\r\n{}\r\n0\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n" + HEALTH)
        return [await client.status(), await client.status()]

    assert run(session) == [401, 200]


# Connections that have not shown the token


def test_without_the_token_a_connection_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle, dripping, asking for the health or showing a wrong token: cut off; with the token it stays."""
    monkeypatch.setattr(limits, "TOKEN_TIMEOUT", 1.0)

    async def session(one: Opened) -> Any:
        idle, dripping, healthy, wrong, trusted = [await one.connect() for _ in range(5)]
        trusted.send(call("echo"))
        dripping.send(b"POST / HT")
        healthy.send(HEALTH)
        wrong.send(call("echo", token="w" * 64))
        statuses = [await client.status() for client in (trusted, healthy, wrong)]
        ended = [await client.closed() for client in (idle, dripping, healthy, wrong)]
        trusted.send(call("echo", n=1))
        return statuses, ended, await trusted.result()

    assert run(session) == ([200, 200, 401], [True] * 4, {"n": 1})


def test_a_client_that_does_not_read_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unread answers keep no connection that has not shown the token."""
    monkeypatch.setattr(limits, "TOKEN_TIMEOUT", 0.3)

    async def session(one: Opened) -> bool:
        link = socket.create_connection(("127.0.0.1", one.port))
        link.setblocking(False)
        await until(lambda: one.listener.connections)
        try:
            while one.listener.connections:
                try:
                    link.send(HEALTH * 1_000)
                except BlockingIOError:
                    await asyncio.sleep(0.001)
                except (ConnectionResetError, BrokenPipeError):
                    await until(lambda: not one.listener.connections)
        finally:
            link.close()
        return True

    assert run(session)


def test_the_oldest_without_the_token_goes_for_a_newcomer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond the cap the oldest is cut off, so that the owner's request never waits for them; who has shown the token
    stays. Logged once."""
    monkeypatch.setattr(limits, "MAX_UNAUTHENTICATED_CONNECTIONS", 4)
    monkeypatch.setattr(limits, "TOKEN_TIMEOUT", 60.0)

    async def session(one: Opened) -> Any:
        trusted = [await one.connect() for _ in range(3)]
        for client in trusted:
            client.send(call("echo"))
            await client.status()
        strangers = [await one.connect() for _ in range(8)]
        late = await one.connect()
        late.send(call("echo", n=9))
        result = await late.result()
        ended = [await client.closed() for client in strangers[:5]]
        trusted[0].send(call("echo", n=1))
        return await trusted[0].result(), result, ended, len(one.listener.unauthenticated)

    with caplog.at_level("WARNING"):
        assert run(session) == ({"n": 1}, {"n": 9}, [True] * 5, 3)
    assert len(caplog.records) == 1


def test_where_all_have_shown_the_token_newcomers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection with the token is never closed for another one."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 3)

    async def session(one: Opened) -> Any:
        trusted = [await one.connect() for _ in range(3)]
        for client in trusted:
            client.send(call("echo"))
            await client.status()
        late = await one.connect()
        late.send(call("echo", n=9))
        trusted[0].send(call("echo", n=1))
        inside = await trusted[0].result()
        trusted[0].writer.close()
        return inside, await late.result()

    assert run(session) == ({"n": 1}, {"n": 9})


def test_out_of_descriptors_is_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """EMFILE on accept: one line in the log, a pause, and the connection is taken then."""
    monkeypatch.setattr("nudge.process.wire_server._ACCEPT_RETRY", 0.05)

    async def session(one: Opened) -> Any:
        loop = asyncio.get_running_loop()
        accept, failures = loop.sock_accept, [OSError(24, "Too many open files")] * 3

        def failing(listener: socket.socket) -> Coroutine[Any, Any, Any]:
            async def fail() -> Any:
                raise failures.pop()

            return fail() if failures else accept(listener)

        monkeypatch.setattr(loop, "sock_accept", failing)
        first = await one.connect()  # the accept that was waiting already
        second = await one.connect()
        for client in (first, second):
            client.send(HEALTH)
        return [await first.status(), await second.status()], failures

    with caplog.at_level("WARNING"):
        assert run(session) == ([200, 200], [])
    assert len(caplog.records) == 1


def test_answers_keep_the_order_of_the_requests_whatever_they_are() -> None:
    """An answer that is sent after the turn of the event loop never comes behind a refusal that was asked for later,
    nor is it lost when the connection ends with it."""

    async def session(one: Opened) -> Any:
        client = await one.connect()
        missing = b"GET /missing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
        client.send(call("echo", n=1) + missing + HEALTH + missing + call("echo", n=2))
        statuses = [await client.status() for _ in range(4)]
        last = await client.result()
        client.send(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return statuses, last, await client.status(), await client.closed()

    assert run(session) == ([200, 404, 200, 404], {"n": 2}, 200, True)


def test_an_answer_is_sent_to_a_client_that_closes_its_half_at_once() -> None:
    """`nc -N` does: request and end of file arrive together."""

    async def session(one: Opened) -> Any:
        answers = []
        for number in range(20):
            client = await one.connect()
            client.send(call("echo", n=number))
            client.writer.write_eof()
            answers.append(await client.result())
        return answers

    assert run(session) == [{"n": number} for number in range(20)]
