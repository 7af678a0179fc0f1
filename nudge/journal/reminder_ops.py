"""The operations that count what a session does and say when it is due for a reminder of its open attempt."""

from __future__ import annotations

import sqlite3
import uuid
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call, NoParams, session_of
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.history import queries
from nudge.journal import store as journal
from nudge.journal.models import CheckIn, CheckInResult, InSession, StartSessionResult, ToolCountResult
from nudge.journal.ops import caller_of
from nudge.notes.fields import rfc3339


@operation(
    "nudge.start_session",
    tool="start_session",
    group="journal",
    effect="write",
    route="POST /api/v1/journal/sessions",
    result=StartSessionResult,
    listed=False,
    summary="Journal: create a session id, for a client that has none; other sessions are not affected.",
)
async def start_session(app: App, _params: NoParams, _call: Call) -> Any:
    """A new session id, for clients that have none of their own. It changes no other session."""
    session, now = str(uuid.uuid4()), app.now()
    app.activity.see(session, now)
    return {"session_id": session, "started_at": rfc3339(now)}


@operation(
    "nudge.should_check_in",
    tool="should_check_in",
    group="journal",
    effect="read",
    route="GET /api/v1/journal/check-in",
    result=CheckInResult,
    listed=False,
    summary="Journal: whether this session is due for a reminder of its open attempt.",
)
async def should_check_in(app: App, params: CheckIn, call: Call) -> Any:
    """Return whether a reminder is due: the session has an open attempt, and `frequency` actions were counted since its
    last update."""
    session = await _counted_session(app, params, call)
    count = app.activity.count(session)
    if count is None:
        count = await app.read(lambda connection: _stored_actions(connection, session))
    if count < params.frequency:
        return {"should_check_in": False, "tool_count": count}
    attempts = await app.read(caller_of(app, params, call).open_attempts)
    open_attempt = {"id": attempts[0].id} if attempts else {}
    return {"should_check_in": bool(attempts), "tool_count": count, **open_attempt}


@operation(
    "nudge.increment_tool_count",
    tool="increment_tool_count",
    group="journal",
    effect="write",
    route="POST /api/v1/journal/tool-count",
    result=ToolCountResult,
    listed=False,
    summary="Journal: count one action of this session.",
)
async def increment_tool_count(app: App, params: InSession, call: Call) -> Any:
    session, now = await _counted_session(app, params, call), app.now()
    count = await count_action(app, session)

    def write(connection: sqlite3.Connection) -> None:
        journal.count_call(connection, session, _last_update(connection, session), now)

    await app.write(call, write)
    return {"tool_count": count}


@operation(
    "nudge.reset_tool_count",
    tool="reset_tool_count",
    group="journal",
    effect="write",
    route="DELETE /api/v1/journal/tool-count",
    result=ToolCountResult,
    listed=False,
    summary="Journal: reset the action count of this session.",
)
async def reset_tool_count(app: App, params: InSession, call: Call) -> Any:
    session, now = await _counted_session(app, params, call), app.now()
    await app.write(call, lambda connection: journal.reset_calls(connection, session, now))
    app.activity.reset(session, now)
    return {"tool_count": 0}


async def _counted_session(app: App, params: InSession, call: Call) -> str:
    """The session whose actions are counted; for a caller that may not see its project, an unknown one in its place."""
    session, visible = session_of(app.clients, call, params.session_id), visible_to(app, call)
    if not visible.private:
        return session

    def is_shown(connection: sqlite3.Connection) -> bool:
        row = connection.execute("SELECT project FROM sessions WHERE id = ?", (session,)).fetchone()
        return row is None or visible.shows(row[0])

    return session if await app.read(is_shown) else f"{session} of nobody"


async def count_action(app: App, session: str, observation_id: int | None = None) -> int:
    """Count an action of a session, which is stored as this observation, and return how many there were since the last
    update of its attempt. Those before the start of this server are counted in the history."""
    if app.activity.count(session) is None:
        earlier = await app.read(lambda connection: _stored_actions(connection, session, observation_id))
        app.activity.begin(session, earlier, app.now())
    return app.activity.increment(session, app.now())


def _stored_actions(connection: sqlite3.Connection, session: str, before_id: int | None = None) -> int:
    """The actions since the last update of an open attempt, or since the last reset: those in the history while one is
    open, and those that calls counted."""
    since = _last_update(connection, session)
    calls, reset_at = journal.counted_calls(connection, session, since)
    recorded = queries.count_actions(connection, session, int(max(since, reset_at)), before_id) if since else 0
    return calls + recorded


def _last_update(connection: sqlite3.Connection, session: str) -> float:
    """When an open attempt of the session was updated last; 0 when none is open."""
    return max((one.last_update for one in journal.open_in_session(connection, session)), default=0.0)
