"""Learning from the outcomes of commands: the line that answers a known failure, the operations on what was learned,
the hints that learned commands become, and the credit of hints whose command worked or failed.

A learned hint has the owner `nudge:learned`, as scan's hints have theirs. A hint that a user, an agent or the repo
itself set takes precedence over it; a guess of scan's does not.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nudge import limits
from nudge.context import Context, is_project, project_name, project_of, this_system
from nudge.core.operation import operation
from nudge.errors import Invalid, NotFound, NudgeError
from nudge.hints.model import Hint
from nudge.hints.sync import LEARNED_BY, is_guess
from nudge.history import projects
from nudge.history.observations import COMMAND_TYPES, FILE_CHANGES
from nudge.history.store import add_event_id
from nudge.learning import store
from nudge.learning.availability import names_clone
from nudge.learning.broken_tests import TEST, BrokenTest
from nudge.learning.command import CUT_OFF
from nudge.learning.fact import Fact
from nudge.learning.facts import Changes, Facts
from nudge.learning.failures import has_findings
from nudge.learning.outcome import analyse
from nudge.storage.database import Database
from nudge.telling.ledger import Line, count_told_sessions
from nudge.telling.use import IDENTITY
from nudge.usecases.app import App, with_loop_turns
from nudge.usecases.call import Call, InContext, Params, Project, ProjectName, Result, Text
from nudge.usecases.freshness import digest_files, named_paths
from nudge.usecases.visibility import visible_to

_LEARNED_JOBS = frozenset(("test", "build", "lint", "run", "install"))
_MAX_CONFIDENCE = 0.8
_LEARNED_AT_ONCE = 10  # spooled events

Event = Mapping[str, Any]
Jobs = dict[str, list[tuple[str, Fact]]]
"""For each job the commands, best first, and what each was learned from."""
Bases = Mapping[str, dict[str, str]]
"""The files that each command names, with their digests."""


class ListFacts(InContext):
    project: Project = None


class ListFactsResult(Result):
    facts: list[dict[str, Any]]


class ForgetFact(Params):
    project: ProjectName
    subject: Annotated[Text, Field(description="what does not work, as `nudge facts` shows it")]


class ForgetFactResult(Result):
    forgotten: int


# Events


async def load_facts(app: App, database: Database) -> Facts:
    """The facts in memory; the first call reads them from the database."""
    if app.facts is None:
        loaded = await database.read(store.load)
        app.facts = app.facts or loaded  # another call may have loaded them meanwhile
    return app.facts


async def learn(app: App, all_facts: Facts, event: Event, observation_id: int) -> tuple[Line | None, Changes]:
    """Update the facts in memory with the outcome of a command. Return the line about its failure, if the failure is
    known and the session was not told of it yet, and the changes to pass to `store_changes`."""
    now = app.now()

    def observe() -> tuple[Line | None, Changes]:
        answer, changes = _observe(all_facts, event, observation_id, now, can_tell=True)
        return _line_about(answer, now), changes

    return await app.in_learning_thread(observe)


async def learn_all(app: App, all_facts: Facts, recorded: Sequence[tuple[Event, int]]) -> list[tuple[Event, Changes]]:
    """Update the facts in memory with events that no hook waits for, in small portions: a hook that does wait gets its
    answer between two of them."""
    now = app.now()
    taught: list[tuple[Event, Changes]] = []
    for start in range(0, len(recorded), _LEARNED_AT_ONCE):
        portion = recorded[start : start + _LEARNED_AT_ONCE]
        turns = with_loop_turns(portion)
        taught += await app.in_learning_thread(partial(_observe_all, all_facts, turns, now))
    return taught


def _observe_all(all_facts: Facts, recorded: Iterable[tuple[Event, int]], now: float) -> list[tuple[Event, Changes]]:
    return [
        (event, _observe(all_facts, event, observation_id, now, can_tell=False)[1])
        for event, observation_id in recorded
    ]


def _observe(
    all_facts: Facts, event: Event, observation_id: int, now: float, *, can_tell: bool
) -> tuple[Fact | BrokenTest | None, Changes]:
    if event.get("type") in FILE_CHANGES and isinstance(path := event.get("file_path"), str):
        all_facts.note_edit(str(event["session_id"]), path)
    outcome, project = analyse(event, observation_id), event.get("project")
    if outcome is None or not isinstance(project, str) or not project:
        return None, Changes()
    happened_at = min(float(event["timestamp"]), now)  # an event from the spool may be old
    session = str(event["session_id"])
    return all_facts.observe(project.casefold(), session, outcome, happened_at, now, can_tell=can_tell)


def _line_about(answer: Fact | BrokenTest | None, now: float) -> Line | None:
    if answer is None or not (text := answer.text(now)):
        return None
    if isinstance(answer, Fact):
        return Line(answer.name, "fact", text, "this failure is known", answer.uses)
    return Line(f"test {answer.id}", "test", text, "this test failed before", ((IDENTITY, f"#{answer.latest[1]}"),))


async def store_changes(app: App, database: Database, taught: Sequence[tuple[Event, Changes]]) -> None:
    """Store what events taught, and update the learned hints of their repos. A write that fails is not an error: the
    facts stay in memory until the server ends."""
    changed = [(event, changes) for event, changes in taught if changes]
    if not changed:
        return

    def write(connection: sqlite3.Connection) -> None:
        for _, changes in changed:
            store.store(connection, changes)

    with suppress(NudgeError):
        await database.write(write)
    latest = {
        (event.get("project"), event.get("repo"), event.get("clone")): event
        for event, changes in changed
        if changes.learned or changes.withdrawn
    }
    for event in latest.values():
        await _update_hints(app, await _invocations(app, str(event["project"]).casefold()), event)


async def _invocations(app: App, project: str) -> list[Fact]:
    all_facts, now = app.facts, app.now()
    return [] if all_facts is None else await app.in_learning_thread(lambda: all_facts.invocations(project, now))


# Credit: a command that worked or failed is counted by the hints with the same command


def command_context(app: App, event: Mapping[str, Any], call: Call) -> Context:
    """Where the command ran, as its hook reported it. Raises EnvNeeded, before anything is stored, when a hint with the
    same command is scoped to environment variables.

    An event from the spool has no environment, because that is never written to disk: a hint scoped to variables then
    gets no credit. Assuming that its conditions were met would also credit its variants for other environments.
    """
    hints = _hints_with_command(app, event) if _credit_delta(event) else []
    names = frozenset(name for hint in hints for name in hint.scope.env_names)
    return call.with_variables(_reported_context(event), names)


def _reported_context(event: Mapping[str, Any]) -> Context:
    """Empty when the report is malformed."""
    fields = {name: event.get(name) for name in ("cwd", "repo", "branch")}
    try:
        return Context.parse({**fields, "os": this_system()})
    except Invalid:
        return Context()


async def credit_hints(app: App, database: Database, event: Mapping[str, Any], context: Context) -> None:
    """Credit every hint that is eligible in `context` and has the event's command, at most once for each session."""
    delta = _credit_delta(event)
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
        if basis and (decision := app.session.store.decide_basis(app.now(), hint.identity, basis)) is not None:
            app.commit(decision, Call())

    await app.once(Call(), change)


