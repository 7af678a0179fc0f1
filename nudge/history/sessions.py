"""A project's latest sessions, as the start of another one is told about them."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import os

from nudge import limits
from nudge.history.event import marks
from nudge.history.observations import FAILURE, FILE_CHANGES, NOT_ACTIONS
from nudge.history.summary import last_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.history.event import Connection

# Programs that build, test, check or run something: only their failures say what a session left broken.
_JOBS = frozenset(
    (
        *("pytest", "tox", "nox", "unittest", "mypy", "ruff", "flake8", "pylint", "black"),
        *("make", "just", "task", "cmake", "ctest", "ninja", "bazel"),
        *("npm", "npx", "pnpm", "yarn", "bun", "jest", "vitest", "eslint", "tsc", "deno"),
        *("cargo", "go", "mvn", "gradle", "dotnet", "rake", "rspec", "bundle", "mix", "composer", "phpunit"),
    )
)


class Place:
    """Where a session starts."""

    __slots__ = ("branch", "cwd")

    def __init__(self, cwd: str | None = None, branch: str | None = None) -> None:
        self.cwd, self.branch = cwd, branch


class Entry:
    """An observation or a prompt, by what is told of it."""

    __slots__ = ("content", "id", "timestamp")

    def __init__(self, identity: int, timestamp: int, content: str) -> None:
        self.id, self.timestamp, self.content = identity, timestamp, content


class SessionRow:
    """One session. `last` is the time of its last event, `failing` the last command that failed and never passed."""

    __slots__ = (
        "branch",
        "client",
        "clone",
        "commit",
        "ended_at",
        "failing",
        "files",
        "id",
        "intent",
        "intents",
        "last",
        "last_words",
        "project",
    )

    def __init__(self, connection: Connection, row: Sequence[Any]) -> None:
        self.id, self.project, self.client, started_at, self.ended_at = row
        newest = connection.execute(
            "SELECT timestamp, branch, clone FROM observations WHERE session_id = ? ORDER BY timestamp DESC, id DESC"
            " LIMIT 1",
            (self.id,),
        ).fetchone()
        self.last: int = newest[0] if newest else started_at
        self.branch: str | None = newest[1] if newest else None
        self.clone: str | None = newest[2] if newest else None
        self.intents = _intents(connection, self.id)
        self.intent = self.intents[0].content if self.intents else None
        self.files = _files(connection, self.id)
        self.commit = _last_commit(connection, self.id)
        self.failing = _failing(connection, self.id)
        self.last_words = last_words(connection, self.id)

    def is_live(self, now: float) -> bool:
        return self.ended_at is None and now - self.last <= limits.LIVE_SECONDS

    @property
    def is_worth_telling(self) -> bool:
        """Whether it leaves anything behind; one that changed nothing does not, whatever failed in it."""
        return self.commit is not None or bool(self.files)

    def relative(self, path: str) -> str:
        """A path from the root of the clone."""
        root = f"{(self.clone or '').rstrip('/')}/"
        return path.removeprefix(root) if len(root) > 1 else path


def latest_sessions(connection: Connection, project: str | None, now: float, excluded: str | None) -> list[SessionRow]:
    """The latest sessions of a project, or of all when it is None, newest first."""
    condition, values = ("project = ? AND ", (project,)) if project is not None else ("", ())
    rows = connection.execute(
        f"SELECT id, project, client, started_at, ended_at FROM sessions WHERE {condition}started_at > ?"
        " ORDER BY started_at DESC LIMIT ?",
        (*values, int(now) - limits.TOLD_SESSION_SECONDS, limits.TOLD_SESSIONS_READ),
    ).fetchall()
    sessions = [SessionRow(connection, row) for row in rows if row[0] != excluded]
    return sorted(sessions, key=lambda session: -session.last)


def own_session(connection: Connection, session_id: str) -> SessionRow | None:
    row = connection.execute(
        "SELECT id, project, client, started_at, ended_at FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return SessionRow(connection, row) if row else None


def _intents(connection: Connection, session_id: str) -> list[Entry]:
    """The user's latest prompts that led to an action, oldest first."""
    rows = connection.execute(
        "SELECT id, timestamp, content FROM prompts AS p WHERE session_id = ? AND source = 'user' AND content <> ''"
        " AND EXISTS (SELECT 1 FROM observations AS o"
        f" WHERE o.prompt_id = p.id AND o.obs_type NOT IN ({marks(NOT_ACTIONS)}))"
        " ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, *NOT_ACTIONS, limits.TOLD_PROMPTS_READ),
    )
    return [Entry(*row) for row in rows][::-1]


def _files(connection: Connection, session_id: str) -> list[str]:
    """Changed files, the one that was changed last at the end."""
    rows = connection.execute(
        "SELECT file_path FROM (SELECT file_path, timestamp, obs_type FROM observations WHERE session_id = ?"
        " ORDER BY timestamp DESC LIMIT ?) WHERE file_path IS NOT NULL"
        f" AND obs_type IN ({marks(FILE_CHANGES)}) GROUP BY file_path ORDER BY max(timestamp) DESC LIMIT ?",
        (session_id, limits.TOLD_ROWS_READ, *FILE_CHANGES, limits.TOLD_FILES),
    )
    return [row[0] for row in rows][::-1]


def _last_commit(connection: Connection, session_id: str) -> Entry | None:
    row = connection.execute(
        "SELECT id, timestamp, content, metadata FROM observations WHERE session_id = ? AND +obs_type = 'git_commit'"
        " ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    subject = json.loads(row[3]).get("subject")
    return Entry(row[0], row[1], str(subject or row[2]))


def _failing(connection: Connection, session_id: str) -> Entry | None:
    """The last job that failed and did not pass afterwards, whatever its arguments."""
    rows = connection.execute(
        "SELECT id, timestamp, content, obs_type FROM observations WHERE session_id = ?"
        f" AND +obs_type IN ('command', '{FAILURE}', 'git_commit', 'git_push')"
        " ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, limits.TOLD_COMMANDS_READ),
    )
    passed: set[str] = set()
    for identity, timestamp, content, obs_type in rows:
        programs = _programs(content)
        if obs_type == FAILURE:
            if programs and not programs & passed:
                return Entry(identity, timestamp, content)
        else:
            passed |= programs
    return None


def _programs(command: str) -> set[str]:
    """The jobs in a command line, by the names of their programs."""
    words = (os.path.basename(word) for word in command[: limits.MAX_LEARNED_COMMAND].replace("(", " ").split())
    return {word for word in words if word in _JOBS}
