"""The rows out of which a digest is made: the newest of a project, the best of them, and the prompts that led to them.

Whatever the size of the history, only the newest rows of a project are looked at, by an index over project and time.
"""

from __future__ import annotations

import json

from nudge import limits
from nudge.decay import half_life
from nudge.history.model import NO_ACTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from nudge.history.model import Connection

FAILURE = "command_error"
LASTING = (FAILURE, "git_commit")  # what no digest of their project leaves out for want of room
RECENCY, WEIGHT = 0.6, 0.4
_WEIGHTS = {
    **dict.fromkeys((*LASTING, "file_edit", "file_write"), 1.0),
    **dict.fromkeys(("command", "git_push"), 0.67),
    **dict.fromkeys(("mcp_call", "task_spawn"), 0.33),
}
_LEAST_WEIGHT = 0.17


def weight(obs_type: str) -> float:
    return _WEIGHTS.get(obs_type, _LEAST_WEIGHT)


class Row:
    """An observation; `times` counts those that say the same, of which this is the newest."""

    __slots__ = (
        "content",
        "cwd",
        "facts",
        "id",
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
        self.score = RECENCY * half_life(now - self.timestamp) + WEIGHT * weight(self.type)
        self.times = 1
        self.cwd: str | None = None
        self.facts: dict[str, Any] = {}

    @property
    def subject(self) -> tuple[str, str]:
        """What it is about: of one file one row is enough, and of a command that was run again and again."""
        return ("", self.path) if self.path else (self.type, self.content)


class Intent:
    """A prompt with what came of it. `id` is the observation to ask for, since prompts have numbers of their own."""

    __slots__ = ("actions", "content", "id", "timestamp")

    def __init__(self, identity: int, timestamp: int, content: str, actions: int) -> None:
        self.id, self.timestamp, self.content, self.actions = identity, timestamp, content, actions


class Past:
    """What is stored, as seen from a moment; the rows of one session may be left out."""

    __slots__ = ("_connection", "_left_out", "now")

    def __init__(self, connection: Connection, now: float, left_out: str | None) -> None:
        self._connection, self.now, self._left_out = connection, now, left_out

    def of_project(self, project: str, most: int = limits.INJECTION_CANDIDATES) -> list[Row]:
        """Newest first."""
        found = self._connection.execute(
            "SELECT id, timestamp, session_id, prompt_id, project, obs_type, file_path, substr(content, 1, 500) FROM observations"
            " WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?",
            (project, most),
        )
        return [Row(row, self.now) for row in found if row[2] != self._left_out]

    def of_others(self, excluded: Collection[str | None]) -> list[Row]:
        """From the projects that were worked on last."""
        found = self._connection.execute(
            "SELECT project, max(started_at) FROM (SELECT project, started_at FROM sessions ORDER BY started_at DESC LIMIT ?)"
            " WHERE project IS NOT NULL GROUP BY project ORDER BY 2 DESC",
            (limits.FOREIGN_SESSIONS,),
        )
        projects = [row[0] for row in found if row[0] not in excluded]
        return [
            row
            for project in projects[: limits.FOREIGN_PROJECTS]
            for row in self.of_project(project, limits.FOREIGN_CANDIDATES)
        ]

    def chosen(self, rows: Iterable[Row], most: int) -> list[Row]:
        """The best by score, one for each subject; of those what changed or failed comes first, then by score."""
        best: dict[tuple[str, str], Row] = {}
        for row in rows:
            if row.type not in NO_ACTION:
                best[row.subject] = _better(best.get(row.subject), row)
        top = sorted(best.values(), key=lambda row: (-row.score, -row.id))[:most]
        self._complete(top)
        return sorted(top, key=lambda row: (-weight(row.type), -row.score, -row.id))

    def intents(self, rows: Sequence[Row], most: int) -> list[Intent]:
        """The latest prompts of people that led to anything."""
        actions: dict[int, int] = {}
        first: dict[int, int] = {}
        own: dict[int, int] = {}
        for row in rows:
            if row.prompt_id is not None:
                actions[row.prompt_id] = actions.get(row.prompt_id, 0) + (row.type not in NO_ACTION)
                (own if row.type == "user_prompt" else first)[row.prompt_id] = (
                    row.id
                )  # newest first, so what stays is the oldest
        wanted = [prompt_id for prompt_id, count in actions.items() if count][: 2 * most]
        found = self._connection.execute(
            "SELECT id, timestamp, content FROM prompts WHERE id IN (SELECT value FROM json_each(?)) AND source = 'user' AND content <> ''"
            " ORDER BY timestamp DESC, id DESC",
            (json.dumps(wanted),),
        )
        ids = {**first, **own}
        return [Intent(ids[prompt], when, said, actions[prompt]) for prompt, when, said in found][:most]

    def _complete(self, rows: Sequence[Row]) -> None:
        """What only chosen rows need: where their session worked, and what is known of a failure or a commit."""
        places = self._mapped(
            "SELECT id, cwd FROM sessions WHERE id IN (SELECT value FROM json_each(?))",
            [row.session_id for row in rows],
        )
        told = [row.id for row in rows if row.type in LASTING]
        facts = self._mapped("SELECT id, metadata FROM observations WHERE id IN (SELECT value FROM json_each(?))", told)
        for row in rows:
            row.cwd = places.get(row.session_id)
            row.facts = json.loads(facts.get(row.id, "{}"))

    def _mapped(self, query: str, ids: Sequence[int | str]) -> dict[Any, Any]:
        return dict(self._connection.execute(query, (json.dumps(ids),)).fetchall())


def _better(held: Row | None, row: Row) -> Row:
    if held is None:
        return row
    better = max(held, row, key=lambda one: one.score)
    better.times = held.times + 1 if row.path is None else 1
    return better