def _credit_delta(event: Mapping[str, Any]) -> int:
    """1 for a command that worked, -1 for one that failed, 0 when that is not known. A command that reports failed
    tests, findings or a timeout did not fail: it did what it is for."""
    outcome = analyse(event, 0) if exit_code_of(event) is not None else None
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
        hint for hint in app.session.store.hints() if command and _command_of(hint) == command and hint.live_at(now)
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
        if (decision := app.session.store.decide_credit(app.now(), hint.identity, delta, project)) is not None:
            app.commit(decision, Call())

    await app.once(Call(), change)


async def credit_commands(app: App, database: Database, recorded: Sequence[tuple[Event, int]]) -> None:
    """Credit the hints with the commands of spooled events."""
    commands = {_command_of(hint) for hint in app.session.store.hints()}
    for event, _ in recorded:
        if str(event.get("content", "")).strip() in commands:
            await credit_hints(app, database, event, command_context(app, event, Call()))


# Operations


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
    await _remove_unlearned_hints(app, str(result["project"]))
    return {"forgotten": result["forgotten"]}


# Learned hints: the command that works becomes the hint for its job, until its facts are withdrawn


async def _update_hints(app: App, invocations: Sequence[Fact], event: Mapping[str, Any]) -> None:
    """Set or remove the learned hints of the event's repo. A write that fails is not an error: the hint is set when its
    command is learned again."""
    repo, root = event.get("repo"), event.get("clone")
    project = project_of(repo, None) if isinstance(repo, str) else None
    if project is None or not isinstance(repo, str):
        return
    name = project_name(project)
    jobs, component, bases = await asyncio.to_thread(_inspect_clone, invocations, root, name)
    with suppress(NudgeError):
        await app.once(Call(), partial(_sync_hints, app, repo, component, jobs, bases))


