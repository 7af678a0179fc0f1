"""Learning from outcomes: the one line that a failure is answered with, and the list of what was learned."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from nudge.context import is_project
from nudge.errors import NotFound, NudgeError
from nudge.history import facts, problems, projects
from nudge.history.broken_tests import TEST, BrokenTest
from nudge.history.ledger import COMMAND, IDENTITY, Line
from nudge.history.observations import FILE_CHANGES
from nudge.history.offers import Offer
from nudge.storage.database import Database
from nudge.usecases import learned_hints
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import Params, Result
from nudge.usecases.history import InContext, Project, ProjectName, Text
from nudge.usecases.visibility import visible_to


class Learned(InContext):
    project: Project = None


class LearnedList(Result):
    facts: list[dict[str, Any]]


class ForgetFact(Params):
    project: ProjectName
    subject: Annotated[Text, Field(description="what does not work, as `nudge learned` shows it")]


class Forgotten(Result):
    forgotten: int


def learn(
    app: App, all_facts: facts.Facts, event: Mapping[str, Any], observation_id: int
) -> tuple[Line | None, facts.FactChanges]:
    """Take in the outcome of a command, in memory; return what is known about its failure, if that was not told yet,
    and what `store` has to keep."""
    outcome, project = problems.outcome_of(event, observation_id), event.get("project")
    if event.get("type") in FILE_CHANGES and isinstance(path := event.get("file_path"), str):
        all_facts.note_edit(str(event["session_id"]), path)
    if outcome is None or not isinstance(project, str) or not project:
        return None, facts.FactChanges()
    project, session, now = project.casefold(), str(event["session_id"]), app.now()
    cwd = event.get("cwd")
    offer = all_facts.offer(project, session, outcome, now, cwd if isinstance(cwd, str) else None)
    broken = all_facts.broken_test(project, session, outcome, now) if offer is None else None
    happened_at = min(float(event["timestamp"]), now)  # long ago, out of the spool
    learned = all_facts.observe(project, session, outcome, happened_at)
    return _line_about(offer, broken, now), learned


def _line_about(offer: Offer | None, broken: BrokenTest | None, now: float) -> Line | None:
    if broken is not None and (text := broken.text(now)):
        return Line(f"test {broken.id}", "test", text, "this test failed before", ((IDENTITY, f"#{broken.latest[1]}"),))
    if offer is None or not (text := offer.text(now)):
        return None
    uses = ((COMMAND, offer.answer), (IDENTITY, f"#{offer.support.success_id}"))
    return Line(f"fact {offer.fact.subject}", "fact", text, "this failure is known", uses)


async def store(app: App, database: Database, event: Mapping[str, Any], learned: facts.FactChanges) -> None:
    """Keep what an event taught. What cannot be stored is known until the server ends: no reason to refuse the
    event."""
    if not learned:
        return
    with suppress(NudgeError):
        await database.write(lambda connection: facts.store(connection, learned))
    if (learned.rows or learned.withdrawn) and app.facts is not None:
        project = str(event["project"]).casefold()
        await learned_hints.update(app, app.facts.invocations(project, app.now()), event)


async def learned(app: App, params: Learned, call: Call) -> Any:
    """List what was learned in a project, or in all that the caller may see."""

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        project = projects.find(connection, params.project)
        names = projects.Names(connection)
        hidden = visible_to(call, app.session.settings).hidden_from(project or params.caller_project(call))
        all_facts = facts.load(connection, project)
        rows = [(name, _fact_row(offer)) for name, offer in all_facts.list_offers(project, app.now())]
        rows += [(name, _test_row(test)) for name, test in all_facts.tests.list_frequent()]
        return [
            {"project": names.name(name), **row}
            for name, row in rows
            if not any(is_project(name, private) for private in hidden)
        ]

    return {"facts": await app.read(read)}


def _fact_row(offer: Offer) -> dict[str, Any]:
    return {
        "kind": offer.fact.kind,
        "subject": offer.fact.subject,
        "error": offer.fact.error,
        "answer": offer.answer,
        "sessions": len(offer.support.sessions),
        "last": int(offer.support.timestamp),
        "id": offer.support.success_id,
    }


def _test_row(test: BrokenTest) -> dict[str, Any]:
    """A test that is broken has no answer."""
    timestamp, failure_id = test.latest
    row = {"kind": TEST, "subject": test.id, "error": "fails in one session after the other", "answer": None}
    return {**row, "sessions": len(test.sessions), "last": int(timestamp), "id": failure_id}


async def forget(app: App, params: ForgetFact, call: Call) -> Any:
    """Delete what was learned about a subject; the next failure may teach it again."""

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        project = projects.find(connection, params.project)
        return {"project": project, "forgotten": facts.forget(connection, str(project), params.subject)}

    result = await app.write_once(call, write)
    if not result["forgotten"]:
        raise NotFound(f"nothing was learned about {params.subject}", project=params.project)
    app.facts = await app.read(facts.load)
    await learned_hints.remove_unlearned(app, app.facts, str(result["project"]))
    return {"forgotten": result["forgotten"]}


async def load_facts(app: App, database: Database) -> facts.Facts:
    """The facts in memory, out of the tables if this is the first look."""
    if app.facts is None:
        loaded = await database.read(facts.load)
        app.facts = app.facts or loaded  # somebody may have been faster
    return app.facts
