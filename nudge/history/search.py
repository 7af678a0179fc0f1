"""Full-text search, and what was relevant lately."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge import limits
from nudge.decay import half_life
from nudge.history.model import COLUMNS, check_type, marks, observation
from nudge.history.query import to_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.history.model import Connection

RELEVANCE, RECENCY = 0.7, 0.3  # of a blended score
_INDEX = f"o.id, o.timestamp, o.obs_type, substr(o.content, 1, {limits.PREVIEW_CHARS}), o.file_path, o.session_id"
_INDEX_NAMES = ("id", "timestamp", "obs_type", "content_preview", "file_path", "session_id")
_FULL = ", ".join(f"o.{name}" for name in COLUMNS.split(", "))
# The full-text index comes first whatever the statistics say: it yields its rows by rank, and the limit then stops it.
_FOUND = "FROM observations_fts AS f CROSS JOIN observations AS o ON o.id = f.rowid WHERE observations_fts MATCH ?"


class Filter:
    """What a match must also be."""

    __slots__ = ("_parts", "values")

    def __init__(
        self, project: str | None, obs_type: str | None, before: int | None, after: int | None, hidden: frozenset[str]
    ) -> None:
        check_type(obs_type)
        given = (
            ("o.project = ?", project),
            ("o.obs_type = ?", obs_type),
            ("o.timestamp < ?", before),
            ("o.timestamp > ?", after),
            (
                "coalesce(o.project NOT IN (SELECT value FROM json_each(?)), 1)",
                json.dumps(sorted(hidden)) if hidden else None,
            ),
        )
        self._parts = [part for part, value in given if value is not None]
        self.values = [value for _, value in given if value is not None]

    @property
    def sql(self) -> str:
        return "".join(f" AND {part}" for part in self._parts)


def search(
    connection: Connection,
    query: str,
    *,
    project: str | None = None,
    obs_type: str | None = None,
    before: int | None = None,
    after: int | None = None,
    order_by: str = "relevance",
    limit: int = limits.DEFAULT_SEARCH_LIMIT,
    offset: int = 0,
    now: float = 0.0,
    full: bool = False,
    hidden: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """Matches as index entries, or whole with `full`, none of the projects `hidden`; `now` counts for the order
    `blended` only."""
    match, only = to_match(query), Filter(project, obs_type, before, after, hidden)
    if order_by == "blended":
        ids = _blended(connection, match, only, now)[offset : offset + limit]
        rows = _fetch(connection, ids, _FULL if full else _INDEX)
    else:
        rows = connection.execute(
            f"SELECT {_FULL if full else _INDEX} {_FOUND}{only.sql} ORDER BY f.rank LIMIT ? OFFSET ?",
            (match, *only.values, limit, offset),
        ).fetchall()
    return [observation(row) if full else dict(zip(_INDEX_NAMES, row, strict=True)) for row in rows]


def _blended(connection: Connection, match: str, only: Filter, now: float) -> list[int]:
    """The best matches and the newest ones, weighed against each other: one that is neither cannot win."""
    candidates: dict[int, tuple[float, int]] = {}
    for order in ("f.rank", "f.rowid DESC"):
        rows = connection.execute(
            f"SELECT o.id, f.rank, o.timestamp {_FOUND}{only.sql} ORDER BY {order} LIMIT ?",
            (match, *only.values, limits.BLENDED_CANDIDATES),
        )
        candidates.update((row[0], (row[1], row[2])) for row in rows)
        if len(candidates) < limits.BLENDED_CANDIDATES:
            break  # these are all there are
    best = min((rank for rank, _ in candidates.values()), default=-1.0) or -1.0

    def score(identity: int) -> tuple[float, int]:
        rank, timestamp = candidates[identity]
        return RELEVANCE * (rank / best) + RECENCY * half_life(now - timestamp), identity

    return sorted(candidates, key=score, reverse=True)


def _fetch(connection: Connection, ids: Sequence[int], columns: str) -> list[Any]:
    rows = {
        row[0]: row
        for row in connection.execute(f"SELECT {columns} FROM observations AS o WHERE o.id IN ({marks(ids)})", ids)
    }
    return [rows[identity] for identity in ids]
