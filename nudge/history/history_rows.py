"""The rows that a digest is made of: a project's newest observations, the best of them, and the prompts behind them.

Only the newest rows of a project are read, by an index over project and time, whatever the size of the history.
"""

from __future__ import annotations

import json

from nudge import limits
from nudge.history.observations import NOT_ACTIONS, TYPES
from nudge.scoring import half_life

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nudge.history.event import Connection

RECENCY, WEIGHT = 0.6, 0.4  # of a row's score
ALWAYS_SHOWN = tuple(name for name, kind in TYPES.items() if kind.always_shown)


class Row:
    """An observation. `times` counts those with the same subject, of which this is the newest."""

    __slots__ = (
        "branch",
        "clone",
        "content",
        "cwd",
        "id",
        "metadata",
        "path",
        "project",
        "prompt_id",
        "score",
        "session_id",
        "times",
        "timestamp",
        "type",
    )

    def __init__(self, row: Sequence[Any], now: float) -> None:
        self.id, self.timestamp, self.session_id, self.prompt_id, self.project, self.type, self.path, self.content = row
        self.score = RECENCY * half_life(now - self.timestamp) + WEIGHT * TYPES[self.type].digest
        self.times = 1
        self.cwd: str | None = None
        self.branch: str | None = None
        self.clone: str | None = None
        self.metadata: dict[str, Any] = {}

    @property
    def subject(self) -> tuple[str, str]:
        """What it is about: a file, or a command. A digest shows one row for each."""
        return ("", self.path) if self.path else (self.type, self.content)


class Intent:
    """A prompt and the number of actions that it led to. `id` is that of an observation: prompts have their own ids."""

    __slots__ = ("actions", "content", "id", "timestamp")

    def __init__(self, identity: int, timestamp: int, content: str, actions: int) -> None:
        self.id, self.timestamp, self.content, self.actions = identity, timestamp, content, actions


class HistoryRows:
    """Reads rows, without those of the session `excluded`."""

    __slots__ = ("_connection", "_excluded", "now")

    def __init__(self, connection: Connection, now: float, excluded: str | None) -> None:
        self._connection, self.now, self._excluded = connection, now, excluded

    def of_project(self, project: str, most: int = limits.INJECTION_CANDIDATES) -> list[Row]:
        """A project's rows, newest first."""
        rows = self._connection.execute(
            "SELECT id, timestamp, session_id, prompt_id, project, obs_type, file_path, substr(content, 1,"
            " 500) FROM observations"
            " WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?",
            (project, most),
        )
        return [Row(row, self.now) for row in rows if row[2] != self._excluded]

    def of_others(self, is_hidden: Callable[[str], bool]) -> list[Row]:
        """Rows of the projects with the latest sessions, but for hidden ones."""
        rows = self._connection.execute(
            "SELECT project, max(started_at) FROM (SELECT project, started_at FROM sessions ORDER BY"
            " started_at DESC LIMIT ?)"
            " WHERE project IS NOT NULL GROUP BY project ORDER BY 2 DESC",
            (limits.FOREIGN_SESSIONS,),
        )
        projects = [row[0] for row in rows if not is_hidden(row[0])]
        return [
            row
            for project in projects[: limits.FOREIGN_PROJECTS]
            for row in self.of_project(project, limits.FOREIGN_CANDIDATES)
        ]

    def choose(self, rows: Iterable[Row], most: int) -> list[Row]:
        """The best by score, one for each subject, ordered by the weight of their type, then by score."""
        best: dict[tuple[str, str], Row] = {}
        for row in rows:
            if row.type not in NOT_ACTIONS:
                best[row.subject] = _better(best.get(row.subject), row)
        top = sorted(best.values(), key=lambda row: (-row.score, -row.id))[:most]
        self._add_details(top)
        return sorted(top, key=lambda row: (-TYPES[row.type].digest, -row.score, -row.id))

    def intents(self, rows: Sequence[Row], most: int) -> list[Intent]:
        """The user's latest prompts that led to an action."""
        actions: dict[int, int] = {}
        first: dict[int, int] = {}
        own: dict[int, int] = {}
        for row in rows:
            if row.prompt_id is not None:
                actions[row.prompt_id] = actions.get(row.prompt_id, 0) + (row.type not in NOT_ACTIONS)
                # Rows come newest first, so the id that stays is the oldest.
                (own if row.type == "user_prompt" else first)[row.prompt_id] = row.id
        wanted = [prompt_id for prompt_id, count in actions.items() if count][: 2 * most]
        rows_of_prompts = self._connection.execute(
            "SELECT id, timestamp, content FROM prompts WHERE id IN (SELECT value FROM json_each(?)) AND"
            " source = 'user' AND content <> ''"
            " ORDER BY timestamp DESC, id DESC",
            (json.dumps(wanted),),
        )
        ids = {**first, **own}
        return [Intent(ids[row[0]], row[1], row[2], actions[row[0]]) for row in rows_of_prompts][:most]

    def _add_details(self, rows: Sequence[Row]) -> None:
        """Read what only chosen rows need: the session's directory, branch and clone, and the metadata of failures and
        commits."""
        directories = self._mapping(
            "SELECT id, cwd FROM sessions WHERE id IN (SELECT value FROM json_each(?))",
            [row.session_id for row in rows],
        )
        ids = [row.id for row in rows if row.type in ALWAYS_SHOWN]
        metadata = self._mapping(
            "SELECT id, metadata FROM observations WHERE id IN (SELECT value FROM json_each(?))", ids
        )
        places = self._connection.execute(
            "SELECT id, branch, clone FROM observations WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps([row.id for row in rows]),),
        )
        by_id = {row.id: row for row in rows}
        for identity, branch, clone in places:
            by_id[identity].branch, by_id[identity].clone = branch, clone
        for row in rows:
            row.cwd = directories.get(row.session_id)
            row.metadata = json.loads(metadata.get(row.id, "{}"))

    def _mapping(self, query: str, ids: Sequence[int | str]) -> dict[Any, Any]:
        return dict(self._connection.execute(query, (json.dumps(ids),)).fetchall())


def _better(best: Row | None, row: Row) -> Row:
    if best is None:
        return row
    better = max(best, row, key=lambda one: one.score)
    better.times = best.times + 1 if row.path is None else 1
    return better
