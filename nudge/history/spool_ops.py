"""Taking in the spool: events that hooks wrote while no server answered.

Nobody waits for an answer to such an event: it is stored and learned from, and nothing is told. Both happen in batches,
and what takes long runs off the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nudge import __version__
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import Invalid, NudgeError
from nudge.core.loop_turns import LoopTurns
from nudge.history import store
from nudge.history.redact import redact_event
from nudge.storage import spool
from nudge.storage.sqlite import STATEMENT_ERRORS
from nudge.telling import hook_answers
from nudge.telling import ops as inject
from nudge.telling.ledger import Line
from nudge.telling.start import Digest

_log = logging.getLogger(__name__)
_NOT_AN_EVENT = (Invalid, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_BATCH = 50  # events that are stored in one transaction; what is recorded meanwhile waits for it

Recorded = list[tuple[dict[str, Any], int]]
"""Events that are new, with the ids of their observations."""


@dataclass(slots=True)
class _SpooledEvent:
    path: str
    event: dict[str, Any] | None
    """None when the file holds no event that can be stored."""


async def drain(app: App, directory: str) -> int:
    """Take in the spool, oldest events first; return how many events still wait. A file is removed after its event is
    committed."""
    while paths := await asyncio.to_thread(spool.pending, directory):
        for start in range(0, len(paths), _BATCH):
            try:
                await _take(app, directory, paths[start : start + _BATCH])
            except NudgeError as error:
                _log.warning("events stay in the spool: %s", error.message)
                return len(await asyncio.to_thread(spool.pending, directory))
    return 0


async def _take(app: App, directory: str, paths: Sequence[str]) -> None:
    turns = LoopTurns()  # without them the events hold the loop for 21 ms, at worst 52; with them for 10, at worst 12
    batch = await asyncio.to_thread(_read, turns.between(paths))
    await _store_injections(app, batch)
    recorded = await app.write(Call(), lambda connection: _store(connection, turns.between(batch)))
    await asyncio.to_thread(_remove, directory, turns.between(batch))
    try:
        await hook_answers.learn_from(app, app.require_database(), recorded)
    except Exception as error:  # the events are stored; an unusual one must not keep the others in the spool
        _log.warning("%d spooled events taught nothing: %s", len(recorded), type(error).__name__)


def _read(paths: Iterable[str]) -> list[_SpooledEvent]:
    return [_SpooledEvent(path, _read_event(path)) for path in paths]


def _read_event(path: str) -> dict[str, Any] | None:
    """Read an event, and redact it unless a hook of this version did: then the rules were the same."""
    event = spool.read(path)
    if event is None or event.pop(spool.REDACTED_BY, None) == __version__ or "injection" in event:
        return event
    try:
        return redact_event(event)
    except RecursionError:
        return None


def _store(connection: sqlite3.Connection, batch: Iterable[_SpooledEvent]) -> Recorded:
    """Store each event that can be stored, and return those that are new."""
    recorded: Recorded = []
    for one in batch:
        if one.event is None or "injection" in one.event:
            continue
        connection.execute("SAVEPOINT event")
        try:
            observation_id = store.insert_event(connection, one.event)
            if observation_id is not None:
                recorded.append((one.event, observation_id))
        except STATEMENT_ERRORS:
            raise
        except _NOT_AN_EVENT:
            connection.execute("ROLLBACK TO event")
            one.event = None
        connection.execute("RELEASE event")
    return recorded


def _remove(directory: str, batch: Iterable[_SpooledEvent]) -> None:
    for one in batch:
        if one.event is None:
            spool.drop(directory, one.path)
        else:
            spool.remove(one.path)


async def _store_injections(app: App, batch: Iterable[_SpooledEvent]) -> None:
    """Store what hooks injected by themselves, before the events that may show its use."""
    for one in batch:
        if one.event is not None and "injection" in one.event:
            try:
                await _store_injection(app, one.event)
            except _NOT_AN_EVENT:
                one.event = None


async def _store_injection(app: App, event: dict[str, Any]) -> None:
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
