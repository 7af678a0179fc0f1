"""What a session is told at its start of notes and of open attempts, and whether the session of an attempt is gone.
Hooks load this: the standard library alone."""

from __future__ import annotations

from nudge import limits
from nudge.history import views
from nudge.history.digest import CONTINUED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

    LastSeen = Callable[[str], float | None]

_NOTE_KINDS = ("decision", "lesson")
_OPEN_ATTEMPTS = (
    "SELECT id, title, json_extract(metadata, '$.prediction'), attempt_session, updated_at FROM notes"
    " WHERE kind = 'attempt' AND attempt_session IS NOT NULL AND attempt_outcome IS NULL"
)


def start_notes(connection: sqlite3.Connection, namespace: str | None, now: float) -> list[dict[str, Any]]:
    """The few that matter most, as rows of id, kind, title, content, updated_at and the branch that they were made on.
    They count as no access: a wrong note must not stay because it is told."""
    rows = connection.execute(
        "SELECT id, kind, title, substr(content, 1, ?), updated_at, json_extract(origin, '$.branch') FROM notes"
        " WHERE namespace = ? AND kind IN (?, ?) AND (expires_at IS NULL OR expires_at > ?)"
        " ORDER BY priority DESC, updated_at DESC LIMIT ?",
        (4 * limits.INJECTED_NOTE_CHARS, namespace, *_NOTE_KINDS, now, 4 * limits.INJECTED_NOTES),
    )
    names = ("id", "kind", "title", "content", "updated_at", "branch")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _open_attempts(connection: sqlite3.Connection, namespace: str | None, session: str | None) -> list[dict[str, Any]]:
    """The open attempts of a repo and of a session, the latest first, as rows of id, goal, prediction, session and
    updated_at."""
    # Two queries, each with an index of its own: with OR, SQLite would look at every attempt that there ever was.
    rows = connection.execute(
        f"{_OPEN_ATTEMPTS} AND namespace = ? UNION {_OPEN_ATTEMPTS} AND attempt_session = ? ORDER BY id DESC LIMIT ?",
        (namespace, session, limits.MAX_ATTEMPTS_LISTED),
    )
    names = ("id", "goal", "prediction", "session", "updated_at")
    return [dict(zip(names, row, strict=True)) for row in rows]


def is_gone(
    connection: sqlite3.Connection, session: str, updated_at: float, now: float, last_seen: float | None = None
) -> bool:
    """Whether the session that owns an attempt has ended, or has given no sign for half an hour. `last_seen` is what a
    server knows beside the history; it forgets a session that ends.

    The end is not compared with the other times: hooks have the wall clock, which may have been set since the server's
    clock began."""
    ended_at, last = views.session_times(connection, session)
    if ended_at is not None and last_seen is None:
        return True
    return now - max(updated_at, last or 0.0, last_seen or 0.0) > limits.ORPHANED_AFTER


def attempts_at_start(
    connection: sqlite3.Connection,
    namespace: str | None,
    session: str | None,
    source: str,
    now: float,
    last_seen: LastSeen = lambda _session: None,
) -> list[dict[str, Any]]:
    """What the digest says first, as rows of id, goal, prediction, updated_at, is_own and others: the own attempt of a
    session that goes on, or else the latest orphan of the repo, with the number of further ones."""
    rows = _open_attempts(connection, namespace, session)
    own = [row for row in rows if row["session"] == session]
    if own and source in CONTINUED:
        return [{**own[0], "is_own": True, "others": len(own) - 1}]
    orphans = [
        row
        for row in rows
        if row["session"] != session
        and is_gone(connection, row["session"], row["updated_at"], now, last_seen(row["session"]))
    ]
    return [{**orphans[0], "is_own": False, "others": len(orphans) - 1}] if orphans else []
