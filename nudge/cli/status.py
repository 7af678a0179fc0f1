"""`nudge status`: which server runs, and how it is. Never starts one."""

from __future__ import annotations

import os

from nudge import paths
from nudge import switches as switch
from nudge.cli import exits, render
from nudge.cli.connection import look
from nudge.cli.console import Console
from nudge.context import resolve
from nudge.errors import NudgeError, Unavailable
from nudge.ipc import lock
from nudge.storage import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.ipc.client import Client

    Status = dict[str, Any]

EXAMPLES = ("nudge status", "nudge status --json")

FIELDS = (
    "role",
    "pid",
    "port",
    "socket",
    "version",
    "started",
    "generation",
    "session",
    "members",
    "hints",
    "durability",
    "spool",
    "owner",
    "recording",
)


def configure(parser: Parser) -> None:
    del parser


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    status, off = _asked(look(arguments)), _off_here()
    here = {"recording": off is None}
    if status is not None:
        console.result({**status, **here}, _lines(console.pen, {**status, "recording": _recording(off)}))
        return exits.DONE
    waiting = spool.counts(paths.runtime_dir())
    if console.as_json:
        console.json({**dict.fromkeys(FIELDS), "spool": waiting, **here})
    else:
        _tell_without_server(console, waiting, off)
    return exits.NO_SERVER


def _off_here() -> switch.Off | None:
    """Where it cannot be read what is off, hooks record nothing."""
    try:
        return switch.why_off(os.environ, paths.runtime_dir(), resolve())
    except NudgeError as error:
        return switch.Off(error.message, "nudge doctor")


def _recording(off: switch.Off | None) -> str:
    return "on here" if off is None else f"off here, since {off.reason}; turn it on with: {off.cure}"


def _tell_without_server(console: Console, waiting: dict[str, int], off: switch.Off | None) -> None:
    console.remark("no server runs; one starts with the next command that needs it")
    if waiting["files"]:
        console.remark(f"{render.counted(waiting['files'], 'event')} of hooks wait for it")
    if waiting["dropped"]:
        console.remark(f"{render.counted(waiting['dropped'], 'event')} of hooks were dropped; see: nudge doctor")
    if off is not None:
        console.remark(render.visible(f"recording is {_recording(off)}"))


def _asked(client: Client) -> Status | None:
    """The server's own word; None when there is no server, an error when there is one that says nothing."""
    try:
        status = client.status()
    except Unavailable as error:
        raise _silent(error.data["pid"]) if "pid" in error.data else error from None
    if status is None and not lock.is_free(os.path.join(paths.runtime_dir(), paths.LOCK)):
        raise _not_up(client)
    return status


def _silent(pid: int) -> Unavailable:
    from nudge.ipc import holder

    if holder.is_suspended(pid):
        return Unavailable(
            f"the server (pid {pid}) does not answer: it is suspended; wake it with: kill -CONT {pid}, "
            "or end it with: nudge stop --force",
            pid=pid,
        )
    return Unavailable(f"the server (pid {pid}) does not answer; end it with: nudge stop --force", pid=pid)


def _not_up(client: Client) -> Unavailable:
    published = client.endpoint()
    who = {} if published is None else {"pid": published.pid}
    named = f" (pid {published.pid})" if published else ""
    return Unavailable(f"a server{named} is starting and does not answer yet; see why with: nudge doctor", **who)


def _lines(pen: render.Pen, status: Status) -> Iterator[str]:
    """What people ask for first, then whatever else this server says."""
    ordered = [
        name for name in dict.fromkeys((*_FIRST, *status)) if name in status and _TOLD_WITH.get(name) not in status
    ]
    width = render.widest(map(_label, ordered))
    for name in ordered:
        words = _TELLERS[name](status) if name in _TELLERS else _words(status[name])
        yield f"{pen.paint('bold', _label(name).ljust(width))}  {words}"


def _label(name: str) -> str:
    return {"log_bytes": "log", "last_error": "last error"}.get(name, render.visible(name))


def _owner(status: Status) -> str:
    client = status.get("client")
    return f"{_words(status['owner'])} ({_words(client)})" if client else _words(status["owner"])


def _uptime(status: Status) -> str:
    from nudge.usecases.measures import span

    return f"{span(status['uptime'])} (since {_moment(status.get('started'))})"


def _moment(text: Any) -> str:
    """`2026-11-16 08:30:00 UTC`: nobody reads microseconds."""
    return _words(str(text).replace("T", " ")[:19]) + " UTC" if text else "-"


def _session(status: Status) -> str:
    """`4f2a, since 2026-11-16 08:30:00 UTC (3h 12m ago); ends 12h after the last process`."""
    from nudge.usecases.measures import span

    session = status["session"]
    since = (
        f"{_words(session.get('id'))}, since {_moment(session.get('created'))} ({span(session.get('age') or 0)} ago)"
    )
    grace = session.get("grace")
    if status.get("durability") == "none":
        return f"{since}; ends with this process"
    return f"{since}; ends {f'{span(grace)} after' if grace else 'with'} the last process"


def _members(status: Status) -> str:
    """`claude-code: 2 (pids 41, 42); codex: 1 (pid 43)`."""
    pids: dict[str, list[int]] = {}
    for member in status["members"]:
        pids.setdefault(_words(member.get("client")), []).append(member.get("pid"))
    return "; ".join(_of_one_client(client, found) for client, found in sorted(pids.items())) or "-"


def _of_one_client(client: str, pids: list[int]) -> str:
    listed = ", ".join(map(_words, sorted(set(pids))))
    return f"{client}: {len(set(pids))} (pid{'' if len(set(pids)) == 1 else 's'} {listed})"


def _log_size(status: Status) -> str:
    from nudge.usecases.measures import size

    return size(status["log_bytes"])


def _history(status: Status) -> str:
    """`1.2 MB, kept for 90 to 730 days by type`; or why nothing is recorded."""
    from nudge.usecases.measures import size

    history = status["history"] or {}
    if not history:
        return "-"
    if history.get("read_only"):
        return f"read-only: {_words(history['read_only'])}"
    days = (history.get("retention") or {}).get("days", {}).values()
    kept = f", kept for {min(days)} to {max(days)} days by type" if days else ""
    return f"{size(history.get('bytes', 0))}{kept}"


def _durability(status: Status) -> str:
    """How much an acknowledged change outlives; or why none is taken."""
    read_only = (status.get("session") or {}).get("read_only")
    if read_only:
        return f"read-only: {_words(read_only)}"
    outlived = (
        "server" if (status.get("session") or {}).get("grace") != 0 else "server while a process of the session lives"
    )
    meaning = {"process": f"hints outlive the {outlived}", "none": "hints live in the server's memory only"}.get(
        status["durability"]
    )
    return f"{_words(status['durability'])}: {meaning}" if meaning else _words(status["durability"])


def _words(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{render.visible(name)} {_words(part)}" for name, part in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_words, value)) or "-"
    return render.visible(str(value))


_FIRST = (
    "role",
    "pid",
    "owner",
    "version",
    "uptime",
    "session",
    "members",
    "hints",
    "log_bytes",
    "durability",
    "history",
    "recording",
    "spool",
    "last_error",
)
_TOLD_WITH = {"client": "owner", "started": "uptime"}
_TELLERS: dict[str, Callable[[Status], str]] = {
    "owner": _owner,
    "uptime": _uptime,
    "session": _session,
    "members": _members,
    "log_bytes": _log_size,
    "durability": _durability,
    "history": _history,
}
