"""The use cases of the ledger: what agents were told, whether it helped, and what must not be told again."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from nudge import limits
from nudge.core.visibility import Visibility
from nudge.errors import NotFound
from nudge.history import projects
from nudge.history.observations import COMMAND_TYPES, RETENTION_DAYS
from nudge.history.purge import DAY
from nudge.telling import ledger
from nudge.usecases.app import App
from nudge.usecases.call import Call, InContext, Project, Result, Text
from nudge.usecases.visibility import visible_to

# Standard errors of a 95 % interval, by degrees of freedom: Student's t, since there may be few sessions.
_STUDENT: tuple[float, ...] = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
_COMPARED = ("failures", "commands")


_Counts = Sequence[tuple[int, int]]
"""Failures and commands of each session."""


class ListToldLines(InContext):
    project: Project = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_TOLD_LISTED)] = limits.DEFAULT_TOLD_LISTED


class ListToldLinesResult(Result):
    lines: list[dict[str, Any]]
    never: list[str]


class NeverTell(InContext):
    """Without `project` the caller's; null, or a caller without one: every project in which the line was told. A number
    names a line of the project that it was told in."""

    project: Project = None
    line: Annotated[Text, Field(description="its number or name, as `nudge told` shows it")]
    never: Annotated[bool, Field(description="false: it may be told again")] = True


class NeverTellResult(Result):
    line: str
    never: bool


class Stats(InContext):
    project: Project = None


class StatsResult(Result):
    """`repeated`: failures that were known and met again. `spared`: facts told at a start whose command was
    run, in sessions that did not meet the failure.
    `comparison` has failures and commands of a session as `mean`, `low` and `high`, for the sessions that were `told`,
    for those in the `shadow`, and the `difference` between them; without two sessions there is no interval."""

    weeks: list[dict[str, Any]]
    comparison: dict[str, Any] | None


async def list_told_lines(app: App, params: ListToldLines, call: Call) -> Any:
    """The latest lines, newest first, of one project or of all that the caller may see."""

    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(connection, params, visible)
        rows = ledger.latest(connection, project, hidden, params.limit)
        projects.Names(connection).show(rows)
        banned = ledger.load_banned(connection)
        never = {name for where, name in banned if (where == project if project is not None else where not in hidden)}
        return {"lines": rows, "never": sorted(never)}

    return await app.read(read)


async def never_tell(app: App, params: NeverTell, call: Call) -> Any:
    """Ban a line, or allow it again."""

    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> list[list[str]]:
        named = projects.find(connection, params.chosen_project(visible), visible)
        hidden = projects.find_hidden(connection, visible, named)
        project, name = ledger.find_line(connection, named, params.line, hidden)
        if params.never:
            changed = ledger.ban(connection, project, name, app.now(), hidden)
        else:
            changed = ledger.unban(connection, project, name, hidden)
        return [list(line) for line in changed]

    changed = [(project, name) for project, name in await app.write_once(call, write)]
    if not changed:
        raise NotFound(f"no line {params.line} {'was told' if params.never else 'is banned'} here")
    app.ledger.set_banned(changed, params.never)
    return {"line": changed[0][1], "never": params.never}


async def stats(app: App, params: Stats, call: Call) -> Any:
    """Counts of told lines and their effect by week, and the comparison of shadow sessions with the others."""

    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(connection, params, visible)
        weeks = ledger.weeks(connection, project, hidden, app.now())
        since = app.now() - DAY * _compared_days(app)
        regular, shadow = (
            ledger.shadow_counts(connection, project, hidden, since, is_shadow=side) for side in (False, True)
        )
        return {"weeks": weeks, "comparison": _compare(regular, shadow) if regular and shadow else None}

    return await app.read(read)


def _compared_days(app: App) -> int:
    """The days in which retention has deleted no command, at most STATS_WEEKS."""
    days = {**RETENTION_DAYS, **app.session.settings.retention}
    return min(limits.STATS_WEEKS * 7, *(days[name] for name in COMMAND_TYPES))


def _scope(
    connection: sqlite3.Connection, params: ListToldLines | Stats, visible: Visibility
) -> tuple[str | None, frozenset[str]]:
    project = projects.find(connection, params.project, visible)
    return project, projects.find_hidden(connection, visible, project)


def _compare(regular: _Counts, shadow: _Counts) -> dict[str, Any]:
    differences = map(_difference, _columns(regular), _columns(shadow))
    difference = dict(zip(_COMPARED, differences, strict=True))
    return {"told": _side(regular), "shadow": _side(shadow), "difference": difference}


def _side(rows: _Counts) -> dict[str, Any]:
    return {"sessions": len(rows), **dict(zip(_COMPARED, map(_interval, _columns(rows)), strict=True))}


def _columns(rows: _Counts) -> list[tuple[int, ...]]:
    return list(zip(*rows, strict=True))


def _interval(values: Sequence[int]) -> dict[str, float | None]:
    """The mean and the ends of its 95 % interval; there are no negative counts."""
    interval = _around(_mean(values), _squared_error(values), len(values) - 1)
    return {**interval, "low": None if interval["low"] is None else max(interval["low"], 0.0)}


def _difference(regular: Sequence[int], shadow: Sequence[int]) -> dict[str, float | None]:
    """Welch's 95 % interval of a difference of means, which allows for different variances."""
    errors = [_squared_error(values) for values in (regular, shadow)]
    least = min(len(regular), len(shadow)) - 1
    squares = sum(error**2 / max(len(values) - 1, 1) for error, values in zip(errors, (regular, shadow), strict=True))
    freedom = int(sum(errors) ** 2 / squares + 1e-9) if squares and least else least
    return _around(_mean(regular) - _mean(shadow), sum(errors), freedom)


def _around(mean: float, squared_error: float, freedom: int) -> dict[str, float | None]:
    if freedom < 1:
        return {"mean": round(mean, 2), "low": None, "high": None}
    error = _student(freedom) * math.sqrt(squared_error)
    return {"mean": round(mean, 2), "low": round(mean - error, 2), "high": round(mean + error, 2)}


def _student(freedom: int) -> float:
    """The quantile for these degrees of freedom; beyond the table, an approximation that is correct to two digits."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def _squared_error(values: Sequence[int]) -> float:
    """The squared standard error of the mean; 0 for a single value."""
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1) / len(values)
