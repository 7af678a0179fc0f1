"""Select the hints for the digest: commands that can be run here, as they are typed here, and how their last run ended.

Hints that a user or an agent set are told unchanged. Those that `scan` set are told only where they can be run.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.clock import ago, last_time
from nudge.core.programs import (
    ENVIRONMENT_RUNNERS,
    JOB_PROGRAMS,
    JVM_BUILD_TOOLS,
    JVM_WRAPPERS,
    LANGUAGE_TOOLS,
    LINT_TARGETS,
    LINTERS,
    TARGET_RUNNERS,
    TEST_RUNNERS,
)
from nudge.learning.availability import as_typed, is_known
from nudge.learning.broken_tests import find_failed
from nudge.learning.cure import PATH
from nudge.learning.fact import INVOCATIONS, command_of, is_usable
from nudge.learning.failures import OWN_WORK
from nudge.learning.outcome import analyse
from nudge.learning.shell import parse_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection
    from nudge.learning.command import SimpleCommand
    from nudge.learning.fact import Fact
    from nudge.learning.outcome import Outcome

SCANNED, GUESSED = "scanned", "guessed"
"""Origins of hints that no user or agent set."""

# The targets, scripts and programs of each job for which an unused hint is told.
_JOB_WORDS = {
    "test": TEST_RUNNERS | {"test", "tests", "unit", "spec", "specs", "check"},
    "build": frozenset(("build", "compile", "bundle", "package", "assemble")),
    "lint": LINTERS | LINT_TARGETS,
}
_TASK_RUNNERS = TARGET_RUNNERS | LANGUAGE_TOOLS | JVM_BUILD_TOOLS | {f"./{name}" for name in JVM_WRAPPERS}

_UNUSED_IN_SESSIONS = 2  # sessions that ran commands, but not the obvious one, after which it is not told


# Selection


def drop_unused(hints: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the hints that scan made and nobody used, except for tests, builds and lint: agents look up the others when
    they need them."""
    return [hint for hint in hints if not _is_scanned(hint) or hint.get("is_used") or _job(hint) in _JOB_WORDS]


def _is_scanned(hint: dict[str, Any]) -> bool:
    return hint.get("origin") in (SCANNED, GUESSED)


def _job(hint: dict[str, Any]) -> str:
    return str(hint["name"]).rpartition("/")[2]


def _is_obvious(hint: dict[str, Any]) -> bool:
    """Whether an agent that sees the manifest types the command anyway: `make test`, `npm run build`, `go test ./...`,
    or the usual program of a language, if it is on PATH."""
    commands = parse_commands(hint["value"] or "") if _is_scanned(hint) else []
    if len(commands) != 1 or commands[0].variables or hint.get("stale") or "outcome" in hint:
        return False
    first, *others = commands[0].words
    if hint["origin"] == GUESSED:
        return "/" not in first
    return first in _TASK_RUNNERS and set(others) <= {"run", _job(hint), "./..."}


def _programs_about(hint: dict[str, Any]) -> frozenset[str]:
    """The programs for which a guess, or the obvious command of a manifest, is the answer."""
    if hint.get("origin") == GUESSED:
        return frozenset(command.tool for command in parse_commands(hint["value"] or ""))
    return _JOB_WORDS.get(_job(hint), frozenset()) if _is_obvious(hint) else frozenset()


