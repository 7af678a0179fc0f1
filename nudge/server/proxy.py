"""PROXY: the stdio end of a client whose PRIMARY lives in another process. Standard library only, for its whole life.

One connection, kept open: it is the membership. Requests are sent ahead of their answers, so many are in flight and
none overtakes
another. When PRIMARY goes away, everything unanswered is sent to the next one under the same request ids.
"""

from __future__ import annotations

import json
import os
from collections import deque
from itertools import islice

from nudge import __version__, context, limits, paths
from nudge.clock import boot_seconds
from nudge.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, WIRE_REASONS, NudgeError
from nudge.ipc import spawn
from nudge.ipc.connection import Connection, Lost, TimedOut
from nudge.ipc.lock import Flock
from nudge.server.stdio import Pipe, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.config import Settings
    from nudge.ipc.connection import Response

ENV_NEEDED = 428
_CLIENT_INFO_META = "io.modelcontextprotocol/clientInfo"
_RETRY_PAUSE = 0.01
_MOST_IN_FLIGHT = 32
_PASSIVE_REJOIN = 3.0  # seconds to look for a successor while nothing is waiting to be answered


class Pending:
    """Something sent to PRIMARY that has not been answered yet: a message of the client's, or our own word that we are
    here."""

    __slots__ = ("deadline", "line", "message", "path", "request_id", "sent")

    def __init__(self, line: bytes, message: dict[str, Any], path: str = "/mcp") -> None:
        self.line, self.message, self.path = line, message, path
        self.request_id = os.urandom(12).hex()
        self.deadline = 0.0
        self.sent = False

    @property
    def wants_answer(self) -> bool:
        return "id" in self.message and "method" in self.message


