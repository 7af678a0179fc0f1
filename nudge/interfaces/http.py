"""PRIMARY's HTTP: JSON-RPC, MCP and REST on the owner-only Unix socket and, with the bearer token, on loopback TCP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from nudge import __version__, limits
from nudge.errors import HandingOver, Invalid, NudgeError
from nudge.interfaces import gate, jsonrpc, rest, wire
from nudge.interfaces.facts import call_from, facts_from
from nudge.interfaces.mcp import McpServer
from nudge.interfaces.members import Members
from nudge.service.app import App
from nudge.service.call import EnvNeeded

_log = logging.getLogger(__name__)
_ENV_NEEDED = 428

_SMALL_ANSWERS = frozenset(("nudge.bump", "nudge.get_hint", "nudge.record", "nudge.set_hint"))  # one hint at most: no need to measure

Answer = web.StreamResponse


class HttpServer:
    """Both listeners of one PRIMARY. While `refusing`, every call is sent away with a word that it may come back."""

    def __init__(self, app: App, mcp: McpServer, token: str, *, auth: bool = True) -> None:
        self._app, self._mcp, self._token, self._auth = app, mcp, token, auth
        self._runners: list[web.ServerRunner] = []
        self.members = Members()
        self.refusing = False
        self.pace = 0.0
        """Seconds that every call waits before it is served."""
        self.in_flight = 0
        self.on_role_asked: Callable[[dict[str, Any]], bool] = lambda _asked: False
        self.on_call: Callable[[], None] = lambda: None

    async def listen_unix(self, path: str) -> None:
        await self._listen(self._serve_unix, 1e9, limits.MAX_SOCKET_HEADER_BYTES, lambda runner: web.UnixSite(runner, path))

    async def listen_tcp(self, ports: Iterable[int]) -> int | None:
        """Bind the first port that is free; None when none of them is."""
        for port in ports:
            with suppress(OSError):
                await self._listen(
                    self._serve_tcp, limits.KEEPALIVE, limits.MAX_HEADER_BYTES,
                    lambda runner, port=port: web.TCPSite(runner, "127.0.0.1", port),
                )  # fmt: skip
                return port
        return None

    async def _listen(self, handler: Any, keepalive: float, most_header: int, make_site: Callable[..., web.BaseSite]) -> None:
        server = _PatientServer(
            handler, request_factory=_request, keepalive_timeout=keepalive, access_log=None,
            max_field_size=most_header, lingering_time=0.1, auto_decompress=False,
        )  # fmt: skip
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0.2)
        await runner.setup()
        try:
            await make_site(runner).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runners.append(runner)

    async def close(self) -> None:
        runners, self._runners = self._runners, []
        for runner in runners:
            await runner.cleanup()

    async def _serve_unix(self, request: web.BaseRequest) -> Answer:
        if not gate.is_same_user(request.transport):
            return _plain(403, "another user")
        return await self._route(request)

    async def _serve_tcp(self, request: web.BaseRequest) -> Answer:
        refused = gate.check_browser(request) or (None if self._is_open(request) else gate.check_token(request, self._token))
        return _plain(*refused) if refused else await self._route(request)

    def _is_open(self, request: web.BaseRequest) -> bool:
        return not self._auth or request.path == "/health" or request.path.startswith("/proof/")

    async def _route(self, request: web.BaseRequest) -> Answer:
        self.members.note(request)
        handler = self._handler(request.method, request.path)
        if handler is None:
            return _plain(405 if request.path in ("/", "/mcp") else 404, "no such path or method")
        if self.refusing:
            return _retry_later()
        if request.method in ("POST", "PUT") and not gate.is_json(request):
            return _plain(415, "send application/json")
        return await self._guarded(handler, request)

    def _handler(self, method: str, path: str) -> Callable[[web.BaseRequest], Awaitable[Answer]] | None:
        if method == "POST" and path in ("/", "/mcp", "/member", "/role"):
            return {"/": self._jsonrpc, "/mcp": self._serve_mcp, "/member": _joined, "/role": self._role}[path]
        if method == "GET" and path == "/health":
            return _health
        if method == "GET" and path.startswith("/proof/"):
            return self._proof
        return self._rest if path.startswith(rest.PREFIX) else None

    async def _guarded(self, handler: Callable[[web.BaseRequest], Awaitable[Answer]], request: web.BaseRequest) -> Answer:
        """Whatever happens inside, the client gets an answer without a trace of our insides."""
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
        except wire.WireError as error:
            if request.path.startswith(rest.PREFIX):
                return _json({"error": error.to_wire()}, 400)
            return _json(jsonrpc.error_response(None, error.code, error.message))
        except NudgeError as error:
            return _json({"error": error.to_wire()}, rest.status_of(error))
        except web.HTTPRequestEntityTooLarge:
            return _json(jsonrpc.error_response(None, -32600, "Invalid request: the body is too large"), 413)
        except TimeoutError:
            return _plain(408, "the body did not arrive in time")
        except (ConnectionError, web.RequestPayloadError):
            return _plain(400, "the body did not arrive whole")
        except Exception:
            _log.exception("request failed")
            return _plain(500, "internal error; the server's log has the details")
        finally:
            self.in_flight -= 1

    async def _jsonrpc(self, request: web.BaseRequest) -> Answer:
        body = await _body(request)
        payload = await _decoded(body)
        _check_size(body, payload)
        answer = await jsonrpc.answer(self._app, payload, call_from(request.headers))
        if answer is None:
            return web.Response(status=204)
        if isinstance(payload, dict) and payload.get("method") in _SMALL_ANSWERS:
            return _json(answer)
        return await _sent(request, answer)

    async def _serve_mcp(self, request: web.BaseRequest) -> Answer:
        message = await _decoded(await _body(request, limits.MAX_STDIO_LINE_BYTES))
        try:
            facts = facts_from(request.headers)
        except Invalid as error:
            return _json(jsonrpc.refusal(jsonrpc.id_of(message), error))
        answer = await self._mcp.answer(message, facts)
        return web.Response(status=202) if answer is None else await _sent(request, answer)

    async def _rest(self, request: web.BaseRequest) -> Answer:
        if request.method == "GET" and request.path == rest.OPENAPI:
            return _json(rest.openapi())
        matched = rest.match(request.method, request.rel_url.raw_path)
        if matched is None:
            return _plain(404, "no such path or method")
        operation, named = matched
        body = await _body(request, limits.MAX_IMPORT_BODY_BYTES if operation.name == "nudge.import" else limits.MAX_BODY_BYTES)
        params = rest.params(operation, named, request.query.items(), await _decoded(body) if body else None)
        result = await self._app.execute(operation.name, params, call_from(request.headers))
        return await _sent(request, result)

    async def _role(self, request: web.BaseRequest) -> Answer:
        asked = await _decoded(await _body(request, limits.KIB))
        yielding = isinstance(asked, dict) and self.on_role_asked(asked)
        return _json({"yielding": yielding}, 200 if yielding else 409)

    async def _proof(self, request: web.BaseRequest) -> Answer:
        nonce = request.path.removeprefix("/proof/")[:128]
        return web.Response(text=hmac.new(self._token.encode(), nonce.encode(), hashlib.sha256).hexdigest())


class _PatientServer(web.Server):
    """Patient, not endless: a connection that never completes its first request is closed, and there is a most of them."""

    def __call__(self) -> RequestHandler:
        return _DiscreetHandler(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        # Chunks of one byte take the parser fifty times as long as the same bytes in one: it must not get too many at once.
        transport.max_size = limits.READ_BYTES  # type: ignore[attr-defined]
        if len(self._connections) > limits.MAX_CONNECTIONS:
            transport.abort()
        self._loop.call_later(limits.HEADERS_TIMEOUT, self._close_if_silent, handler, transport)

    def _close_if_silent(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        if handler in self._connections and handler._request_count == 0 and not handler._request_in_progress:
            transport.abort()


class _DiscreetHandler(RequestHandler):
    """Says nothing about what runs here, and repeats nothing of what is no HTTP: it may hold a value, which belongs in no log."""

    __slots__ = ()

    async def finish_response(self, request: web.BaseRequest, resp: Answer, start_time: float | None) -> tuple[Answer, bool]:
        if not resp.prepared:
            resp.headers["Server"] = "nudge"
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None,  # noqa: ARG002
    ) -> Answer:  # fmt: skip
        if status >= 500:
            _log.error("request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun; there is no other one")
        response = _plain(status, "not a request that this server understands" if status < 500 else "internal error")
        response.force_close()
        return response


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limits.MAX_IMPORT_BODY_BYTES)


async def _body(request: web.BaseRequest, most: int = limits.MAX_IMPORT_BODY_BYTES) -> bytes:
    if (request.content_length or 0) > most:
        raise web.HTTPRequestEntityTooLarge(most, request.content_length or 0)
    async with asyncio.timeout(None if request.content.is_eof() else limits.BODY_TIMEOUT):  # a timer costs more than the read
        body = await request.read()
    if len(body) > most:
        raise web.HTTPRequestEntityTooLarge(most, len(body))
    return body


async def _decoded(body: bytes) -> Any:
    return wire.decode(body) if len(body) <= limits.SMALL_JSON_BYTES else await asyncio.to_thread(wire.decode_slow, body)


def _check_size(body: bytes, payload: object) -> None:
    """Only an import may be large."""
    importing = isinstance(payload, dict) and payload.get("method") == "nudge.import"
    if len(body) > limits.MAX_BODY_BYTES and not importing:
        raise web.HTTPRequestEntityTooLarge(limits.MAX_BODY_BYTES, len(body))


async def _health(_request: web.BaseRequest) -> Answer:
    return _json({"name": "nudge", "version": __version__, "role": "PRIMARY"})


async def _joined(_request: web.BaseRequest) -> Answer:
    return web.Response(status=204)


def _bytes(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _json(content: Any, status: int = 200) -> web.Response:
    return _bytes(wire.encode(content), status)


async def _sent(request: web.BaseRequest, content: Any) -> Answer:
    """A large answer goes out block by block: handed over as a whole it would be copied as a whole, on the event loop."""
    if wire.is_small(content):
        return _json(content)
    blocks = await asyncio.to_thread(wire.encode_blocks, content)
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Server": "nudge"})
    response.content_length = sum(map(len, blocks))
    await response.prepare(request)
    for block in blocks:
        await response.write(block)
    await response.write_eof()
    return response


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")


def _retry_later() -> web.Response:
    return web.Response(status=503, text="handing over; send it again\n", headers={"Nudge-Retry": "1", "Retry-After": "1"})
