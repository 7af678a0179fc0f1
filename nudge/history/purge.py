"""Deletion of observations: what the user purges, and what is older than its retention.

Copies of an observation's text are deleted with it: in its prompt, in the summary of its session, in injected texts and
in the ledger. A purge by words deletes what a search finds, and also copies whose observation is already gone.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re
from collections import Counter

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.history import projects
from nudge.history.event import check_type, placeholders, text_values
from nudge.history.fts_query import FtsQuery
from nudge.history.sessions import close_silent_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

    Document = tuple[int, str, str | None]
    MatchTexts = Callable[[str, Iterable[Document]], Iterable[int]]
    """Returns the numbers of the documents (number, content, file_path) that a full-text expression matches."""

DAY = 86_400
_IDS_AT_ONCE = 500  # in one statement
_ID_IN_TEXT = re.compile(r"#(\d{1,18})")


class Conditions:
    """Which observations to delete: those that meet all conditions. Raises Invalid without any condition, which would
    select everything."""

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
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        """`hidden` are the identities of private projects, of which nothing is deleted."""
        check_type(obs_type, "type")
        given = (before, project, session, ids, obs_type, older_than, search)
        if all(value is None for value in given):
            raise Invalid("needs at least one of `before`, `project`, `session`, `ids`, `type`, `older_than`, `search`")
        self._conditions: list[tuple[str, Any]] = [
            ("timestamp < ?", before),
            ("{project} = ?", project),
            ("session_id = ?", session),
            ("obs_type = ?", obs_type),
            ("timestamp < ?", None if older_than is None else int(now) - older_than * DAY),
            ("id IN (SELECT value FROM json_each(?))", None if ids is None else json.dumps(list(ids))),
            (
                "coalesce({project} NOT IN (SELECT value FROM json_each(?)), 1)",
                json.dumps(sorted(hidden)) if hidden else None,
            ),
        ]
        self.match = None if search is None else FtsQuery(search).match
        self.names_observations = ids is not None or obs_type is not None

    def where(self, project: str = "project") -> tuple[str, list[Any]]:
        """Every condition but the search, as SQL with its values; `project` is the expression for a row's project."""
        given = [(sql, value) for sql, value in self._conditions if value is not None]
        return " AND ".join(sql.format(project=project) for sql, _ in given) or "1", [value for _, value in given]


class Selection:
    """The rows that a purge deletes: observations (id, session, type, prompt, pinned), prompts, injections, lines of
    the ledger, and sessions of which nothing would be left. `changed_sessions` need a new summary."""

    __slots__ = ("changed_sessions", "injections", "observations", "prompts", "sessions", "told_lines")

    def __init__(self, connection: SqlConnection, conditions: Conditions, match: MatchTexts) -> None:
        self.observations = _select_observations(connection, conditions)
        self.prompts = {row[3] for row in self.observations if row[2] == "user_prompt" and row[3] is not None}
        self.injections = _injections_naming(connection, {row[0] for row in self.observations})
        self.told_lines = _told_lines_naming(connection, {row[0] for row in self.observations})
        self.changed_sessions = {row[1] for row in self.observations}
        if conditions.match is not None and not conditions.names_observations:
            self.prompts |= _matching_copies(connection, conditions, match, "prompts", "content")
            self.injections |= _matching_copies(connection, conditions, match, "injections", "text")
            self.told_lines |= _matching_copies(connection, conditions, match, "told", "text")
            self.changed_sessions |= _sessions_of(connection, self.prompts)
            self.changed_sessions |= _matching_summaries(connection, conditions.match, match)
        self.sessions = _emptied_sessions(connection, Counter(row[1] for row in self.observations))
        self.prompts |= _rows_of(connection, "prompts", self.sessions)
        self.injections |= _rows_of(connection, "injections", self.sessions)

    def counts(self) -> dict[str, Any]:
        counts = Counter(row[2] for row in self.observations)
        return {
            "total": counts.total(),
            "counts": dict(sorted(counts.items())),
            "pinned": sum(row[4] for row in self.observations),
            "prompts": len(self.prompts),
            "injections": len(self.injections),
        }


