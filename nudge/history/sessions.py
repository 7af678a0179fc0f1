"""Sessions: when they end, and the latest ones of a project as a start tells a new session about them. All is computed
from a session's rows."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import os
import re
from functools import cache

from nudge.core import limits
from nudge.core.context import is_below
from nudge.core.text import unwrap_command
from nudge.history.event import placeholders
from nudge.history.failing_jobs import PassedJobs, SessionEntry, failing_jobs
from nudge.history.observations import COMMAND_TYPES, FILE_CHANGES, NOT_ACTIONS
from nudge.history.summary import INTENTS, last_words_of, rows_in, says_something, summarize
from nudge.history.work_tree import WorkTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection
    from nudge.history.work_tree import Commit

_SAME_COMMIT = 5  # seconds between a commit and the event that reports it
_WIP = re.compile(r"\W*wip\b", re.IGNORECASE)


# In the queries below `+obs_type` makes SQLite use the index over sessions: by the one over types it would read the
# whole history.


# The end of a session


def close_session(connection: SqlConnection, session_id: str, timestamp: int) -> None:
    """Close a session, unless later events show that it was resumed."""
    if _last_event(connection, session_id) <= timestamp:
        _close(connection, session_id, timestamp)


def close_silent_sessions(connection: SqlConnection, now: float) -> int:
    """Close sessions that have been silent for SILENT_SESSION seconds, and make the summary of ended sessions without
    one again; return how many sessions changed."""
    rows = connection.execute("SELECT id, ended_at FROM sessions WHERE summary IS NULL").fetchall()
    closed = 0
    for session_id, ended_at in rows:
        last = _last_event(connection, session_id)
        if ended_at is not None or last < now - limits.SILENT_SESSION:
            _close(connection, session_id, last if ended_at is None else ended_at)
            closed += 1
    return closed


def _close(connection: SqlConnection, session_id: str, timestamp: int) -> None:
    summary = json.dumps(summarize(connection, session_id), separators=(",", ":"))
    connection.execute("UPDATE sessions SET ended_at = ?, summary = ? WHERE id = ?", (timestamp, summary, session_id))


def _last_event(connection: SqlConnection, session_id: str) -> int:
    """The time of the last observation; of a session without any, its start."""
    row = connection.execute(
        "SELECT coalesce((SELECT max(timestamp) FROM observations WHERE session_id = :id),"
        " (SELECT started_at FROM sessions WHERE id = :id), 0)",
        {"id": session_id},
    ).fetchone()
    return int(row[0])


# Summaries


# The latest sessions


class Place:
    """Where a session starts."""

    __slots__ = ("branch", "cwd")

    def __init__(self, cwd: str | None = None, branch: str | None = None) -> None:
        self.cwd, self.branch = cwd, branch


class SessionRow:
    """One session. `last` is the time of its last event, `failing` the job that was failing at its end and did not pass
    in a later session, `uncommitted` the files of its clone that it changed after its last commit."""

    __slots__ = (
        "_committed",
        "_has_acted",
        "_is_branch_gone",
        "_is_described",
        "_latest_subject",
        "_told_intents",
        "branch",
        "client",
        "clone",
        "commit",
        "ended_at",
        "failing",
        "files",
        "id",
        "intents",
        "last",
        "last_words",
        "project",
        "uncommitted",
    )

    def __init__(
        self,
        connection: SqlConnection,
        row: Sequence[Any],
        passes: PassedJobs,
        work_tree: Callable[[str | None], WorkTree],
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        """What the session did in `hidden` projects is left out."""
        self.id, self.project, self.client, started_at, self.ended_at = row
        left_out = {row[0] for row in rows_in(connection, self.id, hidden)}
        self.last: int
        self.branch: str | None
        self.clone: str | None
        self.last, self.branch, self.clone = _newest(connection, self.id, left_out) or (started_at, None, None)
        self.intents = _latest_intents(connection, self.id)
        self._told_intents = [intent.content for intent in self.intents if says_something(intent.content)]
        changes = [change for change in _latest_changes(connection, self.id) if change.id not in left_out]
        self.files = [change.content for change in changes]
        self._has_acted = _has_acted(connection, self.id)
        tree = work_tree(self.clone)
        commits = tree.read_commits()
        self._is_branch_gone = self.branch is not None and tree.has_branch(self.branch) is False
        self.commit = _last_commit(connection, self.id, left_out, commits)
        self._committed, self._latest_subject = (commits[-1].timestamp, commits[-1].subject) if commits else (0, "")
        foreign = _commits_of_others(connection, self) if changes else {}
        self.uncommitted = [change.content for change in changes if self._is_uncommitted(change, tree, foreign)]
        failures = (failed for failed in failing_jobs(connection, self.id) if failed.id not in left_out)
        self.failing = next((failed for failed in failures if not passes.has_later(self.project, failed)), None)
        words = "" if left_out else last_words_of(connection, self.id)
        self._is_described = bool(self.intents or words)
        self.last_words = words if says_something(words) else ""

    @property
    def intent(self) -> str | None:
        """The first of its prompts that says something."""
        return self._told_intents[0] if self._told_intents else None

    @property
    def latest_intent(self) -> str | None:
        """The last of its prompts that says something."""
        return self._told_intents[-1] if self._told_intents else None

    def is_live(self, now: float) -> bool:
        return self.ended_at is None and now - self.last <= limits.LIVE_SECONDS

    def is_at_work(self, now: float) -> bool:
        """Whether it is live, and ran a command, edited a file or got a prompt in the last two minutes. A session that
        only answers questions changes no file that another one works on."""
        is_prompted = bool(self.intents) and now - self.intents[-1].timestamp <= limits.PROMPTED_SECONDS
        return self.is_live(now) and (self._has_acted or is_prompted)

    @property
    def is_worth_telling(self) -> bool:
        """Whether it committed, or changed files and has a prompt, a failing job or last words. A session that changed
        nothing is not told, whatever failed in it."""
        return self.commit is not None or (bool(self.files) and (self._is_described or self.failing is not None))

    @property
    def is_unfinished(self) -> bool:
        """Whether it left something to do: a failing job, a change without a commit, or a commit called wip; not where
        its branch was deleted since."""
        return not self._is_branch_gone and (self.failing is not None or bool(self.uncommitted) or self._is_wip)

    @property
    def open_files(self) -> list[str]:
        """The files of the work that it left open, from the root of the clone."""
        return [self.relative(path) for path in self.uncommitted or self.files]

    @property
    def _is_wip(self) -> bool:
        """Whether its last commit is called wip, and nobody has committed since; to move it onto another one is not to
        finish it."""
        commit = self.commit
        if commit is None or _WIP.match(commit.content) is None:
            return False
        return self._committed <= commit.timestamp or self._latest_subject == commit.content

    def _is_uncommitted(self, change: SessionEntry, tree: WorkTree, foreign: Mapping[str, int]) -> bool:
        """Whether a change is in no commit, of this session or of anybody else; `foreign` are the last commits of other
        sessions that changed the same files."""
        if self.clone and not is_below(change.content, self.clone):
            return False
        if self.commit is not None and (change.timestamp, change.id) <= (self.commit.timestamp, self.commit.id):
            return False
        if (is_modified := tree.is_modified(change.content)) is not None:
            may_be_staged = self._committed <= change.timestamp and os.path.lexists(change.content)
            return is_modified or (may_be_staged and not tree.has_nothing_staged(change.content))
        return foreign.get(change.content, 0) <= change.timestamp

    def is_on_branch(self, place: Place) -> bool:
        """Whether it was on the branch of the place, or either branch is not known."""
        return not self.branch or not place.branch or self.branch == place.branch

    def is_in_clone(self, place: Place) -> bool:
        """Whether the place is in its clone, or either is not known."""
        return not self.clone or not place.cwd or is_below(place.cwd, self.clone)

    def relative(self, path: str) -> str:
        """A path from the root of the clone."""
        root = f"{(self.clone or '').rstrip('/')}/"
        return path.removeprefix(root) if len(root) > 1 else path


def _newest(connection: SqlConnection, session_id: str, left_out: Collection[int]) -> Any:
    """Return time, branch and clone of the last observation of a session; None when it has none."""
    return connection.execute(
        "SELECT timestamp, branch, clone FROM observations WHERE session_id = ?"
        " AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id, json.dumps(list(left_out))),
    ).fetchone()


def latest_sessions(
    connection: SqlConnection,
    project: str | None,
    now: float,
    excluded: str | None,
    hidden: frozenset[str] = frozenset(),
) -> list[SessionRow]:
    """Return the latest sessions of a project, or of all projects when it is None, newest first; without what they did
    in `hidden` projects."""
    condition, values = ("project = ? AND ", (project,)) if project is not None else ("", ())
    rows = connection.execute(
        f"SELECT id, project, client, started_at, ended_at FROM sessions WHERE {condition}started_at > ?"
        " ORDER BY started_at DESC LIMIT ?",
        (*values, int(now) - limits.TOLD_SESSION_SECONDS, limits.TOLD_SESSIONS_READ),
    ).fetchall()
    passes, work_tree = PassedJobs(connection), cache(WorkTree)  # a clone's files are read once
    sessions = [SessionRow(connection, row, passes, work_tree, hidden) for row in rows if row[0] != excluded]
    return sorted(sessions, key=lambda session: -session.last)


def own_session(connection: SqlConnection, session_id: str, hidden: frozenset[str] = frozenset()) -> SessionRow | None:
    """Return a session, without what it did in `hidden` projects; None for one of such a project."""
    row = connection.execute(
        "SELECT id, project, client, started_at, ended_at FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None or row[1] in hidden:
        return None
    return SessionRow(connection, row, PassedJobs(connection), WorkTree, hidden)


def _latest_intents(connection: SqlConnection, session_id: str) -> list[SessionEntry]:
    """The user's latest prompts that led to an action, oldest first."""
    rows = connection.execute(
        f"SELECT id, timestamp, content {INTENTS} ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, *NOT_ACTIONS, limits.TOLD_PROMPTS_READ),
    )
    entries = [SessionEntry(identity, timestamp, unwrap_command(content)) for identity, timestamp, content in rows]
    return entries[::-1]


