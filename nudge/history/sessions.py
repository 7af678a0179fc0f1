"""Sessions: when they end, the summary that is stored then, and the latest ones of a project as the digest tells a new
session about them. All is computed from a session's rows."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache, lru_cache

from nudge.core import limits
from nudge.core.context import is_below
from nudge.core.programs import FORMATTERS, JOB_PROGRAMS, LINT_TARGETS, LINTERS, TARGET_RUNNERS
from nudge.core.text import unwrap_command
from nudge.history.causes import error_line
from nudge.history.event import placeholders
from nudge.history.observations import COMMAND_TYPES, FAILURE, FILE_CHANGES, NOT_ACTIONS, UNFAILED_COMMANDS
from nudge.history.work_tree import WorkTree
from nudge.learning.broken_tests import find_failed
from nudge.learning.failures import SURROUNDINGS
from nudge.learning.jobs import job_of
from nudge.learning.outcome import Outcome, analyse
from nudge.learning.shell import parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
    from typing import Any

    from nudge.history.event import SqlConnection
    from nudge.history.work_tree import Commit

_NAMED_FAMILIES = frozenset(("tool", "module", "script", "option", "path"))  # of failures, as learning knows them
_WHOLE_PROGRAMS = LINTERS | FORMATTERS
_WHOLE_SCRIPTS = LINT_TARGETS | {"format", "fmt"}
_SELECTING_OPTIONS = frozenset(("-k", "-t", "-run", "--run", "--grep", "--filter", "--tests"))
_LEAST_WORDS = 4  # of a prompt or of last words that are told
_FIRST_IDEOGRAPHIC = "\u2e80"
_SAME_COMMIT = 5  # seconds between a commit and the event that reports it
_WIP = re.compile(r"\W*wip\b", re.IGNORECASE)
# The user's prompts that led to an action, which `yes` and `thanks` do not.
_INTENTS = (
    "FROM prompts AS p WHERE session_id = ? AND source = 'user' AND content <> '' AND EXISTS (SELECT 1 FROM"
    f" observations AS o WHERE o.prompt_id = p.id AND o.obs_type NOT IN ({placeholders(NOT_ACTIONS)}))"
)
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


def summarize(connection: SqlConnection, session_id: str) -> dict[str, Any]:
    """Compute the summary from the stored rows alone."""
    words = _last_words_of(connection, session_id)
    return {
        **({"last_words": words} if words else {}),
        "intent": intent_of(connection, session_id),
        "files": _changed_files(connection, session_id),
        "failed": _failed_commands(connection, session_id),
        "commits": _commits(connection, session_id),
        "counts": _counts(connection, session_id),
    }


def summary_of(
    connection: SqlConnection, session_id: str, stored: str | None, hidden: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the stored summary, or compute one for a session that has not ended; without what the session did in
    `hidden` projects."""
    summary: dict[str, Any] = summarize(connection, session_id) if stored is None else json.loads(stored)
    return without_hidden(connection, session_id, summary, hidden)


def without_hidden(
    connection: SqlConnection, session_id: str, summary: dict[str, Any], hidden: frozenset[str]
) -> dict[str, Any]:
    """Return a summary without what the session did in `hidden` projects. What it said last may be about that."""
    rows = _rows_in(connection, session_id, hidden)
    if not rows:
        return summary
    ids, files = {row[0] for row in rows}, {row[2] for row in rows}
    counts = Counter(summary["counts"])
    counts.subtract(obs_type for _, obs_type in {(row[0], row[1]) for row in rows})
    return {
        "intent": summary["intent"],
        "files": [path for path in summary["files"] if path not in files],
        "failed": [failed for failed in summary["failed"] if failed["id"] not in ids],
        "commits": [commit for commit in summary["commits"] if commit["id"] not in ids],
        "counts": dict(+counts),
    }


def _rows_in(connection: SqlConnection, session_id: str, projects: frozenset[str]) -> list[Any]:
    """Return id, type and file of what a session did in these projects, with a row for each file."""
    if not projects:
        return []
    there = "session_id = ?1 AND project IN (SELECT value FROM json_each(?2))"
    rows: list[Any] = connection.execute(
        f"SELECT id, obs_type, file_path FROM observations WHERE {there} UNION SELECT id, obs_type, t.file_path"
        f" FROM observations JOIN touched_files AS t ON t.observation_id = id WHERE {there}",
        (session_id, json.dumps(sorted(projects))),
    ).fetchall()
    return rows


def intent_of(connection: SqlConnection, session_id: str) -> str | None:
    """Return the first prompt that led to an action, which `yes` and `thanks` do not."""
    row = connection.execute(
        f"SELECT content {_INTENTS} ORDER BY timestamp, id LIMIT 1",
        (session_id, *NOT_ACTIONS),
    ).fetchone()
    return " ".join(unwrap_command(row[0]).split())[: limits.INTENT_CHARS] if row else None


