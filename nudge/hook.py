"""`nudge record`: one JSON object on stdin, for every event and client. Told to PRIMARY, or kept in the spool; silent
when it worked.

Exit code 0: stored, spooled, or nothing to store. 1: an error that the client shows and goes on. 2, where only a person
reads it: the
database is not usable.
"""

from __future__ import annotations

import json
import os
import sys
import time

from nudge import limits, paths
from nudge import switches as switch
from nudge.clock import boot_seconds
from nudge.context import resolve, told_env
from nudge.errors import Invalid, NudgeError, RemoteError, StorageFailed, Unavailable
from nudge.history.extract import extract, is_complete, located, up_to_unclosed, working_directory
from nudge.ipc import endpoint
from nudge.ipc.connection import Connection, Lost
from nudge.storage import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO, NoReturn

    from nudge.context import Context

DONE, FAILED, BROKEN = 0, 1, 2

_ENV_NEEDED = 428
# Where Claude Code shows the text of exit code 2 to the user and does nothing else; elsewhere it blocks, or goes to the
# model.
_ONLY_SHOWN = ("SessionStart", "SessionEnd")


def run() -> NoReturn:
    """The whole process. It ends without the interpreter's own tear-down, which would be a tenth of its time."""
    code = main(None if sys.stdin is None else sys.stdin.buffer, os.environ)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the client has gone, or never gave us one
            pass
    os._exit(code)


def main(stdin: BinaryIO | None, environ: Mapping[str, str]) -> int:
    try:
        raw, is_whole = _read(stdin)
        if switch.is_off_for_this_run(environ):
            return DONE
        return _record(_payload(raw) if is_whole else _known_of(raw, environ), environ)
    except NudgeError as error:
        return _fail(error.message)
    except (
        Exception
    ) as error:  # a traceback in the middle of an agent's work helps nobody, and could quote what it must not
        return _fail(f"cannot record this event ({type(error).__name__}); see: nudge doctor")


def _read(stdin: BinaryIO | None) -> tuple[bytes, bool]:
    """As much as is understood, and whether it is all. The rest is read too: a client that writes to a closed pipe
    reports an error."""
    if stdin is None or stdin.isatty():
        raise Invalid("a client's hook runs this, with its event as JSON on stdin; wire it with: nudge connect")
    raw = stdin.read(limits.MAX_HOOK_BYTES)
    is_whole = True
    while stdin.read(limits.MIB):
        is_whole = False
    return raw, is_whole


def _known_of(raw: bytes, environ: Mapping[str, str]) -> dict[str, Any]:
    """Of an event that is too long to be read whole; one of which not enough is known is counted as dropped."""
    from nudge.history.oversize import beginning

    known = beginning(raw)
    if not is_complete(known):
        directory = paths.runtime_dir(environ)
        paths.ensure_private_dir(directory)
        spool.count_dropped(directory)
        raise Invalid(
            f"the event is larger than {limits.MAX_HOOK_BYTES // limits.MIB} MiB, and does not begin with what it is about"
        )
    return known | ({"prompt": up_to_unclosed(known["prompt"])} if isinstance(known.get("prompt"), str) else {})


