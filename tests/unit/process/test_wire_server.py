"""The server of the private wire, with a handler that does what the calls say."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from nudge.core import limits
from nudge.process import wire as protocol
from nudge.process.connection import Connection
from nudge.process.endpoint import READY, Endpoint
from nudge.process.wire_server import WireServer

TOKEN = "t" * 64
HELLO = b'{"hello":1,"pid":7,"client":"test","version":"1","member":true}\n'


class Handler:
    """`op` says what happens: `echo`, `wait` for `release`, `read` (the same, but a read), `large`, `nan`."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.finished: list[Any] = []
        self.cancelled: list[Any] = []
        self.env_asked: list[bool] = []
        self.release = asyncio.Event()

    def is_read(self, op: str) -> bool:
        return op == "read"

    async def answer(self, call: dict[str, Any], *, env_asked: bool) -> dict[str, Any]:
        self.started.append(call["id"])
        self.env_asked.append(env_asked)
        try:
            return await self._answer(call["op"], call.get("params"))
        except asyncio.CancelledError:
            self.cancelled.append(call["id"])
            raise
        finally:
            self.finished.append(call["id"])

    async def _answer(self, op: str, params: Any) -> dict[str, Any]:
        if op in ("wait", "read"):
            await self.release.wait()
        if op == "large":
            return {"result": "x" * limits.MIB}
        if op == "env":
            return {"need_env": ["A"]}
        return {"result": float("nan") if op == "nan" else params}


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.writer.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    async def receive(self) -> Any:
        line = await asyncio.wait_for(self.reader.readline(), 20)
        return json.loads(line) if line else None

    async def ask(self, *messages: Any) -> Any:
        self.send(*messages)
        return await self.receive()


class Wire:
    """A server, its handler, and connections to it."""

    def __init__(self, directory: str) -> None:
        self.handler = Handler()
        self.server = WireServer(self.handler, generation="gen", token=lambda: TOKEN)
        self.path = os.path.join(directory, "s")
        self.clients: list[Client] = []

    async def connect(self, hello: bytes = HELLO) -> Client:
        self.clients.append(client := Client(*await asyncio.open_unix_connection(self.path, limit=2**24)))
        assert (await client.ask(hello))["hello"] == protocol.VERSION
        return client

    async def knock(self) -> Client:
        """A connection that says nothing."""
        self.clients.append(client := Client(*await asyncio.open_unix_connection(self.path)))
        return client

    async def dial(self, port: int) -> Client:
        self.clients.append(client := Client(*await asyncio.open_connection("127.0.0.1", port)))
        return client

    async def close(self) -> None:
        self.handler.release.set()
        await self.server.close()
        for client in self.clients:
            client.writer.close()
            with suppress(OSError):
                await client.writer.wait_closed()
        await self.until(lambda: not self.server.connections)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Until it holds; the event loop runs meanwhile."""
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.001)

    async def idle(self) -> None:
        """Everything that was sent has been read, as far as it is going to be."""
        other = await self.connect()
        for number in range(20):
            assert await other.ask({"id": number, "op": "echo"}) == {"id": number, "result": None}
        other.writer.close()


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[Wire], Awaitable[None]]], None]]:
    directory = tempfile.mkdtemp(prefix="nt-", dir="/tmp")

    @asynccontextmanager
    async def serving() -> AsyncIterator[Wire]:
        wire = Wire(directory)
        await wire.server.listen_unix(wire.path)
        try:
            yield wire
        finally:
            await wire.close()

    async def main(test: Callable[[Wire], Awaitable[None]]) -> None:
        async with serving() as wire:
            await test(wire)

    yield lambda test: asyncio.run(main(test))
    shutil.rmtree(directory)


Run = Callable[[Callable[[Wire], Awaitable[None]]], None]


def test_the_socket_is_owner_only_from_the_first_moment(run: Run) -> None:
    """The socket is owner-only before any other user could connect."""

    async def test(wire: Wire) -> None:
        assert os.stat(wire.path).st_mode & 0o777 == 0o600

    run(test)


def test_calls_start_in_order_and_are_answered_as_they_are_done(run: Run) -> None:
    """A slow call holds no other one up, on the same connection or another."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        client.send({"id": 1, "op": "wait", "params": "slow"}, {"id": 2, "op": "echo", "params": "quick"})
        assert await client.receive() == {"id": 2, "result": "quick"}
        wire.handler.release.set()
        assert await client.receive() == {"id": 1, "result": "slow"}
        assert wire.handler.started == [1, 2]

    run(test)