def count_observations(connection: SqlConnection, conditions: Conditions, match: MatchTexts) -> dict[str, Any]:
    """Count what a purge would delete."""
    return Selection(connection, conditions, match).counts()


def purge_observations(
    connection: SqlConnection, conditions: Conditions, now: float, match: MatchTexts
) -> dict[str, Any]:
    """Delete the observations and every copy of their text. The caller scrubs the file after the commit."""
    selection = Selection(connection, conditions, match)
    _delete(connection, "observations", [row[0] for row in selection.observations])
    _delete(connection, "prompts", list(selection.prompts))
    _delete(connection, "injections", list(selection.injections))
    _delete(connection, "told", list(selection.told_lines))
    _delete(connection, "sessions", list(selection.sessions))
    _summarize_again(connection, selection.changed_sessions - selection.sessions, now)
    projects.remove_unused(connection)
    # Terms of deleted rows stay in the index's older segments until those are merged.
    connection.execute("INSERT INTO observations_fts(observations_fts) VALUES ('optimize')")
    return selection.counts()


def _select_observations(connection: SqlConnection, conditions: Conditions) -> list[Any]:
    """By words, the same rows that a search returns."""
    where, values = conditions.where()
    columns = "SELECT id, session_id, obs_type, prompt_id, is_pinned FROM observations WHERE"
    if conditions.match is None:
        return list(connection.execute(f"{columns} {where}", values).fetchall())
    indexed = "id IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?)"
    return list(connection.execute(f"{columns} {where} AND {indexed}", [*values, conditions.match]).fetchall())


def _matching_copies(
    connection: SqlConnection, conditions: Conditions, match: MatchTexts, table: str, column: str
) -> set[int]:
    where, values = conditions.where("(SELECT project FROM sessions WHERE id = session_id)")
    rows = connection.execute(f"SELECT id, {column} FROM {table} WHERE {where}", values)
    return set(match(str(conditions.match), ((row[0], row[1], None) for row in rows)))


def _matching_summaries(connection: SqlConnection, expression: str, match: MatchTexts) -> set[str]:
    rows = connection.execute("SELECT id, summary FROM sessions WHERE summary IS NOT NULL").fetchall()
    texts = ("\n".join(text_values(json.loads(row[1]))) for row in rows)
    matches = match(expression, ((index, text, None) for index, text in enumerate(texts)))
    return {rows[index][0] for index in matches}


def _injections_naming(connection: SqlConnection, observations: set[int]) -> set[int]:
    """The injections that name any of these observations, among their items or as `#id` in the text."""
    rows = connection.execute("SELECT id, items, text FROM injections")
    return {row[0] for row in rows if not observations.isdisjoint(_named_ids(row[1], row[2]))}


def _told_lines_naming(connection: SqlConnection, observations: set[int]) -> set[int]:
    """The lines of the ledger that name any of these observations."""
    rows = connection.execute("SELECT id, text FROM told WHERE text LIKE '%#%'")
    return {row[0] for row in rows if not observations.isdisjoint(_named_ids("[]", row[1]))}


def _named_ids(items: str, text: str) -> Iterator[int]:
    for item in json.loads(items):
        identity = item.get("id") if isinstance(item, dict) else item
        if isinstance(identity, int):
            yield identity
    yield from (int(number) for number in _ID_IN_TEXT.findall(text))


def _emptied_sessions(connection: SqlConnection, deleted: Mapping[str, int]) -> set[str]:
    """The sessions that would have no observation left; `deleted` is how many each loses."""
    total = "SELECT count(*) FROM observations WHERE session_id = ?"
    return {
        session for session, number in deleted.items() if connection.execute(total, (session,)).fetchone()[0] == number
    }


