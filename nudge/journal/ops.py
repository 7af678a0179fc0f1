"""The operations of the journal: starting, updating, adopting, resolving and reading attempts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nudge.core.app import App
from nudge.core.call import ANONYMOUS, Call, session_of
from nudge.core.errors import Conflict, Invalid, NotFound, SecretRejected
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.journal import store as journal
from nudge.journal.attempts import Attempt, Resolution, parse_plan, parse_resolution, parse_update, plan_draft
from nudge.journal.models import (
    ActiveAttemptResult,
    Calibrate,
    CalibrateResult,
    GetOrphaned,
    GetOrphanedResult,
    InSession,
    ListAttempts,
    ListAttemptsResult,
    ResolveAttempt,
    ResolveAttemptResult,
    StartAttempt,
    StartAttemptResult,
    UpdateAttempt,
    UpdateAttemptResult,
)
from nudge.journal.store import AttemptFilter
from nudge.notes import namespaces
from nudge.notes.draft_ops import Origin
from nudge.notes.fields import GLOBAL, Draft, parse_time
from nudge.notes.models import StoreMemory
from nudge.notes.note import Lifetimes
from nudge.notes.ops import fitting, lifetimes_of
from nudge.notes.visible_ops import refuse_hidden
from nudge.security.secrets import find_secret
from nudge.telling import start_rows

# Writing


@operation(
    "nudge.start_ghap",
    tool="start_ghap",
    group="journal",
    effect="write",
    route="POST /api/v1/journal",
    result=StartAttemptResult,
    summary="Journal: before you act on a guess, record what you expect; then resolve_ghap.",
)
async def start(app: App, params: StartAttempt, call: Call) -> Any:
    session = session_of(app.clients, call, params.session_id)
    plan = parse_plan(params.model_dump())
    caller = caller_of(app, params, call)
    origin = Origin(app, call, caller.visible)
    fields = StoreMemory.model_validate({"title": plan.goal, "content": plan.prediction})
    draft = plan_draft(plan, origin.draft(fields, app.now()))
    await _refuse_secrets(app, {"goal": plan.goal, **plan.to_metadata()})

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        complete = _with_session(origin.complete(connection, draft), session)
        if not params.parallel:
            caller.refuse_hidden(connection)
        attempt = journal.start(
            connection,
            plan,
            session,
            complete,
            app.now(),
            parallel=bool(params.parallel),
            is_shared=session == ANONYMOUS,
        )
        return _acknowledgment(attempt)

    result = await app.write_once(call, write)
    app.activity.reset(session, app.now())
    return result


@operation(
    "nudge.update_ghap",
    tool="update_ghap",
    group="journal",
    effect="write",
    route="POST /api/v1/journal/update",
    result=UpdateAttemptResult,
    listed=False,
    summary="Journal: update your open attempt: hypothesis, action, prediction, or a note.",
)
async def update(app: App, params: UpdateAttempt, call: Call) -> Any:
    changes, note = parse_update(params.model_dump())
    caller = caller_of(app, params, call)
    await _refuse_secrets(app, {**changes, "note": note})

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        attempt = _own(app, connection, params.id, caller)
        updated = journal.update(connection, attempt, changes, note, app.now())
        return {**_acknowledgment(updated), "iteration_count": updated.note.draft.metadata["iteration_count"]}

    result = await app.write_once(call, write)
    app.activity.reset(result["session_id"], app.now())  # of the attempt: a user may update another session's
    return result


@operation(
    "nudge.resolve_ghap",
    tool="resolve_ghap",
    group="journal",
    effect="write",
    route="POST /api/v1/journal/resolve",
    result=ResolveAttemptResult,
    summary="Journal: record the outcome of your attempt, and the lesson.",
)
async def resolve(app: App, params: ResolveAttempt, call: Call) -> Any:
    """Give an attempt its outcome, once; its lesson becomes a note in the same transaction."""
    caller, lifetimes = caller_of(app, params, call), lifetimes_of(app)
    resolution = parse_resolution(params.model_dump())
    await _refuse_secrets(app, resolution.to_metadata())

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        attempt = _awaiting_lesson(connection, params.id, caller, resolution)
        if attempt is None:
            attempt = _own(app, connection, params.id, caller)
        return resolve_attempt(connection, attempt, resolution, app.now(), lifetimes)

    result = await app.write_once(call, write)
    app.activity.reset(caller.session, app.now())
    return result


def resolve_attempt(
    connection: sqlite3.Connection, attempt: Attempt, resolution: Resolution, now: float, lifetimes: Lifetimes
) -> dict[str, Any]:
    """Resolve an open attempt, or add the lesson to one that an exit code resolved."""
    end = journal.resolve if attempt.is_open else journal.add_lesson
    resolved, lesson = end(connection, attempt, resolution, now, lifetimes)
    return {
        "id": resolved.id,
        "status": resolved.status,
        "confidence_tier": resolved.note.draft.metadata["confidence_tier"],
        **({} if lesson is None else {"lesson_id": lesson.id}),
    }


# Reading


@operation(
    "nudge.get_active_ghap",
    tool="get_active_ghap",
    group="journal",
    effect="read",
    route="GET /api/v1/journal/active",
    result=ActiveAttemptResult,
    listed=False,
    summary="Journal: the open attempt of this session.",
)
async def get_active(app: App, params: InSession, call: Call) -> Any:
    caller = caller_of(app, params, call)
    app.activity.see(caller.session, app.now())
    attempts = await app.read(caller.open_attempts)
    if not attempts:
        return {"has_active": False}
    several = {"open": [attempt.id for attempt in attempts]} if len(attempts) > 1 else {}
    return {"has_active": True, **attempts[0].to_json(), **several}


@operation(
    "nudge.get_orphaned_ghap",
    tool="get_orphaned_ghap",
    group="journal",
    effect="write",
    route="POST /api/v1/journal/orphaned",
    result=GetOrphanedResult,
    listed=False,
    summary="Journal: an open attempt in this repo whose session has ended; adopt takes it over.",
)
async def get_orphaned(app: App, params: GetOrphaned, call: Call) -> Any:
    """Return the latest orphan in the caller's repo; with `adopt`, make the one with that id the caller's. When two
    sessions adopt one, the second gets a Conflict that names the first."""
    caller = caller_of(app, params, call)
    namespace = caller.visible.here or GLOBAL
    if params.adopt is not None:
        return await _adopt(app, params.adopt, caller, namespace, call, parallel=params.parallel)
    app.activity.see(caller.session, app.now())
    orphans = await app.read(lambda connection: _orphans_here(app, connection, namespace, caller.session))
    if not orphans:
        return {"has_orphan": False}
    others = {"others": [attempt.id for attempt in orphans[1:]]} if len(orphans) > 1 else {}
    return {"has_orphan": True, **orphans[0].to_json(), **others}


async def _adopt(app: App, attempt_id: int, caller: _Caller, namespace: str, call: Call, *, parallel: bool) -> Any:
    session = caller.session

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        attempt = caller.get(connection, attempt_id)
        if call.interface != "cli" and attempt.note.draft.namespace != namespace:
            raise NotFound(f"m{attempt_id} is an attempt in another repo", id=attempt_id)
        if attempt.is_open and attempt.session != session and _is_owner_gone(app, connection, attempt):
            is_shared = session == ANONYMOUS
            attempt = journal.adopt(connection, attempt, session, app.now(), parallel=parallel, is_shared=is_shared)
        if not attempt.is_open or attempt.session != session:
            raise journal.changed_since(attempt)
        return {"has_orphan": False, "adopted": True, **attempt.to_json()}

    result = await app.write_once(call, write)
    app.activity.reset(session, app.now())
    return result


@operation(
    "nudge.list_ghap_entries",
    tool="list_ghap_entries",
    group="journal",
    effect="read",
    route="GET /api/v1/journal",
    result=ListAttemptsResult,
    listed=False,
    summary="Journal: list attempts, open ones first, then the latest.",
)
async def list_entries(app: App, params: ListAttempts, call: Call) -> Any:
    """`is_orphan`: the attempt is open, and its session is gone."""
    select = _selection(app, params, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        attempts = journal.list_attempts(connection, select(connection), params.limit + 1)
        orphaned = {attempt.id for attempt in attempts if attempt.is_open and _is_owner_gone(app, connection, attempt)}
        return [
            {**attempt.to_summary(), **({"is_orphan": True} if attempt.id in orphaned else {})} for attempt in attempts
        ]

    entries = await app.read(read)
    rows, cut = fitting(entries[: params.limit])
    more = cut or len(entries) > params.limit
    return {"entries": rows, "count": len(rows), **({"more": True} if more else {})}


@operation(
    "nudge.journal_calibration",
    tool="journal_calibration",
    group="journal",
    effect="read",
    route="GET /api/v1/journal/calibration",
    result=CalibrateResult,
    listed=False,
    summary="Journal: how often predictions came true, by domain, compared with the stated confidence.",
)
async def calibration(app: App, params: Calibrate, call: Call) -> Any:
    """How often predictions came true, by domain."""
    select = _selection(app, params, call)
    return await app.read(lambda connection: journal.calibration(connection, select(connection)))


def _selection(app: App, params: ListAttempts | Calibrate, call: Call) -> Callable[[sqlite3.Connection], AttemptFilter]:
    """Attempts of the caller's project, or of the one that is named; null means all that the caller may see."""
    visible = visible_to(app, call)
    name = params.chosen_project(visible)
    since = None if params.since is None else parse_time(params.since, "since")

    def select(connection: sqlite3.Connection) -> AttemptFilter:
        namespace = namespaces.find_named(connection, name, visible)
        hidden = namespaces.find_hidden(connection, visible) if namespace is None else ()
        which = AttemptFilter(namespace, since=since, hidden=hidden)
        if isinstance(params, ListAttempts):
            which = replace(which, status=params.outcome, domain=params.domain, session=params.session_id)
        return which

    return select