def test_a_large_line_keeps_its_place(run: Run) -> None:
    """It is decoded on another thread; what follows it starts after it."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        large = {"id": 1, "op": "echo", "params": ["x" * 1000] * 500}
        client.send(large, {"id": 2, "op": "echo"})
        assert [(await client.receive())["id"] for _ in range(2)] == [1, 2] == wire.handler.started

    run(test)


def test_a_connection_with_many_unanswered_calls_is_not_read(run: Run) -> None:
    """The rest waits in the socket until there is room; others are served meanwhile."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        client.send(*({"id": number, "op": "wait"} for number in range(100)))
        await wire.until(lambda: len(wire.handler.started) >= limits.MAX_CALLS_IN_FLIGHT)
        await wire.idle()
        assert sum(isinstance(number, int) for number in wire.handler.started) - 20 == limits.MAX_CALLS_IN_FLIGHT
        assert wire.server.in_flight == limits.MAX_CALLS_IN_FLIGHT
        wire.handler.release.set()
        assert sorted([(await client.receive())["id"] for _ in range(100)]) == list(range(100))

    run(test)


def test_a_client_that_does_not_read_its_answers_is_not_read(run: Run) -> None:
    """Answers of a few MiB wait for it and those to the calls that run, not those to a thousand calls."""

    async def test(wire: Wire) -> None:
        link = socket.socket(socket.AF_UNIX)
        link.connect(wire.path)
        link.sendall(HELLO + b"".join(b'{"id":%d,"op":"large"}\n' % number for number in range(200)))
        most = limits.MAX_UNSENT_BYTES // limits.MIB + limits.MAX_CALLS_IN_FLIGHT
        await wire.until(lambda: len(wire.handler.started) >= limits.MAX_UNSENT_BYTES // limits.MIB)
        await wire.idle()
        assert len(wire.handler.started) - 20 <= most
        link.close()

    run(test)


def test_a_closed_connection_cancels_reads_and_finishes_writes(run: Run) -> None:
    """When a connection closes, its reads are cancelled and its writes are finished."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        client.send({"id": "read", "op": "read"}, {"id": "write", "op": "wait"})
        await wire.until(lambda: len(wire.handler.started) == 2)
        client.writer.transport.abort()
        await wire.until(lambda: wire.handler.finished == ["read"])
        assert wire.handler.cancelled == ["read"]
        wire.handler.release.set()
        await wire.until(lambda: wire.handler.finished == ["read", "write"])
        assert wire.handler.cancelled == ["read"] and wire.server.in_flight == 0

    run(test)


def test_calls_start_in_the_order_of_their_lines(run: Run) -> None:
    """Also those that run in a task of their own, and those behind them."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        ops = ["mcp", "echo", "mcp", "write", "echo"]
        wire.handler.release.set()
        client.send(*({"id": number, "op": op} for number, op in enumerate(ops)))
        assert {(await client.receive())["id"] for _ in ops} == set(range(len(ops)))
        assert wire.handler.started == list(range(len(ops)))

    run(test)


def test_params_have_a_mebibyte(run: Run) -> None:
    """A line may be longer, for what the envelope says of its caller; the connection stays open."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        text = "x" * limits.MIB
        within = {"id": 1, "op": "echo", "params": text[:-2], "caller": {"env": {"A": text}}}
        assert (await client.ask(within))["result"] == text[:-2]
        refused = await client.ask({"id": 2, "op": "echo", "params": text})
        assert (refused["id"], refused["error"]["code"]) == (2, -32600) and "nudge import FILE" in refused["error"][
            "message"
        ]
        assert await client.ask({"id": 3, "op": "echo"}) == {"id": 3, "result": None}

    run(test)


def test_members_are_connections(run: Run) -> None:
    """Only those that say so, and only while they are there."""

    async def test(wire: Wire) -> None:
        guest = await wire.connect(b'{"hello":1}\n')
        assert not wire.server.has_members
        member = await wire.connect()
        (listed,) = wire.server.list_members()
        assert listed == {"client": "test", "pid": 7, "version": "1", "since": listed["since"]}
        member.writer.close()
        await wire.until(lambda: not wire.server.has_members)
        assert await guest.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None}

    run(test)


def test_while_leaving_calls_are_paced_then_sent_away(run: Run) -> None:
    """While leaving, calls are slowed down for the successor, then answered with `retry`; such a call is not
    applied."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        wire.server.call_delay = 0.05
        began = asyncio.get_running_loop().time()
        client.send({"id": 1, "op": "echo"}, {"id": 2, "op": "role"})
        assert [(await client.receive())["id"] for _ in range(2)] == [2, 1], "the request for the role does not wait"
        assert asyncio.get_running_loop().time() - began >= wire.server.call_delay
        wire.server.refusing = True
        assert await client.ask({"id": 3, "op": "echo"}) == {"id": 3, "retry": "the server is leaving"}
        assert wire.handler.started == [2, 1]
        assert (await client.ask(HELLO))["state"] == "leaving"

    run(test)


def test_a_call_is_asked_for_its_environment_once(run: Run) -> None:
    """The handler is told that it has asked this id before, until the call is answered."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        assert await client.ask({"id": 1, "op": "env"}) == {"id": 1, "need_env": ["A"]}
        assert await client.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None}
        assert await client.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None}
        assert wire.handler.env_asked == [False, True, False]

    run(test)


def test_an_answer_that_is_no_json_is_an_error(run: Run) -> None:
    """An answer that is not JSON becomes an internal error, and the connection stays open."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        assert (await client.ask({"id": 1, "op": "nan"}))["error"]["data"]["reason"] == "E_INTERNAL"
        assert await client.ask({"id": 2, "op": "echo"}) == {"id": 2, "result": None}

    run(test)


@pytest.mark.parametrize("line", [b"1\n", b"[]\n", b"{}\n", b'{"id":1}\n', b'{"id":true,"op":"echo"}\n', b"{\n", b"\n"])
def test_a_line_that_is_no_call_is_refused_and_the_next_is_served(run: Run, line: bytes) -> None:
    """Framing is by lines: one bad line is one error."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        assert (await client.ask(line))["error"]["code"] in (-32600, -32700)
        assert await client.ask({"id": 2, "op": "echo"}) == {"id": 2, "result": None}

    run(test)


# Where there is no Unix socket


def _dial(port: int, generation: str = "gen", token: str | None = TOKEN) -> Connection:
    return Connection(Endpoint(1, None, None, "", generation, "1", READY, wire_port=port), token)


def test_over_tcp_both_sides_prove_that_they_know_the_token(run: Run) -> None:
    """Then the same lines go over it."""

    async def test(wire: Wire) -> None:
        port = await wire.server.listen_tcp()
        link = await asyncio.to_thread(_dial, port)
        link.queue_hello("tcp", member=True)
        await asyncio.to_thread(link.send, b'{"id":1,"op":"echo","params":"hi"}\n')
        deadline = 10**9
        assert await asyncio.to_thread(link.receive, deadline) == {"id": 1, "result": "hi"}
        assert wire.server.list_members()[0]["client"] == "tcp"
        link.close()

    run(test)


@pytest.mark.parametrize(("generation", "token"), [("other", TOKEN), ("gen", "x" * 64), ("gen", None)])
def test_a_server_that_cannot_prove_itself_is_not_talked_to(run: Run, generation: str, token: str | None) -> None:
    """Another generation's proof, or one by another token, is none; it gets neither a call nor a proof."""
    from nudge.core.errors import Unavailable

    async def test(wire: Wire) -> None:
        port = await wire.server.listen_tcp()
        with pytest.raises(Unavailable):
            await asyncio.to_thread(_dial, port, generation, token)
        assert wire.handler.started == []

    run(test)


def test_a_proof_is_good_for_one_connection(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the server's own proof, nor a client's from another connection or for another port, nor a call without
    one opens the interface."""
    monkeypatch.setattr(limits, "PROOF_TIMEOUT", 60.0)

    async def test(wire: Wire) -> None:
        port = await wire.server.listen_tcp()
        call = {"id": 1, "op": "echo"}
        first = await wire.dial(port)
        challenge = await first.ask({"nonce": "n"})
        assert TOKEN not in json.dumps(challenge)
        good = protocol.proof(TOKEN, "client", "n", challenge["nonce"], port, "gen")
        for proof in (challenge["proof"], good, "", None, 7):
            other = await wire.dial(port)
            assert (await other.ask({"nonce": "n"}))["proof"] != challenge["proof"]
            assert "proof is wrong" in (await other.ask({"proof": proof}))["error"]["message"]
            assert await other.receive() is None
        other = await wire.dial(port)
        nonce = (await other.ask({"nonce": "n"}))["nonce"]
        relayed = protocol.proof(TOKEN, "client", "n", nonce, port + 1, "gen")
        assert "proof is wrong" in (await other.ask({"proof": relayed}))["error"]["message"]
        other = await wire.dial(port)
        await other.ask({"nonce": "n"})
        assert "proof is wrong" in (await other.ask(call))["error"]["message"]
        assert wire.handler.started == []
        assert (await first.ask({"proof": good}, HELLO))["hello"] == 1
        assert await first.ask(call) == {"id": 1, "result": None}

    run(test)


def test_connections_without_a_proof_are_few_and_short(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take no room from those that have one: the oldest goes for a new one, and none stays."""
    monkeypatch.setattr(limits, "PROOF_TIMEOUT", 60.0)

    async def test(wire: Wire) -> None:
        port = await wire.server.listen_tcp()
        idle = [await wire.dial(port) for _ in range(limits.MAX_UNPROVEN_CONNECTIONS + 5)]
        for client in idle[:5]:
            assert await client.receive() is None
        assert len(wire.server.unproven) == limits.MAX_UNPROVEN_CONNECTIONS
        link = await asyncio.to_thread(_dial, port)
        await asyncio.to_thread(link.send, HELLO + b'{"id":1,"op":"echo"}\n')
        assert await asyncio.to_thread(link.receive, 10**9) == {"id": 1, "result": None}
        monkeypatch.setattr(limits, "PROOF_TIMEOUT", 0.05)
        late = await wire.dial(port)
        assert await late.receive() is None
        await asyncio.to_thread(link.send, b'{"id":2,"op":"echo"}\n')
        assert await asyncio.to_thread(link.receive, 10**9) == {"id": 2, "result": None}
        link.close()

    run(test)


def test_an_unproven_connection_sends_little(run: Run) -> None:
    """Before the proof a line is limited to 1 KiB: a client without the token cannot fill the memory."""

    async def test(wire: Wire) -> None:
        port = await wire.server.listen_tcp()
        client = await wire.dial(port)
        client.send(b"x" * 2048)
        assert "a line has at most" in (await client.receive())["error"]["message"]

    run(test)


def test_the_oldest_without_a_hello_goes_for_a_newcomer(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Silent connections are closed for new ones, and that is logged once; members and other callers stay."""
    monkeypatch.setattr(limits, "MAX_WIRE_CONNECTIONS", 8)

    async def test(wire: Wire) -> None:
        members = [await wire.connect() for _ in range(2)]
        silent = [await wire.knock() for _ in range(30)]
        caller = await wire.connect(b'{"hello":1,"client":"cli"}\n')
        for client in [*members, caller]:
            assert await client.ask({"id": 1, "op": "echo", "params": 5}) == {"id": 1, "result": 5}
        for client in silent[:-5]:
            assert await client.receive() is None
        assert len(wire.server.connections) == 8 and len(wire.server.without_hello) == 5

    with caplog.at_level("WARNING"):
        run(test)
    assert len(caplog.records) == 1


def test_beyond_the_cap_a_caller_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """When every connection has sent a hello, none is closed for a new one, whose caller may try again."""
    monkeypatch.setattr(limits, "MAX_WIRE_CONNECTIONS", 3)

    async def test(wire: Wire) -> None:
        members = [await wire.connect() for _ in range(3)]
        late = await wire.knock()
        error = (await late.receive())["error"]
        assert (error["code"], error["data"]) == (50301, {"reason": "E_UNAVAILABLE", "retryable": True})
        assert "too many connections" in error["message"]
        for client in members:
            assert await client.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None}

    run(test)


def test_the_cap_follows_the_descriptor_limit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """At `ulimit -n 32` the private wire takes 12 of them."""
    monkeypatch.setattr("nudge.process.wire_server.descriptor_limit", lambda: 32)

    async def test(wire: Wire) -> None:
        silent = [await wire.knock() for _ in range(20)]
        for client in silent[:8]:
            assert await client.receive() is None
        assert len(wire.server.connections) == 12

    run(test)


def test_a_connection_without_a_hello_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a hello is closed after a timeout; with a hello it stays."""
    monkeypatch.setattr(limits, "HELLO_TIMEOUT", 0.2)

    async def test(wire: Wire) -> None:
        member = await wire.connect()
        silent, dripping = await wire.knock(), await wire.knock()
        dripping.send(b'{"hel')
        assert await silent.receive() is None and await dripping.reader.read() == b""
        assert await member.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None}

    run(test)


def test_out_of_descriptors_is_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """EMFILE on accept: one line in the log, a pause, and the connection is taken then."""
    monkeypatch.setattr("nudge.process.wire_server._ACCEPT_RETRY", 0.01)

    async def test(wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        accept, failures = loop.sock_accept, [OSError(24, "Too many open files")] * 3

        async def failing(listener: socket.socket) -> Any:
            if failures:
                raise failures.pop()
            return await accept(listener)

        first = await wire.knock()  # it takes the wait that is under way
        monkeypatch.setattr(loop, "sock_accept", failing)
        second = await wire.connect()
        assert await second.ask({"id": 1, "op": "echo"}) == {"id": 1, "result": None} and not failures
        first.writer.close()

    with caplog.at_level("WARNING"):
        run(test)
    assert len(caplog.records) == 1