def _sessions_of(connection: SqlConnection, prompts: Iterable[int]) -> set[str]:
    query = "SELECT session_id FROM prompts WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in connection.execute(query, (json.dumps(list(prompts)),))}


def _rows_of(connection: SqlConnection, table: str, sessions: Iterable[str]) -> set[int]:
    query = f"SELECT id FROM {table} WHERE session_id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in connection.execute(query, (json.dumps(list(sessions)),))}


def _delete(connection: SqlConnection, table: str, ids: Sequence[int | str]) -> None:
    for start in range(0, len(ids), _IDS_AT_ONCE):
        part = ids[start : start + _IDS_AT_ONCE]
        connection.execute(f"DELETE FROM {table} WHERE id IN ({placeholders(part)})", part)


def _summarize_again(connection: SqlConnection, sessions: Iterable[str], now: float) -> None:
    """Make the summaries again, so that they neither name nor count what was deleted."""
    connection.executemany(
        "UPDATE sessions SET summary = NULL WHERE id = ?", [(session_id,) for session_id in sessions]
    )
    close_silent_sessions(connection, now)


# Retention


def sweep_observations(
    connection: SqlConnection, now: float, retention: Mapping[str, int], most: int = limits.SWEEP_PORTION
) -> dict[str, int]:
    """Delete up to `most` observations that are older than their type is kept, except pinned ones; return how many of
    each type. When it is fewer than `most` in all, nothing is left to do, and rows that nothing refers to are gone."""
    close_silent_sessions(connection, now)
    deleted: dict[str, int] = {}
    sessions: set[str] = set()
    for obs_type, days in sorted(retention.items()):
        rows = connection.execute(
            "SELECT id, session_id FROM observations WHERE obs_type = ? AND timestamp < ? AND is_pinned = 0"
            " ORDER BY timestamp LIMIT ?",
            (obs_type, int(now) - days * DAY, most - sum(deleted.values())),
        ).fetchall()
        if rows:
            _delete(connection, "observations", [row[0] for row in rows])
            deleted[obs_type] = len(rows)
            sessions.update(row[1] for row in rows)
    done = sum(deleted.values()) < most
    if done:
        sessions |= _sweep_prompts(connection, int(now) - retention["user_prompt"] * DAY)
    _summarize_again(connection, sessions, now)
    if done:
        _sweep_leftovers(connection, int(now), retention)
    return deleted


def _sweep_prompts(connection: SqlConnection, before: int) -> set[str]:
    """Empty the prompts whose observation is gone, and delete those that nothing refers to: an empty prompt still
    groups the actions that it led to. Return the sessions of the emptied ones."""
    unreferenced = "timestamp < ? AND NOT EXISTS (SELECT 1 FROM observations WHERE prompt_id = prompts.id"
    without_observation = f"content <> '' AND {unreferenced} AND obs_type = 'user_prompt')"
    sessions = {
        row[0] for row in connection.execute(f"SELECT session_id FROM prompts WHERE {without_observation}", (before,))
    }
    connection.execute(f"UPDATE prompts SET content = '' WHERE {without_observation}", (before,))
    connection.execute(f"DELETE FROM prompts WHERE {unreferenced})", (before,))
    return sessions


def _sweep_leftovers(connection: SqlConnection, now: int, retention: Mapping[str, int]) -> None:
    """Event ids are kept as long as anything else: a replay must not bring back what was deleted."""
    prompts, longest = now - retention["user_prompt"] * DAY, now - max(retention.values()) * DAY
    connection.execute("DELETE FROM injections WHERE timestamp < ?", (prompts,))
    connection.execute("DELETE FROM told WHERE timestamp < ?", (prompts,))
    connection.execute("DELETE FROM events WHERE timestamp < ?", (longest,))
    connection.execute(
        "DELETE FROM sessions WHERE summary IS NOT NULL AND NOT EXISTS (SELECT 1 FROM observations WHERE"
        " session_id = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id)"
    )
    projects.remove_unused(connection)
