"""The operations of the history: searching and reading observations, pinning, purging and backing them up."""

from __future__ import annotations

import glob
import os
import sqlite3
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.context import resolve
from nudge.core.errors import Invalid, StorageFailed
from nudge.core.operation import operation
from nudge.core.visibility import EVERYTHING, Visibility, visible_to
from nudge.history import projects, queries, store, traces
from nudge.history.models import (
    Backup,
    BackupResult,
    ExportHistory,
    ExportHistoryResult,
    FileHistory,
    FileHistoryResult,
    GetObservations,
    ObservationListResult,
    Pin,
    PinResult,
    PurgeParams,
    PurgeResult,
    RecentContext,
    Search,
    Sessions,
    SessionTrace,
    SessionTraceResult,
    Timeline,
    TimelineResult,
)
from nudge.history.purge import Conditions, count_observations, purge_observations
from nudge.history.search import add_found_texts, recent_observations, recent_work, search_observations
from nudge.security.absolute_paths import normalize_path
from nudge.storage.database_files import backup_folder, damage_fix, new_backup, write_backup
from nudge.storage.sqlite import DatabaseDamaged, match_texts, scrub

LAST = "last"
"""In place of a session id: the last session of the caller's project that is not empty."""


# Reading


@operation(
    "nudge.search",
    tool="search",
    group="history",
    effect="read",
    route="GET /api/v1/observations",
    result=ObservationListResult,
    summary=(
        'History: full-text search (FTS5: AND OR NOT "phrase" prefix*) in what agents did here; previews. '
        "Then get_observations."
    ),
)
async def search(app: App, params: Search, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        options = search_options(connection, params, visible)
        rows = search_observations(connection, params.query, **options, limit=params.limit + 1, now=now)
        if call.interface == "cli":  # a person cannot look at each hit as an agent does
            add_found_texts(connection, params.query, rows)
        return rows

    return _page(await app.read_history(read), params.limit, call)


def search_options(connection: sqlite3.Connection, params: Search, visible: Visibility) -> dict[str, Any]:
    """What a search looks at, and in which order."""
    project = projects.find(connection, params.chosen_project(visible), visible)
    return {
        "project": project,
        "obs_type": params.obs_type,
        "before": params.before,
        "after": params.after,
        "order_by": params.order_by,
        "offset": params.offset,
        "hidden": projects.find_hidden(connection, visible) if project is None else frozenset(),
    }


@operation(
    "nudge.get_observations",
    tool="get_observations",
    group="history",
    effect="read",
    route="POST /api/v1/observations/get",
    result=ObservationListResult,
    summary="History: observations in full, by id.",
)
async def get_observations(app: App, params: GetObservations, call: Call) -> Any:
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        hidden = projects.find_hidden(connection, visible, params.project)
        rows = queries.get(connection, params.ids, hidden=hidden)
        projects.Names(connection).show(rows)
        return rows

    return await app.read_history(read)


@operation(
    "nudge.timeline",
    tool="timeline",
    group="history",
    effect="read",
    route="GET /api/v1/observations/{anchor}/timeline",
    result=TimelineResult,
    summary="History: what happened before and after one observation (anchor: its id).",
)
async def timeline(app: App, params: Timeline, call: Call) -> Any:
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        hidden = projects.find_hidden(connection, visible, params.project)
        around = queries.timeline(connection, params.anchor, params.before, params.after, hidden=hidden)
        projects.Names(connection).show([*around["before"], around["anchor"], *around["after"]])
        return around

    return await app.read_history(read)


@operation(
    "nudge.recent_context",
    tool="recent_context",
    group="history",
    effect="read",
    route="GET /api/v1/recent",
    result=ObservationListResult,
    summary="History: the most relevant recent edits, commands and failures in this repo.",
)
async def recent_context(app: App, params: RecentContext, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        project = projects.find(connection, params.chosen_project(visible), visible)
        hidden = projects.find_hidden(connection, visible, project)
        recent = recent_work if params.work else recent_observations
        rows = recent(connection, project=project, now=now, limit=params.limit + 1, hidden=hidden)
        projects.Names(connection).show(rows)
        return rows

    return _page(await app.read_history(read), params.limit, call)


@operation(
    "nudge.session_trace",
    tool="session_trace",
    group="history",
    effect="read",
    route="GET /api/v1/sessions/{session_id}",
    result=SessionTraceResult,
    summary="History: one session: its prompts, and what each led to.",
)
async def session_trace(app: App, params: SessionTrace, call: Call) -> Any:
    """The session `last` is the last one of the caller's project that is not empty, as at the terminal."""
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        hidden = projects.find_hidden(connection, visible, params.project)
        session_id = params.session_id
        if session_id == LAST:
            here = projects.find(connection, params.project or visible.here, visible)
            latest = queries.sessions(connection, project=here, nonempty=True, hidden=hidden, limit=1)
            session_id = latest[0]["session_id"] if latest else LAST
        trace = traces.trace(connection, session_id, params.before, params.after, params.limit, hidden=hidden)
        projects.Names(connection).show([trace])
        return trace

    return await app.read_history(read)


@operation(
    "nudge.file_history",
    tool="file_history",
    group="history",
    effect="read",
    route="GET /api/v1/files",
    result=FileHistoryResult,
    summary="History: every session that touched a file, and why.",
)
async def file_history(app: App, params: FileHistory, call: Call) -> Any:
    """Paths are stored absolute and without `..`; a relative one is taken from the caller's directory. A file of a
    repository has one history in all its clones and worktrees."""
    path = os.path.normpath(os.path.join(call.context.cwd or "", params.file_path))
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        where = resolve(os.path.dirname(path))
        paths = projects.paths_of(connection, path, where.project, where.root)
        hidden = projects.find_hidden(connection, visible, params.project)
        result = queries.file_history(connection, path, params.before, params.after, params.limit, paths, hidden=hidden)
        projects.Names(connection).show(result["sessions"])
        return result

    return await app.read_history(read)


@operation(
    "nudge.sessions",
    tool="sessions",
    group="history",
    effect="read",
    route="GET /api/v1/sessions",
    result=ObservationListResult,
    listed=False,
    summary="History: sessions, newest first.",
)
async def sessions(app: App, params: Sessions, call: Call) -> Any:
    """A private project is hidden unless the caller is in it or names it."""
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        rows = queries.sessions(
            connection,
            project=projects.find(connection, params.project, visible),
            prefix=params.session,
            nonempty=params.nonempty,
            limit=params.limit + 1,
            offset=params.offset,
            hidden=projects.find_hidden(connection, visible, params.project),
        )
        projects.Names(connection).show(rows)
        return rows

    return _page(await app.read_history(read), params.limit, call)


@operation(
    "nudge.export_all",
    tool="export_all",
    group="admin",
    effect="read",
    route="GET /api/v1/history",
    result=ExportHistoryResult,
    listed=False,
    summary="History: export all of it, page by page.",
)
async def export_history(app: App, params: ExportHistory, call: Call) -> Any:
    """One page of the history that the caller may see; `next` is the `after` of the following one."""
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        hidden = projects.find_hidden(connection, visible, params.project)
        return queries.export(connection, params.after, hidden=hidden)

    return await app.read_history(read)


def _page(rows: list[dict[str, Any]], limit: int, call: Call) -> list[dict[str, Any]] | dict[str, Any]:
    """The first `limit` rows of `limit + 1` that were read. MCP puts an array into an object, where an agent is told
    that there are more; other interfaces return the bare array."""
    if len(rows) <= limit:
        return rows
    return {"result": rows[:limit], "more": True} if call.interface == "mcp" else rows[:limit]


# Writing


@operation(
    "nudge.pin",
    tool="pin",
    group="history",
    effect="write",
    route="POST /api/v1/observations/pin",
    result=PinResult,
    listed=False,
    summary="History: pin observations so that they are never deleted by age, or unpin them.",
)
async def pin(app: App, params: Pin, call: Call) -> Any:
    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> list[int]:
        hidden = projects.find_hidden(connection, visible, params.project)
        shown = [row["id"] for row in queries.get(connection, params.ids, hidden=hidden)]
        return store.set_pinned(connection, shown, params.pinned)

    ids = await app.write(call, write)
    missing = [identity for identity in params.ids if identity not in ids]
    return {"pinned": params.pinned, "ids": ids, "missing": missing}


@operation(
    "nudge.purge",
    tool="purge",
    group="admin",
    effect="delete",
    route="POST /api/v1/purge",
    result=PurgeResult,
    listed=False,
    summary="History: count the observations that match the filters; with confirm, delete them permanently.",
)
async def purge(app: App, params: PurgeParams, call: Call) -> Any:
    """Count what meets the conditions; with `confirm`, delete it from the database, its log and its index before this
    returns. The spool is recorded first: its events would come back. At a terminal private projects are included: what
    a user deletes must be gone everywhere."""
    _conditions(app, params, params.project)  # raises for invalid conditions before anything is done
    visible = EVERYTHING if call.interface == "cli" else visible_to(app, call)
    waiting = await app.drain()

    def read(connection: sqlite3.Connection) -> tuple[str | None, frozenset[str]]:
        project = projects.find(connection, params.project, visible)
        return project, projects.find_hidden(connection, visible, project)

    conditions = _conditions(app, params, *await app.read(read))
    if not params.confirm:
        counts = await app.require_database().read(
            lambda connection: count_observations(connection, conditions, match_texts), timeout=None
        )
        return {**counts, "deleted": False, "waiting": waiting}
    counts = await app.write(
        call, lambda connection: purge_observations(connection, conditions, app.now(), match_texts)
    )
    scrubbed = await app.require_database().maintain(scrub)
    return {
        **counts,
        "deleted": True,
        "waiting": waiting,
        "scrubbed": scrubbed,
        "backups": _remaining_backups(app.require_database().path),
    }


def _conditions(app: App, params: PurgeParams, project: str | None, hidden: frozenset[str] = frozenset()) -> Conditions:
    return Conditions(
        now=app.now(),
        before=params.before,
        project=project,
        session=params.session,
        ids=params.ids,
        obs_type=params.type,
        older_than=params.older_than,
        search=params.search,
        hidden=hidden,
    )


def _remaining_backups(path: str) -> list[str]:
    """Delete the copies that migrations made, which would keep what was purged; return the user's own backups."""
    for copy in glob.glob(f"{glob.escape(path)}.v*.backup"):
        os.unlink(copy)
    return sorted(glob.glob(os.path.join(glob.escape(backup_folder(path)), "*.db")))


@operation(
    "nudge.backup",
    tool="backup",
    group="admin",
    effect="write",
    route="POST /api/v1/backup",
    result=BackupResult,
    listed=False,
    summary="History: copy the database to a file.",
)
async def backup(app: App, params: Backup, _call: Call) -> Any:
    database = app.require_database()
    target = new_backup(database.path) if params.path is None else normalize_path(params.path, "path")
    try:
        await database.read(lambda connection: write_backup(connection, target), timeout=None)
    except DatabaseDamaged as error:
        database.warning = f"{error.message}. fix: {damage_fix(database.path)}"
        raise StorageFailed(f"no backup was written: {database.warning}") from None
    except FileExistsError:
        raise Invalid("already exists and was not overwritten", field="path") from None
    except OSError as error:
        raise StorageFailed(f"the backup cannot be written: {error.strerror}") from None
    return {"path": target, "bytes": os.path.getsize(target)}
