"""The HTTP server: JSON-RPC, MCP and REST on 127.0.0.1, with the bearer token. aiohttp parses and writes HTTP.

aiohttp takes 150 ms to import: PRIMARY loads this module when the first connection comes (public_port).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, BinaryIO

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import istr

from nudge import __version__
from nudge.core import limits, strict_json, transfer_files
from nudge.core.app import App
from nudge.core.call import Call, Interface
from nudge.core.errors import INVALID_REQUEST, HandingOver, Invalid, NotFound, NudgeError
from nudge.core.operation import Operation
from nudge.core.strict_json import JsonError
from nudge.core.text import is_all_visible
from nudge.interfaces import jsonrpc, rest
from nudge.interfaces.http_connections import Handler, HttpConnection, Listener, connection_of, text_response
from nudge.interfaces.mcp import read_session
from nudge.interfaces.mcp_server import McpCaller, McpServer
from nudge.interfaces.page import SIGN_IN, STREAM, Page, has_file
from nudge.notes import statistics_ops
from nudge.process.wire import IN_A_FILE

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

_log = logging.getLogger(__name__)

# ASCII: with IGNORECASE alone `ſ` (U+017F) matches an `s`, and no resolver reads it so.
_LOOPBACK = re.compile(r"(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)

_NO_TOKEN = "the bearer token is missing or wrong; get it with: nudge token"
# `istr` stores its lower-case form: a lookup by a plain string computes it each time.
_HOST, _ORIGIN, _AUTHORIZATION, _CONTENT_TYPE = hdrs.HOST, hdrs.ORIGIN, hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE
_REQUEST_ID, _DEADLINE, _SESSION = istr("Nudge-Request-Id"), istr("Nudge-Deadline"), istr("Nudge-Session")
_OPEN = ("/health", rest.HEALTH, "/sse")  # without the token
_NO_SSE = "the SSE transport is gone; send MCP messages to POST /mcp (streamable HTTP), or run nudge serve on stdio"
_JSON = {"Content-Type": "application/json", "Server": "nudge"}
_FOR_PERSONS = ("nudge.repo_files", "nudge.decide_repo_file")
"""Operations that answer a person otherwise than a program."""
_CALLS: dict[Interface, Call] = {"http": Call(interface="http"), "mcp": Call(interface="mcp")}


class _Refused(Exception):
    """A request that is refused before an operation. The answer is a REST error below /api/v1/, elsewhere a line of
    text."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self._status, self._text, self._headers = status, text, headers

    def answer_to(self, request: web.BaseRequest) -> web.StreamResponse:
        return _refusal(request, self._status, self._text, **self._headers)