def _last_words_of(connection: SqlConnection, session_id: str) -> str:
    """Return the last message of the assistant that a session end or turn end has; empty when there is none."""
    row = connection.execute(
        "SELECT json_extract(metadata, '$.last_words') AS words FROM observations WHERE session_id = ?"
        " AND +obs_type IN ('session_end', 'session_stop') AND words <> '' ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return str(row[0]) if row else ""


def _changed_files(connection: SqlConnection, session_id: str) -> list[str]:
    """Changed files in the order of their first change."""
    rows = connection.execute(
        "WITH changes AS (SELECT id, timestamp, file_path FROM observations WHERE session_id = ? AND"
        f" +obs_type IN ({placeholders(FILE_CHANGES)})),"
        " named AS (SELECT id, timestamp, file_path FROM changes WHERE file_path IS NOT NULL UNION ALL"
        " SELECT id, timestamp, also.file_path FROM changes JOIN touched_files AS also ON also.observation_id"
        " = changes.id)"
        " SELECT file_path FROM named GROUP BY file_path ORDER BY min(timestamp), min(id), file_path LIMIT ?",
        (session_id, *FILE_CHANGES, limits.MAX_SUMMARY_ITEMS),
    )
    return [row[0] for row in rows]


def _failed_commands(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    """Each command that failed, once, with the id of the observation in which it, or its job with another command,
    passed afterwards, if any."""
    rows = connection.execute(
        "SELECT content, max(id), max(timestamp) FROM observations WHERE session_id = ? AND +obs_type = ?"
        " GROUP BY content ORDER BY min(timestamp), min(id) LIMIT ?",
        (session_id, FAILURE, limits.MAX_SUMMARY_ITEMS),
    ).fetchall()
    passed = _passed_commands(connection, session_id) if rows else []
    return [
        {"command": command, "id": failed_id, "passed": _passed_later(passed, command, (timestamp, failed_id))}
        for command, failed_id, timestamp in rows
    ]


def _passed_commands(connection: SqlConnection, session_id: str) -> list[tuple[tuple[int, int], str]]:
    """Return time and id, and the text, of each command that passed, first to last. One without an exit code does not
    count, nor does one whose failure a pipe hid."""
    rows = connection.execute(
        "SELECT timestamp, id, content, obs_type, metadata FROM observations WHERE session_id = ?"
        f" AND +obs_type IN ({placeholders(UNFAILED_COMMANDS)}) AND json_extract(metadata, '$.exit_code') = 0"
        " ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, *UNFAILED_COMMANDS, limits.TOLD_COMMANDS_READ),
    ).fetchall()
    return [
        ((timestamp, row_id), content) for timestamp, row_id, content, *rest in reversed(rows) if _has_passed(*rest)
    ]


def _passed_later(passed: Sequence[tuple[tuple[int, int], str]], failed: str, when: tuple[int, int]) -> int | None:
    later = ((row_id, content) for (timestamp, row_id), content in passed if (timestamp, row_id) > when)
    return next((row_id for row_id, content in later if content == failed or _is_same_job(content, failed)), None)


def _commits(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT id, content, metadata FROM observations WHERE session_id = ? AND +obs_type = 'git_commit'"
        " ORDER BY timestamp, id LIMIT ?",
        (session_id, limits.MAX_SUMMARY_ITEMS),
    )
    return [{"id": row[0], "hash": _commit_hash(json.loads(row[2])), "command": row[1]} for row in rows]


def _commit_hash(metadata: dict[str, Any]) -> str | None:
    commit = metadata.get("commit") or metadata.get("commit_hash") or metadata.get("hash")
    return str(commit) if commit else None


def _counts(connection: SqlConnection, session_id: str) -> dict[str, int]:
    rows = connection.execute(
        "SELECT obs_type, count(*) FROM observations WHERE session_id = ? GROUP BY obs_type ORDER BY obs_type",
        (session_id,),
    )
    return dict(rows.fetchall())


# The latest sessions


class Place:
    """Where a session starts."""

    __slots__ = ("branch", "cwd")

    def __init__(self, cwd: str | None = None, branch: str | None = None) -> None:
        self.cwd, self.branch = cwd, branch


class SessionEntry:
    """The told part of an observation or a prompt; `error` is the line that names the cause of a failure, `tests` are
    the ids of the tests that failed."""

    __slots__ = ("content", "error", "id", "tests", "timestamp")

    def __init__(
        self, identity: int, timestamp: int, content: str, error: str = "", tests: frozenset[str] = frozenset()
    ) -> None:
        self.id, self.timestamp, self.content, self.error, self.tests = identity, timestamp, content, error, tests

    @property
    def what_failed(self) -> object:
        """Equal for two failures of the same tests, or of the same command with the same error."""
        return self.tests or (self.content, self.error)


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
        passes: _PassedJobs,
        work_tree: Callable[[str | None], WorkTree],
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        """What the session did in `hidden` projects is left out."""
        self.id, self.project, self.client, started_at, self.ended_at = row
        left_out = {row[0] for row in _rows_in(connection, self.id, hidden)}
        newest = connection.execute(
            "SELECT timestamp, branch, clone FROM observations WHERE session_id = ?"
            " AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY timestamp DESC, id DESC LIMIT 1",
            (self.id, json.dumps(list(left_out))),
        ).fetchone()
        self.last: int = newest[0] if newest else started_at
        self.branch: str | None = newest[1] if newest else None
        self.clone: str | None = newest[2] if newest else None
        self.intents = _latest_intents(connection, self.id)
        self._told_intents = [intent.content for intent in self.intents if _says_something(intent.content)]
        changes = [change for change in _latest_changes(connection, self.id) if change.id not in left_out]
        self.files = [change.content for change in changes]
        self._has_acted = _has_acted(connection, self.id)
        tree = work_tree(self.clone)
        commits = tree.read_commits()
        self._is_branch_gone = self.branch is not None and tree.has_branch(self.branch) is False
        self.commit = _last_commit(connection, self.id, left_out, commits)
        self._committed = commits[-1].timestamp if commits else 0
        self._latest_subject = commits[-1].subject if commits else ""
        foreign = _commits_of_others(connection, self) if changes else {}
        self.uncommitted = [change.content for change in changes if self._is_uncommitted(change, tree, foreign)]
        failures = (failed for failed in _failing_jobs(connection, self.id) if failed.id not in left_out)
        self.failing = next((failed for failed in failures if not passes.has_later(self.project, failed)), None)
        words = "" if left_out else _last_words_of(connection, self.id)
        self._is_described = bool(self.intents or words)
        self.last_words = words if _says_something(words) else ""

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
    passes, work_tree = _PassedJobs(connection), cache(WorkTree)  # a clone's files are read once
    sessions = [SessionRow(connection, row, passes, work_tree, hidden) for row in rows if row[0] != excluded]
    return sorted(sessions, key=lambda session: -session.last)


def own_session(connection: SqlConnection, session_id: str, hidden: frozenset[str] = frozenset()) -> SessionRow | None:
    """Return a session, without what it did in `hidden` projects; None for one of such a project."""
    row = connection.execute(
        "SELECT id, project, client, started_at, ended_at FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None or row[1] in hidden:
        return None
    return SessionRow(connection, row, _PassedJobs(connection), WorkTree, hidden)


def _says_something(text: str) -> bool:
    """Whether a prompt or last words are of four words or more: `ok go on` and `All done.` tell another agent nothing.
    In a script that does not separate words, two characters count as a word."""
    return max(len(text.split()), sum(char >= _FIRST_IDEOGRAPHIC for char in text) // 2) >= _LEAST_WORDS


def _latest_intents(connection: SqlConnection, session_id: str) -> list[SessionEntry]:
    """The user's latest prompts that led to an action, oldest first."""
    rows = connection.execute(
        f"SELECT id, timestamp, content {_INTENTS} ORDER BY timestamp DESC, id DESC LIMIT ?",
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


class _PassedJobs:
    """The jobs that succeeded in each project, among its newest rows. A project's rows are read on first use."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._projects: dict[str | None, dict[str, int]] = {}
        """The commands with a job that succeeded, and when last."""

    def has_later(self, project: str | None, failed: SessionEntry) -> bool:
        """Whether the same job passed after it failed, in any session."""
        if project not in self._projects:
            self._projects[project] = self._read(project)
        passed = self._projects[project].items()
        return any(at > failed.timestamp and _is_same_job(content, failed.content) for content, at in passed)

    def _read(self, project: str | None) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT timestamp, content, obs_type, metadata FROM (SELECT timestamp, content, obs_type, metadata FROM"
            " observations WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?)"
            f" WHERE obs_type IN ({placeholders(UNFAILED_COMMANDS)})",
            (project, limits.TOLD_ROWS_READ, *UNFAILED_COMMANDS),
        )
        passed: dict[str, int] = {}
        for timestamp, content, *outcome in rows:
            if _programs(content) and _has_passed(*outcome):
                passed.setdefault(content, timestamp)
        return passed


def _failing_jobs(connection: SqlConnection, session_id: str) -> Iterator[SessionEntry]:
    """Yield the jobs that failed and did not pass afterwards with any arguments, the last one first. A failed run of a
    whole suite or of a linter no longer counts once the session committed after it."""
    rows = connection.execute(
        "SELECT id, timestamp, content, obs_type, metadata FROM observations WHERE session_id = ?"
        f" AND +obs_type IN ({placeholders(COMMAND_TYPES)}) ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, *COMMAND_TYPES, limits.TOLD_COMMANDS_READ),
    )
    passed: set[str] = set()
    passed_runs: set[_Run] = set()
    is_committed = False
    for identity, timestamp, content, obs_type, metadata in rows.fetchall():
        programs = _programs(content)
        is_committed = is_committed or obs_type == "git_commit"
        if not programs:
            continue
        if (has_passed := _has_passed(obs_type, metadata)) is not False:
            passed |= programs - TARGET_RUNNERS if has_passed else set()
            passed_runs |= _runs(content) if has_passed else set()
        elif not (programs & passed or _covers(passed_runs, _runs(content)) or (is_committed and _is_whole(content))):
            outcome = analyse({"type": obs_type, "content": content, "metadata": json.loads(metadata)}, identity)
            if outcome is None or not _never_ran(outcome):  # a mistyped command leaves no work
                error = outcome.printed if outcome else ""
                tests = frozenset(test.id for test in find_failed(error))
                yield SessionEntry(identity, timestamp, content, error_line(error), tests)


def _has_passed(obs_type: str, metadata: str) -> bool | None:
    """Whether a command succeeded, and not only because a pipe hid a failure; None when it was interrupted."""
    if obs_type == FAILURE:
        return False
    outcome = analyse({"type": obs_type, "metadata": json.loads(metadata)}, 0)
    return None if outcome is None else not outcome.printed


def _never_ran(outcome: Outcome) -> bool:
    """Whether a command failed for want of what its own words name: a program, a file, an option, a target."""
    failure = outcome.failure
    if failure is None or failure.nature != SURROUNDINGS or failure.family not in _NAMED_FAMILIES:
        return False
    words = (word for call in outcome.calls for word in (call.tool, *call.words))
    names = {name.lstrip("-") for word in words for name in (word, word.partition("=")[0], word.partition("::")[0])}
    return failure.detail.lstrip("-") in names


def _programs(command: str) -> set[str]:
    """The jobs in a command line, by the names of their programs: only their failures count as work that a session left
    broken."""
    words = (os.path.basename(word) for word in command[: limits.MAX_LEARNED_COMMAND].replace("(", " ").split())
    return {word for word in words if word in JOB_PROGRAMS}


@lru_cache(1_000)
def _jobs(command: str) -> frozenset[tuple[str, ...]]:
    """The jobs in a command line, each with its arguments but without options: `python -m pytest -q tests` and
    `.venv/bin/pytest tests` are the same."""
    jobs = set()
    for simple in parse_known(command[: limits.MAX_LEARNED_COMMAND]):
        names = [os.path.basename(word) for word in simple.words]
        start = next((at for at, name in enumerate(names) if name in JOB_PROGRAMS), None)
        if start is not None:
            jobs.add((names[start], *(word for word in simple.words[start + 1 :] if not word.startswith("-"))))
    return frozenset(jobs)


_Run = tuple[str, frozenset[str]]


@lru_cache(1_000)
def _runs(command: str) -> frozenset[_Run]:
    """What a command line does, whatever program does it: `pytest tests/a.py` and `make check` test, the first a part,
    which is named by its targets."""
    parsed = [one for one in parse_known(command[: limits.MAX_LEARNED_COMMAND]) if _programs(one.text)]
    return frozenset((job, frozenset(filter(_is_target, one.arguments))) for one in parsed if (job := job_of(one)))


def _is_same_job(passed: str, failed: str) -> bool:
    """Whether a command that passed shows that the job of one that failed does."""
    return bool(_jobs(failed) & _jobs(passed)) or _covers(_runs(passed), _runs(failed))


def _covers(passed: Set[_Run], failed: Set[_Run]) -> bool:
    """Whether all that failed has passed: the same targets, or the whole."""
    return bool(failed) and all((job, targets) in passed or (job, frozenset()) in passed for job, targets in failed)


def _is_whole(command: str) -> bool:
    """Whether it runs a linter, a formatter or a whole test suite, rather than selected tests."""
    if not _SELECTING_OPTIONS.isdisjoint(command.split()):
        return False
    return all(
        program in _WHOLE_PROGRAMS or not _WHOLE_SCRIPTS.isdisjoint(arguments) or not any(map(_is_target, arguments))
        for program, *arguments in _jobs(command)
    )


def _is_target(argument: str) -> bool:
    return argument not in (".", "./", "./...") and ("/" in argument or "::" in argument or "." in argument)
