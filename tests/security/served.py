"""A server inside the test's own process, where its limits can be patched and its state looked at, and raw ways to talk
to it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import queue
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from nudge import __version__
from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.lifetime import open_lifetime
from nudge.interfaces.http import HttpServer
from nudge.interfaces.mcp import StdioClient
from nudge.interfaces.mcp_server import McpServer, StdioServer
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.public_port import listen
from nudge.interfaces.stdio import Pipe
from nudge.interfaces.wire import IpcHandler
from nudge.process import endpoint
from nudge.process.connection import Connection
from nudge.process.endpoint import Endpoint
from nudge.process.proxy import Proxy
from nudge.process.wire_server import WireServer
from nudge.settings.config import Settings, Sources
from tests.harness import TIMEOUT, ports

TOKEN = "0123456789abcdef" * 4

_T = TypeVar("_T")


class Served:
    """One application behind HTTP on TCP and on a Unix socket, on an event loop in a thread of its own."""

    def __init__(self, *, auth: bool = True, **environ: str) -> None:
        self.directory = tempfile.mkdtemp(prefix="nt-", dir="/tmp")
        self.socket = os.path.join(self.directory, "s.sock")
        self._auth, self._environ = auth, environ
        self._lines: list[Line | WireLine] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._start())

    async def _start(self) -> None:
        sources = Sources(self.directory, environ={**os.environ, **self._environ})
        self.app = App(open_lifetime(self.directory, sources), OPERATIONS)
        self.app.describe = lambda: {
            "role": "PRIMARY",
            "pid": os.getpid(),
            "port": self.port,
            "members": self.wire.list_members(),
        }
        self.mcp = McpServer(self.app)
        self.wire = WireServer(IpcHandler(self.app, self.mcp), generation="g", token=lambda: TOKEN)
        await self.wire.listen_unix(self.socket)
        self.http_server = HttpServer(self.app, self.mcp, lambda: TOKEN, auth=self._auth)
        self.port = ports().take()
        listening = listen([self.port])
        assert listening is not None
        self.http_server.open(listening)
        self.endpoint = Endpoint(os.getpid(), self.port, self.socket, "", "g", __version__, endpoint.READY)
        endpoint.publish(self.directory, self.endpoint)

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(TIMEOUT)

    def on_loop(self, work: Callable[[], _T]) -> _T:
        """Run something on the server's own thread."""
        done: concurrent.futures.Future[_T] = concurrent.futures.Future()
        self.loop.call_soon_threadsafe(lambda: done.set_result(work()))
        return done.result(TIMEOUT)

    def call(self, operation: str, **params: Any) -> Any:
        return self.run(self.app.execute(operation, params, Call()))

    def state(self) -> str:
        """Everything that is stored, secrets too, as text to compare."""
        return json.dumps(self.call("nudge.export", reveal=True), sort_keys=True)

    def mark(self) -> int:
        """A number that every stored change moves; cheaper to compare than all that is stored."""
        assert self.app.lifetime.log is not None
        return self.app.lifetime.log.size

    def tcp(self) -> Raw:
        return Raw(socket.create_connection(("127.0.0.1", self.port), TIMEOUT))

    def wire_line(self) -> WireLine:
        self._lines.append(line := WireLine(self))
        return line

    def stdio(self) -> Line:
        self._lines.append(line := PrimaryLine(self))
        return line

    def proxy(self) -> Line:
        self._lines.append(line := ProxyLine(self))
        return line

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self.run(self.http_server.close())
        self.run(self.wire.close())
        if self.app.lifetime.log is not None:
            self.app.lifetime.log.close()
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT)
        self.loop.close()
        ports().give_back(self.port)
        shutil.rmtree(self.directory)


@contextmanager
def served(**options: Any) -> Iterator[Served]:
    server = Served(**options)
    try:
        yield server
    finally:
        server.close()


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int | None:
        """Of the error, which in REST is the answer itself; None when there is none."""
        answer = self.json if self.body[:1] == b"{" else {}
        error = answer.get("error", {})
        code: int | None = (answer if isinstance(error, str) else error).get("code")
        return code


class Closed(Exception):
    """The server closed the connection instead of answering."""