class _TooLarge(_Refused):
    """A body beyond the limit."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"the body is larger than {most // limits.MIB} MiB; {IN_A_FILE}")

    def answer_to(self, request: web.BaseRequest) -> web.StreamResponse:
        if _is_rest(request):
            return super().answer_to(request)
        return _json(jsonrpc.error_response(None, INVALID_REQUEST, f"Invalid request: {self}"), 413)


class HttpServer:
    """HTTP for one PRIMARY. `token` returns the current token, which is the one on disk.

    While `refusing`, every call is answered with 503 and a header that says when to try again; each call waits
    `call_delay` seconds before it runs.
    """

    def __init__(self, app: App, mcp: McpServer, token: Callable[[], str], *, auth: bool = True) -> None:
        self._app, self._mcp, self._token, self._auth = app, mcp, token, auth
        self._routes: dict[str, dict[str, Handler]] = {
            "/": {"POST": self._jsonrpc, "GET": self._page_file},
            "/mcp": {"POST": self._answer_mcp},
            "/health": {"GET": _health},
            "/sse": {"GET": _gone, "POST": _gone},
            rest.HEALTH: {"GET": self._database_health},
            rest.OPENAPI: {"GET": _openapi},
            SIGN_IN: {"POST": self._sign_in},
            STREAM: {"GET": self._stream},
        }
        self._page: Page
        self._listener: Listener | None = None
        self.refusing = False
        self.call_delay = 0.0
        self.in_flight = 0
        self.on_call: Callable[[], None] = lambda: None

    def open(self, listening: socket.socket) -> None:
        """Accept connections on a listening socket, which is closed with the server."""
        self._page = Page(self._app, listening.getsockname()[1])
        self._listener = Listener(self._handle, listening)

    async def close(self) -> None:
        """Stop accepting connections; calls in flight get a moment to be answered."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    # Requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = connection_of(request)
        try:
            _check_browser(request.headers)
            handler = self._admit(request, connection)
            return await self._call(handler, request)
        except _Refused as refusal:
            return refusal.answer_to(request)
        except (ConnectionError, HttpProcessingError, web.HTTPException):
            raise
        except Exception:
            if not _is_rest(request):
                raise
            _log.exception("request failed")
            return _refusal(request, 500, "internal error; the server's log has the details")
        finally:
            connection.busy = False

    def _admit(self, request: web.BaseRequest, connection: HttpConnection) -> Handler:
        """Return the handler of this request after checking token, path, method and content type; raise _Refused
        otherwise."""
        target = request.raw_path
        if target[:1] != "/" or request.version.major != 1:
            raise _Refused(400, "not a request that this server understands")
        path = target.partition("?")[0]
        self._check_token(request, path, connection)
        handler = self._handler_of(request.method, path)
        if path not in _OPEN:
            _check_content_type(request)
        return handler

    def _check_token(self, request: web.BaseRequest, path: str, connection: HttpConnection) -> None:
        is_open = _is_open(request.method, path)
        if self._auth and not is_open and not self._is_authorized(request.headers.get(_AUTHORIZATION, "")):
            raise _Refused(401, _NO_TOKEN, **{"WWW-Authenticate": "Bearer"})
        if not connection.authenticated and (not is_open or not self._auth):
            connection.authenticate()

    def _handler_of(self, method: str, path: str) -> Handler:
        handlers = self._routes.get(path) or dict.fromkeys(rest.match(path), self._rest)
        if not handlers and has_file(path):
            handlers = {"GET": self._page_file}
        handler = handlers.get("GET" if method == "HEAD" else method)
        if handler is not None:
            return handler
        if not handlers:
            raise _Refused(404, "no such path")
        allowed = [*handlers, *(["HEAD"] if "GET" in handlers else [])]
        raise _Refused(405, "no such method on this path", Allow=", ".join(allowed))

    def _is_authorized(self, authorization: str) -> bool:
        return shows_token(authorization, self._token()) or self._page.accepts(authorization)

    async def _call(self, handler: Handler, request: web.BaseRequest) -> web.StreamResponse:
        if self.refusing:
            return _retry_later(request)
        if handler == self._stream:  # it has no end, and nobody waits for it when the server leaves
            self.on_call()
            return await handler(request)
        self.in_flight += 1
        self.on_call()
        try:
            if self.call_delay:
                await asyncio.sleep(self.call_delay)
            return await handler(request)
        except HandingOver:
            return _retry_later(request)
        finally:
            self.in_flight -= 1

    async def _jsonrpc(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = _whole_body(request) or await _read_body(request)
            is_small = len(body) <= limits.SMALL_JSON_BYTES
            payload = strict_json.decode(body) if is_small else await strict_json.decode_any(body)
            answer = await jsonrpc.answer(self._app, payload, _call_of(request.headers))
        except JsonError as error:
            return _json(jsonrpc.error_response(None, error.code, error.message))
        except Invalid as error:
            return _json(rest.error_body(error), rest.status_of(error))
        return _json_response(answer) if answer is not None else web.Response(status=204, headers={"Server": "nudge"})

    async def _answer_mcp(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            message = await strict_json.decode_any(await _read_body(request))
        except JsonError as error:
            return _json(jsonrpc.error_response(None, error.code, error.message))
        headers = request.headers
        try:
            call = replace(_call_of(headers, "mcp"), session=read_session(message))
        except Invalid as error:
            return _json(jsonrpc.refusal(jsonrpc.id_of(message), error))
        caller = McpCaller(call, headers.get("MCP-Protocol-Version"), headers.get("Nudge-Tools", "default"))
        answer = await self._mcp.answer(message, caller)
        return _json(answer) if answer is not None else web.Response(status=202, headers={"Server": "nudge"})

    async def _rest(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        operation, named = rest.match(path)["GET" if request.method == "HEAD" else request.method]
        try:
            call = _call_of(request.headers)
            if operation.name in _FOR_PERSONS and self._page.is_person(request.headers.get(_AUTHORIZATION, "")):
                call = replace(call, is_person=True)
            if operation.name in rest.LARGE_IMPORTS and (directory := self._app.directory) is not None:
                return _json(await self._import(request, operation, query, call, directory))
            body = await _read_body(request)
            params = rest.merge_params(operation, named, query, await strict_json.decode_any(body) if body else None)
            if operation.name in rest.LARGE_EXPORTS:
                return await self._export(request, operation, params, call)
            result = await self._app.execute(operation.name, params, call)
            return _json(result, rest.success_of(operation))
        except HandingOver:
            raise
        except NudgeError as error:
            return _json(rest.error_body(error), rest.status_of(error))

    async def _export(
        self, request: web.BaseRequest, operation: Operation, params: Mapping[str, Any], call: Call
    ) -> web.StreamResponse:
        """Answer with the result, or stream the file that it was written to. The file has no name while it is read."""
        directory = self._app.directory
        with transfer_files.reserved(directory) as name:
            result = await self._app.execute(operation.name, {**params, "file": name}, call)
            if directory is None or result.get("file") is None:
                return _json(result)
            file = transfer_files.open_written(directory, name)
        with file:
            return await _stream(request, file)

    async def _import(
        self, request: web.BaseRequest, operation: Operation, query: str, call: Call, directory: str
    ) -> Any:
        """Write the body to a file, and import that. A repeated request is known by its body."""
        digest = blake2b(f"{operation.name}?{query}\n".encode())
        with transfer_files.reserved(directory) as name:
            with transfer_files.created(directory, name) as file:
                async with _receiving(request, limits.MAX_IMPORT_BODY_BYTES):
                    async for piece in request.content.iter_any():
                        digest.update(piece)
                        await asyncio.to_thread(file.write, piece)
                        if file.tell() > limits.MAX_IMPORT_BODY_BYTES:
                            raise _TooLarge(limits.MAX_IMPORT_BODY_BYTES)
            params = rest.merge_params(operation, {}, query, {"file": name})
            return await self._app.execute(operation.name, params, replace(call, fingerprint=digest.hexdigest()))

    # The page

    async def _page_file(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._page.file(request)

    async def _sign_in(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return self._page.trade(strict_json.decode(await _read_body(request)))
        except JsonError as error:
            return _json({"error": error.message}, 400)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._page.stream(request, _call_of(request.headers))

    async def _database_health(self, _request: web.BaseRequest) -> web.StreamResponse:
        is_healthy = await statistics_ops.is_healthy(self._app)
        return _json({"status": "ok" if is_healthy else "error", "service": "nudge"}, 200 if is_healthy else 503)


# Checks of a request


def _check_browser(headers: CIMultiDictProxy[str]) -> None:
    """Refuse requests that a web page makes its browser send: a foreign Host means DNS rebinding, a foreign Origin
    another site's page."""
    if not _LOOPBACK.fullmatch(headers.get(_HOST, "")):
        raise _Refused(421, "this server answers to localhost only")
    for origin in headers.getall(_ORIGIN) if _ORIGIN in headers else ():
        scheme, separator, host = origin.partition("://")
        if not separator or scheme not in ("http", "https") or not _LOOPBACK.fullmatch(host):
            raise _Refused(403, "requests from other origins are refused")


def shows_token(authorization: str, token: str) -> bool:
    """Whether the Authorization header holds the token, compared in constant time. An empty token matches nothing."""
    scheme, _, shown = authorization.partition(" ")
    given = shown.strip().encode("utf-8", "surrogateescape")
    return scheme.lower() == "bearer" and bool(token) and hmac.compare_digest(given, token.encode())


def _is_open(method: str, path: str) -> bool:
    """Whether a request needs no token. The page's files are no secret: they say how to get in."""
    return path in _OPEN or path == SIGN_IN or (method in ("GET", "HEAD") and has_file(path))


def _check_content_type(request: web.BaseRequest) -> None:
    """Refuse a body that is not JSON. Without a body a request need not name a type."""
    headers = request.headers
    if not request.body_exists and not (request.method in ("POST", "PUT") and _CONTENT_TYPE in headers):
        return
    given = headers.get(_CONTENT_TYPE, "")
    kind = given if given == "application/json" else given.partition(";")[0].strip().lower()
    if kind != "application/json" or headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
        raise _Refused(415, "send application/json")


def _call_of(headers: Mapping[str, str], interface: Interface = "http") -> Call:
    get = headers.get
    request_id, deadline, session = get(_REQUEST_ID), get(_DEADLINE), get(_SESSION)
    if request_id is None and deadline is None and session is None:
        return _CALLS[interface]
    _check_text(request_id, limits.MAX_REQUEST_ID_CHARS, "Nudge-Request-Id")
    _check_text(session, limits.MAX_SESSION_ID_CHARS, "Nudge-Session")
    try:
        return Call(
            interface=interface,
            request_id=request_id or None,
            deadline=None if deadline is None else float(deadline),
            connection=session or None,
        )
    except ValueError:
        raise Invalid("must be a number", field="Nudge-Deadline") from None


def _check_text(text: str | None, most: int, header: str) -> None:
    if text is not None and len(text) > most:
        raise Invalid(f"must have at most {most} characters", field=header)
    if text is not None and not is_all_visible(text):  # bytes that are no UTF-8 among others
        raise Invalid("must be printable", field=header)


# Bodies and responses


def _whole_body(request: web.BaseRequest) -> bytes:
    """Return the body if all of it has arrived, else nothing. Takes a tenth of the time of `read`."""
    stream = request.content
    body = stream.read_nowait() if stream.is_eof() else b""
    if len(body) > limits.MAX_BODY_BYTES:
        raise _TooLarge(limits.MAX_BODY_BYTES)
    return body


async def _read_body(request: web.BaseRequest) -> bytes:
    if request.content.is_eof():
        return _whole_body(request)
    async with _receiving(request, limits.MAX_BODY_BYTES):
        return await request.read()


@asynccontextmanager
async def _receiving(request: web.BaseRequest, most: int) -> AsyncIterator[None]:
    """Read a body of at most `most` bytes within BODY_TIMEOUT; raise _Refused."""
    if (request.content_length or 0) > most:
        raise _TooLarge(most)
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT):
            yield
    except web.HTTPRequestEntityTooLarge:
        raise _TooLarge(most) from None
    except TimeoutError:
        raise _Refused(408, "the body did not arrive in time", Connection="close") from None
    except (web.RequestPayloadError, HttpProcessingError):
        raise _Refused(400, "not a body that this server understands", Connection="close") from None


async def _stream(request: web.BaseRequest, file: BinaryIO) -> web.StreamResponse:
    """Answer with a file. Of a slow reader nothing is kept but the file."""
    response = web.StreamResponse(headers={**_JSON, "Content-Length": str(os.fstat(file.fileno()).st_size)})
    await response.prepare(request)
    while request.method != "HEAD" and (piece := await asyncio.to_thread(file.read, limits.TRANSFER_PIECE)):
        await response.write(piece)
    await response.write_eof()
    return response


async def _health(_request: web.BaseRequest) -> web.StreamResponse:
    return _json({"status": "healthy", "name": "nudge", "version": __version__, "role": "PRIMARY"})


async def _gone(_request: web.BaseRequest) -> web.StreamResponse:
    """Answer clients that are configured for SSE, the transport of MCP's first revision."""
    return _json(rest.error_body(NotFound(_NO_SSE, use="/mcp")), 410)


async def _openapi(_request: web.BaseRequest) -> web.StreamResponse:
    return _json(rest.openapi())


def _json(content: Any, status: int = 200) -> web.StreamResponse:
    return _json_response(strict_json.encode(content), status)


def _json_response(content: bytes, status: int = 200) -> web.StreamResponse:
    return web.Response(body=content, status=status, headers=_JSON)


def _is_rest(request: web.BaseRequest) -> bool:
    return request.raw_path.startswith(rest.PREFIX)


def _refusal(request: web.BaseRequest, status: int, text: str, **headers: str) -> web.Response:
    """Return the response for a request that no operation answered, in the form that errors have on this path."""
    if not _is_rest(request):
        return text_response(status, text, **headers)
    body = strict_json.encode(rest.refusal_body(status, text))
    return web.Response(body=body, status=status, headers={**_JSON, **headers})


def _retry_later(request: web.BaseRequest) -> web.Response:
    return _refusal(request, 503, "not now; send it again", **{"Nudge-Retry": "1", "Retry-After": "1"})
