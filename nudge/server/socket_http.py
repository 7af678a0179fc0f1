"""PRIMARY's HTTP: JSON-RPC, MCP and REST on the owner-only Unix socket and, with the bearer token, on loopback TCP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from nudge import __version__, limits
from nudge.errors import HandingOver, Invalid, NudgeError
from nudge.server import gate, jsonrpc, rest, strict_json, wire
from nudge.server.facts import call_from, facts_from
from nudge.server.http_messages import Answer, Request, Service, plain
from nudge.server.late_mcp import LateMcp
from nudge.server.listener import Listener
from nudge.server.members import Members
from nudge.usecases.app import App
from nudge.usecases.call import EnvNeeded

_log = logging.getLogger(__name__)
_ENV_NEEDED = 428

_SMALL_ANSWERS = frozenset(
    ("nudge.bump", "nudge.get_hint", "nudge.record", "nudge.set_hint")
)  # one hint at most: no need to measure
_MOST_BODY = {
    "/": limits.MAX_IMPORT_BODY_BYTES,
    "/mcp": limits.MAX_STDIO_LINE_BYTES,
    "/role": limits.KIB,
    "/api/v1/import": limits.MAX_IMPORT_BODY_BYTES,
}

_ROUTED_AS = {"HEAD": "GET"}  # whose answer goes without its body

Handler = Callable[[Request], Awaitable[Answer]]


class HttpServer:
    """Both listeners of one PRIMARY. While `refusing`, every call is sent away with a word that it may come back."""

    def __init__(self, app: App, mcp: LateMcp, token: str, *, auth: bool = True) -> None:
        self._app, self._mcp, self._token, self._auth = app, mcp, token, auth
        self._listeners: list[Listener] = []
        self._posts: dict[str, Handler] = {
            "/": self._jsonrpc,
            "/mcp": self._serve_mcp,
            "/member": self._join,
            "/role": self._role,
        }
        self.members = Members()
        self.refusing = False
        self.pace = 0.0
        """Seconds that every call waits before it is served."""
        self.in_flight = 0
        self.on_role_asked: Callable[[dict[str, Any]], bool] = lambda _asked: False
        self.on_call: Callable[[], None] = lambda: None

    async def listen_unix(self, path: str) -> None:
        listener = Listener(self._service(self._admit_unix, limits.MAX_SOCKET_HEAD_BYTES, None))
        await listener.on_unix(path)
        self._listeners.append(listener)

    async def listen_tcp(self, ports: Iterable[int]) -> int | None:
        """Bind the first port that is free; None when none of them is."""
        listener = Listener(self._service(self._admit_tcp, limits.MAX_HEAD_BYTES, limits.KEEPALIVE))
        for port in ports:
            with suppress(OSError):
                await listener.on_tcp(port)
                self._listeners.append(listener)
                return port
        return None

    def _service(self, admit: Callable[[Request], Answer | None], most_head: int, idle: float | None) -> Service:
        return Service(admit, self._respond, self.members.forget, _too_large(), most_head, idle)

    async def close(self) -> None:
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.close()

    # Who may come in, with what

    def _admit_unix(self, request: Request) -> Answer | None:
        return self._admit(request) if gate.is_same_user(request.transport) else plain(403, "another user")

    def _admit_tcp(self, request: Request) -> Answer | None:
        refused = gate.check_browser(request) or (
            None if self._is_open(request) else gate.check_token(request, self._token)
        )
        if refused is None:
            return self._admit(request)
        return plain(*refused, headers={"WWW-Authenticate": "Bearer"} if refused[0] == 401 else {})

    def _is_open(self, request: Request) -> bool:
        return not self._auth or request.path == "/health" or request.path.startswith("/proof/")

    def _admit(self, request: Request) -> Answer | None:
        if self._handler(request) is None:
            known = request.path in self._posts
            return plain(405 if known else 404, "no such path or method", headers={"Allow": "POST"} if known else {})
        if request.method in ("POST", "PUT") and not gate.is_json(request):
            return plain(415, "send application/json")
        request.most_body = _MOST_BODY.get(request.path, limits.MAX_BODY_BYTES)
        return None

    def _handler(self, request: Request) -> Handler | None:
        method, path = _ROUTED_AS.get(request.method, request.method), request.path
        if method == "POST" and path in self._posts:
            return self._posts[path]
        if method == "GET" and path == "/health":
            return _health
        if method == "GET" and path.startswith("/proof/"):
            return self._proof
        return self._rest if path.startswith(rest.PREFIX) else None

    # What it gets

    async def _respond(self, request: Request) -> Answer:
        """Whatever happens inside, the client gets an answer without a trace of our insides."""
        self.members.note(request)
        if self.refusing:
            return _retry_later()
        handler = self._handler(request)
        assert handler is not None, "admitted"
        self.in_flight += 1
        self.on_call()
        try:
            if self.pace and request.path != "/role":
                await asyncio.sleep(self.pace)
            return await handler(request)
        except EnvNeeded as asked:
            return _json({"names": asked.names}, _ENV_NEEDED)
        except HandingOver:
            return _retry_later()
        except (wire.WireError, strict_json.JsonError) as error:
            if request.path.startswith(rest.PREFIX):
                return _json({"error": error.to_wire()}, 400)
            return _json(jsonrpc.error_response(None, error.code, error.message))
        except NudgeError as error:
            return _json({"error": error.to_wire()}, rest.status_of(error))
        finally:
            self.in_flight -= 1

    async def _jsonrpc(self, request: Request) -> Answer:
        payload = await _decoded(request.body)
        if _is_too_large(request.body, payload):
            return _too_large()
        answer = await jsonrpc.answer(self._app, payload, call_from(request.headers))
        small = isinstance(payload, dict) and payload.get("method") in _SMALL_ANSWERS
        if len(request.body) > limits.SMALL_JSON_BYTES:
            await self._app.in_slices(wire.taken_apart(payload))
        if answer is None:
            return Answer(204)
        return _json(answer) if small else await _sent(answer)

    async def _serve_mcp(self, request: Request) -> Answer:
        if not await self._mcp.ready(limits.LOAD_PATIENCE):
            return _retry_later()
        message = await _decoded(request.body)
        try:
            facts = facts_from(request.headers)
        except Invalid as error:
            return _json(jsonrpc.refusal(jsonrpc.id_of(message), error))
        answer = await self._mcp.answer(message, facts)
        return Answer(202) if answer is None else await _sent(answer)

    async def _rest(self, request: Request) -> Answer:
        if request.method in ("GET", "HEAD") and request.path == rest.OPENAPI:
            return _json(rest.openapi())
        matched = rest.match(request.raw_path).get(_ROUTED_AS.get(request.method, request.method))
        if matched is None:
            return plain(404, "no such path or method")
        operation, named = matched
        params = rest.params(
            operation, named, request.target.partition("?")[2], await _decoded(request.body) if request.body else None
        )
        result = await self._app.execute(operation.name, params, call_from(request.headers))
        return await _sent(result)

    async def _join(self, _request: Request) -> Answer:
        """Who stays is a PROXY, and has a client that speaks MCP."""
        self._mcp.expect()
        return Answer(204)

    async def _role(self, request: Request) -> Answer:
        asked = await _decoded(request.body)
        yielding = isinstance(asked, dict) and self.on_role_asked(asked)
        return _json({"yielding": yielding}, 200 if yielding else 409)

    async def _proof(self, request: Request) -> Answer:
        nonce = request.path.removeprefix("/proof/")[:128]
        proof = hmac.new(self._token.encode(), nonce.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return Answer(200, proof.hexdigest().encode(), "text/plain; charset=utf-8")


async def _decoded(body: bytes) -> Any:
    return (
        wire.decode(body) if len(body) <= limits.SMALL_JSON_BYTES else await asyncio.to_thread(wire.decode_slow, body)
    )


def _is_too_large(body: bytes, payload: object) -> bool:
    """Only an import may be large."""
    importing = isinstance(payload, dict) and payload.get("method") == "nudge.import"
    return len(body) > limits.MAX_BODY_BYTES and not importing


async def _health(_request: Request) -> Answer:
    return _json({"name": "nudge", "version": __version__, "role": "PRIMARY"})


def _json(content: Any, status: int = 200) -> Answer:
    return Answer(status, wire.encode(content))


async def _sent(content: Any) -> Answer:
    return (
        _json(content) if wire.is_small(content) else Answer(200, await asyncio.to_thread(wire.encode_blocks, content))
    )


def _too_large() -> Answer:
    return _json(jsonrpc.error_response(None, -32600, "Invalid request: the body is too large"), 413)


def _retry_later() -> Answer:
    return plain(503, "not now; send it again", headers={"Nudge-Retry": "1", "Retry-After": "1"})
