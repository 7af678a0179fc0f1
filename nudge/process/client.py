"""The client of the private wire that the CLI, hooks and PROXY share. Standard library only.

A call keeps its request id on every connection that it is sent on, so that a lost answer can be requested again. A hook
makes one attempt (`exchange`); the CLI (`Client`) and PROXY retry (`CallQueue`).
"""

from __future__ import annotations

import os
import time
from itertools import count, islice

from nudge.core import limits, paths
from nudge.core.clock import boot_seconds
from nudge.core.context import requested_env
from nudge.core.errors import HandingOver, Invalid, NudgeError, RemoteError, Unavailable, WrongPort
from nudge.process import endpoint
from nudge.process import wire as protocol
from nudge.process.connection import ConnectionLost, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from nudge.process.connection import Connection
    from nudge.process.endpoint import Endpoint

_RETRY_PAUSE = 0.01  # seconds between the loss of a connection and the next one
_ids = count(1)


class Request:
    """One call to a PRIMARY. `params` may be JSON text already; `caller` is the `caller` object of the envelope;
    `timeout` is in seconds for one PRIMARY, by default that of the operation. `result` or `error` is set once the call
    is answered or has failed; with a result comes its `text` when the caller asked for it and the operation has one."""

    __slots__ = (
        "caller",
        "deadline",
        "error",
        "give_up",
        "id",
        "is_sent",
        "op",
        "params",
        "request_id",
        "result",
        "text",
        "timeout",
    )

    def __init__(
        self,
        op: str,
        params: Mapping[str, Any] | bytes,
        caller: dict[str, Any],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.op, self.caller, self.id = op, caller, next(_ids)
        self.timeout = protocol.timeout_of(op) if timeout is None else timeout
        self.params = params if isinstance(params, bytes) else _encode_params(params)
        self.request_id = request_id or os.urandom(12).hex()
        self.deadline = self.give_up = 0.0
        self.is_sent = False
        self.result: Any = None
        self.text: str | None = None
        self.error: NudgeError | None = None

    def encode(self) -> bytes:
        """Return the line to send. PRIMARY does not apply a write that it reads after its deadline (boot clock)."""
        self.deadline = boot_seconds() + self.timeout
        return self.encode_again()

    def encode_again(self) -> bytes:
        """Return the line with the deadline that it had."""
        caller = {**self.caller, "deadline": round(self.deadline, 6)}
        return protocol.encode_call(self.id, self.op, self.params, self.request_id, caller)

    def read_answer(self, answer: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Take the result or the error from PRIMARY's answer, and return True; return False if the answer asks for
        variables (`need_env`): they are added, and the call is to be sent again. Only the names in a scope are ever
        sent.

        Raises HandingOver when the call must be sent to the next PRIMARY, ConnectionLost for an answer of another
        shape."""
        if "error" in answer:
            self.error = RemoteError(answer["error"])
        elif "retry" in answer:
            raise HandingOver(f"the server asks to send it again: {answer['retry']}")
        elif "need_env" in answer:
            self.caller["env"] = {**self.caller.get("env", {}), **requested_env(environ, answer["need_env"])}
            return False
        elif "result" in answer:
            self.result, self.text = answer["result"], answer.get("text")
        else:
            raise ConnectionLost
        return True

    def outcome(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


def exchange(connection: Connection, request: Request, environ: Mapping[str, str]) -> Any:
    """Send one call on one connection, without a retry, and return its result.

    Raises RemoteError for PRIMARY's error, HandingOver when the call must be sent to the next PRIMARY,
    ConnectionLost or TimedOut."""
    connection.send(request.encode())
    while True:
        answer = connection.receive(request.deadline)
        call_id = answer.get("id")
        if call_id is None or call_id == request.id:  # null: PRIMARY refuses the connection as a whole
            if request.read_answer(answer, environ):
                return request.outcome()
            connection.send(request.encode_again())


class CallQueue:
    """The unanswered calls of one process, and the retries of all of them.

    Calls are sent in order, without waiting for answers, which are matched by id. When the connection is lost or
    PRIMARY hands its role over, unanswered calls are sent to the next PRIMARY, in the original order and with the same
    request ids. A call ends with an answer, when PRIMARY does not answer in time or is suspended, when there is no
    PRIMARY, or when connections are still lost START_TIMEOUT after the first loss."""

    __slots__ = (
        "_calls",
        "_check_at",
        "_connect",
        "_directory",
        "_environ",
        "_finished",
        "connection",
        "env_names",
        "lost_at",
    )

    def __init__(self, directory: str, environ: Mapping[str, str], connect: Callable[[], Connection | None]) -> None:
        """`connect` returns a connection with its hello queued, or None to stay without one for now; its NudgeError
        fails all calls. `environ` has the variables that scopes are compared with."""
        self._directory, self._environ, self._connect = directory, environ, connect
        self._calls: dict[int, Request] = {}
        self._finished: list[Request] = []
        self._check_at = 0.0  # when to look whether PRIMARY is suspended, on the boot clock
        self.connection: Connection | None = None
        self.lost_at = 0.0
        """When the last connection was lost, on the boot clock."""
        self.env_names: set[str] = set()
        """The variables that scopes have asked for: sent unasked, they save a round trip."""

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._calls.values())

    def add(self, request: Request) -> None:
        self._calls[request.id] = request

    def clear(self) -> None:
        """Drop all calls: nobody waits for their results."""
        self._calls.clear()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def call(self, request: Request) -> Any:
        """Send one call, wait for it, and return its result or raise its error."""
        self.add(request)
        while not self.advance():
            self.receive()
        return request.outcome()

    def timeout(self) -> float | None:
        """Return the seconds after which `advance` is due although nothing has arrived; None while no call waits."""
        if not self._calls:
            return None
        return max((self._resume_at() if self.connection is None else self._first_deadline()) - boot_seconds(), 0.0)

    def receive(self) -> None:
        """Read what has arrived; wait for it, or for the time of the next attempt, when nothing has."""
        if self.connection is None:
            time.sleep(max(self._resume_at() - boot_seconds(), 0.0))
            return
        try:
            self.connection.fill(self._first_deadline())
        except TimedOut:
            pass  # `advance` looks at the deadlines
        except ConnectionLost:
            self._drop_connection()

    def advance(self) -> list[Request]:
        """Connect if there is no connection, send what can be sent, and handle what has arrived; never wait for an
        answer. Return the calls that are finished."""
        try:
            if self.connection is None and boot_seconds() >= self._resume_at():
                self.connection = self._connect()
            if self.connection is not None:
                self._handle_answers(self.connection)
        except (ConnectionLost, HandingOver):
            self._drop_connection()
        except TimedOut:  # PRIMARY does not read
            assert self.connection is not None
            from nudge.process import spawn

            self._fail(list(self), spawn.no_answer(self.connection.endpoint))
            self._drop_connection()
        except NudgeError as error:  # no PRIMARY, or it refuses this process
            self._fail(list(self), error)
            self._drop_connection()
        finished, self._finished = self._finished, []
        return finished

    def _handle_answers(self, connection: Connection) -> None:
        """Send calls and handle the answers in the buffer; each answer makes room for another call."""
        self._send_unsent(connection)
        while (answer := connection.take()) is not None:
            self._handle(connection, answer)
            self._send_unsent(connection)
        self._expire(connection)

    def _send_unsent(self, connection: Connection) -> None:
        """Send a queued hello and calls, at most MAX_CALLS_IN_FLIGHT without an answer: a call's timeout starts when it
        is sent."""
        for call in islice(self, limits.MAX_CALLS_IN_FLIGHT):
            if not call.is_sent:
                connection.send(call.encode())
                call.is_sent = True
                self._check_at = boot_seconds() + limits.CALL_TIMEOUT
        connection.send()

    def _handle(self, connection: Connection, answer: Mapping[str, Any]) -> None:
        call_id = answer.get("id")
        if call_id is None:  # PRIMARY refuses the connection as a whole, and closes it
            raise RemoteError(answer.get("error") or {})
        call = self._calls.get(call_id)
        if call is None:
            return
        if call.read_answer(answer, self._environ):
            self._finish(call)
        else:
            self._remember_env(answer["need_env"])
            connection.send(call.encode_again())

    def _remember_env(self, names: list[str]) -> None:
        """Beyond MAX_ENV_NAMES the older names are dropped."""
        names_now = self.env_names | set(names)
        self.env_names = names_now if len(names_now) <= limits.MAX_ENV_NAMES else set(names)

    def _drop_connection(self) -> None:
        """Close the connection, if there is one; calls wait to be sent on the next one."""
        if self.connection is None:
            return
        self.close()
        self.lost_at = boot_seconds()
        for call in list(self):
            call.is_sent = False
            call.give_up = call.give_up or self.lost_at + limits.START_TIMEOUT
            if call.give_up < self.lost_at:
                call.error = Unavailable("the Nudge server keeps going away; try again, or look at: nudge status")
                self._finish(call)

    def _expire(self, connection: Connection) -> None:
        """Fail the calls when PRIMARY did not answer one in time or is suspended; each carries its deadline, after
        which it is not applied. During a long operation only those that are late fail: PRIMARY is at work. Raises
        ConnectionLost to drop the connection; the calls to a PRIMARY that has just started are then sent again, with
        more time."""
        now = boot_seconds()
        sent = list(self._sent())
        expired = [call for call in sent if call.deadline <= now]
        if not sent or (not expired and now < self._check_at):
            return
        from nudge.process import server_process, spawn

        self._check_at = now + limits.CALL_TIMEOUT
        is_suspended = server_process.is_suspended(connection.endpoint.pid)
        if not expired and not is_suspended:
            return
        error = spawn.no_answer(connection.endpoint)
        has_long = any(call.op in protocol.LONG_OPERATIONS for call in sent)
        if is_suspended and has_long:
            # Its deadline is far away, and the suspended process may have read it already.
            sentence = f"{error.message}. It may still be done when the server continues"
            error = Unavailable(sentence, pid=connection.endpoint.pid)
        elif has_long:
            self._fail(expired, error)
            return
        if is_suspended or not spawn.has_just_started(self._directory, connection.endpoint):
            self._fail(list(self), error)
        raise ConnectionLost

    def _sent(self) -> Iterator[Request]:
        return (call for call in islice(self, limits.MAX_CALLS_IN_FLIGHT) if call.is_sent)

    def _fail(self, calls: list[Request], error: NudgeError) -> None:
        for call in calls:
            call.error = error
            self._finish(call)

    def _finish(self, call: Request) -> None:
        del self._calls[call.id]
        self._finished.append(call)

    def _resume_at(self) -> float:
        return self.lost_at + _RETRY_PAUSE

    def _first_deadline(self) -> float:
        deadlines = [call.deadline for call in self._sent()]
        return min(*deadlines, self._check_at) if deadlines else boot_seconds() + limits.CALL_TIMEOUT


class Client:
    """Calls operations of this machine's PRIMARY, and starts one if the call allows it."""

    __slots__ = ("_autostart", "_context", "_directory", "_env", "_environ", "_port")

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        autostart: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """`environ` says where the server is. `env` has the variables that scopes are compared with; by default the
        same. `context` is the caller's in calls that name none."""
        self._environ, self._env = environ, environ if env is None else env
        self._directory = paths.runtime_dir(environ)
        self._port = port
        self._autostart, self._context = autostart, context

    def call(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        start: bool = True,
        timeout: float | None = None,
    ) -> Any:
        """Return the operation's result or raise its error; a lost answer is requested again under the same key.

        `context` is the caller's, for operations whose parameters have a context of their own. `timeout` is in seconds
        for one PRIMARY, by default the operation's."""
        from nudge.core.visibility import VARIABLES  # late: it loads the settings, which a hook reads in another way

        env = requested_env(self._env, VARIABLES & self._env.keys())
        context = context or self._context
        caller = {"door": "cli", "client": "cli", "env": env, **({"context": context} if context else {})}
        request = Request(op, params, caller, timeout=timeout)
        calls = CallQueue(self._directory, self._env, lambda: self._connect(start and self._autostart))
        try:
            return calls.call(request)
        finally:
            calls.close()

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
        from nudge.process import spawn
        from nudge.settings import config  # late, both: a hook does not start servers this way

        if not start and os.path.lexists(self._directory):
            paths.check_private_dir(self._directory)  # probing the lock would create a file there
        started: list[Endpoint] = []
        connection = spawn.ensure_primary(
            self._directory,
            start=start,
            port=self._port,
            for_new=config.for_new_session(self._environ, of_command=True) if start else None,
            wait_for_upgrade=True,
            on_started=started.append,
        )
        if started:
            self._report_settings(started[0], "started a server, which goes by the settings of its session")
        elif start and "NUDGE_DB" in self._environ:  # what is stored goes elsewhere than the caller says
            self._report_settings(connection.endpoint, "the running server has another database", only="NUDGE_DB=")
        connection.queue_hello("cli")
        if self._port is not None and self._port != (port := connection.endpoint.port):
            connection.close()
            raise WrongPort(f"port {self._port} is not where the running Nudge server listens ({port}); leave out -p")
        return connection

    def _report_settings(self, server: Endpoint, what: str, *, only: str = "") -> None:
        """Print to stderr which settings of this command's environment the server does not use."""
        from nudge.core import streams
        from nudge.settings import config

        try:
            differences = [
                line for line in config.differences(self._environ, port=server.port) if line.startswith(only)
            ]
        except NudgeError:  # a value that does not parse: the command that uses it reports it
            return
        if differences:
            them = "it" if only else "them"
            streams.note(
                f"nudge: {what}. Not taken: {', '.join(differences)}. To apply {them}: nudge stop, then nudge serve "
                "--daemon"
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
