"""`nudge statusline`: one line for the status line of Claude Code: what the session was told and used, and who is at
work here.

Claude Code runs it several times a minute, with the session as one JSON object on stdin. It never fails: where there is
nothing to say, where no server answers at once and where stdin is of another shape, it prints nothing. Standard library
only.
"""

from __future__ import annotations

import os
import sys

from nudge.core import limits, paths, thin_json
from nudge.core.context import resolve
from nudge.core.thin_json import text_of
from nudge.process import endpoint
from nudge.process.client import Request, exchange
from nudge.process.connection import Connection
from nudge.settings import switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO, NoReturn

_CLIENT = "claude-code"


def run() -> NoReturn:
    """Run the whole process, and end it without the interpreter's shutdown."""
    main(None if sys.stdin is None else sys.stdin.buffer, os.environ)
    os._exit(0)


def main(stdin: BinaryIO | None, environ: Mapping[str, str]) -> int:
    """Print the line, if there is one; the exit code is always 0, since anything else blanks the status line."""
    try:
        line = _line(_read(stdin), environ)
        if line and sys.stdout is not None:
            sys.stdout.buffer.write(line.encode() + b"\n")
            sys.stdout.flush()
    except Exception:  # noqa: S110 - an error has no place in a status line; `nudge doctor` finds the cause
        pass
    return 0


def _read(stdin: BinaryIO | None) -> dict[str, Any]:
    """What the client says about the session; empty for somebody who types the command."""
    if stdin is None or stdin.isatty():
        return {}
    payload = thin_json.loads(stdin.read(limits.MAX_HOOK_BYTES) or b"{}")
    return payload if isinstance(payload, dict) else {}


def _line(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    workspace = payload.get("workspace")
    cwd = text_of(workspace, "current_dir") if isinstance(workspace, dict) else ""
    context, directory = resolve(cwd or text_of(payload, "cwd") or os.getcwd()), paths.runtime_dir(environ)
    if switches.is_off_for_this_run(environ) or switches.is_off(environ, directory, context, ()):
        return ""
    params = {"session_id": text_of(payload, "session_id") or None, "context": context.to_json()}
    return text(_ask(directory, params, environ))


def _ask(directory: str, params: dict[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    """The counts, from the running server; empty when none is ready. One that does not answer in time is an error."""
    published = endpoint.read(directory)
    if published is None or published.state != endpoint.READY:
        return {}
    connection = Connection(published, endpoint.read_token(directory))
    try:
        connection.queue_hello(_CLIENT)
        caller = {"door": "hook", "client": _CLIENT, "env": {}}
        request = Request("nudge.statusline", params, caller, timeout=limits.HOOK_TIMEOUT)
        counts: Mapping[str, Any] = exchange(connection, request, environ)
        return counts
    finally:
        connection.close()


def text(counts: Mapping[str, Any]) -> str:
    """The line; empty when nothing was told and nobody else is at work."""
    told, used, others = (counts.get(name, 0) for name in ("told", "used", "at_work"))
    parts = [f"told {told}, used {used}"] if told else []
    parts += [f"{others} {'other' if others == 1 else 'others'} at work here"] if others else []
    return f"nudge: {'; '.join(parts)}" if parts else ""
