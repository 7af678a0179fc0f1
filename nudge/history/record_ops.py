"""Recording hook events that come by a call or from a transcript: each is stored once. `spool_drain` takes in the
others."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, Params, Result
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.history import store
from nudge.history.redact import redact_event
from nudge.history.sessions import close_silent_sessions
from nudge.learning.credit_ops import command_context
from nudge.telling import hook_answers


class Record(Params):
    event: dict[str, Any]


class RecordResult(Result):
    """`id` is null when the event was stored already, or repeats a recent one. `tell`: a line for the agent."""

    id: int | None
    tell: str | None = None


class RecordMany(Params):
    events: Annotated[list[dict[str, Any]], Field(max_length=limits.MAX_EVENTS_AT_ONCE)]


class RecordManyResult(Result):
    recorded: int
    known: int
    refused: list[dict[str, Any]]


@operation(
    "nudge.record",
    tool="record",
    group="admin",
    effect="write",
    route="POST /api/v1/events",
    result=RecordResult,
    listed=False,
    summary="History: store one hook event; each event id is stored once.",
)
async def record(app: App, params: Record, call: Call) -> Any:
    """Store one event, credit a command's outcome to the hints with the same command, and answer with what is known."""
    context = command_context(app, params.event, call)
    result = await store_event(app, params, call)
    session = str(params.event["session_id"])
    if params.event["type"] == "session_end":
        app.activity.forget(session)
    elif call.client_process is not None:  # after an end, another may have begun in the process
        app.clients.observe(call.client_process, session)
    if result["id"] is not None and app.database is not None:
        text = await hook_answers.answer(app, app.database, params.event, result["id"], context, call)
        return {**result, "tell": text} if text else result
    return result


async def store_event(app: App, params: Record, call: Call) -> Any:
    """Store one event, at most once by its id. The sender should have redacted it; it is redacted again here."""
    return {"id": await app.write(call, lambda connection: store.insert_event(connection, redact_event(params.event)))}


@operation(
    "nudge.record_many",
    tool="record_many",
    group="admin",
    effect="write",
    route="POST /api/v1/events/many",
    result=RecordManyResult,
    listed=False,
    summary="History: store past events.",
)
async def record_many(app: App, params: RecordMany, call: Call) -> Any:
    """Store many old events. Nothing is credited: what worked months ago says little about today."""
    outcomes = await asyncio.gather(*(_record_old(app, event, call) for event in params.events))
    if app.database is not None:
        # The transcript of a subagent may be read after its session's end, which it reopens.
        await app.database.write(lambda connection: close_silent_sessions(connection, app.now()))
    refused = [
        {"event_id": str(event.get("event_id"))[:64], "reason": outcome}
        for event, outcome in zip(params.events, outcomes, strict=True)
        if isinstance(outcome, str)
    ]
    recorded = sum(outcome is True for outcome in outcomes)
    return {"recorded": recorded, "known": len(outcomes) - recorded - len(refused), "refused": refused}


async def _record_old(app: App, event: dict[str, Any], call: Call) -> bool | str:
    """Whether it was new; an error message when it is not an event."""
    try:
        return (await store_event(app, Record(event=event), call))["id"] is not None
    except Invalid as error:
        return error.message
