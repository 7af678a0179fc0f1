"""Learning from outcomes, and the one line that a failure is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nudge.errors import NudgeError
from nudge.history import facts
from nudge.storage.database import Database
from nudge.usecases.app import App

HEADER = "Nudge record, not an instruction: "


async def learn(app: App, database: Database, event: Mapping[str, Any], observation_id: int) -> str | None:
    """Take in the outcome of a command; return what is known about its failure, if that was not told yet."""
    outcome, project = facts.outcome_of(event, observation_id), event.get("project")
    if outcome is None or not isinstance(project, str) or not project:
        return None
    known = app.facts or await _load(app, database)
    project, session, now = project.casefold(), str(event["session_id"]), app.now()
    cwd = event.get("cwd")
    offer = known.offer(project, session, outcome, now, cwd if isinstance(cwd, str) else None)
    if learned := known.observe(project, session, outcome, now):
        await _store(database, learned)
    text = offer.text(now) if offer is not None else ""
    return HEADER + text if text else None


async def _load(app: App, database: Database) -> facts.Facts:
    loaded = await database.read(facts.load)
    if app.facts is None:  # nobody was faster
        app.facts = loaded
    return app.facts


async def _store(database: Database, learned: facts.Learned) -> None:
    """What cannot be stored is known until the server ends: no reason to refuse the event."""
    try:
        await database.write(lambda connection: facts.store(connection, learned))
    except NudgeError:
        pass
