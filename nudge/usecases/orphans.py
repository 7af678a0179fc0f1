"""Open attempts whose session is gone, and what a session that starts is told of open attempts. Hooks load this: the
standard library alone."""

from __future__ import annotations

from nudge import limits
from nudge.history import views
from nudge.history.digest import CONTINUED
from nudge.memories.told import open_attempts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

    LastSeen = Callable[[str], float | None]


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
    rows = open_attempts(connection, namespace, session)
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
