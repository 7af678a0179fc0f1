"""Injection: what a session is told at its start. Here hints and history meet."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Annotated, Any

from pydantic import BaseModel, Field

from nudge import limits
from nudge.context import Context
from nudge.errors import NudgeError
from nudge.history import digest, store
from nudge.history.digest import Digest
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import ContextParam, Params
from nudge.usecases.inject_offline import hint_rows, project_here, told_of
from nudge.usecases.visibility import visible_to


class Inject(Params):
    session_id: Annotated[str | None, Field(max_length=limits.MAX_SESSION_ID_CHARS)] = None
    source: Annotated[str, Field(description="startup, resume, clear or compact")] = digest.STARTUP
    context: ContextParam = None
    explain: Annotated[bool, Field(description="with score and reason of each line")] = False
    note: Annotated[bool, Field(description="keep it for the session's trace, when a session is given")] = True


class Injection(BaseModel):
    text: str
    items: list[dict[str, Any]]


async def inject(app: App, params: Inject, call: Call) -> Any:
    made = await _made(app, params, call)
    if params.session_id and params.note and made.text:
        with contextlib.suppress(
            NudgeError
        ):  # an agent that cannot be remembered to have been told is told nevertheless
            await note(app, params.session_id, app.now(), made)
    return {"text": made.text, "items": made.items if params.explain else []}


async def note(app: App, session_id: str, timestamp: float, made: Digest, event_id: str | None = None) -> None:
    """Keep what a session was told, for its trace; a hook that had to tell it by itself hands it in later, under an id
    that counts
    once."""

    def keep(connection: sqlite3.Connection) -> None:
        if event_id is None or store.is_new_event(connection, event_id, int(timestamp)):
            store.store_injection(connection, session_id, timestamp, made.items, made.text)

    if app.history is not None:
        app.confirm_role()
        await app.history.write(keep)


async def _made(app: App, params: Inject, call: Call) -> Digest:
    """Without a history, or with one that cannot be read, the hints are still worth telling."""
    names = app.session.store.env_names()
    seen = visible_to(call, app.session.settings, names)
    here = call.merge_context(Context.parse(params.context), names)
    asked: dict[str, Any] = {
        "project": project_here(here),
        "session_id": params.session_id,
        "now": app.now(),
        "source": params.source,
        "hints": await _hints(app, here),
        **told_of(seen),
    }

    def build(connection: sqlite3.Connection | None) -> Digest:
        return digest.build(connection, **asked)

    if app.history is None:
        return build(None)
    try:
        return await app.history.read(build)
    except NudgeError:
        return build(None)


async def _hints(app: App, here: Context) -> list[dict[str, Any]]:
    found = await app.in_slices(app.session.store.query(app.now(), context=here, limit=limits.INJECTION_VARIANTS))
    return hint_rows(found["hints"])
