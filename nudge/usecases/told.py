"""The ledger for people: what agents were told, whether it helped, and what must not be told again."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from nudge import limits
from nudge.errors import NotFound
from nudge.history import ledger, projects
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import Params
from nudge.usecases.history import InContext, Project, Text
from nudge.usecases.visibility import visible_to

_SURE = 1.96  # standard errors of a 95 % interval


class Told(InContext):
    project: Project = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_TOLD_LISTED)] = limits.DEFAULT_TOLD_LISTED


class ToldLines(BaseModel):
    lines: list[dict[str, Any]]
    never: list[str]


class NeverTell(Params):
    line: Annotated[Text, Field(description="its number or name, as `nudge told` shows it")]
    never: Annotated[bool, Field(description="false: it may be told again")] = True


class NeverTold(BaseModel):
    line: str
    never: bool


class Stats(InContext):
    project: Project = None


class StatsResult(BaseModel):
    """`repeated`: failures that were known and met again. `spared`: facts told at a start whose command was run."""

    weeks: list[dict[str, Any]]
    comparison: dict[str, Any] | None


async def told(app: App, params: Told, call: Call) -> Any:
    """The latest lines, newest first, of one project or of all that the caller may see."""

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(app, connection, params, call)
        rows = ledger.latest(connection, project, hidden, params.limit)
        projects.Names(connection).show(rows)
        return {"lines": rows, "never": sorted(ledger.load_banned(connection))}

    return await app.read(read)


async def never_tell(app: App, params: NeverTell, call: Call) -> Any:
    """Ban a line, or allow it again."""

    def write(connection: sqlite3.Connection) -> str | None:
        name = ledger.find_name(connection, params.line)
        changed = ledger.ban(connection, name, app.now()) if params.never else ledger.unban(connection, name)
        return name if changed else None

    name = await app.write_once(call, write)
    if name is None:
        raise NotFound(f"no line {params.line} {'was told' if params.never else 'is banned'}")
    app.ledger.set_banned(name, params.never)
    return {"line": name, "never": params.never}


async def stats(app: App, params: Stats, call: Call) -> Any:
    """What telling did, by week, and how shadow sessions compare with the others."""

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(app, connection, params, call)
        weeks = ledger.weeks(connection, project, hidden, app.now())
        sides = [ledger.shadow_counts(connection, project, hidden, is_shadow=side) for side in (False, True)]
        comparison = {"told": _side(sides[0]), "shadow": _side(sides[1])} if all(sides) else None
        return {"weeks": weeks, "comparison": comparison}

    return await app.read(read)


def _scope(
    app: App, connection: sqlite3.Connection, params: Told | Stats, call: Call
) -> tuple[str | None, frozenset[str]]:
    project = projects.find(connection, params.project)
    private = visible_to(call, app.session.settings).private
    return project, projects.hidden(connection, private, project, params.caller_project(call))


def _side(rows: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Failures and commands of a session: mean and the ends of its 95 % interval."""
    failures, commands = zip(*rows, strict=True)
    return {"sessions": len(rows), "failures": _interval(failures), "commands": _interval(commands)}


def _interval(values: Sequence[int]) -> dict[str, float]:
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    error = _SURE * math.sqrt(variance / len(values))
    return {"mean": round(mean, 2), "low": round(max(mean - error, 0.0), 2), "high": round(mean + error, 2)}
