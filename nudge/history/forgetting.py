"""Deleting: what a person asks to be gone, and what has outlived its retention.

An observation leaves copies: in the prompt it records, the summary of its session, the texts that sessions were told.
Neither a purge
nor retention leaves them behind. A purge by words also finds what no search shows: the text of errors, subjects and
descriptions, and
copies whose observation has gone before them.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re
from collections import Counter

from nudge import limits
from nudge.errors import Invalid
from nudge.history.model import check_type, marks
from nudge.history.query import to_match
from nudge.history.summary import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nudge.history.model import Connection

    Document = tuple[int, str, str | None]
    Find = Callable[[str, Iterable[Document]], Iterable[int]]
    """Which documents (number, content, file_path) a full-text expression matches."""

DAY = 86_400
_PORTION = 500  # ids in one statement
_NUMBERED = re.compile(r"#(\d{1,18})")


class Purge:
    """Which observations are meant: all conditions together. None at all is refused, since it would mean everything."""

    __slots__ = ("_conditions", "match", "names_observations")

    def __init__(
        self,
        *,
        now: float,
        before: int | None = None,
        project: str | None = None,
        session: str | None = None,
        ids: Sequence[int] | None = None,
        obs_type: str | None = None,
        older_than: int | None = None,
        search: str | None = None,
    ) -> None:
        check_type(obs_type, "type")
        given = (before, project, session, ids, obs_type, older_than, search)
        if all(value is None for value in given):
            raise Invalid("needs at least one of before, project, session, ids, type, older_than, search")
        self._conditions: list[tuple[str, Any]] = [
            ("timestamp < ?", before),
            ("{project} = ?", project),
            ("session_id = ?", session),
            ("obs_type = ?", obs_type),
            ("timestamp < ?", None if older_than is None else int(now) - older_than * DAY),
            ("id IN (SELECT value FROM json_each(?))", None if ids is None else json.dumps(list(ids))),
        ]
        self.match = None if search is None else to_match(search)
        self.names_observations = ids is not None or obs_type is not None

    def where(self, project: str = "project") -> tuple[str, list[Any]]:
        """Every condition but the search, as SQL with its values; `project` is how a table knows its own."""
        held = [(sql, value) for sql, value in self._conditions if value is not None]
        return " AND ".join(sql.format(project=project) for sql, _ in held) or "1", [value for _, value in held]


class Doomed:
    """What a purge takes: observations (id, session, type, prompt, pinned), prompts, injections, sessions of which
    nothing would be
    left; `retold` are those that have to be summed up anew."""

    __slots__ = ("injections", "observations", "prompts", "retold", "sessions")

    def __init__(self, connection: Connection, meant: Purge, find: Find) -> None:
        self.observations = _observations(connection, meant, find)
        self.prompts = {row[3] for row in self.observations if row[2] == "user_prompt" and row[3] is not None}
        self.injections = _telling(connection, {row[0] for row in self.observations})
        self.retold = {row[1] for row in self.observations}
        if meant.match is not None and not meant.names_observations:
            self.prompts |= _copies(connection, meant, find, "prompts", "content")
            self.injections |= _copies(connection, meant, find, "injections", "text")
            self.retold |= _sessions_of(connection, self.prompts) | _summaries(connection, meant.match, find)
        self.sessions = _emptied(connection, Counter(row[1] for row in self.observations))
        self.prompts |= _of_sessions(connection, "prompts", self.sessions)
        self.injections |= _of_sessions(connection, "injections", self.sessions)

    def told(self) -> dict[str, Any]:
        counts = Counter(row[2] for row in self.observations)
        return {
            "total": counts.total(),
            "counts": dict(sorted(counts.items())),
            "pinned": sum(row[4] for row in self.observations),
            "prompts": len(self.prompts),
            "injections": len(self.injections),
        }


def count(connection: Connection, meant: Purge, find: Find) -> dict[str, Any]:
    """What a purge would delete."""
    return Doomed(connection, meant, find).told()


def purge(connection: Connection, meant: Purge, now: float, find: Find) -> dict[str, Any]:
    """Delete them and every copy of what they said. The file itself is scrubbed after the commit, by whoever holds
    it."""
    doomed = Doomed(connection, meant, find)
    _delete(connection, "observations", [row[0] for row in doomed.observations])
    for table, gone in (("prompts", doomed.prompts), ("injections", doomed.injections), ("sessions", doomed.sessions)):
        _delete(connection, table, list(gone))
    _sum_up_anew(connection, doomed.retold - doomed.sessions, now)
    # Terms of deleted rows live on in the index's older segments until those are merged.
    connection.execute("INSERT INTO observations_fts(observations_fts) VALUES ('optimize')")
    return doomed.told()


def _observations(connection: Connection, meant: Purge, find: Find) -> list[Any]:
    where, values = meant.where()
    wanted = "SELECT id, session_id, obs_type, prompt_id, is_pinned FROM observations WHERE"
    if meant.match is None:
        return list(connection.execute(f"{wanted} {where}", values).fetchall())
    indexed = f"SELECT id FROM observations WHERE {where} AND id IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?)"
    found = {row[0] for row in connection.execute(indexed, [*values, meant.match])}
    rows = connection.execute(f"SELECT id, content, file_path, metadata FROM observations WHERE {where}", values)
    found.update(find(meant.match, ((row[0], f"{row[1]}\n{_said_in(row[3])}", row[2]) for row in rows)))
    return list(
        connection.execute(f"{wanted} id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(found)),)).fetchall()
    )


def _said_in(metadata: str) -> str:
    """Its texts; names of fields and numbers are ours, not anybody's words."""
    return "\n".join(_texts(json.loads(metadata)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _copies(connection: Connection, meant: Purge, find: Find, table: str, column: str) -> set[int]:
    where, values = meant.where("(SELECT project FROM sessions WHERE id = session_id)")
    rows = connection.execute(f"SELECT id, {column} FROM {table} WHERE {where}", values)
    return set(find(str(meant.match), ((row[0], row[1], None) for row in rows)))


def _summaries(connection: Connection, match: str, find: Find) -> set[str]:
    rows = connection.execute("SELECT id, summary FROM sessions WHERE summary IS NOT NULL").fetchall()
    found = find(match, ((place, _said_in(row[1]), None) for place, row in enumerate(rows)))
    return {rows[place][0] for place in found}


def _telling(connection: Connection, gone: set[int]) -> set[int]:
    """The injections that told any of them: named among the items, or by its number in the text."""
    rows = connection.execute("SELECT id, items, text FROM injections")
    return {row[0] for row in rows if not gone.isdisjoint(_told(row[1], row[2]))}


def _told(items: str, text: str) -> Iterator[int]:
    for item in json.loads(items):
        identity = item.get("id") if isinstance(item, dict) else item
        if isinstance(identity, int):
            yield identity
    yield from (int(number) for number in _NUMBERED.findall(text))


def _emptied(connection: Connection, leaving: Mapping[str, int]) -> set[str]:
    """A session of which nothing is left goes as well."""
    held = "SELECT count(*) FROM observations WHERE session_id = ?"
    return {
        session for session, number in leaving.items() if connection.execute(held, (session,)).fetchone()[0] == number
    }


def _sessions_of(connection: Connection, prompts: Iterable[int]) -> set[str]:
    known = "SELECT session_id FROM prompts WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in connection.execute(known, (json.dumps(list(prompts)),))}


def _of_sessions(connection: Connection, table: str, sessions: Iterable[str]) -> set[int]:
    known = f"SELECT id FROM {table} WHERE session_id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in connection.execute(known, (json.dumps(list(sessions)),))}


def _delete(connection: Connection, table: str, ids: Sequence[int | str]) -> None:
    for portion in (ids[start : start + _PORTION] for start in range(0, len(ids), _PORTION)):
        connection.execute(f"DELETE FROM {table} WHERE id IN ({marks(portion)})", portion)


def _sum_up_anew(connection: Connection, sessions: Iterable[str], now: float) -> None:
    """A summary neither names nor counts what is gone."""
    connection.executemany(
        "UPDATE sessions SET summary = NULL WHERE id = ?", [(session_id,) for session_id in sessions]
    )
    settle(connection, now)


# Retention


def sweep(
    connection: Connection, now: float, retention: Mapping[str, int], most: int = limits.SWEEP_PORTION
) -> dict[str, int]:
    """Delete up to `most` observations older than the days their type is kept, never a pinned one; how many of each
    type.
    Fewer than `most` in all: nothing is left to do, and what nothing refers to any more has gone as well."""
    settle(connection, now)
    deleted: dict[str, int] = {}
    touched: set[str] = set()
    for obs_type, days in sorted(retention.items()):
        rows = connection.execute(
            "SELECT id, session_id FROM observations WHERE obs_type = ? AND timestamp < ? AND is_pinned = 0 ORDER BY timestamp LIMIT ?",
            (obs_type, int(now) - days * DAY, most - sum(deleted.values())),
        ).fetchall()
        if rows:
            _delete(connection, "observations", [row[0] for row in rows])
            deleted[obs_type] = len(rows)
            touched.update(row[1] for row in rows)
    done = sum(deleted.values()) < most
    if done:
        touched |= _forget_prompts(connection, int(now) - retention["user_prompt"] * DAY)
    _sum_up_anew(connection, touched, now)
    if done:
        _sweep_leftovers(connection, int(now), retention)
    return deleted


def _forget_prompts(connection: Connection, before: int) -> set[str]:
    """A prompt keeps its words as long as its observation. Its place stays while anything refers to it, so that what
    one prompt led to
    still stands together. The sessions to which one belonged."""
    gone = "timestamp < ? AND NOT EXISTS (SELECT 1 FROM observations WHERE prompt_id = prompts.id"
    silent = f"content <> '' AND {gone} AND obs_type = 'user_prompt')"
    sessions = {row[0] for row in connection.execute(f"SELECT session_id FROM prompts WHERE {silent}", (before,))}
    connection.execute(f"UPDATE prompts SET content = '' WHERE {silent}", (before,))
    connection.execute(f"DELETE FROM prompts WHERE {gone})", (before,))
    return sessions


def _sweep_leftovers(connection: Connection, now: int, retention: Mapping[str, int]) -> None:
    """Event ids are kept as long as anything is: a replay must not bring back what was deleted."""
    prompts, longest = now - retention["user_prompt"] * DAY, now - max(retention.values()) * DAY
    connection.execute("DELETE FROM injections WHERE timestamp < ?", (prompts,))
    connection.execute("DELETE FROM events WHERE timestamp < ?", (longest,))
    connection.execute(
        "DELETE FROM sessions WHERE summary IS NOT NULL AND NOT EXISTS (SELECT 1 FROM observations WHERE session_id = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id)"
    )
