"""What the ledger says to users: the latest lines, the counts of each week, and those of one session.

docs/telling.md defines the counts. `told = used + in_vain`: what cannot be shown to have helped was told in vain.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nudge.core import limits
from nudge.core.context import is_below
from nudge.history.event import placeholders
from nudge.history.observations import COMMAND_TYPES, FILE_CHANGES, SESSION_TYPES
from nudge.telling.ledger import ATTEMPT, EDIT, FAILURE, PROMPT, START, TOUCH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from nudge.history.event import SqlConnection

FILE = "file"
MOMENTS = {START: START, FAILURE: FAILURE, PROMPT: PROMPT, TOUCH: FILE, EDIT: FILE, ATTEMPT: ATTEMPT}
"""The kind of moment that each moment of the ledger counts for."""
COUNTS = ("told", "used", "in_vain", "met_again", "answered", "spared")

_WEEK = 7 * 86_400
_COLUMNS = (
    *("id", "timestamp", "session_id", "moment", "kind", "name", "text", "reason", "is_shadow", "used_at", "unused"),
)

_SELECTED = (
    f"{', '.join(f't.{name}' for name in _COLUMNS)}, s.project, s.client FROM told AS t"
    " LEFT JOIN sessions AS s ON s.id = t.session_id"
)

# A fact of the start whose answer ran spares its failure, unless the session had the failure, under whichever of the
# facts with that answer: those are one line at a start, and several when they are met.
_IS_SPARED = f"""
    t.moment = '{START}' AND t.kind = 'fact' AND t.used_at IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM told AS f WHERE f.session_id = t.session_id AND f.moment = '{FAILURE}' AND f.kind = 'fact'
        AND (f.name = t.name OR json_extract(f.uses, '$[0]') = json_extract(t.uses, '$[0]')))
"""
_LINES = f"""
    SELECT t.timestamp / {_WEEK} * {_WEEK}, t.is_shadow, t.moment, count(*), count(t.used_at), sum({_IS_SPARED})
    FROM told AS t LEFT JOIN sessions AS s ON s.id = t.session_id
    WHERE t.timestamp > ? AND %s GROUP BY 1, 2, 3
"""
# Once for each session and fact: those that were answered, and those where the session found again by itself what an
# earlier one had found before it failed.
_MET_AGAIN = f"""
    SELECT min(timestamp) / {_WEEK} * {_WEEK} AS week, max(is_shadow) AS is_shadow, max(answered) AS answered FROM (
        SELECT session_id, name, timestamp, is_shadow, NOT is_shadow AS answered FROM told
        WHERE moment = '{FAILURE}' AND kind = 'fact'
        UNION ALL
        SELECT f.session_id, 'fact ' || subject, timestamp,
            coalesce((SELECT is_shadow FROM coins WHERE coins.session_id = f.session_id), 0), 0
        FROM facts AS f CROSS JOIN ( -- in this order: SQLite makes an index of the inner table
            SELECT project, subject, session_id, min(success_id) AS success_id FROM facts WHERE answer <> ''
            GROUP BY project, subject
        ) AS first USING (project, subject)
        WHERE answer <> '' AND first.session_id <> f.session_id AND first.success_id < f.failure_id
    ) AS m LEFT JOIN sessions AS s ON s.id = m.session_id
    WHERE timestamp > ? AND %s GROUP BY session_id, name
