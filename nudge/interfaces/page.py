"""The page over HTTP: its files, the exchange of its one-time code, and the stream of what happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from aiohttp import web

from nudge.core import limits, strict_json
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import NudgeError
from nudge.interfaces.http_connections import connection_of
from nudge.interfaces.operations import OPERATIONS
from nudge.page import files
from nudge.page.sign_in import SignIn

SIGN_IN = "/page/sign-in"
STREAM = "/api/v1/stream"
_LATE = "this code was used, or is older than a minute; run nudge open again"
_CHANGED = {"hints": "hints", "memories": "notes", "journal": "notes", "history": "told"}
"""What an operation of a group changes; the stream says so, and the page asks again."""
_BEAT = b"\n"


def has_file(path: str) -> bool:
    return path == files.ROOT or path.startswith(files.PREFIX)


class Page:
    """What the HTTP server answers a browser with."""

    def __init__(self, app: App, port: int) -> None:
        self._app, self._port = app, port
        self._sign_in: SignIn | None = None

    def accepts(self, authorization: str) -> bool:
        """Whether the header has the secret of a tab that is signed in."""
        sign_in = self._signing_in()
        return sign_in is not None and sign_in.accepts(authorization, self._app.now())

    def is_person(self, authorization: str) -> bool:
        """Whether the header has the secret of a tab that a person opened from a terminal."""
        sign_in = self._signing_in()
        return sign_in is not None and sign_in.is_person(authorization, self._app.now())

    def _signing_in(self) -> SignIn | None:
        if self._sign_in is None and self._app.directory is not None:
            self._sign_in = SignIn(self._app.directory, self._port)
        return self._sign_in

    async def file(self, request: web.BaseRequest) -> web.StreamResponse:
        found = (await asyncio.to_thread(files.load)).get(request.raw_path.partition("?")[0])
        if found is None:
            return web.Response(status=404, text="no such path\n", headers=files.HEADERS)
        headers = {**files.HEADERS, "Content-Type": found.content_type, "ETag": found.tag}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=found.content, headers=headers)

    def trade(self, body: Any) -> web.StreamResponse:
        """Answer with a secret for a code, or with 403."""
        sign_in, code = self._signing_in(), body.get("code") if isinstance(body, dict) else None
        secret = sign_in.trade(code, self._app.now()) if sign_in is not None and isinstance(code, str) else None
        content = {"secret": secret} if secret else {"error": _LATE}
        headers = {**files.HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
        return web.Response(body=strict_json.encode(content), status=200 if secret else 403, headers=headers)

    # The stream

    async def stream(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        """Write a line of JSON for what was recorded and told after the numbers in the query, and go on until the
        reader leaves. One that does not read is dropped: it comes back and asks from where it was."""
        reader = _Reader(self._app, request)
        seen = {name: _number(request, name) for name in ("observation", "told")}
        response = web.StreamResponse(headers={**files.HEADERS, "Content-Type": "application/x-ndjson"})
        self._app.on_write.add(reader.notice)
        try:
            await response.prepare(request)
            await self._write_all(response, reader, seen, call)
        except (TimeoutError, ConnectionError):
            reader.connection.abort()
        finally:
            self._app.on_write.discard(reader.notice)
            reader.connection.on_end = None
        return response

    async def _write_all(
        self, response: web.StreamResponse, reader: _Reader, seen: dict[str, int | None], call: Call
    ) -> None:
        while not reader.is_gone:
            limit = limits.STREAM_ROWS if seen["observation"] is not None else 0
            params = {f"after_{name}": number for name, number in seen.items() if number is not None}
            lines: list[dict[str, Any]] = []
            with suppress(NudgeError):  # the history cannot be read now; hints may change nevertheless
                found = await self._app.execute("nudge.changes", {**params, "limit": limit}, call)
                if found["at"] != seen:
                    lines.append(found)
                    seen = found["at"]
            if changed := reader.take_changed():
                lines.append({"changed": changed})
            if lines or reader.is_beat_due():
                data = b"".join(strict_json.encode(line) + b"\n" for line in lines) or _BEAT
                await asyncio.wait_for(response.write(data), limits.STREAM_WRITE)
            await reader.wait()


class _Reader:
    """One page that reads the stream: whether there is something to look for, and whether it is still there."""

    def __init__(self, app: App, request: web.BaseRequest) -> None:
        self.connection = connection_of(request)
        self.connection.on_end = self._leave
        self.is_gone = False
        self._app = app
        self._changed: set[str] = set()
        self._log_size = self._size()
        self._woken = asyncio.Event()
        self._wrote_at = asyncio.get_running_loop().time()

    def notice(self, operation: str) -> None:
        """An operation may have changed something."""
        if (what := _CHANGED.get(OPERATIONS[operation].group)) is not None:
            self._changed.add(what)
        self._woken.set()

    def take_changed(self) -> list[str]:
        """What changed since it was asked. Hints also change without an operation of theirs: a command that worked
        credits them."""
        if (size := self._size()) != self._log_size:
            self._changed.add("hints")
            self._log_size = size
        changed, self._changed = sorted(self._changed), set()
        return changed

    def is_beat_due(self) -> bool:
        now = asyncio.get_running_loop().time()
        is_due = now - self._wrote_at >= limits.STREAM_BEAT
        self._wrote_at = now if is_due else self._wrote_at
        return is_due

    async def wait(self) -> None:
        await asyncio.sleep(limits.STREAM_PAUSE)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), limits.STREAM_POLL)
        self._woken.clear()

    def _leave(self) -> None:
        self.is_gone = True
        self._woken.set()

    def _size(self) -> int:
        log = self._app.lifetime.log
        return 0 if log is None else log.size


def _number(request: web.BaseRequest, name: str) -> int | None:
    given = request.query.get(name, "")
    return int(given) if given.isdecimal() and len(given) <= limits.MAX_ROW_DIGITS else None
