"""A model that asks for the tools it was told to ask for, then says that it is done. Speaks to Gemini CLI and to
OpenCode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Call = tuple[str, dict[str, Any]]


class StubModel:
    """Listens on a free port of the loopback while it is entered; keeps what it was sent."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StubModel:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: Any) -> None:
                del format, arguments

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                model.requests.append(body.decode())
                chunks = model.answer(self.path, json.loads(body))
                self.send_response(200)
                self.send_header(
                    "Content-Type",
                    "text/event-stream" if len(chunks) > 1 or "stream" in self.path else "application/json",
                )
                self.end_headers()
                self.wfile.write("".join(chunks).encode())

        return Handler

    def answer(self, path: str, request: dict[str, Any]) -> list[str]:
        call = self._calls.pop(0) if self._calls and request.get("tools") else None
        if path.endswith("/chat/completions"):
            return [_event(chunk) for chunk in _openai(call)] + ["data: [DONE]\n\n"]
        return [_event(_gemini(call)) if "stream" in path else json.dumps(_gemini(call))]


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def _gemini(call: Call | None) -> dict[str, Any]:
    part = {"text": "done"} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    }


def _openai(call: Call | None) -> list[dict[str, Any]]:
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta: dict[str, Any] = {"role": "assistant", "content": "done"}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"call_{id(call)}", "type": "function", "function": function}],
        }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    last = {
        **base,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}],
        "usage": usage,
    }
    return [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, last]
