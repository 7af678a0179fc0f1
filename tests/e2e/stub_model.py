"""A model that asks for the tools it was told to ask for, then says that it is done. Speaks to Codex (Responses API),
Gemini CLI (generateContent) and OpenCode (chat completions)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Call = tuple[str, dict[str, Any] | str]
"""A tool and its arguments, or the text that it takes."""
LAST_WORDS = "The tests pass with the other command."


class StubModel:
    """Listens on a free port of the loopback while it is entered; keeps what it was sent, in order. As a proxy it
    refuses every connection: a client that is given it as one reaches nothing else."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """Variables that keep a client off the network."""
        own = "127.0.0.1,localhost"
        return {"HTTPS_PROXY": self.url, "HTTP_PROXY": self.url, "NO_PROXY": own, "no_proxy": own}

    @property
    def conversation(self) -> list[dict[str, Any]]:
        """The requests that offer tools; clients also ask for a title, or which model to ask."""
        bodies = [json.loads(request) for request in self.requests]
        return [body for body in bodies if body.get("tools")]

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

            def do_CONNECT(self) -> None:
                self.send_error(403)

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
            return [_event(chunk) for chunk in _openai(call, len(self.requests))] + ["data: [DONE]\n\n"]
        if path.endswith("/responses"):
            return [_event(event, event["type"]) for event in _responses(call, len(self.requests))]
        return [_event(_gemini(call)) if "stream" in path else json.dumps(_gemini(call))]


def _event(chunk: dict[str, Any], name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(chunk)}\n\n"


def _gemini(call: Call | None) -> dict[str, Any]:
    part = {"text": LAST_WORDS} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    }


def _openai(call: Call | None, number: int) -> list[dict[str, Any]]:
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta: dict[str, Any] = {"role": "assistant", "content": LAST_WORDS}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
        }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    last = {
        **base,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}],
        "usage": usage,
    }
    return [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, last]


def _responses(call: Call | None, number: int) -> list[dict[str, Any]]:
    text = [{"type": "output_text", "text": LAST_WORDS}]
    item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": text}
    if call is not None:
        name, given = call
        item = {"type": "function_call", "arguments": json.dumps(given)}
        if isinstance(given, str):
            item = {"type": "custom_tool_call", "input": given}
        item |= {"id": f"item_{number}", "call_id": f"call_{number}", "name": name}
    response = {"id": f"resp_{number}"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]
