"""What a session is told while it works, in the answer of its hooks: about a failure, prompt, edit, or its attempt.

Most events are answered with nothing. Every line passes `tell`, which leaves out what the session was told before and
what the user banned, and records the rest in the ledger.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from nudge import limits
from nudge.clock import boot_seconds
from nudge.context import Context
from nudge.errors import NudgeError
from nudge.history import edits, ledger
from nudge.history.facts import FactChanges, Facts
from nudge.history.ledger import HEADER, Ledger, Line
from nudge.history.redact import PRIVATE
from nudge.storage.database import Database
from nudge.usecases import attempt_lines, learning
from nudge.usecases.app import App
from nudge.usecases.assemble import EXPERIENCES, OTHERS, VALUES, note_line, notes_about, without_attempts_of_lessons
from nudge.usecases.call import Call

_MARGIN = 0.01  # seconds that an answer needs to reach the hook


async def load(app: App, database: Database) -> Facts:
    """Load what the answer to a failure needs into memory: the facts, and the banned lines."""
    await _load_banned(app, database)
    return await learning.load_facts(app, database)


async def answer(
    app: App, database: Database, event: Mapping[str, Any], observation_id: int, context: Context, call: Call
) -> str | None:
    """Return what the hook of a recorded event prints, or None. Learns from the outcome, also when no hook waits. A
    known failure is answered from memory before anything is stored."""
    session = str(event["session_id"])
    line, changes = learning.learn(app, await load(app, database), event, observation_id)
    edited = app.edits.observe(event, app.now())
    if not app.edits.is_loaded:
        app.edits.is_loaded = True
        app.in_background(_load_edits(app, database))
    failure = await tell(app, database, event, ledger.FAILURE, [line] if line is not None else [], call)
    app.in_background(_mark_used(app, database, session, event))
    if failure is not None:
        attempt_lines.count_action(app, event)
        app.in_background(_process_answered_failure(app, database, event, observation_id, context, changes))
        return failure
    await learning.store_changes(app, database, event, changes)
    await learning.credit_hints(app, database, event, context)
    outcomes = await attempt_lines.observe_outcome(app, database, event, observation_id, can_tell=not _is_late(call))
    attempt_lines.count_action(app, event)
    if call.deadline is None:  # from the spool: no hook reads the answer
        return None
    if event.get("type") == "session_stop":  # an agent that is told something as it stops would go on working
        return None
    if event.get("type") == "user_prompt":
        return await tell(app, database, event, ledger.PROMPT, await _about_prompt(app, database, event), call)
    texts = [
        await tell(app, database, event, ledger.EDIT, edited, call),
        await tell(app, database, event, ledger.ATTEMPT, outcomes, call),
        await _check_in(app, database, event, call) if not outcomes else None,
    ]
    return "\n".join(text for text in texts if text) or None


async def _process_answered_failure(
    app: App,
    database: Database,
    event: Mapping[str, Any],
    observation_id: int,
    context: Context,
    changes: FactChanges,
) -> None:
    """Do the work on an event that was left until its failure was answered. An attempt that it decides is told
    later."""
    await learning.store_changes(app, database, event, changes)
    await learning.credit_hints(app, database, event, context)
    await attempt_lines.observe_outcome(app, database, event, observation_id, can_tell=False)


async def _check_in(app: App, database: Database, event: Mapping[str, Any], call: Call) -> str | None:
    session = str(event["session_id"])
    line = await attempt_lines.check_in(app, database, session)
    if line is None or _is_late(call):  # the next action has another chance
        return None
    app.activity.note_reminder(session)
    return await tell(app, database, event, ledger.ATTEMPT, [line], call)


async def _load_edits(app: App, database: Database) -> None:
    """Add the recent edits in the history to those that this server saw since its start."""
    for event in await database.read(lambda connection: edits.load(connection, app.now())):
        app.edits.observe(event, app.now())


async def tell(
    app: App, database: Database, event: Mapping[str, Any], moment: str, lines: Sequence[Line], call: Call
) -> str | None:
    """Return the text of those lines that are new to the event's session and fit; they are recorded in the ledger. None
    when there are none, when the hook no longer waits, and in a shadow session."""
    setting = app.session.settings.tell
    if not lines or _is_late(call) or ledger.is_silent(setting):
        return None
    # `again`: a failure is answered even if the session's start told of it, and a reminder may repeat a line. `learn`
    # and `attempt_lines` decide how often.
    session, project = str(event["session_id"]), _project(event)
    new = app.ledger.claim(session, project, _fitting(lines), again=moment in (ledger.FAILURE, ledger.ATTEMPT))
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
    rows = await database.write(
        lambda connection: ledger.store(connection, session, project, app.now(), moment, lines, is_shadow=is_shadow)
    )
    app.ledger.add_rows(session, rows, lines)


async def session_ledger(app: App, database: Database, session: str) -> Ledger:
    """The ledger, with the lines that the session was told before this server started."""
    app_ledger = app.ledger
    await _load_banned(app, database)
    if not app_ledger.is_loaded(session):
        rows, side = await database.read(
            lambda connection: (ledger.load_session(connection, session), ledger.load_side(connection, session))
        )
        if side is None and ledger.is_comparing(setting := app.session.settings.tell):
            side = is_shadow = ledger.is_shadow(setting, session)
            app.in_background(
                database.write(lambda connection: ledger.store_side(connection, session, is_shadow, app.now()))
            )
        app_ledger.add_session(session, rows, is_shadow=side)
    return app_ledger


async def _load_banned(app: App, database: Database) -> None:
    if app.ledger.banned is None:
        banned = await database.read(ledger.load_banned)
        app.ledger.banned = banned if app.ledger.banned is None else app.ledger.banned


async def _mark_used(app: App, database: Database, session: str, event: Mapping[str, Any]) -> None:
    """Mark the lines in the ledger that this event uses."""
    app_ledger = await session_ledger(app, database, session)
    if used := app_ledger.take_used(session, event):
        await database.write(lambda connection: ledger.mark_used(connection, used, app.now()))


async def _about_prompt(app: App, database: Database, event: Mapping[str, Any]) -> list[Line]:
    """Lines about the notes that the prompt is about; none when the search takes too long."""
    await session_ledger(app, database, str(event["session_id"]))
    prompt, namespace, now = str(event.get("content") or ""), _project(event), app.now()
    if not prompt or prompt == PRIVATE:
        return []

    def read(connection: sqlite3.Connection) -> list[Line]:
        kinds = (*VALUES, *EXPERIENCES, *OTHERS)
        relevant = notes_about(connection, prompt, namespace, kinds, 2 * limits.PROMPT_LINES, now)
        return [note_line(one, now) for one in without_attempts_of_lessons(relevant)[: limits.PROMPT_LINES]]

    try:
        return await database.read(read, timeout=limits.PROMPT_TIMEOUT)
    except NudgeError:
        return []


def _fitting(lines: Sequence[Line]) -> list[Line]:
    """The lines that fit into the answer. A line is never cut."""
    fitting: list[Line] = []
    size = len(HEADER)
    for line in lines[: limits.PROMPT_LINES]:
        size += len(line.text) + 1
        if size <= limits.PROMPT_CHARS:
            fitting.append(line)
    return fitting


def _project(event: Mapping[str, Any]) -> str | None:
    project = event.get("project")
    return project.casefold() if isinstance(project, str) else None


def _is_late(call: Call) -> bool:
    """Whether the hook no longer waits, or will not when the answer arrives."""
    return call.deadline is None or boot_seconds() > call.deadline - _MARGIN