# Owners of attempts


def _orphans_here(app: App, connection: sqlite3.Connection, namespace: str, session: str) -> list[Attempt]:
    """The open attempts of a repo whose sessions are gone, the latest first."""
    attempts = journal.open_in_namespace(connection, namespace)
    return [attempt for attempt in attempts if attempt.session != session and _is_owner_gone(app, connection, attempt)]


def _is_owner_gone(app: App, connection: sqlite3.Connection, attempt: Attempt) -> bool:
    """Whether the session that owns an attempt has ended or is silent."""
    last_seen = app.activity.last_seen(attempt.session)
    return start_rows.is_session_gone(connection, attempt.session, attempt.note.updated_at, app.now(), last_seen)


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls: its session, and the attempts of that session that are the caller's.

    All callers without a session of their own share one, in any repo: of that, only the attempts in `namespace` are the
    caller's. It is None when all attempts of the session are, or the caller is in no known place. `is_user`: the user
    calls, at a terminal."""

    session: str
    namespace: str | None
    visible: Visibility
    is_user: bool

    def open_attempts(self, connection: sqlite3.Connection) -> list[Attempt]:
        """The open attempts of the session, the latest first."""
        return list(filter(self._shows, journal.open_in_session(connection, self.session, self.namespace)))

    def latest(self, connection: sqlite3.Connection) -> Attempt | None:
        attempt = journal.latest_in_session(connection, self.session, self.namespace)
        return attempt if attempt is not None and self._shows(attempt) else None

    def get(self, connection: sqlite3.Connection, attempt_id: int) -> Attempt:
        """The attempt with this id, of any session. Raises NotFound."""
        refuse_hidden(connection, self.visible, [attempt_id])
        return journal.get(connection, attempt_id)

    def refuse_hidden(self, connection: sqlite3.Connection) -> None:
        """Raise Conflict for a session that has an open attempt which the caller may not see."""
        if not all(map(self._shows, journal.open_in_session(connection, self.session, self.namespace))):
            raise Conflict("this session is at work elsewhere; start one with: start_session")

    def _shows(self, attempt: Attempt) -> bool:
        return self.visible.shows(attempt.note.draft.namespace)


def caller_of(app: App, params: InSession, call: Call) -> _Caller:
    session, visible = session_of(app.clients, call, params.session_id), visible_to(app, call)
    return _Caller(session, visible.here if session == ANONYMOUS else None, visible, call.interface == "cli")


def _own(app: App, connection: sqlite3.Connection, attempt_id: int | None, caller: _Caller) -> Attempt:
    """The attempt that a call may change: the one with the id, or the only open one of the caller's. Raises Conflict
    for one of another session, unless that session is gone or the user calls at a terminal."""
    if attempt_id is not None:
        attempt = caller.get(connection, attempt_id)
        is_allowed = attempt.session == caller.session or caller.is_user or _is_owner_gone(app, connection, attempt)
        if not attempt.is_open or not is_allowed:
            raise journal.changed_since(attempt)
        return attempt
    attempts = caller.open_attempts(connection)
    if len(attempts) > 1:
        names = ", ".join(f"m{attempt.id}" for attempt in attempts)
        raise Invalid(f"several attempts are open in this session; name one of {names}", field="id")
    if attempts:
        return attempts[0]
    raise _none_open(connection, caller)


def _awaiting_lesson(
    connection: sqlite3.Connection, attempt_id: int | None, caller: _Caller, resolution: Resolution
) -> Attempt | None:
    """The attempt of this session that an exit code resolved with the caller's status and that has no lesson yet; None
    when there is none, or the caller gives no lesson."""
    if attempt_id is not None:
        attempt: Attempt | None = caller.get(connection, attempt_id)
    else:
        attempt = None if caller.open_attempts(connection) else caller.latest(connection)
    if attempt is None or attempt.session != caller.session or not attempt.awaits_lesson:
        return None
    return attempt if attempt.status == resolution.status and resolution.lesson is not None else None


def _none_open(connection: sqlite3.Connection, caller: _Caller) -> Conflict | NotFound:
    latest = caller.latest(connection)
    if latest is not None:
        return journal.changed_since(latest)
    return NotFound("no attempt is open in this session; start one with start_ghap")


async def _refuse_secrets(app: App, fields: Mapping[str, Any]) -> None:
    """Raise SecretRejected for a text that holds a secret. On a thread: it takes a few milliseconds."""
    if app.lifetime.settings.secret_guard:
        await asyncio.to_thread(_check_secrets, fields)


def _check_secrets(fields: Mapping[str, Any], prefix: str = "") -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _check_secrets(value, f"{prefix}{name}.")
        elif isinstance(value, str) and (kind := find_secret(value)):
            message = f"looks like a secret ({kind}); the journal must not hold one"
            raise SecretRejected(message, field=f"{prefix}{name}", kind=kind)


def _with_session(draft: Draft, session: str) -> Draft:
    session_field = {} if session == ANONYMOUS else {"session": session}
    return replace(draft, origin={**draft.origin, **session_field})


def _acknowledgment(attempt: Attempt) -> dict[str, Any]:
    return {"id": attempt.id, "session_id": attempt.session, "status": attempt.status}
