"""What a session is told while it works, in the answer of its hooks: about a failure, prompt, edit, or its attempt.

Most events are answered with nothing. Every line passes `tell`, which leaves out what the session was told before and
what the user banned, and records the rest in the ledger.

About its open attempt a session is reminded after every tenth action, and told the outcome that a command's exit code
decides. PRIMARY counts actions in memory, and reads the database for a command, for the first action of a
session and when a reminder is due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.context import Context
from nudge.core.errors import NudgeError
from nudge.history import queries
from nudge.history.redact import PRIVATE
from nudge.journal import store as journal
from nudge.journal.attempts import Attempt, ObservedOutcome, Resolution
from nudge.journal.fields import CONFIRMED, FALSIFIED
from nudge.journal.predictions import judge
from nudge.journal.reminder_ops import count_action
from nudge.learning import observer
from nudge.learning.credit_ops import credit_commands, credit_hints, exit_code_of
from nudge.learning.facts import Changes, Facts
from nudge.learning.outcome import RecordedEvent
from nudge.notes.ops import lifetimes_of
from nudge.storage.database import Database
from nudge.telling import edits, ledger
from nudge.telling.attempt import outcome_line, reminder_line
from nudge.telling.failure_ops import find_other_way
from nudge.telling.file_notes import files_of, lines_for_files
from nudge.telling.ledger import HEADER, BannedLine, Ledger, Line
from nudge.telling.prompt import without_paths
from nudge.telling.prompt_notes import fitting_lines, lines_about, lines_by_meaning

_SILENT, _AUTO = "0", "auto"  # values of the setting `journal`
_MARGIN = 0.01  # seconds that an answer needs to reach the hook


async def load(app: App, database: Database) -> Facts:
    """Load what the answer to a failure needs into memory: the facts, and the banned lines."""
    await load_banned(app, database)
    return await observer.load_facts(app, database)


async def answer(
    app: App, database: Database, event: Mapping[str, Any], observation_id: int, context: Context, call: Call
) -> str | None:
    """Return what the hook of a recorded event prints, or None. Learns from the outcome. A known failure is answered
    from memory before anything is stored."""
    session, recorded = str(event["session_id"]), RecordedEvent(event, observation_id)
    line, unanswered, changes = await observer.learn(app, await load(app, database), recorded)
    edited = app.edits.observe(event, app.now())
    _load_edits_once(app, database)
    if unanswered is not None and not _is_late(call):
        line = await find_other_way(app, event, unanswered, context, call)
    failure = await tell(app, database, event, ledger.FAILURE, [line] if line is not None else [], call)
    app.in_background(_settle(app, database, session, [recorded]))
    if failure is not None:
        app.in_background(_process_answered_failure(app, database, recorded, context, changes))
        return failure
    await observer.store_changes(database, [changes])
    await credit_hints(app, database, recorded, context)
    outcomes = await _observe_outcome(app, database, recorded, can_tell=not _is_late(call))
    await _count_action(app, recorded)
    if call.deadline is None:  # no hook reads the answer
        return None
    if event.get("type") == "session_stop":  # an agent that is told something as it stops would go on working
        return None
    if event.get("type") == "user_prompt":
        return await tell(app, database, event, ledger.PROMPT, await _about_prompt(app, database, event), call)
    texts = [
        await tell(app, database, event, ledger.EDIT, edited, call),
        await tell(app, database, event, ledger.TOUCH, await _about_files(app, database, event), call),
        await tell(app, database, event, ledger.ATTEMPT, outcomes, call),
        await _check_in(app, database, event, call) if not outcomes else None,
    ]
    return "\n".join(text for text in texts if text) or None


async def _process_answered_failure(
    app: App, database: Database, recorded: RecordedEvent, context: Context, changes: Changes
) -> None:
    """Do the work on an event that was left until its failure was answered. An attempt that it decides is told
    later."""
    await _count_action(app, recorded)
    await observer.store_changes(database, [changes])
    await credit_hints(app, database, recorded, context)
    await _observe_outcome(app, database, recorded, can_tell=False)


async def learn_from(app: App, database: Database, stored: Sequence[tuple[Mapping[str, Any], int]]) -> None:
    """Learn from new events of the spool, given with the ids of their observations. No hook reads an answer: nothing is
    told, and no failure counts as told."""
    if not stored:
        return
    recorded = [RecordedEvent(*one) for one in stored]
    taught = await observer.learn_all(app, await load(app, database), recorded)
    await observer.store_changes(database, taught)
    await credit_commands(app, database, recorded)
    _load_edits_once(app, database)
    by_session: dict[str, list[RecordedEvent]] = {}
    for one in recorded:
        session = str(one.event["session_id"])
        by_session.setdefault(session, []).append(one)
        app.edits.observe(one.event, app.now())
        await _count_action(app, one)
        if one.event["type"] == "session_end":
            app.activity.forget(session)
    for session, events in by_session.items():
        await _settle(app, database, session, events, are_late=True)
    for session in await database.read(lambda connection: _sessions_with_attempts(connection, list(by_session))):
        for one in by_session[session]:
            await _observe_outcome(app, database, one, can_tell=False)


def _sessions_with_attempts(connection: sqlite3.Connection, sessions: Sequence[str]) -> list[str]:
    return [session for session in sessions if journal.open_in_session(connection, session)]


def _load_edits_once(app: App, database: Database) -> None:
    if not app.edits.is_loaded:
        app.edits.is_loaded = True
        app.in_background(_load_edits(app, database))


async def _load_edits(app: App, database: Database) -> None:
    """Add the recent edits in the history to those that this server saw since its start."""
    for event in await database.read(lambda connection: edits.load(connection, app.now())):
        app.edits.observe(event, app.now())


# The ledger


async def tell(
    app: App, database: Database, event: Mapping[str, Any], moment: str, lines: Sequence[Line], call: Call
) -> str | None:
    """Return the text of those lines that are new to the event's session and fit; they are recorded in the ledger. None
    when there are none, when the hook no longer waits, and in a shadow session."""
    setting = app.lifetime.settings.tell
    if not lines or _is_late(call) or ledger.is_silent(setting):
        return None
    # `again`: a failure is answered even if the session's start told of it, and a reminder may repeat a line. `learn`,
    # `_reminder` and `_observe_outcome` decide how often.
    session, project = str(event["session_id"]), _project(event)
    new = app.ledger.claim(session, project, fitting_lines(lines), again=moment in (ledger.FAILURE, ledger.ATTEMPT))
    if not new:
        return None
    is_shadow = app.ledger.is_shadow(setting, session)
    app.in_background(_record_lines(app, database, session, project, moment, new, is_shadow))
    return None if is_shadow else HEADER + "\n".join(line.text for line in new)


async def _record_lines(
    app: App,
    database: Database,
    session: str,
    project: str | None,
    moment: str,
    lines: Sequence[Line],
    is_shadow: bool,
) -> None:
    """Record lines in the ledger. Runs in the background: a commit waits for the disk, and a hook must not."""
    stored = await database.write(
        lambda connection: ledger.store(connection, session, project, app.now(), moment, lines, is_shadow=is_shadow)
    )
    app.ledger.add_lines(session, stored)


async def session_ledger(app: App, database: Database, session: str) -> Ledger:
    """The ledger, with the lines that the session was told before this server started."""
    app_ledger = app.ledger
    await load_banned(app, database)
    if not app_ledger.is_loaded(session):
        rows, side = await database.read(
            lambda connection: (ledger.load_session(connection, session), ledger.load_side(connection, session))
        )
        if side is None and ledger.is_comparing(setting := app.lifetime.settings.tell):
            side = is_shadow = ledger.is_shadow(setting, session)
            app.in_background(
                database.write(lambda connection: ledger.store_side(connection, session, is_shadow, app.now()))
            )
        app_ledger.add_session(session, rows, is_shadow=side)
    return app_ledger


async def load_banned(app: App, database: Database) -> set[BannedLine]:
    """The banned lines; the first call reads them from the database."""
    if app.ledger.banned is None:
        banned = await database.read(ledger.load_banned)
        app.ledger.banned = banned if app.ledger.banned is None else app.ledger.banned
    return app.ledger.banned


async def _settle(
    app: App, database: Database, session: str, events: Sequence[RecordedEvent], *, are_late: bool = False
) -> None:
    """Store which lines of the ledger these events of a session use."""
    app_ledger = await session_ledger(app, database, session)
    for event in events:
        if settled := app_ledger.settle(session, event, is_late=are_late):
            await database.write(partial(ledger.settle, settled=settled, timestamp=app.now()))


# A prompt, a file


async def _about_prompt(app: App, database: Database, event: Mapping[str, Any]) -> list[Line]:
    """Lines about the notes that the prompt is about, by its words, else by its meaning; none when the search takes
    too long."""
    await session_ledger(app, database, str(event["session_id"]))
    prompt, namespace, now = str(event.get("content") or ""), _project(event), app.now()
    if not prompt or prompt == PRIVATE:
        return []

    branch = event.get("branch")
    try:
        lines = await database.read(
            lambda connection: lines_about(connection, prompt, namespace, branch, now), timeout=limits.PROMPT_TIMEOUT
        )
        if lines:
            return lines
        question = await app.meaning.question(without_paths(prompt), limits.PROMPT_QUESTION_TIMEOUT)
        if question is None:
            return []
        return await database.read(
            lambda connection: lines_by_meaning(connection, prompt, namespace, branch, now, question),
            timeout=limits.PROMPT_TIMEOUT,
        )
    except NudgeError:
        return []


async def _about_files(app: App, database: Database, event: Mapping[str, Any]) -> list[Line]:
    """Lines about the notes about the files that the event reads or changes; none when the search takes too long."""
    paths, project, session = files_of(event), _project(event), str(event["session_id"])
    if not paths or project is None:
        return []
    await session_ledger(app, database, session)
    now, branch = app.now(), event.get("branch")
    try:
        return await database.read(
            lambda connection: lines_for_files(connection, paths, project, branch, session, now),
            timeout=limits.PROMPT_TIMEOUT,
        )
    except NudgeError:
        return []


# The open attempt of the session


async def _check_in(app: App, database: Database, event: Mapping[str, Any], call: Call) -> str | None:
    session = str(event["session_id"])
    line = await _reminder(app, database, session)
    if line is None or _is_late(call):  # the next action has another chance
        return None
    app.activity.note_reminder(session)
    return await tell(app, database, event, ledger.ATTEMPT, [line], call)


async def _count_action(app: App, recorded: RecordedEvent) -> None:
    """Count an action of the session. The caller passes stored events only, so that a repeated read of a file counts
    once; an update resets the count."""
    if queries.is_action(recorded.event):
        await count_action(app, str(recorded.event["session_id"]), recorded.id)


async def _reminder(app: App, database: Database, session: str) -> Line | None:
    """The reminder, when one is due and an attempt is open. The caller calls `note_reminder` when it tells it."""
    count = app.activity.due_count(session)
    if count is None:
        return None
    attempts = await database.read(lambda connection: journal.open_in_session(connection, session))
    if not attempts:
        app.activity.note_reminder(session)
        return None
    return reminder_line(attempts, count)


async def _observe_outcome(app: App, database: Database, recorded: RecordedEvent, *, can_tell: bool) -> list[Line]:
    """Compare a command's exit code with the predictions of the session's open attempts, and return a line for each
    that it decides. Each outcome of an attempt is offered once; with the setting `journal = auto`, the attempt is
    resolved. `can_tell`: a hook waits for the lines; an offer that no hook reads is repeated later."""
    event, outcome = recorded.event, recorded.outcome
    code = _whole_exit_code(event)
    if code is None or outcome is None or app.lifetime.settings.journal == _SILENT:
        return []
    session, command = str(event["session_id"]), outcome.line
    lines = []
    for attempt, has_changed_files in await database.read(lambda connection: _open_attempts(connection, session)):
        came_true = judge(attempt.prediction, outcome)
        # Only events from the spool are compared by time: hooks report the wall clock, which may have been set since
        # the server's clock began.
        is_older = not can_tell and int(event["timestamp"]) < int(attempt.note.created_at)
        # Agents often run the failing command first: before a file was changed, a failure says nothing about the
        # attempt.
        is_baseline = not came_true and not has_changed_files
        if came_true is None or is_older or is_baseline:
            continue
        observed = ObservedOutcome(CONFIRMED if came_true else FALSIFIED, recorded.id, code, can_tell)
        resolves = app.lifetime.settings.journal == _AUTO
        if (resolves or not attempt.was_told(observed)) and await _store_outcome(
            app, attempt, observed, resolves=resolves
        ):
            lines.append(outcome_line(attempt, observed, command, is_resolved=resolves))
    return lines


def _open_attempts(connection: sqlite3.Connection, session: str) -> list[tuple[Attempt, bool]]:
    """The open attempts of a session, each with whether the session has changed a file since its start."""
    return [
        (attempt, queries.has_changed_files(connection, session, int(attempt.note.created_at)))
        for attempt in journal.open_in_session(connection, session)
    ]


async def _store_outcome(app: App, attempt: Attempt, observed: ObservedOutcome, *, resolves: bool) -> bool:
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


def _whole_exit_code(event: Mapping[str, Any]) -> int | None:
    """None when it is not known, or when the command was cut."""
    is_whole = len(str(event.get("content") or "")) < limits.MAX_COMMAND_CHARS
    return exit_code_of(event) if is_whole else None


# Events and calls


def _project(event: Mapping[str, Any]) -> str | None:
    project = event.get("project")
    return project.casefold() if isinstance(project, str) else None


def _is_late(call: Call) -> bool:
    """Whether the hook no longer waits, or will not when the answer arrives."""
    return call.deadline is None or boot_seconds() > call.deadline - _MARGIN
