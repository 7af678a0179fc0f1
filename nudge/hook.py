"""`nudge record`: one command for every hook event of every client, with the event as one JSON object on stdin.

The event goes to PRIMARY if it answers at once, else to the spool. Only text for the agent is printed: the context of a
session's start, and lines that PRIMARY answers with. Exit code 0: stored, spooled, or nothing to store. 1: an error
that the client shows before it goes on. 2: the database is not usable, for events where the client only shows that to
the user."""

from __future__ import annotations

import os
import sys
import time

from nudge import __version__
from nudge.clients import registry
from nudge.core import limits, paths, thin_json
from nudge.core.context import resolve
from nudge.core.errors import Invalid, NudgeError, RemoteError, SettingInvalid, StorageFailed, Unavailable
from nudge.history.extract import cut_unclosed_block, event_paths, extract, is_complete, locate
from nudge.process import endpoint
from nudge.process.client import Request, exchange
from nudge.process.connection import Connection, ConnectionLost
from nudge.settings import switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO, NoReturn

    from nudge.clients.client import AgentClient
    from nudge.core.context import Context

DONE, FAILED, BROKEN = 0, 1, 2

# For an event that is too long to be parsed whole: a client writes session, event, tool and path before the contents of
# a file.
_MEMBER = r'\s*[{,]\s*(?P<name>"(?:[^"\\]|\\.){0,256}+")\s*:\s*'
_NESTED_OBJECTS = 2
_CUT_TEXTS = frozenset(("command", "prompt", "error"))  # of which only the start is kept anyway


def run() -> NoReturn:
    """Run the whole process, and end it without the interpreter's shutdown, which takes a tenth of its time."""
    code = main(None if sys.stdin is None else sys.stdin.buffer, os.environ)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the client is gone, or gave the process no such stream
            pass
    os._exit(code)


def main(stdin: BinaryIO | None, environ: Mapping[str, str]) -> int:
    """Record the event on stdin, and return the exit code."""
    try:
        raw, is_whole = _read(stdin)
        if switches.is_off_for_this_run(environ):
            return DONE
        payload = _parse(raw) if is_whole else parse_beginning(raw)
        client = registry.detect(payload, environ)
        payload = client.translate(payload)
        if not is_whole:
            _check_beginning(payload, environ)
        return _record(client, payload, environ)
    except SettingInvalid as error:
        return _fail(f"{error.message}; nothing is recorded")
    except NudgeError as error:
        return _fail(error.message)
    except Exception as error:  # a traceback could quote a secret, and does not help an agent
        return _fail(f"cannot record this event ({_reason(error)}); see: nudge doctor")


# The event


def _read(stdin: BinaryIO | None) -> tuple[bytes, bool]:
    """Return the bytes to parse, and whether that is the whole event. The rest is read and dropped: a client that
    writes to a closed pipe reports an error."""
    if stdin is None or stdin.isatty():
        raise Invalid("a client's hook runs this, with its event as JSON on stdin; wire it with: nudge connect")
    raw = stdin.read(limits.MAX_HOOK_BYTES)
    is_whole = True
    while stdin.read(limits.MIB):
        is_whole = False
    return raw, is_whole


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        payload = thin_json.loads(raw)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise Invalid("stdin is not a JSON object")
    return payload


def parse_beginning(raw: bytes) -> dict[str, Any]:
    """Return the complete members in the beginning of a JSON object, and the start of a last text if only the start of
    it is kept anyway."""
    import json
    import re

    text = raw[: limits.HOOK_BEGINNING_BYTES].decode("utf-8", "ignore")
    member_at, decode_at = re.compile(_MEMBER).match, json.JSONDecoder().raw_decode

    def members(at: int, nested_objects: int) -> dict[str, Any]:
        payload: dict[str, Any] = {}
        while member := member_at(text, at):
            name, at = str(json.loads(member["name"], strict=False)), member.end()
            try:
                payload[name], at = decode_at(text, at)
            except (ValueError, RecursionError):  # the text ends in this member
                if text.startswith("{", at) and nested_objects:
                    payload[name] = members(at, nested_objects - 1)
                elif text.startswith('"', at) and name in _CUT_TEXTS:
                    payload[name] = _decode_start(text[at:])
                return payload
        return payload

    return members(0, _NESTED_OBJECTS)


def _decode_start(text: str) -> str:
    """Decode a JSON string without its end; its last characters may be an incomplete escape."""
    for length in range(len(text), max(len(text) - len("\\ud83d\\ude00"), 0), -1):
        try:
            return str(thin_json.loads(text[:length] + '"'))
        except ValueError:
            continue
    return ""


