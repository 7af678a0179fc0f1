"""The client of the private wire that the CLI, hooks and PROXY share. Standard library only.

A call keeps its `once` key on every connection that it is sent on, so that a lost answer can be requested again.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import count

from nudge import limits, paths
from nudge.clock import boot_seconds
from nudge.context import requested_env
from nudge.errors import HandingOver, Invalid, NudgeError, RemoteError, Unavailable, WrongPort
from nudge.ipc import endpoint, protocol
from nudge.ipc.connection import Lost, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.ipc.connection import Connection
    from nudge.ipc.endpoint import Endpoint

_RETRY_PAUSE = 0.01
_ids = count(1)


class Request:
    """One call to a PRIMARY. `params` may be JSON text already; `caller` is the `caller` object of the envelope."""

    __slots__ = ("caller", "deadline", "id", "once", "op", "params")

    def __init__(
        self,
        op: str,
        params: Mapping[str, Any] | bytes,
        caller: dict[str, Any],
        *,
        once: str | None = None,
    ) -> None:
        self.op, self.caller, self.id = op, caller, next(_ids)
        self.params = params if isinstance(params, bytes) else _encode_params(params)
        self.once = once or os.urandom(12).hex()
        self.deadline = 0.0

    def encode(self, deadline: float) -> bytes:
        """Return the line to send; PRIMARY does not apply a write that it reads after `deadline` (boot clock)."""
        self.deadline = deadline
        return protocol.encode_call(
            self.id, self.op, self.params, self.once, {**self.caller, "deadline": round(deadline, 6)}
        )

    def add_env(self, environ: Mapping[str, str], names: list[str]) -> None:
        """Add the variables that `need_env` asks for: only the names in a scope are ever sent."""
        self.caller["env"] = {**self.caller.get("env", {}), **requested_env(environ, names)}


def exchange(link: Connection, request: Request, environ: Mapping[str, str], deadline: float) -> Any:
    """Send one call and return its result.

    Raises RemoteError for PRIMARY's error, HandingOver when the call must be sent to the next PRIMARY, Lost or
    TimedOut."""
    link.send(request.encode(deadline))
    while True:
        answer = link.receive(deadline)
        if "error" in answer and answer.get("id") in (request.id, None):
            raise RemoteError(answer["error"])
        if answer.get("id") != request.id:
            continue
        if "retry" in answer:
            raise HandingOver(f"the server asks to send it again: {answer['retry']}")
        if "need_env" in answer:
            request.add_env(environ, answer["need_env"])
            link.send(request.encode(deadline))
        elif "result" in answer:
            return answer["result"]
        else:
            raise Lost


class Client:
    """Calls operations of this machine's PRIMARY, and starts one if the call allows it."""

    __slots__ = ("_autostart", "_directory", "_env", "_environ", "_port")

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        autostart: bool = True,
    ) -> None:
        """`environ` says where the server is. `env` has the variables that scopes are compared with; by default the
        same."""
        self._environ, self._env = environ, environ if env is None else env
        self._directory = paths.runtime_dir(environ)
        self._port = port
        self._autostart = autostart

    def call(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        start: bool = True,
        timeout: float = limits.CALL_TIMEOUT,
    ) -> Any:
        """Return the operation's result or raise its error; a lost answer is requested again under the same key.

        `context` is the caller's, for operations whose parameters have a context of their own. `timeout` is in seconds
        for one PRIMARY; longer than the default only for long operations (backup, purge)."""
        caller = {"door": "cli", "client": "cli", "env": {}, **({"context": context} if context else {})}
        request = Request(op, params, caller)
        give_up = boot_seconds() + limits.START_TIMEOUT
        while True:
            link = self._connect(start and self._autostart)
            try:
                return exchange(link, request, self._env, boot_seconds() + timeout)
            except (Lost, HandingOver):
                pass
            except TimedOut:
                from nudge.ipc import spawn

                if timeout > limits.CALL_TIMEOUT or not spawn.is_settling(self._directory, link.endpoint):
                    raise spawn.no_answer(link.endpoint) from None
            finally:
                link.close()
            if boot_seconds() > give_up:
                raise Unavailable("the Nudge server keeps going away; try again, or look at: nudge status")
            time.sleep(_RETRY_PAUSE)

    def endpoint(self) -> Endpoint | None:
        return endpoint.read(self._directory)

    def status(self) -> dict[str, Any] | None:
        """Return what PRIMARY reports about itself, or None when none runs. Never starts one."""
        try:
            report: dict[str, Any] = self.call("nudge.status", {}, start=False)
        except Unavailable as error:
            if "pid" in error.data or isinstance(error, WrongPort):
                raise
            return None
        return report

    def _connect(self, start: bool) -> Connection:
        from nudge.ipc import spawn  # late: a hook does not start servers this way

        is_first = not os.path.lexists(os.path.join(self._directory, paths.SETTINGS))
        if start:
            paths.ensure_private_dir(self._directory)
        elif os.path.lexists(self._directory):
            paths.check_private_dir(self._directory)  # probing the lock would create a file there
        on_started = self._report_settings if is_first else lambda _: None
        link = spawn.ensure_primary(
            self._directory, start=start, port=self._port, wait_for_upgrade=True, on_started=on_started
        )
        link.greet("cli")
        if self._port is not None and self._port != (port := link.endpoint.port):
            link.close()
            raise WrongPort(f"port {self._port} is not where the running Nudge server listens ({port}); leave out -p")
        return link

    def _report_settings(self, started: Endpoint) -> None:
        """Print to stderr which settings of this command's environment the server that it started does not use."""
        from nudge import config

        try:
            differences = config.differences(self._environ, port=started.port)
        except NudgeError:  # a value that does not parse: the command that uses it reports it
            return
        if differences:
            sys.stderr.write(
                f"nudge: started a server, which takes no settings from a command's environment. Not taken: "
                f"{', '.join(differences)}. To apply them: nudge stop, then nudge serve --daemon\n"
            )


def _encode_params(params: Mapping[str, Any]) -> bytes:
    """Encode parameters. Raises Invalid for text that is not UTF-8: a command line can hold any bytes, and Python keeps
    them as lone surrogates."""
    try:
        return protocol.encode_value(params)
    except UnicodeEncodeError:
        raise Invalid("is not text in UTF-8", field=_invalid_field(params)) from None


def _invalid_field(node: Any, field: str = "") -> str | None:
    """Return the path to the first text that cannot be encoded; for a key, the path of its object."""
    if isinstance(node, str):
        return field if any("\ud800" <= char <= "\udfff" for char in node) else None
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        inner = f"{field}[{name}]" if isinstance(node, list) else f"{field}.{name}".lstrip(".")
        if invalid := _invalid_field(part, inner) or _invalid_field(name, field):
            return invalid
    return None
