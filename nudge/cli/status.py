"""How `nudge status` shows each field of a server's report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nudge.cli import output
from nudge.cli.output import Styler
from nudge.core.context import resolve
from nudge.core.errors import NudgeError
from nudge.core.text import escape, format_size, format_span
from nudge.repofile import FILE
from nudge.settings import config

Status = dict[str, Any]


def setting_lines(settings: Sequence[Status]) -> Iterator[str]:
    rows = [(one["name"], _text(one["value"]), one["from"]) for one in settings]
    for cells in output.align(rows):
        yield "  ".join(cells).rstrip()


def different_settings(answer: Status) -> list[str]:
    """Return the settings of this shell and of `config.toml` that differ from those of the server. Those of each client
    are reported by its PROXY."""
    try:
        return [*config.differences(os.environ, port=answer.get("port")), *config.file_differences(os.environ)]
    except NudgeError as error:
        return [error.message]


def member_differences(answer: Status) -> Iterator[str]:
    """Yield the settings of clients that differ: `codex (pid 43): NUDGE_MAX_HINTS=9 (the server has 7)`."""
    for member in answer.get("members") or ():
        for line in member.get("differs") or ():
            yield f"{member.get('client')} (pid {member.get('pid')}): {line}"


def repo_file_status() -> Status:
    """Return what is decided about the hints of the repo's file here, as a field; nothing where there is no file."""
    root = resolve().root
    if root is None or not os.path.lexists(os.path.join(root, FILE)):
        return {}
    from nudge.repofile.cli import status_here  # late: it loads tomllib

    found = status_here()
    return {} if found is None else {"repo_file": found}


def repo_file_text(answer: Status) -> str:
    from nudge.repofile.cli import status_text

    return status_text(answer["repo_file"])


_FIRST_FIELDS = (
    *("role", "pid", "owner", "version", "uptime", "session", "members"),
    *("hints", "repo_file", "log_bytes", "durability", "history", "recording", "spool", "last_error"),
)
_LABELS = {
    "log_bytes": "log",
    "last_error": "last error",
    "differences": "differs",
    "model": "language model",
    "repo_file": "repo file",
    "semantic": "meaning",
}
_SHOWN_WITH = {"client": "owner", "started": "uptime"}


def status_lines(styler: Styler, answer: Status) -> Iterator[str]:
    """Yield a line for each field: first those that users look for, then all others that this server sends."""
    ordered = [
        name
        for name in dict.fromkeys((*_FIRST_FIELDS, *answer))
        if name in answer and _SHOWN_WITH.get(name) not in answer
    ]
    labels = {name: _LABELS.get(name, escape(name)) for name in ordered}
    width = output.widest(labels.values())
    for name in ordered:
        text = _FORMATTERS[name](answer) if name in _FORMATTERS else _text(answer[name])
        yield f"{styler.paint('bold', labels[name].ljust(width))}  {text}"


def _owner_text(answer: Status) -> str:
    client = answer.get("client")
    return f"{_text(answer['owner'])} ({_text(client)})" if client else _text(answer["owner"])


def _time_text(text: Any) -> str:
    """Return an RFC 3339 time as `2026-11-16 08:30:00 UTC`."""
    return _text(str(text).replace("T", " ")[:19]) + " UTC" if text else "-"


def _uptime_text(answer: Status) -> str:
    return f"{format_span(answer['uptime'])} (since {_time_text(answer.get('started'))})"


def _session_text(answer: Status) -> str:
    """`4f2a, since 2026-11-16 08:30:00 UTC (3h 12m ago); ends 12h after the last process`."""
    session = answer["session"]
    created, age = _time_text(session.get("created")), format_span(session.get("age") or 0)
    since = f"{_text(session.get('id'))}, since {created} ({age} ago)"
    grace = session.get("grace")
    if answer.get("durability") == "none":
        return f"{since}; ends with this process"
    return f"{since}; ends {f'{format_span(grace)} after' if grace else 'with'} the last process"


def _members_text(answer: Status) -> str:
    """`claude-code: 2 (pids 41, 42); codex: 1 (pid 43)`."""
    pids: dict[str, set[int]] = {}
    for member in answer["members"]:
        pids.setdefault(_text(member.get("client")), set()).add(member.get("pid"))
    texts = []
    for client, client_pids in sorted(pids.items()):
        plural = "" if len(client_pids) == 1 else "s"
        texts.append(f"{client}: {len(client_pids)} (pid{plural} {', '.join(map(_text, sorted(client_pids)))})")
    return "; ".join(texts) or "-"


def _history_text(answer: Status) -> str:
    """`1.2 MB, 40 sessions, 12 notes, kept for 90 to 730 days by type`; or why nothing is recorded."""
    history = answer["history"] or {}
    if not history:
        return "-"
    if history.get("read_only"):
        state = "read-only" if history.get("readable", True) else "not readable"  # an older server does not say
        return f"{state}: {_text(history['read_only'])}"
    parts = [format_size(history.get("bytes", 0))]
    parts += [output.count(history[f"{noun}s"], noun) for noun in ("session", "note") if f"{noun}s" in history]
    days = (history.get("retention") or {}).get("days", {}).values()
    return ", ".join([*parts, *([f"kept for {min(days)} to {max(days)} days by type"] if days else [])])


def _durability_text(answer: Status) -> str:
    """Return what an acknowledged change survives, or why no change is accepted."""
    session = answer.get("session") or {}
    if session.get("read_only"):
        return f"read-only: {_text(session['read_only'])}"
    outlived = "server" if session.get("grace") != 0 else "server while a process of the session lives"
    meaning = {"process": f"hints outlive the {outlived}", "none": "hints are only in the server's memory"}.get(
        answer["durability"]
    )
    return f"{_text(answer['durability'])}: {meaning}" if meaning else _text(answer["durability"])


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{escape(name)} {_text(part)}" for name, part in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "-"
    return escape(str(value))


def _model_text(answer: Status) -> str:
    """`gemma3:4b at http://127.0.0.1:11434/v1: answers`."""
    model = answer["model"]
    where = f"{_text(model['name'])} at {_text(model['url'])}: " if "name" in model and "url" in model else ""
    told = [model.get("state"), model.get("why"), model.get("sends")]
    return where + "; ".join(_text(text) for text in told if text)


def _semantic_text(answer: Status) -> str:
    """`minishlab/potion-retrieval-32M: 12 of 40 notes embedded`, or why notes are not found by meaning."""
    semantic = answer["semantic"]
    reason = semantic.get("reason")
    counts = f"{semantic.get('embedded', 0):,} of {output.count(semantic.get('notes', 0), 'note')} embedded"
    return f"{_text(semantic.get('model'))}: {_text(reason) if reason else counts}"


_FORMATTERS: dict[str, Callable[[Status], str]] = {
    "owner": _owner_text,
    "uptime": _uptime_text,
    "session": _session_text,
    "members": _members_text,
    "log_bytes": lambda answer: format_size(answer["log_bytes"]),
    "durability": _durability_text,
    "history": _history_text,
    "model": _model_text,
    "semantic": _semantic_text,
    "repo_file": repo_file_text,
}
