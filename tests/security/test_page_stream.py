"""What pages that are open, and those that are not, cost the server."""

from __future__ import annotations

import socket

import pytest

from nudge.core import limits
from nudge.interfaces import page
from nudge.page import files
from tests.harness import TIMEOUT, eventually
from tests.security.served import TOKEN, Raw, Served, served

_STREAM = f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
_READERS = 3


def _reader_that_reads_nothing(server: Served) -> Raw:
    link = socket.socket()
    link.settimeout(TIMEOUT)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    link.connect(("127.0.0.1", server.port))
    reader = Raw(link)
    reader.send(_STREAM)
    return reader


def _readers(server: Served) -> int:
    return server.on_loop(lambda: len(server.app.on_write))


def test_a_page_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes something does not wait for it, and its connection is closed after a while."""
    monkeypatch.setattr(limits, "STREAM_WRITE", 0.2)
    monkeypatch.setitem(page._CHANGED, "hints", "h" * 8_000_000)  # more than the kernel keeps for a reader
    with served() as server:
        readers = [_reader_that_reads_nothing(server) for _ in range(_READERS)]
        eventually(lambda: _readers(server) == _READERS, "the pages are connected")
        server.call("nudge.set_hint", component="api", key="test", value="make test")
        assert server.call("nudge.get_hint", component="api", key="test")["hint"]["value"] == "make test"
        eventually(lambda: _readers(server) == 0, "the server has dropped them")
        for reader in readers:
            assert reader.drained()
            reader.link.close()


def test_a_server_that_nobody_looks_at_has_nothing_of_the_page() -> None:
    """The files are read when a browser asks for one; nothing is noted for pages that are not open."""
    files.load.cache_clear()
    with served() as server:
        server.call("nudge.set_hint", component="api", key="test", value="make test")
        link = server.tcp()
        head = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        assert link.ask(f"GET /api/v1/openapi.json HTTP/1.1\r\n{head}".encode()).status == 200
        assert files.load.cache_info().currsize == 0 and _readers(server) == 0
        assert link.ask(f"GET / HTTP/1.1\r\n{head}".encode()).status == 200
        assert files.load.cache_info().currsize == 1 and _readers(server) == 0
        link.link.close()
