"""Deleting: what a person asks to be gone, and what has outlived its retention.

An observation leaves copies: in the prompt it records, the summary of its session, the texts that sessions were told. A purge takes
them all; retention, which is about size and not about secrecy, lets a prompt live on while anything refers to it.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re

from nudge import limits
from nudge.errors import Invalid
from nudge.observations.model import check_type, marks
from nudge.observations.query import to_match
from nudge.observations.summary import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nudge.observations.model import Connection

DAY = 86_400
_PORTION = 500  # ids in one statement
_NUMBERED = re.compile(r"#(\d{1,18})")


class Purge:
    """Which observations are meant: all conditions together. None at all is refused, since it would mean everything."""

    __slots__ = ("sql", "values")

    def __init__(
        self, *, now: float, before: int | None = None, project: str | None = None, session: str | None = None,
        ids: Sequence[int] | None = None, obs_type: str | None = None, older_than: int | None = None, search: str | None = None,
    ) -> None:  # fmt: skip
        check_type(obs_type, "type")
        found = "id IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?)"
        conditions: list[tuple[str, Any]] = [
            ("timestamp < ?", before), ("project = ?", project), ("session_id = ?", session), ("obs_type = ?", obs_type),
            ("timestamp < ?", None if older_than is None else int(now) - older_than * DAY),
            ("id IN (SELECT value FROM json_each(?))", None if ids is None else json.dumps(list(ids))),
            (found, None if search is None else to_match(search)),
        ]  # fmt: skip
        given = [(sql, value) for sql, value in conditions if value is not None]
        if not given:
            raise Invalid("needs at least one of before, project, session, ids, type, older_than, search")
        self.sql, self.values = " AND ".join(sql for sql, _ in given), tuple(value for _, value in given)


def count(connection: Connection, meant: Purge) -> dict[str, Any]:
    """What a purge would delete."""
    rows = connection.execute(
        f"SELECT obs_type, count(*), sum(is_pinned) FROM observations WHERE {meant.sql} GROUP BY obs_type ORDER BY obs_type", meant.values
    ).fetchall()
    return {
        "total": sum(row[1] for row in rows), "counts": {row[0]: row[1] for row in rows}, "pinned": sum(row[2] for row in rows),
    }  # fmt: skip


def purge(connection: Connection, meant: Purge, now: float) -> dict[str, Any]:
    """Delete them and every copy of what they said. The file itself is scrubbed after the commit, by whoever holds it."""
    told = count(connection, meant)
    rows = connection.execute(f"SELECT id, session_id, obs_type, prompt_id FROM observations WHERE {meant.sql}", meant.values).fetchall()
    if not rows:
        return told
    ids = [row[0] for row in rows]
    _delete(connection, "observations", ids)
    _delete(connection, "prompts", [row[3] for row in rows if row[2] == "user_prompt" and row[3] is not None])
    _delete_injections(connection, set(ids))
    _forget_sessions(connection, {row[1] for row in rows}, now)
    # Terms of deleted rows live on in the index's older segments until those are merged.
    connection.execute("INSERT INTO observations_fts(observations_fts) VALUES ('optimize')")
    return told


def _delete(connection: Connection, table: str, ids: Sequence[int]) -> None:
    for portion in _portions(ids):
        connection.execute(f"DELETE FROM {table} WHERE id IN ({marks(portion)})", portion)


def _portions(ids: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (ids[start : start + _PORTION] for start in range(0, len(ids), _PORTION))


def _delete_injections(connection: Connection, gone: set[int]) -> None:
    """Those that told any of them: named among the items, or by its number in the text."""
    rows = connection.execute("SELECT id, items, text FROM injections")
    _delete(connection, "injections", [row[0] for row in rows if not gone.isdisjoint(_told(row[1], row[2]))])


def _told(items: str, text: str) -> Iterator[int]:
    for item in json.loads(items):
        identity = item.get("id") if isinstance(item, dict) else item
        if isinstance(identity, int):
            yield identity
    yield from (int(number) for number in _NUMBERED.findall(text))


def _forget_sessions(connection: Connection, sessions: Iterable[str], now: float) -> None:
    """A session of which nothing is left goes; of another, the summary is made anew."""
    for session_id in sessions:
        left = connection.execute("SELECT 1 FROM observations WHERE session_id = ? LIMIT 1", (session_id,)).fetchone()
        if left is None:
            connection.execute("DELETE FROM injections WHERE session_id = ?", (session_id,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        else:
            connection.execute("UPDATE sessions SET summary = NULL WHERE id = ?", (session_id,))
    settle(connection, now)


# Retention


def sweep(connection: Connection, now: float, retention: Mapping[str, int], most: int = limits.SWEEP_PORTION) -> dict[str, int]:
    """Delete up to `most` observations older than the days their type is kept, never a pinned one; how many of each type.
    Fewer than `most` in all: nothing is left to do, and what nothing refers to any more has gone as well."""
    settle(connection, now)
    deleted: dict[str, int] = {}
    for obs_type, days in sorted(retention.items()):
        rows = connection.execute(
            "SELECT id FROM observations WHERE obs_type = ? AND timestamp < ? AND is_pinned = 0 ORDER BY timestamp LIMIT ?",
            (obs_type, int(now) - days * DAY, most - sum(deleted.values())),
        ).fetchall()
        if rows:
            _delete(connection, "observations", [row[0] for row in rows])
            deleted[obs_type] = len(rows)
    if sum(deleted.values()) < most:
        _sweep_leftovers(connection, int(now), retention)
    return deleted


def _sweep_leftovers(connection: Connection, now: int, retention: Mapping[str, int]) -> None:
    """Event ids are kept as long as anything is: a replay must not bring back what was deleted."""
    prompts, longest = now - retention["user_prompt"] * DAY, now - max(retention.values()) * DAY
    connection.execute(
        "DELETE FROM prompts WHERE timestamp < ? AND NOT EXISTS (SELECT 1 FROM observations WHERE prompt_id = prompts.id)", (prompts,)
    )
    connection.execute("DELETE FROM injections WHERE timestamp < ?", (prompts,))
    connection.execute("DELETE FROM events WHERE timestamp < ?", (longest,))
    connection.execute(
        "DELETE FROM sessions WHERE summary IS NOT NULL AND NOT EXISTS (SELECT 1 FROM observations WHERE session_id = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id)"
    )
