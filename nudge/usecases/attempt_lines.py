"""What hooks tell an agent about its open attempt while it works: a check-in, and the outcome that was observed.

Neither needs a process or a wait of its own: `nudge record` waits for PRIMARY's answer to every event anyway, which
also says that the event is stored, and a line travels in that answer. PRIMARY counts actions in memory; the database is
looked at with a command, whose exit code may decide a prediction, and with every tenth action.
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
from nudge.usecases.memories import lifetimes_of

KIND = "attempt"
_COMMANDS = ("command", "command_error", "git_commit", "git_push")
_SILENT, _AUTO = "0", "auto"


def count_action(app: App, event: Mapping[str, Any]) -> None:
    """Count an action of the session: an event that is stored, so that reading a file again at once is none. Calls of
    the journal are none either; an update begins the count anew."""
    if event["type"] in NOT_ACTIONS or _is_journal_call(event):
        return
    app.activity.increment(str(event["session_id"]), app.now())


async def check_in(app: App, database: Database, session: str) -> Line | None:
    """The reminder, when one is due and an attempt is open. The caller notes that it was told."""
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
    """Compare a command's exit code with what the open attempts of its session predict of it, and keep what came of
    them: each outcome of an attempt is offered once, or the attempt is resolved, as the setting says. `can_tell`:
    somebody waits for the line; an offer that nobody reads is made again."""
    code = _exit_code(event)
    if code is None or app.session.settings.journal == _SILENT:
        return []
    session, command = str(event["session_id"]), str(event.get("content") or "")
    lines = []
    for attempt, has_changed_files in await database.read(lambda connection: _open_attempts(connection, session)):
        came_true = judge(attempt.prediction, command, code)
        # Times are compared only for what waited in the spool: hooks have the wall clock, which may have been set since
        # the server's began.
        is_older = not can_tell and int(event["timestamp"]) < int(attempt.note.created_at)
        # Agents look first at what fails: before anything was changed, a failure says nothing about the attempt.
        is_baseline = not came_true and not has_changed_files
        if came_true is None or is_older or is_baseline:
            continue
        observed = Observed(CONFIRMED if came_true else FALSIFIED, observation_id, code, can_tell)
        resolves = app.session.settings.journal == _AUTO
        if (resolves or not attempt.was_told(observed)) and await _keep(app, attempt, observed, resolves=resolves):
            lines.append(_outcome_line(attempt, observed, command, is_resolved=resolves))
    return lines


def _open_attempts(connection: sqlite3.Connection, session: str) -> list[tuple[Attempt, bool]]:
    """The open attempts of a session, each with whether the session has changed a file since its start."""
    return [
        (attempt, views.has_changed_files(connection, session, int(attempt.note.created_at)))
        for attempt in journal.open_in_session(connection, session)
    ]


async def _keep(app: App, attempt: Attempt, observed: Observed, *, resolves: bool) -> bool:
    """Whether it was kept: meanwhile somebody may have changed or resolved the attempt, or told its agent."""
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
    """Under the note's name: with the note, what was told of it goes from the ledger too."""
    name = f"m{attempt.id}"
    return Line(name, KIND, text, reason, ((IDENTITY, name),))


def _exit_code(event: Mapping[str, Any]) -> int | None:
    """None when it is not known, or when not the whole command is."""
    metadata = event.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    is_known = event["type"] in _COMMANDS and type(code) is int
    return code if is_known and len(str(event.get("content") or "")) < limits.MAX_COMMAND_CHARS else None


def _is_journal_call(event: Mapping[str, Any]) -> bool:
    metadata = event.get("metadata")
    tool = metadata.get("tool") if isinstance(metadata, dict) else None
    return event["type"] == "mcp_call" and isinstance(tool, str) and tool.endswith("_ghap")