async def _remove_unlearned_hints(app: App, project: str) -> None:
    """Remove the learned hints of a project that no fact supports any more."""
    jobs = await asyncio.to_thread(_find_jobs, await _invocations(app, project))
    held: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for hint in filter(_is_learned, app.session.store.hints()):
        held.setdefault((hint.meta["scope"]["repo"], hint.component), {})[_command_of(hint)] = hint.basis or {}
    for (repo, component), bases in held.items():
        if project_of(repo, None) == project:
            with suppress(NudgeError):
                await app.once(Call(), partial(_sync_hints, app, repo, component, jobs, bases))


def _inspect_clone(invocations: Sequence[Fact], root: object, name: str) -> tuple[Jobs, str, Bases]:
    """The jobs, the component at the top of the clone, and the files that each command names. Blocks: call it on a
    worker thread."""
    from nudge.manifests import root_component  # late: it loads parsers that PRIMARY does not need to start

    jobs = _find_jobs(invocations)
    if not isinstance(root, str) or not Path(root).is_dir():
        return jobs, name, {}
    commands = (cmd for pairs in jobs.values() for cmd, _ in pairs)
    bases = {cmd: digest_files(root, named_paths(cmd)) for cmd in commands}
    return jobs, root_component(Path(root), name), bases


def _find_jobs(invocations: Sequence[Fact]) -> Jobs:
    """Of several commands for one job, the one that worked in most sessions comes first."""
    from nudge.manifests import job_invocation

    jobs: Jobs = {}
    for offer in invocations:
        job, cmd = job_invocation(offer.answer.removesuffix(CUT_OFF)) or ("", "")
        if job in _LEARNED_JOBS and len(cmd) <= limits.MAX_TOLD_COMMAND and not names_clone(cmd):
            jobs.setdefault(job, []).append((cmd, offer))
    return jobs


async def _sync_hints(app: App, repo: str, component: str, jobs: Jobs, bases: Bases) -> None:
    context = Context(repo=repo)
    others = [hint for hint in app.session.store.live_hints(app.now(), component) if _is_from_others(hint, context)]
    chosen = {job: pair for job, pairs in jobs.items() if (pair := _first_allowed(job, pairs, others))}
    entries = [
        (component, job, {"type": "command", "cmd": cmd}, _meta(job, offer, repo))
        for job, (cmd, offer) in chosen.items()
    ]
    decision = app.session.store.decide_sync(
        app.now(),
        {"repo": repo},
        LEARNED_BY,
        entries,
        replaces=lambda held, _: is_guess(held.meta),
        bases={(component, job): bases[cmd] for job, (cmd, _) in chosen.items() if bases.get(cmd)},
    )
    if decision.change:
        app.commit(decision, Call())


def _is_learned(hint: Hint) -> bool:
    return hint.meta.get("added_by") == LEARNED_BY and "repo" in hint.meta.get("scope", {})


def _is_from_others(hint: Hint, context: Context) -> bool:
    """Whether a hint that applies in this repo was set by a user, an agent or scan."""
    return not _is_learned(hint) and hint.scope.check(context).eligible


def _first_allowed(job: str, pairs: list[tuple[str, Fact]], others: list[Hint]) -> tuple[str, Fact] | None:
    """The best command that no hint of `others` takes precedence over. A guess does so only when it names another tool:
    a guess `mypy` says nothing about `ruff check`."""
    from nudge.manifests import uses_same_tool

    of_job = [hint for hint in others if hint.key == job]
    if any(not is_guess(hint.meta) for hint in of_job):
        return None
    guessed = [_command_of(hint) for hint in of_job]
    return next((pair for pair in pairs if all(uses_same_tool(cmd, pair[0]) for cmd in guessed)), None)


def _command_of(hint: Hint) -> str:
    """The command in the hint's value; empty when the value is of another type."""
    value = hint.value
    if isinstance(value, dict):
        return str(value["cmd"]).strip() if value.get("type") == "command" else ""
    return str(value).strip()


def _meta(job: str, offer: Fact, repo: str) -> dict[str, Any]:
    number = len(offer.support)
    return {
        "reason": offer.hint_reason(),
        "confidence": min(round(0.3 + 0.1 * number, 1), _MAX_CONFIDENCE),
        "tags": [job],
        "scope": {"repo": repo},
    }
