"""Observations as the page and `nudge browse` list them: those recorded last come first, page by page, with counts of
what there is."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nudge.history.event import check_type
from nudge.history.queries import live_columns, live_row
from nudge.history.search import correct_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.history.event import SqlConnection

_FROM = "FROM observations AS o LEFT JOIN sessions AS s ON s.id = o.session_id"
_CLOCK_EVERY = 2_000  # rows


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which observations are meant. `hidden` are the projects that the caller may not see."""

    query: str = ""
    project: str | None = None
    obs_type: str | None = None
    client: str | None = None
    session: str | None = None
    since: int | None = None
    until: int | None = None
    hidden: frozenset[str] = frozenset()

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out, so that counts can be read from indexes."""
        return self == Wanted()

    def where(self, connection: SqlConnection) -> tuple[str, list[Any]]:
        """Return the condition on the tables `o` and `s`, and its values. Raises Invalid for a query that cannot be
        parsed."""
        check_type(self.obs_type)
        given: list[tuple[str, Any]] = [
            ("o.project = ?", self.project),
            ("o.obs_type = ?", self.obs_type),
            ("s.client = ?", self.client),
            ("o.session_id = ?", self.session),
            ("o.timestamp >= ?", self.since),
            ("o.timestamp <= ?", self.until),
        ]
        if self.hidden:
            hidden = json.dumps(sorted(self.hidden))
            given.append(("coalesce(o.project NOT IN (SELECT value FROM json_each(?)), 1)", hidden))
        if self.query.strip():
            typed = self.query + "*" if self.query[-1].isalnum() else self.query
            match = correct_query(connection, typed).match
            given.append(("o.id IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?)", match))
        parts = [(sql, value) for sql, value in given if value is not None]
        return " AND ".join(sql for sql, _ in parts) or "1", [value for _, value in parts]


@dataclass(slots=True)
class Counts:
    """How many observations there are by type, project and client. `is_partial`: there was no time to count all."""

    total: int = 0
    types: Counter[str] = field(default_factory=Counter)
    projects: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    is_partial: bool = False

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        for obs_type, project, client, *number in rows:
            count = number[0] if number else 1
            self.types[obs_type] += count
            self.projects[project or ""] += count
            self.clients[client or ""] += count


def page(connection: SqlConnection, wanted: Wanted, before: int | None, limit: int) -> list[dict[str, Any]]:
    """Return the observations that were recorded last before the one with the id `before`."""
    condition, values = wanted.where(connection)
    rows = connection.execute(
        f"SELECT {live_columns()} {_FROM} WHERE {condition} AND o.id < ? ORDER BY o.id DESC LIMIT ?",
        (*values, 2**62 if before is None else before, limit),
    )
    return [live_row(row) for row in rows]


def count(connection: SqlConnection, wanted: Wanted, seconds: float) -> Counts:
    """Count the observations that are meant: all of them, and by each facet as far as there is time."""
    found = Counts()
    if wanted.is_all:
        rows = connection.execute(
            f"SELECT o.session_id, count(*) AS n, s.client {_FROM} GROUP BY o.session_id"
        ).fetchall()
        found.total = sum(row[1] for row in rows)
        for _, number, client in rows:
            found.clients[client or ""] += number
        for counter, column in ((found.types, "obs_type"), (found.projects, "project")):
            pairs = connection.execute(f"SELECT {column}, count(*) FROM observations GROUP BY {column}")
            counter.update({name or "": number for name, number in pairs})
        return found
    condition, values = wanted.where(connection)
    until = time.monotonic() + seconds
    rows_of = connection.execute(f"SELECT o.obs_type, o.project, s.client {_FROM} WHERE {condition}", values)
    while block := rows_of.fetchmany(_CLOCK_EVERY):
        found.add(block)
        if time.monotonic() > until:
            found.is_partial = len(block) == _CLOCK_EVERY
            break
    found.total = found.types.total()
    if found.is_partial:
        found.total = connection.execute(f"SELECT count(*) {_FROM} WHERE {condition}", values).fetchone()[0]
    return found
