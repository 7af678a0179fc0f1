"""The client that the CLI, the hooks and scripts written in Python share: one call, sent again under the same id until
it is answered."""

from __future__ import annotations

import json
import os
import time

from nudge import limits, paths
from nudge.clock import boot_seconds
from nudge.context import told_env
from nudge.errors import Invalid, NudgeError, RemoteError, Unavailable, WrongPort
from nudge.ipc import endpoint, spawn
from nudge.ipc.connection import Lost, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.ipc.connection import Connection, Response
    from nudge.ipc.endpoint import Endpoint

_RETRY_PAUSE = 0.01
ENV_NEEDED = 428


class Client:
    """Talks to this machine's PRIMARY; finds it, and starts it where the call may."""

    __slots__ = ("_autostart", "_directory", "_env", "_port")

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        autostart: bool = True,
    ) -> None:
        """`environ` says where the server is; `env`, where that is another, what a scope is told that asks for a
        variable."""
        self._env = environ if env is None else env
        self._directory = paths.runtime_dir(environ)
        self._port = port
        self._autostart = autostart

    def call(
        self, method: str, params: Mapping[str, Any], *, start: bool = True, patience: float = limits.CALL_TIMEOUT
    ) -> Any:
        """The operation's result, or its error raised. A lost answer is asked for again under the same request id.

        `patience`: how long one PRIMARY may take; more only where the work is long by nature (a backup, a purge)."""
        body = _encoded(method, params)
        answer = json.loads(self._post(body, patience, start=start and self._autostart))
        if "error" in answer:
            raise RemoteError(answer["error"])
        return answer["result"]

    def endpoint(self) -> Endpoint | None:
        return endpoint.read(self._directory)

    def status(self) -> dict[str, Any] | None:
        """What PRIMARY says of itself, or None when none runs. Never starts one."""
        try:
            answer: dict[str, Any] = self.call("nudge.status", {}, start=False)
        except Unavailable as error:
            if "pid" in error.data or isinstance(error, WrongPort):
                raise
            return None
        return answer

    def _post(self, body: bytes, patience: float, *, start: bool) -> bytes:
        """One request, through as many PRIMARYs as it takes."""
        headers = {"Nudge-Request-Id": os.urandom(12).hex(), "Nudge-Env": "ask"}
        give_up = boot_seconds() + limits.START_TIMEOUT
        while True:
            response = self._try(body, headers, patience, start)
            if response is not None and response.status == ENV_NEEDED:
                headers["Nudge-Env"] = self._asked_env(response.body)
            elif response is not None:
                return _checked(response)
            elif boot_seconds() > give_up:
                raise Unavailable("the Nudge server keeps going away; try again, or look at: nudge status")
            else:
                time.sleep(_RETRY_PAUSE)

    def _try(self, body: bytes, headers: dict[str, str], patience: float, start: bool) -> Response | None:
        """The answer of the PRIMARY of the moment; None when it went away or is handing over."""
        link = self._connect(start)
        deadline = boot_seconds() + patience
        try:
            response = link.exchange("/", body, {**headers, "Nudge-Deadline": f"{deadline:.6f}"}, deadline)
        except Lost:
            return None
        except TimedOut:
            raise spawn.no_answer(link.endpoint) from None
        finally:
            link.close()
        return None if response.retryable else response

    def _connect(self, start: bool) -> Connection:
        if start:
            paths.ensure_private_dir(self._directory)
        elif os.path.lexists(self._directory):
            paths.check_private_dir(self._directory)  # even to look whether the lock is free would leave a file there
        link = spawn.ensure_primary(self._directory, start=start, port=self._port)
        if self._port not in (None, link.endpoint.port):
            link.close()
            raise WrongPort(
                f"port {self._port} is not where the running Nudge server listens ({link.endpoint.port}); leave out -p"
            )
        return link

    def _asked_env(self, body: bytes) -> str:
        """Only the names that a scope asks for ever leave this process."""
        return json.dumps(told_env(self._env, json.loads(body)["names"]))


def _encoded(method: str, params: Mapping[str, Any]) -> bytes:
    """A command line can hold any bytes; Python carries those that are no text as halves of a pair, which no server
    takes."""
    try:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Invalid("is not text in UTF-8", field=_where_it_breaks(params)) from None


def _where_it_breaks(node: Any, field: str = "") -> str | None:
    """The path to the first text that cannot be encoded, a name counting for what it names."""
    if isinstance(node, str):
        return field if any("\ud800" <= char <= "\udfff" for char in node) else None
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        inner = f"{field}[{name}]" if isinstance(node, list) else f"{field}.{name}".lstrip(".")
        if found := _where_it_breaks(part, inner) or _where_it_breaks(name, field):
            return found
    return None


def _checked(response: Response) -> bytes:
    if response.status in (200, 400, 404, 413) and response.body[:1] in (b"{", b"["):
        return response.body
    raise NudgeError(f"the server answered with HTTP {response.status}; see: nudge doctor")
