"""Hints as a session is told them: commands that can be run here, as they are typed here, and how their last run ended.

What a person or an agent set is told as it is. What `scan` or learning set is told only where it can be run.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge import limits
from nudge.clock import ago
from nudge.history.availability import as_typed, can_run, is_known
from nudge.history.facts import is_usable, outcome_of
from nudge.history.failed_tests import find_failed
from nudge.history.problems import MODULE, PROGRAM
from nudge.history.shell import split_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from nudge.history.event import Connection
    from nudge.history.facts import Offer
    from nudge.history.shell import Simple

SCANNED, GUESSED, LEARNED = "scanned", "guessed", "learned"
"""Where a hint comes from that nobody set."""


# Which


def runnable(hints: Iterable[dict[str, Any]], offers: Iterable[Offer], cwd: str | None) -> list[dict[str, Any]]:
    """The hints that can be run in a directory; `offers` say what fails there, and what to run in its place."""
    usable = [offer for offer in offers if offer.fact.kind in (PROGRAM, MODULE) and is_usable(offer, cwd)]
    told = ((hint, _command_here(hint, usable, cwd)) for hint in hints)
    return [{**hint, "value": value} for hint, value in told if value is not None or hint["value"] is None]


def _command_here(hint: dict[str, Any], offers: Sequence[Offer], cwd: str | None) -> str | None:
    """A hint's command as it works here; None when it does not."""
    value: str | None = hint["value"]
    origin = hint.get("origin")
    if value is None or origin not in (SCANNED, GUESSED, LEARNED):
        return value
    if origin == LEARNED:
        return value if cwd is None or not is_known(cwd) or can_run(value, cwd) else None
    for offer in offers:
        if f"{value} ".startswith(f"{offer.fact.subject} "):
            is_same_tool = any(command.tool == offer.fact.tool for command in split_commands(offer.answer))
            if is_same_tool and offer.answer != value:
                return offer.answer + value[len(offer.fact.subject) :]
            return None if origin == GUESSED else value
    return as_typed(value, cwd) if origin == GUESSED and cwd is not None and is_known(cwd) else value


# How they ended


def add_last_runs(
    connection: Connection, project: str, hints: Sequence[dict[str, Any]], now: float
) -> list[dict[str, Any]]:
    """The hints, those whose last run failed behind the others and with an `outcome` that says so. Failed tests are
    what a command for tests is run for: they are no failure of it."""
    runs = _Runs(connection, project, [hint["value"] for hint in hints if hint["value"]])
    told = [{**hint, **runs.outcome(hint["value"], now)} for hint in hints]
    return sorted(told, key=lambda hint: "outcome" in hint)


class _Runs:
    """The latest command lines of a project that have one of the commands in them, newest first."""

    def __init__(self, connection: Connection, project: str, commands: Sequence[str]) -> None:
        has_one = " OR ".join(["instr(content, ?)"] * len(commands)) or "0"
        self._rows = connection.execute(
            "SELECT content, obs_type, metadata, timestamp FROM (SELECT content, obs_type, metadata, timestamp"
            " FROM observations WHERE project = ? ORDER BY timestamp DESC, id DESC LIMIT ?)"
            f" WHERE obs_type IN ('command', 'command_error') AND ({has_one})",
            (project, limits.TOLD_ROWS_READ, *commands),
        ).fetchall()

    def outcome(self, command: str | None, now: float) -> dict[str, str]:
        """Empty when the last run of the command did not fail, or none is known."""
        runs = list(self._runs_of(command)) if command else []
        if not runs or not runs[0][0]:
            return {}
        only = "has only failed here, last" if len(runs) > 1 and all(failed for failed, _ in runs) else "failed"
        return {"outcome": f"{only} {ago(now - runs[0][1])}"}

    def _runs_of(self, command: str) -> Iterator[tuple[bool, float]]:
        """Whether each run failed, and when it was."""
        wanted = split_commands(command)
        for content, obs_type, metadata, timestamp in self._rows:
            if command not in content or len(wanted) != 1 or not _runs_first(split_commands(content), wanted[0]):
                continue
            event = {"type": obs_type, "content": content, "metadata": json.loads(metadata)}
            if (outcome := outcome_of(event, 0)) is not None:
                yield bool(outcome.error) and not find_failed(outcome.error), timestamp


def _runs_first(commands: list[Simple], wanted: Simple) -> bool:
    """Whether a line runs the wanted command, with whichever arguments, and pipes at most what it prints."""
    if not commands or not all(command.piped for command in commands[:-1]):
        return False
    words = commands[0].words[: len(wanted.words)]
    return (words, commands[0].variables) == (wanted.words, wanted.variables)