def drop_covered(hints: Iterable[dict[str, Any]], facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Drop the hints that the facts cover: their answers, guesses about a program that they name, the obvious command
    of a manifest for a job that they are about, and what they say fails."""
    answers = {fact.answer for fact in facts}
    programs = [fact for fact in facts if fact.cure.kind != PATH]
    lines = [line for fact in programs for line in (fact.subject, *fact.also, fact.answer)]
    tools = {command.tool for line in lines for command in parse_commands(line)}

    def is_covered(hint: dict[str, Any]) -> bool:
        return hint["value"] in answers or not tools.isdisjoint(_programs_about(hint))

    def is_refuted(hint: dict[str, Any]) -> bool:
        says_so = "outcome" in hint and not _is_scanned(hint)
        return bool(hint["value"]) and not says_so and any(fact.contradicts(hint["value"]) for fact in facts)

    return [hint for hint in hints if not is_covered(hint) and not is_refuted(hint)]


def drop_explained(facts: Iterable[Fact], hints: Iterable[dict[str, Any]]) -> list[Fact]:
    """Drop the facts whose answer is a hint that somebody set with a reason, or that say it fails: that hint is told,
    and says why."""
    explained = {hint["value"] for hint in hints if _is_explained(hint)}
    refuted = [hint["value"] for hint in hints if hint["value"] and _is_explained(hint) and "outcome" not in hint]
    return [fact for fact in facts if fact.answer not in explained and not any(map(fact.contradicts, refuted))]


def _is_explained(hint: dict[str, Any]) -> bool:
    return bool(hint["reason"]) and not _is_scanned(hint)


def keep_runnable(
    hints: Iterable[dict[str, Any]], facts: Sequence[Fact], cwd: str | None, now: float
) -> list[dict[str, Any]]:
    """Return the hints that can be run in a directory; `facts` say what fails there, and what to run in its place."""
    pairs = ((hint, _command_here(hint, facts, cwd, now)) for hint in hints)
    return [{**hint, "value": value} for hint, value in pairs if value is not None or hint["value"] is None]


def _command_here(hint: dict[str, Any], facts: Sequence[Fact], cwd: str | None, now: float) -> str | None:
    """Return a hint's command as it works here; None when it does not."""
    value: str | None = hint["value"]
    if value is None or not _is_scanned(hint):
        return value
    is_guess = hint["origin"] == GUESSED
    for fact in facts:
        is_about = fact.cure.kind in INVOCATIONS and f"{value} ".startswith(f"{fact.subject} ")
        if is_about and is_usable(fact, cwd, now):
            command = command_of(fact.answer)
            is_same_tool = command is not None and command.tool == fact.cure.tool
            return None if is_same_tool or is_guess else value
    return as_typed(value, cwd) if is_guess and cwd is not None and is_known(cwd) else value


# Outcomes of runs


def add_last_runs(
    connection: SqlConnection, project: str, hints: Sequence[dict[str, Any]], now: float
) -> list[dict[str, Any]]:
    """Add how the last run of each hint ended. A hint whose last run failed comes after the others, with the failure as
    `outcome` and what worked after it as `instead`; failed tests are no failure of a test command. A hint that scan
    made has no outcome if it worked before; it is dropped if its only run failed, or if it is obvious and several
    sessions ran other commands."""
    runs = _Runs(connection, project, [hint["value"] for hint in hints if hint["value"]])
    rows = [row for hint in hints if (row := _with_outcome(connection, hint, runs, now))]
    return sorted(rows, key=lambda hint: "outcome" in hint)


def _with_outcome(
    connection: SqlConnection, hint: dict[str, Any], all_runs: _Runs, now: float
) -> dict[str, Any] | None:
    runs = all_runs.of(hint["value"])
    if not runs:
        is_candidate = _is_obvious(hint) and not hint.get("is_used")
        return None if is_candidate and count_sessions(connection, all_runs.project) >= _UNUSED_IN_SESSIONS else hint
    age = now - runs[0].timestamp
    if not runs[0].failed:
        return {**hint, "last_run": f"ran {ago(age)}"} if _is_scanned(hint) else hint
    has_worked = hint.get("is_used") or not all(run.failed for run in runs)
    if not has_worked and len(runs) > 1:
        instead = _worked_instead(connection, _job(hint), runs)
        return {**hint, "outcome": f"has only failed here, {last_time(age)}", "instead": instead}
    if _is_scanned(hint):
        return hint if has_worked else None
    return {**hint, "outcome": f"failed {ago(age)}"}


class _Run:
    """One run of a hint's command."""

    __slots__ = ("failed", "id", "session", "timestamp")

    def __init__(self, failed: bool, identity: int, session: str, timestamp: int) -> None:
        self.failed, self.id, self.session, self.timestamp = failed, identity, session, timestamp


_LATEST = "SELECT * FROM observations WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?"


def count_sessions(connection: SqlConnection, project: str) -> int:
    """How many sessions ran a command among the latest observations of a project."""
    sql = f"SELECT count(DISTINCT session_id) FROM ({_LATEST}) WHERE obs_type IN ('command', 'command_error')"
    return int(connection.execute(sql, (project, limits.TOLD_ROWS_READ)).fetchone()[0])


class _Runs:
    """The latest command lines of a project that have one of the commands in them, newest first."""

    def __init__(self, connection: SqlConnection, project: str, commands: Sequence[str]) -> None:
        has_one = " OR ".join(["instr(content, ?)"] * len(commands)) or "0"
        self.project = project
        self._rows = connection.execute(
            f"SELECT content, obs_type, metadata, id, session_id, timestamp FROM ({_LATEST})"
            f" WHERE obs_type IN ('command', 'command_error') AND ({has_one})",
            (project, limits.TOLD_ROWS_READ, *commands),
        ).fetchall()

    def of(self, command: str | None) -> list[_Run]:
        return list(self._runs_of(command)) if command else []

    def _runs_of(self, command: str) -> Iterator[_Run]:
        wanted = parse_commands(command)
        for content, obs_type, metadata, *run in self._rows:
            if command not in content or len(wanted) != 1 or not _runs_first(parse_commands(content), wanted[0]):
                continue
            event = {"type": obs_type, "content": content, "metadata": json.loads(metadata)}
            if (outcome := analyse(event, 0)) is not None:
                yield _Run(_has_failed(outcome), *run)


def _has_failed(outcome: Outcome) -> bool:
    """Whether a run shows that its command does not work. Failed tests, findings and errors in code do not."""
    is_own_work = outcome.failure is not None and outcome.failure.nature == OWN_WORK
    return bool(outcome.printed) and not is_own_work and not find_failed(outcome.printed)


def _worked_instead(connection: SqlConnection, job: str, runs: Sequence[_Run]) -> str | None:
    """Return the first command for the same job that succeeded after the failure, in its session."""
    for run in runs:
        rows = connection.execute(
            "SELECT content, metadata FROM observations WHERE session_id = ? AND (timestamp, id) > (?, ?)"
            " AND +obs_type = 'command' ORDER BY timestamp, id LIMIT ?",
            (run.session, run.timestamp, run.id, limits.TOLD_COMMANDS_READ),
        )
        for content, metadata in rows.fetchall():
            outcome = analyse({"type": "command", "content": content, "metadata": json.loads(metadata)}, 0)
            if outcome is not None and not outcome.printed and (invocation := _invocation_for(job, content)):
                return invocation
    return None


def _invocation_for(job: str, line: str) -> str | None:
    """Return the command of a line that does a job, without its pipes; None when the line does another job."""
    commands = parse_commands(line)
    wanted = _JOB_WORDS.get(job, frozenset())
    if not commands or commands[0].variables or not all(command.piped for command in commands[:-1]):
        return None
    first = commands[0]
    if {first.tool, first.program}.isdisjoint(wanted | JOB_PROGRAMS | ENVIRONMENT_RUNNERS):
        return None
    names = {first.tool, *(part for word in first.arguments for part in word.split(":"))}
    return first.text if len(first.text) <= limits.MAX_TOLD_COMMAND and names & wanted else None


def _runs_first(commands: list[SimpleCommand], wanted: SimpleCommand) -> bool:
    """Whether a line runs the wanted command first, with any arguments, and otherwise only pipes its output."""
    if not commands or not all(command.piped for command in commands[:-1]):
        return False
    words = commands[0].words[: len(wanted.words)]
    return (words, commands[0].variables) == (wanted.words, wanted.variables)
