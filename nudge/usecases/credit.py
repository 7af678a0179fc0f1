"""Outcome credit: a command that an agent ran tells whether the hint that says the same is any good. Nobody has to bump
it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from nudge.context import Context, this_system
from nudge.errors import Invalid
from nudge.hints.model import Hint
from nudge.history import store
from nudge.storage.database import Database
from nudge.usecases.app import App
from nudge.usecases.call import Call

_COMMANDS = ("command", "command_error", "git_commit", "git_push")


def where(app: App, event: Mapping[str, Any], call: Call) -> Context:
    """Where the command ran, in the hook's own words: by the time a spool is drained the branch may be another.
    EnvNeeded, before
    anything is stored, when a hint that says the same asks for variables.

    An event out of the spool has no environment, since that is never written to disk: then a hint scoped to one gets no
    credit. To
    take its conditions for met because the command ran would credit every variant of it, the wrong ones too.
    """
    wanted = _hints_saying(app, event) if _outcome(event) else []
    return call.merge_context(_told(event), frozenset(name for hint in wanted for name in hint.scope.env_names))


def _told(event: Mapping[str, Any]) -> Context:
    facts = {name: event.get(name) for name in ("cwd", "repo", "branch")}
    try:
        return Context.parse({**facts, "os": this_system()})
    except Invalid:
        return Context()


async def credit(app: App, database: Database, event: Mapping[str, Any], here: Context) -> int:
    """Raise or lower, once a session, every command hint that is eligible there and equals the recorded command; how
    many there were."""
    delta = _outcome(event)
    credited = 0
    for hint in _hints_saying(app, event) if delta else ():
        if hint.scope.check(here).eligible and await _first_time(database, event, hint):
            await _bump(app, hint, delta)
            credited += 1
    return credited


def _outcome(event: Mapping[str, Any]) -> int:
    """1 worked, -1 failed, 0 unknown: Codex tells no exit code."""
    metadata = event.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if event.get("type") not in _COMMANDS or isinstance(code, bool) or not isinstance(code, int):
        return 0
    return 1 if code == 0 else -1


def _hints_saying(app: App, event: Mapping[str, Any]) -> list[Hint]:
    command, now = str(event.get("content", "")).strip(), app.now()
    return [
        hint for hint in app.session.store.hints() if command and _command_of(hint) == command and hint.live_at(now)
    ]


def _command_of(hint: Hint) -> str | None:
    value = hint.value
    if isinstance(value, dict):
        return str(value["cmd"]).strip() if value.get("type") == "command" else None
    return str(value).strip()


async def _first_time(database: Database, event: Mapping[str, Any], hint: Hint) -> bool:
    """Kept beside the events, so that neither a replay nor another PRIMARY credits it again."""
    mark = f"credit:{event.get('session_id')}:{hint.component}/{hint.key}:{hint.scope.key}"

    def note(connection: sqlite3.Connection) -> bool:
        return store.is_new_event(connection, mark, int(event.get("timestamp", 0)))

    return await database.write(note)


async def _bump(app: App, hint: Hint, delta: int) -> None:
    """This very variant: `nudge.bump` credits the one that `get` would return, which may say something else."""

    async def change() -> None:
        if (decision := app.session.store.decide_credit(app.now(), hint.identity, delta)) is not None:
            app.commit(decision, Call())

    await app.once(Call(), change)
