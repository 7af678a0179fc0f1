"""A hub on the loopback interface that has one model, and can fail in the ways in which one does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "acme/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """`listing` is what it says about the model; `cut` sends half of each file, `wrong` other bytes, `away` redirects
    to another address."""

    daemon_threads = True

    def __init__(self, model: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {path.name: path.read_bytes() for path in model.iterdir()}
        self.listing: Any = {
            "sha": COMMIT,
            "library_name": "model2vec",
            "tags": ["static-embeddings"],
            "siblings": [self._entry(name, raw) for name, raw in self.files.items()],
        }
        self.cut = self.wrong = False
        self.away: str | None = None
        self.asked: list[str] = []

    @staticmethod
    def _entry(name: str, raw: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"rfilename": name, "size": len(raw)}
        if name.endswith(".safetensors"):
            entry["lfs"] = {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
        return entry

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == f"/api/models/{NAME}/revision/main?blobs=true":
            self._send(json.dumps(self.server.listing).encode())
            return
        name = self.path.removeprefix(f"/{NAME}/resolve/{COMMIT}/").removeprefix("cdn/")
        if self.path.startswith("/cdn/"):
            name = self.path.removeprefix("/cdn/")
        elif name in self.server.files:
            self._redirect(self.server.away or f"/cdn/{name}")
            return
        raw = self.server.files.get(name)
        if raw is None:
            self.send_error(404)
            return
        self._send(bytes(len(raw)) if self.server.wrong else raw, cut=self.server.cut)

    def _redirect(self, address: str) -> None:
        self.send_response(302)
        self.send_header("Location", address)
        self.end_headers()

    def _send(self, raw: bytes, *, cut: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw[: len(raw) // 2] if cut else raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(model: Path) -> Iterator[Hub]:
    with Hub(model) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
