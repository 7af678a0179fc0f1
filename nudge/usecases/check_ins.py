"""The use cases of sessions at work: a new id, the count of actions, and whether a reminder of the attempt is due."""

from __future__ import annotations

import uuid
from typing import Any

from nudge.memories import journal
from nudge.memories.note import rfc3339
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.caller_session import session_of
from nudge.usecases.journal_models import CheckIn, InSession, StartSession


async def start_session(app: App, _params: StartSession, _call: Call) -> Any:
    """A new session id, for clients that have none of their own. It changes no other session."""
    session, now = str(uuid.uuid4()), app.now()
    app.activity.see(session, now)
    return {"session_id": session, "started_at": rfc3339(now)}


async def should_check_in(app: App, params: CheckIn, call: Call) -> Any:
    """Whether a reminder is due: the session has an open attempt, and has not updated it for so many actions."""
    session = session_of(app.clients, call, params.session_id)
    count = app.activity.count(session)
    if count < params.frequency:
        return {"should_check_in": False, "tool_count": count}
    attempts = await app.read(lambda connection: journal.open_in_session(connection, session))
    open_attempt = {"id": attempts[0].id} if attempts else {}
    return {"should_check_in": bool(attempts), "tool_count": count, **open_attempt}


async def increment_tool_count(app: App, params: InSession, call: Call) -> Any:
    return {"tool_count": app.activity.increment(session_of(app.clients, call, params.session_id), app.now())}


async def reset_tool_count(app: App, params: InSession, call: Call) -> Any:
    app.activity.reset(session_of(app.clients, call, params.session_id), app.now())
    return {"tool_count": 0}
