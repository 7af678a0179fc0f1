"""The operations on what was learned: list the facts, forget some."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any

from pydantic import Field

from nudge.core.app import App
from nudge.core.call import Call, InContext, Params, Project, ProjectName, Result, Text
from nudge.core.context import is_project
from nudge.core.errors import NotFound
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.history import projects
from nudge.learning import store
from nudge.learning.broken_tests import TEST, BrokenTest
from nudge.learning.fact import Fact
from nudge.learning.facts import Facts
from nudge.telling.ledger import count_told_sessions


class ListFacts(InContext):
    project: Project = None


class ListFactsResult(Result):
    facts: list[dict[str, Any]]


class ForgetFact(Params):
    project: ProjectName
    subject: Annotated[Text, Field(description="what does not work, as `nudge facts` shows it")]


class ForgetFactResult(Result):
    forgotten: int


@operation(
    "nudge.learned",
    tool="learned",
    group="history",
    effect="read",
    route="GET /api/v1/learned",
    result=ListFactsResult,
    listed=False,
    summary="History: facts: what failed here and what worked instead.",
)
async def list_facts(app: App, params: ListFacts, call: Call) -> Any:
    """List what was learned in a project, or in all that the caller may see."""

    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        project = projects.find(connection, params.project, visible)
        names, here, cwd = projects.Names(connection), visible.here, visible.cwd
        all_facts = store.load(connection, project)
        is_here = project is not None and here is not None and is_project(project, here)
        rows = _fact_rows(connection, all_facts, project, cwd if is_here else None, app.now())
        rows += [(name, _test_row(test)) for name, test in all_facts.tests.list_frequent()]
        return [{"project": names.name(name), **row} for name, row in rows if visible.shows(name, project)]

    return {"facts": await app.read(read)}


def _fact_rows(
    connection: sqlite3.Connection, all_facts: Facts, project: str | None, cwd: str | None, now: float
) -> list[tuple[str, dict[str, Any]]]:
    """Return the facts with their projects; with one project also why a session that starts in `cwd` is not told a
    fact."""
    reasons = {}
    if project is not None:
        reasons = all_facts.why_not_at_start(
            project, now, cwd, lambda subject: count_told_sessions(connection, project, f"fact {subject}")
        )
    return [(name, _fact_row(fact, reasons.get(fact.key))) for name, fact in all_facts.listed(project, now)]


def _fact_row(fact: Fact, not_at_start: str | None) -> dict[str, Any]:
    return {
        "kind": fact.cure.kind,
        "subject": fact.subject,
        "error": fact.cure.error,
        "answer": fact.answer,
        "sessions": len(fact.support),
        "last": int(fact.timestamp),
        "id": fact.latest.success_id,
        "ids": list(fact.latest.ids),
        "exit_codes": list(fact.latest.exit_codes),
        "credit": {"worked": fact.successes - len(fact.support), "failed": fact.failures},
        **({} if not_at_start is None else {"not_at_start": not_at_start}),
    }


def _test_row(test: BrokenTest) -> dict[str, Any]:
    """A test that is broken has no answer."""
    timestamp, failure_id = test.latest
    row = {"kind": TEST, "subject": test.id, "error": "fails in one session after the other", "answer": None}
    return {**row, "sessions": len(test.sessions), "last": int(timestamp), "id": failure_id}


@operation(
    "nudge.forget_learned",
    tool="forget_learned",
    group="history",
    effect="delete",
    route="DELETE /api/v1/learned",
    result=ForgetFactResult,
    listed=False,
    summary="History: forget the facts about one command, path or option.",
)
async def forget(app: App, params: ForgetFact, call: Call) -> Any:
    """Delete what was learned about a subject; the next failure may teach it again."""

    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        project = projects.find(connection, params.project, visible)
        return {"project": project, "forgotten": store.forget(connection, str(project), params.subject)}

    result = await app.write_once(call, write)
    if not result["forgotten"]:
        raise NotFound(f"no fact is known about {params.subject}", project=params.project)
    app.facts = await app.read(store.load)
    return {"forgotten": result["forgotten"]}
