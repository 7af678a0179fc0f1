"""Recent context: observations ranked by recency, type and project, each file once.

A score falls with age. The newest rows of every type are merged by the upper bound of their scores, so the number of
rows that are read does not grow with the history.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import heapq

from nudge import limits
from nudge.history.event import COLUMNS, observation
from nudge.history.observations import TYPES
from nudge.scoring import half_life

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nudge.history.event import SqlConnection

OTHER_PROJECTS = 0.3  # weight relative to the same project
_HEAVIEST = max(TYPES, key=lambda name: TYPES[name].recent)
_WITH_PROJECT, _WITHOUT = (0.5, 0.3, 0.2), (0.6, 0.4, 0.0)


def score(row_type: str, age: float, same_project: bool, *, project_given: bool) -> float:
    recency, kind, project = _WITH_PROJECT if project_given else _WITHOUT
    return (
        recency * half_life(age) + kind * TYPES[row_type].recent + project * (1.0 if same_project else OTHER_PROJECTS)
    )


def recent_observations(
    connection: SqlConnection,
    *,
    project: str | None,
    now: float,
    limit: int = limits.DEFAULT_RECENT_LIMIT,
    hidden: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """Return observations with their `score`, best first, without those of the projects in `hidden`; none for an
    unknown project."""
    if project is not None and not _has_rows(connection, project):
        return []
    observations: list[dict[str, Any]] = []
    files: set[str] = set()
    for value, identity, file_path, whose in _by_score(connection, project, now):
        if len(observations) == limit:
            break
        if whose not in hidden and (file_path is None or file_path not in files):
            files.add(file_path or "")
            row = connection.execute(f"SELECT {COLUMNS} FROM observations WHERE id = ?", (identity,)).fetchone()
            observations.append({**observation(row), "score": round(value, 6)})
    return observations


def _has_rows(connection: SqlConnection, project: str) -> bool:
    return connection.execute("SELECT 1 FROM observations WHERE project = ? LIMIT 1", (project,)).fetchone() is not None


class _Stream:
    """Rows of one type, or of the project, newest first. `bound` is the highest score that a row of that age can have;
    `exact` is its score, or None when the project's stream has the row, too."""

    __slots__ = ("_now", "_project", "_rows", "_type")

    def __init__(self, connection: SqlConnection, now: float, project: str | None, obs_type: str | None) -> None:
        self._now, self._project, self._type = now, project, obs_type
        where, value = ("project", project) if obs_type is None else ("obs_type", obs_type)
        self._rows = connection.execute(
            f"SELECT id, timestamp, file_path, project, obs_type FROM observations WHERE {where} = ? ORDER BY"
            " timestamp DESC, id DESC",
            (value,),
        )

    def next(self) -> Any:
        return self._rows.fetchone()

    def bound(self, row: Any) -> float:
        return self._score(self._type or _HEAVIEST, row)

    def exact(self, row: Any) -> float | None:
        if self._type is not None and self._project is not None and row[3] == self._project:
            return None
        return self._score(row[4], row)

    def _score(self, obs_type: str, row: Any) -> float:
        return score(obs_type, self._now - row[1], self._type is None, project_given=self._project is not None)


def _by_score(
    connection: SqlConnection, project: str | None, now: float
) -> Iterator[tuple[float, int, str | None, str | None]]:
    """Yield every observation as (score, id, file, project), best first, newer first among equals. There is one stream
    for the project and one for each type. The head of a stream is queued under its bound; a row with a lower score is
    queued again under that score."""
    heap: list[tuple[float, int, int, Any, _Stream | None]] = []

    def push(value: float, row: Any, stream: _Stream | None) -> None:
        heapq.heappush(heap, (-value, -row[1], -row[0], row, stream))

    def advance(stream: _Stream) -> None:
        if (row := stream.next()) is not None:
            push(stream.bound(row), row, stream)

    for obs_type in TYPES if project is None else (*TYPES, None):
        advance(_Stream(connection, now, project, obs_type))
    while heap:
        negative, _, _, row, stream = heapq.heappop(heap)
        value = -negative if stream is None else stream.exact(row)
        if stream is not None:
            advance(stream)
        if value is not None and value < -negative:
            push(value, row, None)
        elif value is not None:
            yield value, row[0], row[2], row[3]