class Proxy:
    """Carries lines between one client and whoever is PRIMARY."""

    def __init__(self, pipe: Pipe, settings: Settings, directory: str, environ: Mapping[str, str] = os.environ) -> None:
        self._pipe, self._settings, self._directory, self._environ = pipe, settings, directory, environ
        self._link: Connection | None = None
        self._pending: deque[Pending] = deque()
        self._membership = Flock(os.path.join(directory, paths.MEMBERS))
        self._protocol = ""
        self._client = ""
        self._env_names: set[str] = set()
        self._rejoin_until = 0.0

    def run(self, link: Connection | None = None) -> int:
        """Serve until the client closes its end; then finish what is still under way."""
        self._link = link
        self._join()
        self._take_lines()
        self._advance()
        while not self._pipe.closed or self._pending:
            self._turn()
        if self._link is not None:
            self._link.close()
        self._membership.release()
        return 0

    def _turn(self) -> None:
        """Wait for one thing to happen and handle it."""
        sources: list[object] = [] if self._pipe.closed else [self._pipe]
        if self._link is not None:
            sources.append(self._link)
        ready = wait_readable(*sources, timeout=self._patience())
        if self._link is not None and self._link in ready:
            self._receive()
        if self._pipe in ready:
            self._pipe.fill()
            self._take_lines()
        self._advance()
        self._expire()
        if self._link is None:
            self._reconnect()

    def _patience(self) -> float | None:
        """While something waits for its answer there is always a next look: a fresh connection can be lost before it
        carried a word."""
        if self._pending:
            return _RETRY_PAUSE if self._link is None else max(self._pending[0].deadline - boot_seconds(), 0.0)
        return 0.1 if self._link is None and boot_seconds() < self._rejoin_until else None

    # From the client

    def _take_lines(self) -> None:
        for line in self._pipe.lines():
            message = _read(line)
            if isinstance(message, bytes):
                self._answer(message)
            else:
                self._learn(message)
                self._pending.append(Pending(line or b"", message))

    def _learn(self, message: dict[str, Any]) -> None:
        """The client says who it is at the handshake, or in every request; PRIMARY keeps nothing, so we tell it each
        time."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        info = params.get("clientInfo") or (meta.get(_CLIENT_INFO_META) if isinstance(meta, dict) else None)
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self._client = info["name"]

    # To PRIMARY

    def _join(self) -> None:
        """Announce ourselves on a fresh connection. The shared lock tells a later PRIMARY that the session still has a
        process."""
        if self._link is None:
            return
        if self._membership.fd is None:
            self._membership.acquire(shared=True, wait=True)
        self._pending.appendleft(Pending(b"{}", {}, "/member"))
        self._send_unsent()

    def _identity(self) -> dict[str, str]:
        """A header is ASCII; a name that is not comes once more, as JSON."""
        name = (self._client or self._environ.get("AI_AGENT") or "mcp")[: limits.MAX_CLIENT_CHARS]
        plain = _header(name)
        identity = {"Nudge-Client": plain, "Nudge-Pid": str(os.getpid()), "Nudge-Version": __version__}
        return identity if plain == name else {**identity, "Nudge-Client-Name": json.dumps(name)}

    def _advance(self) -> None:
        """Send what may be sent; every answer that came meanwhile makes room for more."""
        self._send_unsent()
        while (response := self._taken()) is not None:
            self._handle(response.status, response.retryable, response.body)
            self._send_unsent()

    def _taken(self) -> Response | None:
        try:
            return None if self._link is None else self._link.take()
        except Lost:
            self._drop_link()
            return None

    def _send_unsent(self) -> None:
        """Only so many ahead of their answers: the time that a call has begins when it is sent."""
        for pending in list(islice(self._pending, _MOST_IN_FLIGHT)):
            if self._link is None:
                return
            if not pending.sent:
                self._send(self._link, pending)

    def _send(self, link: Connection, pending: Pending) -> None:
        pending.deadline = boot_seconds() + limits.CALL_TIMEOUT
        try:
            link.send(pending.path, pending.line, self._facts(pending))
            pending.sent = True
        except (Lost, TimedOut):
            self._drop_link()

    def _facts(self, pending: Pending) -> dict[str, str]:
        """What PRIMARY cannot know by itself: who asks, from where, and until when the answer is of use."""
        if pending.path != "/mcp":
            return self._identity()
        headers = {
            **self._identity(),
            "Nudge-Request-Id": pending.request_id,
            "Nudge-Deadline": f"{pending.deadline:.6f}",
            "Nudge-Tools": _header(self._settings.tools),
            "Nudge-Env": self._env(),
        }
        if self._protocol:
            headers["MCP-Protocol-Version"] = self._protocol
        if pending.message.get("method") == "tools/call":
            headers["Nudge-Context"] = json.dumps(caller_context(pending.message, self._environ))
        return headers

    # From PRIMARY

    def _receive(self) -> None:
        assert self._link is not None
        try:
            self._link.fill(boot_seconds() + limits.CALL_TIMEOUT)
        except (Lost, TimedOut):
            self._drop_link()
            self._rejoin_until = boot_seconds() + _PASSIVE_REJOIN

    def _handle(self, status: int, retryable: bool, body: bytes) -> None:
        assert self._link is not None
        if not self._pending or retryable:  # an answer to nobody, or a PRIMARY that is leaving: go to the next one
            self._drop_link()
            return
        pending = self._pending[0]
        if status == ENV_NEEDED and self._learn_env(json.loads(body)["names"]):
            self._send_again(self._link, self._pending.popleft())
            return
        self._pending.popleft()
        if status == 200:  # PRIMARY knows what wants an answer; here it is only passed on
            self._remember_protocol(pending, body)
            self._answer(body)
        elif pending.wants_answer:
            self._answer(_failure(pending, NudgeError(f"the server answered with HTTP {status}")))

    def _send_again(self, link: Connection, pending: Pending) -> None:
        """Behind those that were sent, since answers come in that order, and before those that were not."""
        self._pending.insert(sum(other.sent for other in islice(self._pending, _MOST_IN_FLIGHT)), pending)
        self._send(link, pending)

    def _learn_env(self, names: list[str]) -> bool:
        """Note what a scope asks for; False when PRIMARY asks again for what it was told."""
        fresh = set(names) - self._env_names
        known = self._env_names | fresh
        self._env_names = (
            known if len(known) <= limits.MAX_ENV_NAMES else set(names)
        )  # hints come and go, and a header is only so long
        return bool(fresh)

    def _env(self) -> str:
        """Only the names that some scope has asked for leave this process."""
        told = context.told_env(self._environ, sorted(self._env_names))
        return json.dumps(told) if told else "ask"

    def _remember_protocol(self, pending: Pending, body: bytes) -> None:
        if pending.message.get("method") != "initialize":
            return
        version = json.loads(body).get("result", {}).get("protocolVersion")
        if isinstance(version, str):
            self._protocol = version

    # When PRIMARY is gone

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._pending = deque(pending for pending in self._pending if pending.wants_answer or pending.path == "/mcp")
        for pending in self._pending:
            pending.sent = False

    def _reconnect(self) -> None:
        """With something to answer, find or start a PRIMARY; idle, only look whether a successor is there (`nudge stop`
        must hold)."""
        try:
            if self._pending:
                self._link = spawn.ensure_primary(self._directory, start=self._settings.autostart)
            elif boot_seconds() < self._rejoin_until:
                self._link = spawn.ensure_primary(self._directory, start=False, timeout=0.0)
        except NudgeError as error:
            self._fail_all(error)
            return
        self._join()

    def _expire(self) -> None:
        """What PRIMARY did not answer in time is answered here, and will not be applied there: the deadline travelled
        with it."""
        if (
            self._link is None
            or not self._pending
            or self._pending[0].deadline > boot_seconds()
            or not self._pending[0].sent
        ):
            return
        error = spawn.no_answer(self._link.endpoint)
        self._drop_link()
        self._fail_all(error)

    def _fail_all(self, error: NudgeError) -> None:
        while self._pending:
            pending = self._pending.popleft()
            if pending.wants_answer:
                self._answer(_failure(pending, error))

    def _answer(self, message: bytes) -> None:
        if not self._pipe.write(message):
            self._pipe.closed = True
            self._pending.clear()


def caller_context(message: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Where the caller of this one message stands; read anew each time, since branches change under a living
    process."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    arguments = params.get("arguments")
    explicit = arguments.get("context") if isinstance(arguments, dict) else None
    cwd = explicit.get("cwd") if isinstance(explicit, dict) else None
    meta = params.get("_meta")
    where = context.caller_cwd(environ, cwd if isinstance(cwd, str) else None, meta if isinstance(meta, dict) else None)
    return context.resolve(where).to_wire()


def _header(text: str) -> str:
    """A stranger's text as an HTTP header can carry it."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def _read(line: bytes | None) -> dict[str, Any] | bytes:
    """The message, or the answer to what is none: with PRIMARY's codes, though not by its parser, which would not be
    thin."""
    try:
        message = json.loads(line or b"")
    except (json.JSONDecodeError, UnicodeDecodeError):
        return _wire_error(None, PARSE_ERROR, "Parse error: a line is one JSON text of at most 1 MiB")
    except (ValueError, RecursionError):
        return _wire_error(None, INVALID_REQUEST, "Invalid request: nested too deep, or an integer has too many digits")
    return (
        message
        if isinstance(message, dict)
        else _wire_error(None, INVALID_REQUEST, "Invalid request: one JSON-RPC object a line")
    )


def _wire_error(message_id: Any, code: int, sentence: str) -> bytes:
    error = {"code": code, "message": sentence, "data": {"reason": WIRE_REASONS[code]}}
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": error}).encode()


def _failure(pending: Pending, error: NudgeError) -> bytes:
    """A failed tool is a result that says so; anything else is a JSON-RPC error."""
    wire = error.to_wire()
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": pending.message.get("id")}
    if pending.message.get("method") == "tools/call":
        told = {"code": error.code, "reason": error.reason, "message": error.message, **error.data}
        answer["result"] = {
            "content": [{"type": "text", "text": error.message}],
            "structuredContent": {"error": told},
            "isError": True,
            "resultType": "complete",
        }
    else:
        answer["error"] = {**wire, "code": wire["code"] if error.code > 0 else INTERNAL_ERROR}
    return json.dumps(answer).encode()