def _payload(raw: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise Invalid("stdin is not a JSON object")
    return payload


def _record(payload: dict[str, Any], environ: Mapping[str, str]) -> int:
    event = extract(payload, now=time.time(), environ=environ)
    if event is None:
        return DONE
    context = resolve(working_directory(payload))
    directory = paths.runtime_dir(environ)
    if switch.is_off(environ, directory, context, _touched(payload)):
        return DONE
    event = located(event, context)
    primary = _Primary(directory, event["client"], environ)
    try:
        return _deliver(primary, directory, event, environ)
    finally:
        if event["type"] == "session_start":
            _begin_session(primary, directory, event, context, environ)
        primary.close()


def _touched(payload: dict[str, Any]) -> Iterator[str]:
    """The paths that a person may have asked to ignore: looked for only when they are asked for."""
    from nudge.history.touched import touched

    yield from touched(payload)


def _deliver(primary: _Primary, directory: str, event: dict[str, Any], environ: Mapping[str, str]) -> int:
    """A refusal for good is the caller's to hear; whatever else goes wrong, the event waits in the spool."""
    try:
        primary.ask("nudge.record", {"event": event}, event["event_id"], limits.HOOK_TIMEOUT)
        return DONE
    except Invalid:
        raise
    except StorageFailed as error:
        _fail(f"{error.message}; {_keep(directory, event) or 'the event waits in the spool'}")
        shown = event["client"] == "claude-code" and event["source_event"] in _ONLY_SHOWN
        return BROKEN if shown else FAILED
    except NudgeError:
        problem = _keep(directory, event)
        return _go_on_without(directory, event, environ, problem) if problem else DONE


def _keep(directory: str, event: dict[str, Any]) -> str:
    """In the spool; what is the matter when it does not take it."""
    try:
        paths.ensure_private_dir(directory)
        spool.write(directory, event)
    except NudgeError as error:
        return error.message
    return ""


def _go_on_without(directory: str, event: dict[str, Any], environ: Mapping[str, str], problem: str) -> int:
    """A spool that is full is emptied by a server. A session begins all the same: its client takes no context from a
    hook that fails."""
    _fail(problem)
    if event["type"] == "session_start":
        return DONE
    _try_to_start_server(directory, environ)
    return FAILED


def _fail(message: str) -> int:
    print(f"nudge record: {' '.join(message.split())}", file=sys.stderr)
    return FAILED


class _Primary:
    """The PRIMARY of the moment, if it answers at once. It is never started here, and never waited for."""

    __slots__ = ("_client", "_directory", "_environ", "_link", "answers")

    def __init__(self, directory: str, client: str, environ: Mapping[str, str]) -> None:
        self._directory, self._client, self._environ = directory, client, environ
        self._link: Connection | None = None
        self.answers = True

    def ask(self, method: str, params: dict[str, Any], request_id: str, patience: float) -> Any:
        """The result; `Invalid` and `StorageFailed` when it says so, `NudgeError` for anything that may be different
        next time."""
        deadline = boot_seconds() + patience
        headers = {
            "Nudge-Request-Id": request_id,
            "Nudge-Deadline": f"{deadline:.6f}",
            "Nudge-Client": self._client,
            "Nudge-Env": "ask",
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        try:
            self._link = self._link or self._connect()
            response = self._link.exchange("/", body, headers, deadline)
            if response.status == _ENV_NEEDED:
                headers["Nudge-Env"] = self._asked_env(response.body)
                response = self._link.exchange("/", body, headers, deadline)
            return _result(response.body)
        except NudgeError:
            raise
        except (
            Exception
        ):  # gone, slow, handing over, or no Nudge at all: whatever it is, the event must not be lost with it
            self.answers = False
            raise Unavailable("no server answers") from None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    def _connect(self) -> Connection:
        published = endpoint.read(self._directory)
        if published is None or published.state != endpoint.READY:
            raise Lost
        return Connection(published, endpoint.read_token(self._directory))

    def _asked_env(self, body: bytes) -> str:
        """Only the names that a scope asks for ever leave this process."""
        return json.dumps(told_env(self._environ, json.loads(body)["names"]))


def _result(body: bytes) -> Any:
    answer = json.loads(body)
    if isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    if not isinstance(answer, dict) or not isinstance(answer.get("error"), dict):
        raise ValueError("neither a result nor an error")
    error = RemoteError(answer["error"])
    if error.reason in ("E_INVALID", "E_SCOPE_INVALID"):
        raise Invalid(error.message)
    raise StorageFailed(error.message) if error.reason == "E_STORAGE" else error


# What a session begins with


def _begin_session(
    primary: _Primary, directory: str, event: dict[str, Any], context: Context, environ: Mapping[str, str]
) -> None:
    """Neither the context nor a server that does not start may fail the hook. Wired twice, a session is told once."""
    try:
        text = _injection(primary, event, context, environ) if spool.claim(directory, event["event_id"]) else ""
        if text.strip():
            _show(text, event)
    except Exception as error:
        _fail(f"no context for this session ({type(error).__name__}); see: nudge inject")
    _try_to_start_server(directory, environ)


def _try_to_start_server(directory: str, environ: Mapping[str, str]) -> None:
    try:
        _start_server(directory, environ)
    except Exception as error:
        _fail(f"no server was started ({type(error).__name__}); see: nudge status")


def _injection(primary: _Primary, event: dict[str, Any], context: Context, environ: Mapping[str, str]) -> str:
    """PRIMARY's words; without one, a look of our own at what is stored: clients fire this event before they start
    their servers."""
    if primary.answers:
        params = {"session_id": event["session_id"], "source": event["start_source"], "context": context.to_wire()}
        try:
            return str(
                primary.ask("nudge.inject", params, f"inject-{event['event_id']}", limits.INJECT_TIMEOUT)["text"]
            )
        except (NudgeError, KeyError, TypeError):
            pass
    from nudge.usecases.inject_offline import offline  # late: it reads the database

    made = offline(environ, context, event["session_id"], event["start_source"])
    if made.text:
        told = {"text": made.text, "items": made.items}
        kept = {
            "event_id": f"told-{event['event_id']}"[:64],
            "session_id": event["session_id"],
            "timestamp": event["timestamp"],
        }
        _keep(paths.runtime_dir(environ), {**kept, "injection": told})
    return made.text


def _show(text: str, event: dict[str, Any]) -> None:
    """Plain text; Gemini CLI and Cursor read JSON only (as documented)."""
    if event["client"] == "gemini":
        text = json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
    elif event["client"] == "cursor":
        text = json.dumps({"additional_context": text})
    sys.stdout.buffer.write(text.rstrip("\n").encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()


def _start_server(directory: str, environ: Mapping[str, str]) -> None:
    """One that empties the spool, when events wait and nobody is there to take them."""
    from nudge.ipc import lock

    if not spool.pending(directory) or not lock.is_free(os.path.join(directory, paths.LOCK)):
        return
    from nudge import config

    if config.load(environ).autostart:
        from nudge.ipc import spawn

        spawn.start_server(directory)
