"""What hooks tell an agent about its open attempt while it works: a reminder, and the outcome that was observed.

The lines need no process of their own: they travel in PRIMARY's answer to an event, for which `nudge record` waits
anyway. PRIMARY counts actions in memory. It reads the database for a command, whose exit code may decide a prediction,
and for every tenth action.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from nudge import limits
from nudge.errors import NudgeError
from nudge.history import views
from nudge.history.ledger import IDENTITY, Line
from nudge.history.observations import NOT_ACTIONS
from nudge.history.predictions import judge
from nudge.memories import journal
from nudge.memories.attempts import CONFIRMED, FALSIFIED, Attempt, Observed, Resolution
from nudge.storage.database import Database
from nudge.text import quote
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.learning import exit_code_of
from nudge.usecases.memories import lifetimes_of

KIND = "attempt"
_SILENT, _AUTO = "0", "auto"


def count_action(app: App, event: Mapping[str, Any]) -> None:
    """Count an action of the session. The caller passes stored events only, so that a repeated read of a file counts
    once; calls of the journal do not count, and an update resets the count."""
    if event["type"] in NOT_ACTIONS or _is_journal_call(event):
        return
    app.activity.increment(str(event["session_id"]), app.now())


async def check_in(app: App, database: Database, session: str) -> Line | None:
    """The reminder, when one is due and an attempt is open. The caller calls `note_reminder` when it tells it."""
    if not app.activity.is_reminder_due(session):
        return None
    attempts = await database.read(lambda connection: journal.open_in_session(connection, session))
    if not attempts:
        app.activity.note_reminder(session)
        return None
    count, more = app.activity.count(session), f" ({len(attempts)} are open)" if len(attempts) > 1 else ""
    text = (
        f"{_subject(attempts[0])} is open{more}, {count} actions since its last update; it predicts "
        f"{_prediction(attempts[0])}. If that has changed: {_update(attempts[0])}; if you know: resolve_ghap"
    )
    return _line(attempts[0], text, f"{limits.CHECK_IN_ACTIONS} actions without an update")


async def observe_outcome(
    app: App, database: Database, event: Mapping[str, Any], observation_id: int, *, can_tell: bool
) -> list[Line]:
    """Compare a command's exit code with the predictions of the session's open attempts, and return a line for each
    that it decides. Each outcome of an attempt is offered once; with the setting `journal = auto`, the attempt is
    resolved. `can_tell`: a hook waits for the lines; an offer that no hook reads is repeated later."""
    code = _exit_code(event)
    if code is None or app.session.settings.journal == _SILENT:
        return []
    session, command = str(event["session_id"]), str(event.get("content") or "")
    lines = []
    for attempt, has_changed_files in await database.read(lambda connection: _open_attempts(connection, session)):
        came_true = judge(attempt.prediction, command, code)
        # Only events from the spool are compared by time: hooks report the wall clock, which may have been set since
        # the server's clock began.
        is_older = not can_tell and int(event["timestamp"]) < int(attempt.note.created_at)
        # Agents often run the failing command first: before a file was changed, a failure says nothing about the
        # attempt.
        is_baseline = not came_true and not has_changed_files
        if came_true is None or is_older or is_baseline:
            continue
        observed = Observed(CONFIRMED if came_true else FALSIFIED, observation_id, code, can_tell)
        resolves = app.session.settings.journal == _AUTO
        if (resolves or not attempt.was_told(observed)) and await _store_outcome(
            app, attempt, observed, resolves=resolves
        ):
            lines.append(_outcome_line(attempt, observed, command, is_resolved=resolves))
    return lines


def _open_attempts(connection: sqlite3.Connection, session: str) -> list[tuple[Attempt, bool]]:
    """The open attempts of a session, each with whether the session has changed a file since its start."""
    return [
        (attempt, views.has_changed_files(connection, session, int(attempt.note.created_at)))
        for attempt in journal.open_in_session(connection, session)
    ]


async def _store_outcome(app: App, attempt: Attempt, observed: Observed, *, resolves: bool) -> bool:
    """Store the outcome, or resolve the attempt. False when the attempt was changed or resolved meanwhile, or its agent
    was told already."""
    now, lifetimes = app.now(), lifetimes_of(app)
    result = f"the predicted command exited with {observed.exit_code} (#{observed.observation})"

    def write(connection: sqlite3.Connection) -> bool:
        current = journal.get(connection, attempt.id)
        if current.prediction != attempt.prediction or (current.was_told(observed) and not resolves):
            return False
        if resolves:
            resolution = Resolution(observed.status, result=result, is_captured=True)
            journal.resolve(connection, current, resolution, now, lifetimes)
        else:
            journal.note_outcome(connection, current, observed, now)
        return True

    try:
        return await app.write(Call(), write)
    except NudgeError:
        return False


def _outcome_line(attempt: Attempt, observed: Observed, command: str, *, is_resolved: bool) -> Line:
    cause = f"{quote(command, limits.INJECTED_INTENT_CHARS)} exited with {observed.exit_code}"
    if is_resolved:
        text = f"{_subject(attempt)} is {observed.status}: {cause}. Add what you learned: resolve_ghap with its id, "
        text += f"status {observed.status} and lesson"
    else:
        text = f"{_subject(attempt)} looks {observed.status}: it predicted {_prediction(attempt)}, and {cause}. "
        text += f"If so: resolve_ghap with status {observed.status} and what you learned; if not: {_update(attempt)}"
    return _line(attempt, text, "an exit code that the attempt predicted")


def _subject(attempt: Attempt) -> str:
    return f"attempt m{attempt.id} {quote(attempt.note.draft.title, limits.INJECTED_GOAL_CHARS)}"


def _update(attempt: Attempt) -> str:
    """At the terminal: update_ghap is not among the tools that are listed to an agent."""
    return f"nudge journal update m{attempt.id} --note TEXT"


def _prediction(attempt: Attempt) -> str:
    return quote(attempt.prediction, limits.INJECTED_NOTE_CHARS)


def _line(attempt: Attempt, text: str, reason: str) -> Line:
    """A line with the note's name: deleting the note also deletes its lines from the ledger."""
    name = f"m{attempt.id}"
    return Line(name, KIND, text, reason, ((IDENTITY, name),))


def _exit_code(event: Mapping[str, Any]) -> int | None:
    """None when it is not known, or when the command was cut."""
    is_whole = len(str(event.get("content") or "")) < limits.MAX_COMMAND_CHARS
    return exit_code_of(event) if is_whole else None


def _is_journal_call(event: Mapping[str, Any]) -> bool:
    metadata = event.get("metadata")
    tool = metadata.get("tool") if isinstance(metadata, dict) else None
    return event["type"] == "mcp_call" and isinstance(tool, str) and tool.endswith("_ghap")
