"""The notes that a session is told at its start: open attempts, decisions and lessons of its repo."""

from __future__ import annotations

from nudge import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Connection(Protocol):
        """What is needed of a database connection."""

        def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...


_KINDS = ("decision", "lesson")
_OPEN_ATTEMPTS = (
    "SELECT id, title, json_extract(metadata, '$.prediction'), attempt_session, updated_at FROM notes"
    " WHERE kind = 'attempt' AND attempt_session IS NOT NULL AND attempt_outcome IS NULL"
)


def start_notes(connection: Connection, namespace: str | None, now: float) -> list[dict[str, Any]]:
    """The few that matter most, as rows of id, kind, title, content, updated_at and the branch that they were made on.
    They count as no access: a wrong note must not stay because it is told."""
    rows = connection.execute(
        "SELECT id, kind, title, substr(content, 1, ?), updated_at, json_extract(origin, '$.branch') FROM notes"
        " WHERE namespace = ? AND kind IN (?, ?) AND (expires_at IS NULL OR expires_at > ?)"
        " ORDER BY priority DESC, updated_at DESC LIMIT ?",
        (4 * limits.INJECTED_NOTE_CHARS, namespace, *_KINDS, now, 4 * limits.INJECTED_NOTES),
    )
    names = ("id", "kind", "title", "content", "updated_at", "branch")
    return [dict(zip(names, row, strict=True)) for row in rows]


def open_attempts(connection: Connection, namespace: str | None, session: str | None) -> list[dict[str, Any]]:
    """The open attempts of a repo and of a session, the latest first, as rows of id, goal, prediction, session and
    updated_at."""
    # Two queries, each with an index of its own: with OR, SQLite would look at every attempt that there ever was.
    rows = connection.execute(
        f"{_OPEN_ATTEMPTS} AND namespace = ? UNION {_OPEN_ATTEMPTS} AND attempt_session = ? ORDER BY id DESC LIMIT ?",
        (namespace, session, limits.MAX_ATTEMPTS_LISTED),
    )
    names = ("id", "goal", "prediction", "session", "updated_at")
    return [dict(zip(names, row, strict=True)) for row in rows]
