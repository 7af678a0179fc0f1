"""Outcome credit: a command that an agent ran tells whether the hint that says the same is any good. Nobody has to bump it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from nudge.context import Context, resolve
from nudge.errors import NotFound
from nudge.hints.model import Hint
from nudge.observations import store as observations
from nudge.service.app import App
from nudge.service.call import Call
from nudge.storage.database import Database

_COMMANDS = ("command", "command_error", "git_commit", "git_push")


async def credit(app: App, database: Database, event: Mapping[str, Any]) -> int:
    """Raise or lower, once a session, every eligible command hint that the recorded command equals; how many there were."""
    delta = _outcome(event)
    if delta == 0:
        return 0
    here = resolve(event.get("cwd"))
    credited = 0
    for hint in _hints_saying(app, str(event.get("content", "")).strip(), here):
        if await _first_time(database, event, hint):
            await _bump(app, hint, here, delta)
            credited += 1
    return credited


def _outcome(event: Mapping[str, Any]) -> int:
    """1 worked, -1 failed, 0 unknown: Codex tells no exit code."""
    metadata = event.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if event.get("type") not in _COMMANDS or isinstance(code, bool) or not isinstance(code, int):
        return 0
    return 1 if code == 0 else -1


def _hints_saying(app: App, command: str, here: Context) -> list[Hint]:
    now = app.now()
    return [
        hint for hint in app.session.store.hints()
        if command and _command_of(hint) == command and hint.live_at(now) and hint.scope.check(here).eligible
    ]  # fmt: skip


def _command_of(hint: Hint) -> str | None:
    value = hint.value
    if isinstance(value, dict):
        return str(value["cmd"]).strip() if value.get("type") == "command" else None
    return str(value).strip()


async def _first_time(database: Database, event: Mapping[str, Any], hint: Hint) -> bool:
    """Kept beside the events, so that neither a replay nor another PRIMARY credits it again."""
    mark = f"credit:{event.get('session_id')}:{hint.component}/{hint.key}:{hint.scope.key}"

    def note(connection: sqlite3.Connection) -> bool:
        return observations.is_new_event(connection, mark, int(event.get("timestamp", 0)))

    return await database.write(note)


async def _bump(app: App, hint: Hint, here: Context, delta: int) -> None:
    try:
        params = {"component": hint.component, "key": hint.key, "delta": delta, "context": here.to_wire()}
        await app.execute("nudge.bump", params, Call())
    except NotFound:
        pass  # deleted in the meantime
