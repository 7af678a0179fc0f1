"""Recording hook events: each is stored once, whether it comes by a call, from the spool or from a transcript."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Any

from pydantic import Field

from nudge import limits
from nudge.errors import Invalid, NudgeError
from nudge.history import store
from nudge.history.digest import Digest
from nudge.history.ledger import Line
from nudge.history.redact import redact_event
from nudge.history.sessions import close_silent_sessions
from nudge.storage import spool
from nudge.usecases import hook_answers, inject, learning
from nudge.usecases.app import App
from nudge.usecases.call import Call, Params, Result

_log = logging.getLogger(__name__)
_BATCH = 200  # spooled events that are taken in together


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


async def record(app: App, params: Record, call: Call) -> Any:
    """Store one event, credit a command's outcome to the hints with the same command, and answer with what is known."""
    context = learning.command_context(app, params.event, call)
    result = await store_event(app, params, call)
    session = str(params.event["session_id"])
    if params.event["type"] == "session_end":
        app.activity.forget(session)
    elif call.client_process is not None:  # after an end, another may have begun in the process
        app.clients.observe(call.client_process, session)
    if result["id"] is not None and app.history is not None:
        text = await hook_answers.answer(app, app.history, params.event, result["id"], context, call)
        return {**result, "tell": text} if text else result
    return result


async def store_event(app: App, params: Record, call: Call) -> Any:
    """Store one event, at most once by its id. The sender should have redacted it; it is redacted again here."""
    return {"id": await app.write(call, lambda connection: store.insert_event(connection, redact_event(params.event)))}


async def record_many(app: App, params: RecordMany, call: Call) -> Any:
    """Store many old events. Nothing is credited: what worked months ago says little about today."""
    outcomes = await asyncio.gather(*(_record_old(app, event, call) for event in params.events))
    if app.history is not None:
        # The transcript of a subagent may be read after its session's end, which it reopens.
        await app.history.write(lambda connection: close_silent_sessions(connection, app.now()))
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


# The spool


async def drain(app: App, directory: str) -> int:
    """Take in the spool and return how many events that were. A file is removed after its event is committed."""
    taken = 0
    while batch := spool.pending(directory)[:_BATCH]:
        if not all(await asyncio.gather(*(_take(app, directory, path) for path in batch))):
            break
        taken += len(batch)
    return taken


async def _take(app: App, directory: str, path: str) -> bool:
    event = await asyncio.to_thread(spool.read, path)
    if event is None:
        spool.drop(directory, path)
        return True
    try:
        if "injection" in event:
            await _store_injection(app, event)
        else:
            await record(app, Record(event=event), Call())
    except (Invalid, KeyError, TypeError):
        spool.drop(directory, path)
        return True
    except NudgeError as error:
        _log.warning("events stay in the spool: %s", error.message)
        return False
    spool.remove(path)
    return True


async def _store_injection(app: App, event: dict[str, Any]) -> None:
    """What a hook injected by itself while there was no server."""
    injection = event["injection"]
    lines = [
        Line(name, kind, text, reason, tuple((use, what) for use, what in uses))
        for name, kind, text, reason, uses in injection["lines"]
    ]
    digest = Digest(str(injection["text"]), list(injection["items"]), lines)
    digest.is_shadow = injection["is_shadow"] is True
    digest.project = injection.get("project")
    await inject.store_injection(
        app,
        str(event["session_id"]),
        float(event["timestamp"]),
        digest,
        event_id=str(event["event_id"]),
    )
