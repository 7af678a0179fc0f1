"""What mattered lately: recency, kind and project in one score, and each file once.

A score falls with age within one type, so the newest rows of every type, merged by the best score they could have, come out in the
order of their scores. Only as many rows are read as could win, however large the history is.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import heapq

from nudge import limits
from nudge.decay import half_life
from nudge.observations.model import COLUMNS, OBS_TYPES, observation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nudge.observations.model import Connection

TYPE_WEIGHTS = {"file_edit": 1.0, "command": 0.67, "session_compact": 0.5, "mcp_call": 0.33}
OTHER_TYPES = 0.17
OTHER_PROJECTS = 0.3  # of what the same project counts
_WITH_PROJECT, _WITHOUT = (0.5, 0.3, 0.2), (0.6, 0.4, 0.0)


def score(row_type: str, age: float, same_project: bool, *, project_given: bool) -> float:
    recency, kind, project = _WITH_PROJECT if project_given else _WITHOUT
    return recency * half_life(age) + kind * TYPE_WEIGHTS.get(row_type, OTHER_TYPES) + project * (1.0 if same_project else OTHER_PROJECTS)


def recent(
    connection: Connection, *, project: str | None, now: float, limit: int = limits.DEFAULT_RECENT_LIMIT
) -> list[dict[str, Any]]:
    """Best first, with `score`. A project of which nothing is known has no recent context, not somebody else's."""
    if project is not None and not _is_known(connection, project):
        return []
    found: list[dict[str, Any]] = []
    files: set[str] = set()
    for value, identity, file_path in _by_score(connection, project, now):
        if len(found) == limit:
            break
        if file_path is None or file_path not in files:
            files.add(file_path or "")
            row = connection.execute(f"SELECT {COLUMNS} FROM observations WHERE id = ?", (identity,)).fetchone()
            found.append({**observation(row), "score": round(value, 6)})
    return found


def _is_known(connection: Connection, project: str) -> bool:
    return connection.execute("SELECT 1 FROM observations WHERE project = ? LIMIT 1", (project,)).fetchone() is not None


def _by_score(connection: Connection, project: str | None, now: float) -> Iterator[tuple[float, int, str | None]]:
    """Every observation as (score, id, file), best first, newer first among equals. A stream's head waits in the heap under the score
    it would have in the asked project; what turns out to be another's goes back under its own."""
    heap: list[tuple[float, int, int, Any, Any]] = []

    def push(value: float, row: Any, stream: Any) -> None:
        heapq.heappush(heap, (-value, -row[1], -row[0], row, stream))

    def advance(obs_type: str, rows: Any) -> None:
        if (row := next(rows, None)) is not None:
            push(score(obs_type, now - row[1], True, project_given=project is not None), row, (obs_type, rows))

    for obs_type in OBS_TYPES:
        advance(obs_type, _newest(connection, obs_type))
    while heap:
        negative, _, identity, row, stream = heapq.heappop(heap)
        if stream is None or project is None or row[2] == project:
            yield -negative, -identity, row[3]
        else:
            push(score(stream[0], now - row[1], False, project_given=True), row, None)
        if stream is not None:
            advance(*stream)


def _newest(connection: Connection, obs_type: str) -> Any:
    return iter(
        connection.execute(
            "SELECT id, timestamp, project, file_path FROM observations WHERE obs_type = ? ORDER BY timestamp DESC, id DESC", (obs_type,)
        )
    )
