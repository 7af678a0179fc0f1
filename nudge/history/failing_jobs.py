"""The jobs of a session (tests, builds, linters) that failed and have not passed since.

`+obs_type` in a query makes SQLite use the index over sessions: by the one over types it would read the whole history.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import os
from functools import lru_cache

from nudge.core import limits
from nudge.core.programs import FORMATTERS, JOB_PROGRAMS, LINT_TARGETS, LINTERS, TARGET_RUNNERS
from nudge.history.causes import error_line
from nudge.history.event import placeholders
from nudge.history.observations import COMMAND_TYPES, FAILURE, UNFAILED_COMMANDS
from nudge.learning.broken_tests import find_failed
from nudge.learning.failures import SURROUNDINGS
from nudge.learning.jobs import job_of
from nudge.learning.outcome import Outcome, analyse
from nudge.learning.shell import parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from nudge.history.event import SqlConnection

_NAMED_FAMILIES = frozenset(("tool", "module", "script", "option", "path"))  # of failures, as learning knows them
_WHOLE_PROGRAMS = LINTERS | FORMATTERS
_WHOLE_SCRIPTS = LINT_TARGETS | {"format", "fmt"}
_SELECTING_OPTIONS = frozenset(("-k", "-t", "-run", "--run", "--grep", "--filter", "--tests"))


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


class PassedJobs:
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
        return any(at > failed.timestamp and is_same_job(content, failed.content) for content, at in passed)

    def _read(self, project: str | None) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT timestamp, content, obs_type, metadata FROM (SELECT timestamp, content, obs_type, metadata FROM"
            " observations WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?)"
            f" WHERE obs_type IN ({placeholders(UNFAILED_COMMANDS)})",
            (project, limits.TOLD_ROWS_READ, *UNFAILED_COMMANDS),
        )
        passed: dict[str, int] = {}
        for timestamp, content, *outcome in rows:
            if _programs(content) and has_passed(*outcome):
                passed.setdefault(content, timestamp)
        return passed


def failing_jobs(connection: SqlConnection, session_id: str) -> Iterator[SessionEntry]:
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
        if (is_passed := has_passed(obs_type, metadata)) is not False:
            passed |= programs - TARGET_RUNNERS if is_passed else set()
            passed_runs |= _runs(content) if is_passed else set()
        elif not (programs & passed or _covers(passed_runs, _runs(content)) or (is_committed and _is_whole(content))):
            outcome = analyse({"type": obs_type, "content": content, "metadata": json.loads(metadata)}, identity)
            if outcome is None or not _never_ran(outcome):  # a mistyped command leaves no work
                error = outcome.printed if outcome else ""
                tests = frozenset(test.id for test in find_failed(error))
                yield SessionEntry(identity, timestamp, content, error_line(error), tests)


def has_passed(obs_type: str, metadata: str) -> bool | None:
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


def is_same_job(passed: str, failed: str) -> bool:
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
