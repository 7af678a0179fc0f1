"""A server of ours in place of a language model: it replays what real ones send, and what a hostile one may send."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures" / "language_models"
SERVERS = ("ollama", "llama_cpp", "lm_studio")
NAME = "gemma3:4b"


def recorded(server: str, case: str) -> Reply:
    """What one of the real servers says in a case, such as `unknown_model`."""
    said = json.loads((FIXTURES / f"{server}.json").read_text())[case]
    return Reply(json.dumps(said["body"]).encode(), status=said["status"])


@dataclass(frozen=True)
class Reply:
    """`is_cut`: the connection is closed before the announced length. `is_silent`: nothing is sent until the end;
    `is_endless`: the body is, again and again, with a pause of so many seconds."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    is_silent: bool = False
    is_endless: bool = False
    pause: float = 0.0


def saying(content: object, server: str = "ollama", **fields: Any) -> Reply:
    """An answer of a real server whose content is this text, or the JSON of this value; `fields` go into its choice."""
    text = content if isinstance(content, str) else json.dumps(content)
    body = json.loads((FIXTURES / f"{server}.json").read_text())["answer"]
    choice = body["choices"][0]
    choice["message"]["content"] = text
    choice.update(fields)
    return Reply(json.dumps(body).encode())


Answer = Callable[[dict[str, Any]], Reply]


class ModelServer:
    """Answers by `answer`, and keeps every request: its path, headers and body."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _: saying({})
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.at_once, self.most_at_once = 0, 0
        self.ending = threading.Event()
        self._counting = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def seen(self) -> str:
        """Everything that was sent to it, as text."""
        return json.dumps(self.requests, ensure_ascii=False)

    def close(self) -> None:
        self.ending.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.serve(self)

            def do_GET(self) -> None:
                outer.paths.append(self.path)
                self.send_error(405)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        return Handler

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        with self._counting:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            request = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
            self.paths.append(handler.path)
            self.headers.append(dict(handler.headers.items()))
            self.requests.append(request)
            self._send(handler, self.answer(request))
        except OSError:  # the client has gone
            handler.close_connection = True
        finally:
            with self._counting:
                self.at_once -= 1

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.is_silent:
            self.ending.wait()
            return
        handler.send_response(reply.status)
        for name, text in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, text)
        if not reply.is_endless:
            handler.send_header("Content-Length", str(len(reply.body) + (10 if reply.is_cut else 0)))
        handler.end_headers()
        handler.wfile.write(reply.body)
        while reply.is_endless and not self.ending.wait(reply.pause):
            handler.wfile.write(reply.body)
        if reply.is_cut:
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def raw_server(said: bytes, *, is_endless: bool = False) -> Iterator[str]:
    """A server that reads a request and says these bytes, once or until the client has gone; its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65_536)
                self.request.sendall(said)
                while is_endless and not ending.is_set():
                    self.request.sendall(said * 100)

    ending = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            ending.set()
            server.shutdown()
            thread.join()


def asked(request: Mapping[str, Any]) -> str:
    """Which question a request is: words, tags, contradiction or groups."""
    form = request["response_format"]
    if form["type"] == "json_schema":
        return str(form["json_schema"]["name"])
    schema = request["messages"][0]["content"]
    names = {"terms": "words", "tags": "tags", "contradicts": "contradiction", "groups": "groups"}
    return next(names[field] for field in names if f'"required": ["{field}"]' in schema)