class Raw:
    """A socket on which a test may write whatever it likes, and read HTTP answers."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """A server that has had enough may close while we still write; what it said is then still to be read."""
        try:
            self.link.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def ask(self, data: bytes) -> Reply:
        self.send(data)
        return self.reply()

    def reply(self, *, keep_body: bool = True, head_only: bool = False) -> Reply:
        """The next answer. `keep_body` off: its body is dropped as it comes, or the time to copy it would be measured
        too."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            self._fill()
        status_line, *lines = self._take(end + 4).decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if head_only else int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            if not keep_body:
                length -= len(self._take(len(self._buffer)))
            self._fill()
        body = self._take(length)
        return Reply(int(status_line.split(" ")[1]), headers, body if keep_body else b"")

    def _take(self, length: int) -> bytes:
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken

    def drained(self) -> bool:
        """True once the server has closed, whatever else it still says."""
        try:
            while True:
                self._fill()
        except Closed:
            return True

    def heard_within(self, seconds: float) -> bool:
        """Whether the server says something in that time, be it that it has closed."""
        return bool(select.select([self.link], [], [], seconds)[0])

    def _fill(self) -> None:
        try:
            received = self.link.recv(262_144)
        except ConnectionResetError:
            received = b""
        if not received:
            raise Closed
        self._buffer += received

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()


def post(path: str, body: bytes, *, token: str | None = TOKEN, **headers: str) -> bytes:
    """A whole POST; a header's `_` stands for `-`, and `\\udcff` in it for the byte 255."""
    sent = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    sent |= {name.replace("_", "-"): text for name, text in headers.items()}
    head = "".join(f"{name}: {text}\r\n" for name, text in sent.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body


def rpc(method: str, params: Any, request_id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def tool(name: str, arguments: Any, request_id: Any = 1) -> bytes:
    return rpc("tools/call", {"name": name, "arguments": arguments}, request_id)


class WireLine:
    """A client on the private wire that may write whatever it likes."""

    def __init__(self, server: Served, hello: bytes = b'{"hello":1}\n') -> None:
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(TIMEOUT)
        self.link.connect(server.socket)
        self._answers = self.link.makefile("rb")
        if hello:
            self.link.sendall(hello)
            self.hello = self.receive()

    def send(self, data: bytes) -> None:
        """A server that has had enough may close while we still write; what it said is then still to be read."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.link.sendall(data)

    def ask(self, line: bytes) -> dict[str, Any]:
        self.send(line + b"\n")
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """The next line; raises Closed when there is none."""
        try:
            line = self._answers.readline()
        except ConnectionResetError:
            line = b""
        if not line:
            raise Closed
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._answers.close()
        self.link.close()


class Line:
    """A client at the far end of a pipe; a thread takes the answers, so that no write can block for ever."""

    def __init__(self) -> None:
        reader, self._to_server = os.pipe()
        self._from_server, writer = os.pipe()
        self.pipe = Pipe(reader, writer)
        self.answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def send(self, data: bytes) -> None:
        """Bytes as they are: the newline is the caller's business."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._to_server, view) :]

    def ask(self, line: bytes) -> dict[str, Any]:
        self.send(line + b"\n")
        return self.receive()

    def receive(self, timeout: float = TIMEOUT) -> dict[str, Any]:
        return self.answers.get(timeout=timeout)

    def until(self, request_id: str, *others: int) -> list[dict[str, Any]]:
        """Send a good request; every answer until its own has come, and those to `others`."""
        self.send(rpc("ping", {}, request_id) + b"\n")
        answers: list[dict[str, Any]] = []
        missing: set[Any] = {request_id, *others}
        while missing:
            answers.append(self.receive())
            missing -= {answers[-1].get("id")}
        return answers

    def _collect(self) -> None:
        with open(self._from_server, "rb") as lines:
            for line in lines:
                self.answers.put(json.loads(line))

    def finish_with(self, unended: bytes) -> None:
        """The last bytes of a client that ends without a newline."""
        self.send(unended)
        os.close(self._to_server)
        self._to_server = -1

    def close(self) -> None:
        """What a client does when it ends; then nobody is left at either end."""
        if self._to_server >= 0:
            os.close(self._to_server)
        self._let_go()
        os.close(self.pipe.reader)
        os.close(self.pipe.writer)
        self._collector.join(TIMEOUT)

    def _let_go(self) -> None:
        raise NotImplementedError


class PrimaryLine(Line):
    """PRIMARY's own client."""

    def __init__(self, server: Served) -> None:
        super().__init__()
        self._server = server
        self._gone = threading.Event()
        self._stdio = server.on_loop(lambda: StdioServer(self.pipe, server.mcp, StdioClient(), self._gone.set, {}))
        self._stdio.start()

    def _let_go(self) -> None:
        assert self._gone.wait(TIMEOUT)
        self._server.run(self._stdio.finish(1.0))


class ProxyLine(Line):
    """The client of a PROXY whose PRIMARY is `server`."""

    def __init__(self, server: Served) -> None:
        super().__init__()
        link = Connection(server.endpoint, TOKEN)
        self._proxy = Proxy(self.pipe, Settings({"autostart": False}), server.directory, {})
        self._thread = threading.Thread(target=self._proxy.run, args=(link,), daemon=True)
        self._thread.start()

    def _let_go(self) -> None:
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()