def _latest_changes(connection: SqlConnection, session_id: str) -> list[SessionEntry]:
    """The last change of each file, oldest first; the content is the path."""
    rows = connection.execute(
        "SELECT max(id), max(timestamp), file_path FROM (SELECT id, file_path, timestamp, obs_type FROM observations"
        " WHERE session_id = ? ORDER BY timestamp DESC LIMIT ?) WHERE file_path IS NOT NULL"
        f" AND obs_type IN ({placeholders(FILE_CHANGES)}) GROUP BY file_path ORDER BY max(timestamp) DESC LIMIT ?",
        (session_id, limits.TOLD_ROWS_READ, *FILE_CHANGES, limits.TOLD_FILES),
    )
    return [SessionEntry(*row) for row in rows][::-1]


def _has_acted(connection: SqlConnection, session_id: str) -> bool:
    """Whether the session ran a command or changed a file."""
    types = (*COMMAND_TYPES, *FILE_CHANGES)
    return bool(
        connection.execute(
            f"SELECT 1 FROM observations WHERE session_id = ? AND +obs_type IN ({placeholders(types)}) LIMIT 1",
            (session_id, *types),
        ).fetchone()
    )


def _commits_of_others(connection: SqlConnection, session: SessionRow) -> dict[str, int]:
    """The time of the last commit of another session for each file that it had changed before."""
    rows = connection.execute(
        "SELECT changed.file_path, max(made.timestamp) FROM observations AS made JOIN observations AS changed ON"
        " changed.session_id = made.session_id AND (changed.timestamp, changed.id) < (made.timestamp, made.id)"
        f" WHERE made.obs_type = 'git_commit' AND made.timestamp > ? AND made.session_id <> ? AND +made.clone IS ?"
        f" AND +changed.obs_type IN ({placeholders(FILE_CHANGES)})"
        " AND changed.file_path IN (SELECT value FROM json_each(?)) GROUP BY changed.file_path",
        (session.last, session.id, session.clone, *FILE_CHANGES, json.dumps(session.files)),
    )
    return dict(rows.fetchall())


def _last_commit(
    connection: SqlConnection, session_id: str, left_out: Collection[int], commits: Sequence[Commit]
) -> SessionEntry | None:
    row = connection.execute(
        "SELECT id, timestamp, content, metadata FROM observations WHERE session_id = ? AND +obs_type = 'git_commit'"
        " AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id, json.dumps(list(left_out))),
    ).fetchone()
    if row is None:
        return None
    metadata = json.loads(row[3])
    subject = metadata.get("subject") or _logged_subject(commits, row[1], str(metadata.get("commit") or ""))
    return SessionEntry(row[0], row[1], str(subject or row[2]))


def _logged_subject(commits: Sequence[Commit], timestamp: int, hash: str) -> str | None:
    """The subject that git's log has for a commit of which the session's history has none (`git commit -q`): by its
    hash, or else by its time."""
    for commit in reversed(commits):
        is_same = commit.hash.startswith(hash) if hash else abs(commit.timestamp - timestamp) <= _SAME_COMMIT
        if is_same:
            return commit.subject
    return None


# Failing jobs