"""


def told_after(connection: SqlConnection, after: int | None, hidden: Iterable[str], limit: int) -> list[dict[str, Any]]:
    """Return the lines that were told after the one with this number, in that order; without a number, the last."""
    condition, values = _visible(None, hidden)
    order = "DESC" if after is None else ""
    rows = connection.execute(
        f"SELECT {_SELECTED} WHERE t.id > ? AND {condition} ORDER BY t.id {order} LIMIT ?",
        (after or 0, *values, limit),
    ).fetchall()
    return [_line(row) for row in (rows if after is not None else reversed(rows))]


def _line(row: Sequence[Any]) -> dict[str, Any]:
    line = dict(zip((*_COLUMNS, "project", "client"), row, strict=True))
    return {**line, "is_shadow": bool(line["is_shadow"])}


def lines(
    connection: SqlConnection,
    project: str | None,
    hidden: Iterable[str],
    limit: int,
    *,
    session: str | None = None,
    name: str | None = None,
    before: int | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """Return the latest lines, newest first, with project and client of their session, and how many there are in all:
    those of a session, those with a name, those older than the one with the number `before`. `unused` says why a line
    can no longer be used: `before` or `repeated`."""
    condition, values = _visible(project, hidden)
    where = f"{condition} AND (?{len(values) + 1} IS NULL OR t.session_id = ?{len(values) + 1})"
    where += f" AND (?{len(values) + 2} IS NULL OR t.name = ?{len(values) + 2})"
    all_values = (*values, session, name)
    tables = "told AS t LEFT JOIN sessions AS s ON s.id = t.session_id"
    total = connection.execute(f"SELECT count(*) FROM {tables} WHERE {where}", all_values).fetchone()[0]
    rows = connection.execute(
        f"SELECT {_SELECTED} WHERE {where} AND (? IS NULL OR (t.timestamp, t.id) <"
        " (SELECT timestamp, id FROM told WHERE id = ?)) ORDER BY t.timestamp DESC, t.id DESC LIMIT ?",
        (*all_values, before, before, limit),
    )
    return [_line(row) for row in rows], int(total)


def weeks(connection: SqlConnection, project: str | None, hidden: Iterable[str], now: float) -> list[dict[str, Any]]:
    """Return the counts of each of the last weeks with any, oldest first; `week` is its first second. `shadow` has
    those of its shadow sessions, where `told` are the lines that were withheld; None without any."""
    condition, names = _visible(project, hidden)
    values = (int(now) - limits.STATS_WEEKS * _WEEK, *names)
    lines = connection.execute(_LINES % condition, values).fetchall()
    met = connection.execute(
        f"SELECT week, is_shadow, count(*), sum(answered) FROM ({_MET_AGAIN % condition}) GROUP BY 1, 2", values
    ).fetchall()
    found = sorted({row[0] for row in (*lines, *met)})
    return [
        _week(week, [row[1:] for row in lines if row[0] == week], [row[1:] for row in met if row[0] == week])
        for week in found
    ]


def _week(week: int, lines: Sequence[Sequence[Any]], met: Sequence[Sequence[Any]]) -> dict[str, Any]:
    sides = [
        _side([row[1:] for row in lines if row[0] == side], [row[1:] for row in met if row[0] == side])
        for side in (0, 1)
    ]
    return {"week": week, **sides[0], "shadow": sides[1] if sides[1]["told"] or sides[1]["met_again"] else None}


def _side(lines: Sequence[Sequence[Any]], met: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The counts of the regular or of the shadow sessions of a week, in all and for each kind of moment. Only failures
    are met again and answered, and only lines at a start spare one."""
    moments = {name: dict.fromkeys(COUNTS, 0) for name in MOMENTS.values()}
    for moment, told, used, spared in lines:
        counts = moments[MOMENTS[moment]]
        counts["told"] += told
        counts["used"] += used
        counts["in_vain"] += told - used
        counts["spared"] += spared
    for met_again, answered in met:
        moments[FAILURE]["met_again"] += met_again
        moments[FAILURE]["answered"] += answered
    total = {name: sum(counts[name] for counts in moments.values()) for name in COUNTS}
    kept = [{"moment": name, **counts} for name, counts in moments.items() if any(counts.values())]
    return {**total, "moments": kept}


def of_session(connection: SqlConnection, session: str, hidden: Collection[str] = ()) -> tuple[int, int]:
    """Return how many lines a session was told, and how many of them it used; what it was told in `hidden` projects
    does not count."""
    row = connection.execute(
        "SELECT count(*), count(used_at) FROM told WHERE session_id = ? AND NOT is_shadow"
        " AND project NOT IN (SELECT value FROM json_each(?))",
        (session, json.dumps(sorted(hidden))),
    ).fetchone()
    return int(row[0]), int(row[1])


def others_at_work(connection: SqlConnection, project: str, session: str | None, cwd: str | None, now: float) -> int:
    """Return how many other sessions are at work in this clone: those that ran a command or changed a file lately, or
    got a prompt just now. Cheaper than the sessions that a start tells of, since it is asked every few seconds."""
    acts = (*COMMAND_TYPES, *FILE_CHANGES)
    rows = connection.execute(
        "SELECT (SELECT clone FROM observations WHERE session_id = s.id ORDER BY timestamp DESC, id DESC LIMIT 1)"
        " FROM sessions AS s WHERE s.project = ? AND s.ended_at IS NULL AND s.id IS NOT ? AND s.started_at > ?"
        " AND EXISTS (SELECT 1 FROM observations AS o WHERE o.session_id = s.id AND o.timestamp > ?"
        f" AND (+o.obs_type IN ({placeholders(acts)}) OR o.obs_type = 'user_prompt' AND o.timestamp > ?))",
        (
            *(project, session, int(now) - limits.TOLD_SESSION_SECONDS, int(now) - limits.LIVE_SECONDS),
            *(*acts, int(now) - limits.PROMPTED_SECONDS),
        ),
    )
    return sum(not clone or not cwd or is_below(cwd, clone) for (clone,) in rows)


def shadow_counts(
    connection: SqlConnection, project: str | None, hidden: Iterable[str], since: float, *, is_shadow: bool
) -> list[tuple[int, int]]:
    """Return the numbers of failures and of commands of each session on one side of the comparison. A session with
    other actions but no command counts; one that began before `since` does not, as some of its commands may be
    deleted."""
    condition, values = _visible(project, hidden)
    rows = connection.execute(
        f"SELECT sum(o.obs_type = 'command_error'), sum(o.obs_type IN ({placeholders(COMMAND_TYPES)}))"
        " FROM coins AS c JOIN sessions AS s ON s.id = c.session_id JOIN observations AS o ON o.session_id = s.id"
        f" WHERE c.is_shadow = ? AND c.timestamp >= ? AND {condition}"
        f" AND o.obs_type NOT IN ({placeholders(SESSION_TYPES)}) GROUP BY s.id",
        (*COMMAND_TYPES, int(is_shadow), int(since), *values, *SESSION_TYPES),
    )
    return [(row[0], row[1]) for row in rows]


def _visible(project: str | None, hidden: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return a condition on the table `s`, and its values."""
    names = tuple(hidden)
    if project is not None:
        return "s.project = ?", (project,)
    return f"(s.project IS NULL OR s.project NOT IN ({placeholders(names)}))", names
