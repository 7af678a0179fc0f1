"""The HTTP port is open before its server is loaded."""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nudge.interfaces import public_port
from nudge.interfaces.http import HttpServer
from nudge.interfaces.public_port import PublicPort, listen
from tests.harness import Machine, free_port

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def make_http_server(_http: Any) -> HttpServer:
    return HttpServer(None, None, lambda: "token")  # type: ignore[arg-type]


def listening_socket() -> socket.socket:
    listening = listen([free_port()])
    assert listening is not None
    return listening


async def status(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEALTH)
    try:
        line = await reader.readline()
    finally:
        writer.close()
    return line.split()[1]


def run(session: Callable[[PublicPort], Any], make_server: Callable[[Any], HttpServer] = make_http_server) -> Any:
    async def main() -> Any:
        listening = listening_socket()
        port = PublicPort(listening, make_server)
        try:
            return await session(port)
        finally:
            await port.close()
            assert listening.fileno() == -1

    return asyncio.run(asyncio.wait_for(main(), 30))


def test_a_port_that_is_taken_is_passed_over() -> None:
    """The first free one of those given is used; none free is None."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert listen([taken.getsockname()[1]]) is None
        free = free_port()
        listening = listen([taken.getsockname()[1], free])
        assert listening is not None
        assert listening.getsockname()[1] == free
        listening.close()


def test_the_server_is_made_at_the_first_connection() -> None:
    """The server is loaded once; connections that arrive meanwhile wait and are answered."""
    made: list[Any] = []

    def count(http: Any) -> HttpServer:
        made.append(http)
        return make_http_server(http)

    async def session(port: PublicPort) -> tuple[int, list[bytes], bytes]:
        before = len(made)
        together = await asyncio.gather(*(status(port.number) for _ in range(5)))
        return before, together, await status(port.number)

    assert run(session, count) == (0, [b"200"] * 5, b"200")
    assert len(made) == 1


def test_what_was_set_before_holds_for_the_server_that_is_made_later() -> None:
    """A server that is leaving refuses a first connection as it refuses every other."""

    async def session(port: PublicPort) -> tuple[bytes, int]:
        port.refusing = True
        return await status(port.number), port.in_flight

    assert run(session) == (b"503", 0)


def test_a_server_that_cannot_be_loaded_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When the server cannot be loaded, waiting connections are refused instead of left waiting."""

    def fail() -> Any:
        raise ImportError("no aiohttp")

    monkeypatch.setattr(public_port, "_load_http", fail)

    async def session(port: PublicPort) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", number := port.number)
        try:
            with pytest.raises(ConnectionResetError):
                await reader.read()
        finally:
            writer.close()
        with pytest.raises(ConnectionRefusedError):
            await status(number)

    run(session)
    assert "the HTTP server could not be started" in caplog.text


def test_where_a_socket_cannot_be_watched_the_server_is_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' event loop has no readers."""

    def cannot(*_: Any) -> None:
        raise NotImplementedError

    async def session(_port: PublicPort) -> bytes:
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", cannot, raising=False)
        other = PublicPort(listening_socket(), make_http_server)
        monkeypatch.undo()
        answered = await status(other.number)
        await other.close()
        return answered

    assert run(session) == b"200"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_without_http_requests_does_not_load_aiohttp(machine: Machine) -> None:
    """Its compiled parser is mapped into the process once it is loaded."""
    announced = machine.http_only()
    assert machine.cli("ls").returncode == 0

    def is_loaded() -> bool:
        return "/aiohttp/" in Path(f"/proc/{announced.pid}/maps").read_text()

    assert not is_loaded()
    with urllib.request.urlopen(f"http://127.0.0.1:{announced.port}/health", timeout=30) as answer:
        assert answer.status == 200
    assert is_loaded()