def _check_beginning(payload: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Raise Invalid, and count the event as dropped, when its beginning does not name the essentials. A prompt is cut
    before a block that has no end."""
    if not is_complete(payload):
        from nudge.storage import spool

        directory = paths.runtime_dir(environ)
        paths.ensure_private_dir(directory)
        spool.count_dropped(directory)
        size = limits.MAX_HOOK_BYTES // limits.MIB
        raise Invalid(f"the event is larger than {size} MiB, and its first part does not say what it is about")
    if isinstance(payload.get("prompt"), str):
        payload["prompt"] = cut_unclosed_block(payload["prompt"], payload.get("prompt_blocks", ()))


def _record(client: AgentClient, payload: dict[str, Any], environ: Mapping[str, str]) -> int:
    event = extract(payload, now=time.time())
    if event is None:
        return DONE
    context = resolve(payload["cwd"])
    directory = paths.runtime_dir(environ)
    if switches.is_off(environ, directory, context, event_paths(payload)):
        return DONE
    recording = _Recording(client, locate(event, context), context, directory, environ)
    try:
        return recording.deliver()
    finally:
        if event["type"] == "session_start":
            recording.begin_session()
        recording.replace_older_server()
        recording.close()


def _fail(message: str) -> int:
    from nudge.core import streams  # late: most events are recorded

    streams.note(f"nudge record: {' '.join(message.split())}")
    return FAILED


def _reason(error: Exception) -> str:
    """Return the cause in words. The text of an unexpected error could quote a secret."""
    if isinstance(error, NudgeError):
        return error.message
    return (isinstance(error, OSError) and error.strerror) or "internal error"


# Delivery to PRIMARY or the spool


class _Recording:
    """Delivers one event of one client."""

    __slots__ = ("_client", "_context", "_directory", "_environ", "_event", "_primary")

    def __init__(
        self, client: AgentClient, event: dict[str, Any], context: Context, directory: str, environ: Mapping[str, str]
    ) -> None:
        self._client, self._event, self._context = client, event, context
        self._directory, self._environ = directory, environ
        self._primary = _PrimaryLink(directory, client, environ)

    def close(self) -> None:
        self._primary.close()

    def deliver(self) -> int:
        """Send the event to PRIMARY, and return the exit code. Raises Invalid for an event that PRIMARY refuses; after
        any other failure the event goes to the spool."""
        try:
            event = self._event
            result = self._primary.call("nudge.record", {"event": event}, event["event_id"], limits.HOOK_TIMEOUT)
            line = result.get("tell") if isinstance(result, dict) else None
            # An agent that reads something when it stops goes on working.
            if isinstance(line, str) and event["type"] != "session_stop":
                self._print(line)
            return DONE
        except Invalid:
            raise
        except StorageFailed as error:
            _fail(f"{error.message}; {self._spool_event() or 'the event waits in the spool'}")
            return BROKEN if self._event["source_event"] in self._client.shows_exit_2 else FAILED
        except NudgeError:
            problem = self._spool_event()
        if not problem:
            return DONE
        _fail(problem)
        if self._event["type"] == "session_start":  # clients ignore the context of a hook that fails
            return DONE
        self._start_server_if_needed()  # which empties a full spool
        return FAILED

    def begin_session(self) -> None:
        """Print the context of a new session, and start a server if one is needed. Failures are reported on stderr and
        do not fail the hook. When a client runs two hooks for the event, the first one prints the context."""
        from nudge.storage import spool

        try:
            text = self._session_context() if spool.claim(self._directory, self._event["event_id"]) else ""
            if text.strip():
                self._print(text.rstrip("\n"))
        except Exception as error:
            _fail(f"no context for this session ({_reason(error)}); see: nudge inject")
        self._start_server_if_needed()

    def replace_older_server(self) -> None:
        """Start a successor if the server that took the event is older than this code."""
        if self._primary.is_older and self._event["type"] != "session_start":
            self._start_server_if_needed()

    def _print(self, text: str) -> None:
        """Print the text for the agent. A client that closed stdout does not want it."""
        if sys.stdout is None:
            return
        output = self._client.hook_output(text, self._event["source_event"])
        try:
            sys.stdout.buffer.write(output.encode("utf-8", "replace") + b"\n")
            sys.stdout.flush()
        except BrokenPipeError:
            pass
        except OSError as error:
            _fail(f"cannot write the output: {_reason(error)}")

    def _session_context(self) -> str:
        """Return the context from PRIMARY; without a PRIMARY, made here from the stored data: clients fire this event
        before they start their servers."""
        event, context = self._event, self._context
        if self._primary.answers:
            params = {
                "session_id": event["session_id"],
                "source": event["start_source"],
                "client": event["client"],
                "context": context.to_json(),
            }
            try:
                result = self._primary.call(
                    "nudge.inject", params, f"inject-{event['event_id']}", limits.INJECT_TIMEOUT
                )
                return str(result["text"])
            except (NudgeError, KeyError, TypeError):
                pass
        from nudge.telling.offline import build_offline_digest  # late: it reads the database

        digest = build_offline_digest(
            self._environ, context, event["session_id"], event["start_source"], event["client"]
        )
        if digest.text:
            injection = {
                "event_id": f"told-{event['event_id']}"[:64],
                "session_id": event["session_id"],
                "timestamp": event["timestamp"],
                "injection": {
                    "text": digest.text,
                    "items": digest.items,
                    "lines": [line.as_list() for line in digest.lines],
                    "is_shadow": digest.is_shadow,
                    "project": digest.project,
                },
            }
            self._spool(injection)
        return "" if digest.is_shadow else digest.text

    def _spool_event(self) -> str:
        from nudge.storage import spool  # late: not needed when PRIMARY takes the event

        return self._spool({**self._event, spool.REDACTED_BY: __version__})

    def _spool(self, record: dict[str, Any]) -> str:
        """Write a record to the spool, and return the error message when that fails, else an empty text."""
        from nudge.storage import spool  # late: not needed when PRIMARY takes the event

        try:
            paths.ensure_private_dir(self._directory)
            spool.write(self._directory, record)
        except NudgeError as error:
            return error.message
        return ""

    def _start_server_if_needed(self) -> None:
        """Start a server if events wait in the spool and none runs, or if the running one is older than this code."""
        try:
            from nudge.core import locks
            from nudge.storage import spool

            is_free = locks.is_free(os.path.join(self._directory, paths.LOCK))
            older = None if is_free else endpoint.read_older(self._directory)
            if older is not None or (is_free and spool.pending(self._directory)):
                from nudge.settings import config

                if config.load(self._environ).autostart:
                    from nudge.process import spawn

                    if older is None:
                        for_new = config.for_new_session(self._environ, of_command=False)
                        spawn.start_server(self._directory, for_new)
                    else:
                        spawn.start_successor(self._directory, older.generation)
        except Exception as error:
            _fail(f"no server was started ({_reason(error)}); see: nudge status")


class _PrimaryLink:
    """The running PRIMARY, if it answers at once. This class neither starts one nor waits for a start."""

    __slots__ = ("_client", "_directory", "_environ", "_link", "answers", "is_older")

    def __init__(self, directory: str, client: AgentClient, environ: Mapping[str, str]) -> None:
        self._directory, self._client, self._environ = directory, client, environ
        self._link: Connection | None = None
        self.answers = True
        self.is_older = False

    def call(self, op: str, params: dict[str, Any], request_id: str, timeout: float) -> Any:
        """Return the result of an operation. Raises Invalid or StorageFailed when PRIMARY does, another NudgeError for
        failures that may be temporary."""
        caller: dict[str, Any] = {"door": "hook", "client": self._client.name, "env": {}}
        if (process := self._client.process_id(self._environ)) is not None:
            caller["client_process"] = process
        try:
            request = Request(op, params, caller, request_id=request_id, timeout=timeout)
            self._link = self._link or self._connect()
            return exchange(self._link, request, self._environ)
        except RemoteError as error:
            raise _local_error(error) from None
        except Exception:  # gone, slow, handing over, or another program: the event goes to the spool
            self.answers = False
            raise Unavailable("no server answers") from None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    def _connect(self) -> Connection:
        published = endpoint.read(self._directory)
        if published is None or published.state != endpoint.READY:
            raise ConnectionLost
        connection = Connection(published, endpoint.read_token(self._directory))
        connection.queue_hello(self._client.name)
        self.is_older = endpoint.is_newer(__version__, published.version or "")
        return connection


def _local_error(error: RemoteError) -> NudgeError:
    """Return PRIMARY's error as one of the classes that the hook tells apart."""
    if error.reason in ("E_INVALID", "E_SCOPE_INVALID"):
        return Invalid(error.message)
    return StorageFailed(error.message) if error.reason == "E_STORAGE" else error
