"""The operations on what agents are told: the text of a start, the lines that were told, and whether that helped."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from nudge.clients.instructions import read_instructions
from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, ContextParam, InContext, Project, Result, Text
from nudge.core.context import Context, project_of
from nudge.core.errors import NotFound, NudgeError
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.hints import ranking
from nudge.hints.freshness import mark_stale
from nudge.hints.model import Hint
from nudge.history import projects, store, traces
from nudge.history.observations import COMMAND_TYPES, RETENTION_DAYS
from nudge.history.purge import DAY
from nudge.notes import explain
from nudge.notes.explain import NoteExplanation
from nudge.notes.explain_ops import hint_item
from nudge.notes.note import Note, parse_id
from nudge.notes.ranking import Factors, score
from nudge.notes.store import get_many
from nudge.repofile.hints_ops import trusted_hints
from nudge.telling import ledger, report, start
from nudge.telling.comparison import compare
from nudge.telling.prompt import without_paths
from nudge.telling.prompt_notes import fitting_lines, lines_about, lines_by_meaning
from nudge.telling.start import Digest
from nudge.telling.start_rows import digest_options, hint_rows, stored_lines


class Inject(InContext):
    session_id: Annotated[str | None, Field(max_length=limits.MAX_SESSION_ID_CHARS)] = None
    source: Annotated[str, Field(description="startup, resume, clear or compact")] = start.STARTUP
    client: Annotated[
        str | None, Field(description="whose own instruction files (CLAUDE.md, ...) are not repeated")
    ] = None
    context: ContextParam = None
    explain: Annotated[bool, Field(description="with score and reason of each line")] = False
    prompt: Annotated[str | None, Field(description="what is told about this prompt, in place of the start")] = None
    note: Annotated[bool, Field(description="keep it for the session's trace, when a session is given")] = True


class InjectResult(Result):
    text: str
    items: list[dict[str, Any]]


@operation(
    "nudge.inject",
    tool="inject",
    group="history",
    effect="write",
    route="POST /api/v1/inject",
    result=InjectResult,
    listed=False,
    summary="History: the text that an agent receives when it starts here.",
)
async def inject(app: App, params: Inject, call: Call) -> Any:
    if params.prompt is not None:
        return {"text": await _about_prompt(app, params.prompt, call), "items": []}
    tell = app.lifetime.settings.tell
    is_recorded = bool(params.session_id and params.note)
    if is_recorded and ledger.is_silent(tell):
        return {"text": "", "items": []}
    result = await _build(app, params, call)
    if params.session_id and is_recorded and result.text:
        result.is_shadow = await _is_shadow(app, tell, params.session_id)
        with contextlib.suppress(NudgeError):  # the text is injected even if it cannot be stored for the trace
            await store_injection(app, params.session_id, app.now(), result)
        if result.is_shadow:
            return {"text": "", "items": []}
    return {"text": result.text, "items": await _explained(app, call, result) if params.explain else []}


async def _about_prompt(app: App, prompt: str, call: Call) -> str:
    """The text that an agent here gets with this prompt, if it was told none of it before; nothing is recorded."""
    here, now = visible_to(app, call).here, app.now()
    branch = call.context.branch
    lines = await app.read(lambda connection: lines_about(connection, prompt, here, branch, now))
    if not lines and (question := await app.meaning.question(without_paths(prompt))) is not None:
        lines = await app.read(lambda connection: lines_by_meaning(connection, prompt, here, branch, now, question))
    lines = fitting_lines(lines)
    return ledger.HEADER + "\n".join(line.text for line in lines) if lines else ""


async def _is_shadow(app: App, setting: str, session: str) -> bool:
    """Whether the session is a shadow session, by its stored side; without a readable history, by the setting."""
    if app.database is not None and ledger.is_comparing(setting):
        with contextlib.suppress(NudgeError):
            return await app.database.read(lambda connection: ledger.is_shadow_in_history(connection, setting, session))
    return ledger.is_shadow(setting, session)


async def _explained(app: App, call: Call, result: Digest) -> list[dict[str, Any]]:
    """Each line as `memory_explain` explains it: hints and notes with the parts of their scores, a line of the history
    with the one score that it has."""
    now, context = app.now(), call.with_variables(call.context, app.lifetime.store.env_names())
    notes = await _load_notes(app, [item["id"] for item in result.items if item["kind"] in ("note", "attempt")], now)
    dashed = [line for line in result.text.splitlines() if line.startswith("- ")]
    return [
        _explain_line(
            item,
            line.removeprefix("- "),
            notes.get(item["id"]) or (_variant(app, item, context, now) if item["kind"] == "hint" else None),
            now,
            rank=number + 1,
            pack_context={**traces.injected_line(result.text, number), "sessions": []},
        )
        for number, (item, line) in enumerate(zip(result.items, dashed, strict=True))
    ]


def _explain_line(
    item: Mapping[str, Any],
    title: str,
    source: Note | Hint | None,
    now: float,
    *,
    rank: int,
    pack_context: Mapping[str, Any],
) -> dict[str, Any]:
    """Explain one line of the digest; `source` is the note or hint that it shows."""
    reasons = [item["reason"]]
    if isinstance(source, Hint):
        return hint_item(
            source,
            now,
            rank=rank,
            eligible=True,
            reasons=reasons,
            project=None,
            source=explain.INJECTION,
            pack_context=pack_context,
        )
    if isinstance(source, Note):
        # A start tells only notes of the session's own namespace.
        parts = score(Factors.of(source), now, text=None, here=source.draft.namespace)
        one = NoteExplanation(source, parts, (), rank)
        return explain.item(one, project=None, pack_context=pack_context, source=explain.INJECTION, reasons=reasons)
    return explain.item_of(
        identity=item["id"],
        kind=item["kind"],
        title=title,
        created_at=None,
        project=None,
        source=explain.INJECTION,
        rank=rank,
        score={"base": item["score"]},
        matches={"project_match": None, "reasons": reasons},
        pack_context=pack_context,
    )


async def _load_notes(app: App, names: Sequence[str], now: float) -> dict[str, Note]:
    """The notes with these names; empty when they cannot be read."""
    if app.database is None or not names:
        return {}
    ids = [parse_id(name) for name in names]
    with contextlib.suppress(NudgeError):
        by_id = await app.database.read(lambda connection: get_many(connection, ids, now))
        return {f"m{note_id}": note for note_id, note in by_id.items()}
    return {}


def _variant(app: App, item: Mapping[str, Any], context: Context, now: float) -> Hint | None:
    """The variant of a hint that a line shows, found by its score."""
    hints = [
        hint
        for variants in app.lifetime.store.find_named(item["id"], now)
        for hint in variants
        if hint.scope.check(context).eligible
    ]
    return min(hints, key=lambda hint: abs(ranking.score(hint, now) - item["score"]), default=None)


async def store_injection(
    app: App,
    session_id: str,
    timestamp: float,
    injected: Digest,
    event_id: str | None = None,
) -> None:
    """Store what was injected for the session's trace and the ledger, in a shadow session for the ledger only.
    `event_id` makes it idempotent: a hook that built the digest itself reports it later through the spool."""

    def write(connection: sqlite3.Connection) -> list[ledger.StoredLine]:
        if event_id is not None and not store.add_event_id(connection, event_id, int(timestamp)):
            return []
        if not injected.is_shadow:
            store.store_injection(connection, session_id, timestamp, injected.items, injected.text)
        return ledger.store(
            connection,
            session_id,
            injected.project,
            timestamp,
            ledger.START,
            injected.lines,
            is_shadow=injected.is_shadow,
            is_late=event_id is not None,
        )

    if app.database is not None:
        app.confirm_role()
        app.ledger.add_lines(session_id, await app.database.write(write))


async def _build(app: App, params: Inject, call: Call) -> Digest:
    """Build the digest from hints, notes and history."""
    names = app.lifetime.store.env_names()
    visible = visible_to(app, call, names)
    context = call.with_variables(call.context, names)
    result = await app.in_slices(app.lifetime.store.query(app.now(), context=context, limit=limits.INJECTION_VARIANTS))
    known_here = app.lifetime.store.drop_unproven(result["hints"], project_of(context.repo, context.cwd))
    hits = await asyncio.to_thread(mark_stale, known_here, context.cwd)
    if (in_file := await trusted_hints(app, context)) is not None:
        hits += in_file.at_start()
    instructions = await asyncio.to_thread(read_instructions, params.client, context.cwd)
    options = digest_options(context, visible, params.session_id, params.source, app.now(), instructions)

    def build(connection: sqlite3.Connection | None) -> Digest:
        if connection is None:
            return start.build(None, hints=hint_rows(hits), **options)
        stored = stored_lines(connection, options, app.activity.last_seen)
        return start.build(connection, hints=hint_rows(hits), **stored, **options)

    built = await _read_or_else(app, build)
    _mark_told(app, hits, built)
    return built


async def _read_or_else(app: App, build: Callable[[sqlite3.Connection | None], Digest]) -> Digest:
    """Build without a history when there is none or it cannot be read."""
    if app.database is not None:
        with contextlib.suppress(NudgeError):
            return await app.database.read(build)
    return build(None)


def _mark_told(app: App, hits: Sequence[dict[str, Any]], told: Digest) -> None:
    """A hint that is told is in use. Of the variants of one name, the digest has the first."""
    by_name = {f"{hit['component']}/{hit['key']}": hit for hit in reversed(hits)}
    names = [item["id"] for item in told.items if item["kind"] == "hint"]
    app.lifetime.store.mark_returned([by_name[name] for name in names if name in by_name], app.now())


# The ledger


class ListToldLines(InContext):
    project: Project = None
    session_id: Annotated[str | None, Field(max_length=limits.MAX_SESSION_ID_CHARS)] = None
    line: Annotated[Text | None, Field(description="only the lines with this name")] = None
    before: Annotated[int | None, Field(description="`next` of the previous page")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_TOLD_LISTED)] = limits.DEFAULT_TOLD_LISTED


class ListToldLinesResult(Result):
    """`total` counts the lines of all pages; `next` is the `before` of the following one, null after the last."""

    lines: list[dict[str, Any]]
    never: list[str]
    total: int
    next: int | None


class NeverTell(InContext):
    """Without `project` the caller's; null, or a caller without one: every repo in which the line was told. A number
    names a line of the repo that it was told in."""

    project: Project = None
    line: Annotated[Text, Field(description="its number or name, as `nudge told` shows it")]
    never: Annotated[bool, Field(description="false: it may be told again")] = True


class NeverTellResult(Result):
    line: str
    never: bool


class Stats(InContext):
    project: Project = None


class StatsResult(Result):
    """For each week with any, and in `moments` for each kind of moment in it: lines that were `told`, those of them
    that were `used` and those told `in_vain`; failures that were known and `met_again`, and those of them that were
    `answered`; failures that a line at the start `spared`. `shadow` has the same counts for the sessions that were told
    nothing, as if they had been.
    `comparison` has failures and commands of a session as `mean`, `low` and `high`, for the sessions that were `told`,
    for those in the `shadow`, and the `difference` between them; without two sessions there is no interval."""

    weeks: list[dict[str, Any]]
    comparison: dict[str, Any] | None


@operation(
    "nudge.told",
    tool="told",
    group="history",
    effect="read",
    route="GET /api/v1/told",
    result=ListToldLinesResult,
    listed=False,
    summary="History: the lines that agents were told, and whether they were used.",
)
async def list_told_lines(app: App, params: ListToldLines, call: Call) -> Any:
    """The latest lines, newest first, of one project or of all that the caller may see."""

    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(connection, params, visible)
        rows, total = report.lines(
            connection,
            project,
            hidden,
            params.limit + 1,
            session=params.session_id,
            name=params.line,
            before=params.before,
        )
        following = rows[params.limit - 1]["id"] if len(rows) > params.limit else None
        rows = rows[: params.limit]
        projects.Names(connection).show(rows)
        banned = ledger.load_banned(connection)
        never = {name for where, name in banned if (where == project if project is not None else where not in hidden)}
        return {"lines": rows, "never": sorted(never), "total": total, "next": following}

    return await app.read(read)


@operation(
    "nudge.never_tell",
    tool="never_tell",
    group="history",
    effect="write",
    route="POST /api/v1/told/never",
    result=NeverTellResult,
    listed=False,
    summary="History: never tell a line again, or allow it again.",
)
async def never_tell(app: App, params: NeverTell, call: Call) -> Any:
    """Ban a line, or allow it again."""

    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> list[list[str]]:
        named = projects.find(connection, params.chosen_project(visible), visible)
        hidden = projects.find_hidden(connection, visible, named)
        project, name = ledger.find_line(connection, named, params.line, hidden)
        if params.never:
            changed = ledger.ban(connection, project, name, app.now(), hidden)
        else:
            changed = ledger.unban(connection, project, name, hidden)
        return [list(line) for line in changed]

    changed = [(project, name) for project, name in await app.write_once(call, write)]
    if not changed:
        raise NotFound(f"no line {params.line} {'was told' if params.never else 'is banned'} here")
    app.ledger.set_banned(changed, params.never)
    return {"line": changed[0][1], "never": params.never}


@operation(
    "nudge.stats",
    tool="telling_stats",
    group="history",
    effect="read",
    route="GET /api/v1/told/stats",
    result=StatsResult,
    listed=False,
    summary="History: told lines and repeated failures by week.",
)
async def stats(app: App, params: Stats, call: Call) -> Any:
    """Counts of told lines and their effect by week, and the comparison of shadow sessions with the others."""

    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project, hidden = _scope(connection, params, visible)
        weeks = report.weeks(connection, project, hidden, app.now())
        since = app.now() - DAY * _compared_days(app)
        regular, shadow = (
            report.shadow_counts(connection, project, hidden, since, is_shadow=side) for side in (False, True)
        )
        return {"weeks": weeks, "comparison": compare(regular, shadow) if regular and shadow else None}

    return await app.read(read)


class Statusline(InContext):
    session_id: Annotated[str | None, Field(max_length=limits.MAX_SESSION_ID_CHARS)] = None


class StatuslineResult(Result):
    """`told`, `used`: lines of the session; `at_work`: other sessions in this clone."""

    told: int
    used: int
    at_work: int


@operation(
    "nudge.statusline",
    tool="statusline",
    group="history",
    effect="read",
    route="GET /api/v1/statusline",
    result=StatuslineResult,
    listed=False,
    summary="History: what a session was told and used, and how many others are at work here.",
)
async def statusline(app: App, params: Statusline, call: Call) -> Any:
    """The counts for a client's status line, which asks every few seconds."""
    visible, cwd, now = visible_to(app, call), call.context.cwd, app.now()
    here = visible.here

    def read(connection: sqlite3.Connection) -> dict[str, int]:
        hidden = projects.find_hidden(connection, visible)
        told, used = report.of_session(connection, params.session_id, hidden) if params.session_id else (0, 0)
        others = report.others_at_work(connection, here, params.session_id, cwd, now) if here is not None else 0
        return {"told": told, "used": used, "at_work": others}

    return await app.read(read)


def _compared_days(app: App) -> int:
    """The days in which retention has deleted no command, at most STATS_WEEKS."""
    days = {**RETENTION_DAYS, **app.lifetime.settings.retention}
    return min(limits.STATS_WEEKS * 7, *(days[name] for name in COMMAND_TYPES))


def _scope(
    connection: sqlite3.Connection, params: ListToldLines | Stats, visible: Visibility
) -> tuple[str | None, frozenset[str]]:
    project = projects.find(connection, params.project, visible)
    return project, projects.find_hidden(connection, visible, project)
