"""Credit: a command that worked or failed is counted by the hints with the same command, once in a session."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.context import Context, project_of, this_system
from nudge.core.errors import Invalid
from nudge.hints.freshness import digest_files
from nudge.hints.model import Hint
from nudge.history.observations import COMMAND_TYPES
from nudge.history.store import add_event_id
from nudge.learning.failures import has_findings
from nudge.learning.outcome import RecordedEvent
from nudge.storage.database import Database


def command_context(app: App, event: Mapping[str, Any], call: Call) -> Context:
    """Where the command ran, as its hook reported it. Raises EnvNeeded, before anything is stored, when a hint with the
    same command is scoped to environment variables.

    An event from the spool has no environment, because that is never written to disk: a hint scoped to variables then
    gets no credit. Assuming that its conditions were met would also credit its variants for other environments.
    """
    hints = _hints_with_command(app, event) if exit_code_of(event) is not None else []
    names = frozenset(name for hint in hints for name in hint.scope.env_names)
    return call.with_variables(_reported_context(event), names)


def _reported_context(event: Mapping[str, Any]) -> Context:
    """Empty when the report is malformed."""
    fields = {name: event.get(name) for name in ("cwd", "repo", "branch")}
    try:
        return Context.parse({**fields, "os": this_system()})
    except Invalid:
        return Context()


async def credit_hints(app: App, database: Database, recorded: RecordedEvent, context: Context) -> None:
    """Credit every hint that is eligible in `context` and has the event's command, at most once for each session."""
    delta, event = _credit_delta(recorded), recorded.event
    for hint in _hints_with_command(app, event) if delta else ():
        if not hint.scope.check(context).eligible:
            continue
        if await _claim_credit(database, event, hint):
            await _credit_variant(app, hint, delta, project_of(context.repo, context.cwd))
        if delta > 0 and hint.basis and isinstance(root := event.get("clone"), str):
            await _refresh_basis(app, hint, root)


async def _refresh_basis(app: App, hint: Hint, root: str) -> None:
    """Store the present digests of the files that the hint rests on: its command works with them."""
    basis = await asyncio.to_thread(digest_files, root, hint.basis or ())

    async def change() -> None:
        if basis and (decision := app.lifetime.store.decide_basis(app.now(), hint.identity, basis)) is not None:
            app.changes.commit(decision, Call())

    await app.changes.serialize(Call(), change)


def _credit_delta(recorded: RecordedEvent) -> int:
    """1 for a command that worked, -1 for one that failed, 0 when that is not known. A command that reports failed
    tests, findings or a timeout did not fail: it did what it is for."""
    outcome = recorded.outcome if exit_code_of(recorded.event) is not None else None
    if outcome is None or has_findings(outcome.printed):
        return 0
    return 1 if outcome.succeeded else -1


def exit_code_of(event: Mapping[str, Any]) -> int | None:
    """The exit code of the command that an event reports. None for other events, and for clients that report none."""
    metadata = event.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return code if event.get("type") in COMMAND_TYPES and type(code) is int else None


def _hints_with_command(app: App, event: Mapping[str, Any]) -> list[Hint]:
    command, now = str(event.get("content", "")).strip(), app.now()
    return [
        hint for hint in app.lifetime.store.hints() if command and command_of(hint) == command and hint.live_at(now)
    ]


async def _claim_credit(database: Database, event: Mapping[str, Any], hint: Hint) -> bool:
    """Return whether this is the first credit of the session to this hint. Stored as an event id, so that neither a
    repeated event nor another PRIMARY credits it again."""
    event_id = f"credit:{event.get('session_id')}:{hint.component}/{hint.key}:{hint.scope.key}"

    def remember(connection: sqlite3.Connection) -> bool:
        return add_event_id(connection, event_id, int(event.get("timestamp", 0)))

    return await database.write(remember)


async def _credit_variant(app: App, hint: Hint, delta: int, project: str | None) -> None:
    """Credit exactly this variant; `nudge.bump` credits the one that `get` returns, which may be another."""

    async def change() -> None:
        if (decision := app.lifetime.store.decide_credit(app.now(), hint.identity, delta, project)) is not None:
            app.changes.commit(decision, Call())

    await app.changes.serialize(Call(), change)


async def credit_commands(app: App, database: Database, recorded: Sequence[RecordedEvent]) -> None:
    """Credit the hints with the commands of spooled events."""
    commands = {command_of(hint) for hint in app.lifetime.store.hints()}
    for one in recorded:
        if str(one.event.get("content", "")).strip() in commands:
            await credit_hints(app, database, one, command_context(app, one.event, Call()))


def command_of(hint: Hint) -> str:
    """The command in the hint's value; empty when the value is of another type."""
    value = hint.value
    if isinstance(value, dict):
        return str(value["cmd"]).strip() if value.get("type") == "command" else ""
    return str(value).strip()
