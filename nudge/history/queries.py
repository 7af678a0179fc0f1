"""Read the history: observations by id, around one of them, by session and by file; sessions; and all rows, in pages.

`hidden` are the identities of private projects, whose rows are left out.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.errors import Invalid, NotFound
from nudge.history.event import COLUMNS, observation, placeholders
from nudge.history.observations import FILE_CHANGES, NOT_ACTIONS, SESSION_TYPES
from nudge.history.summary import intent_of, summary_of, without_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

    Row = Sequence[Any]

_ALWAYS = -(2**62), 2**62
_JOURNAL_TOOLS = "_ghap"  # how the names of the tools end that change attempts
NOTHING: frozenset[str] = frozenset()
SHOWN = "coalesce(project NOT IN (SELECT value FROM json_each(?)), 1)"
SESSION_SHOWN = SHOWN.replace("project", "(SELECT project FROM sessions WHERE id = session_id)", 1)


def get(connection: SqlConnection, ids: Sequence[int], *, hidden: frozenset[str] = NOTHING) -> list[dict[str, Any]]:
    """Return observations with all fields, in the order of `ids`, without those that do not exist or are hidden."""
    if not ids:
        raise Invalid("ids array must not be empty")
    if len(ids) > limits.MAX_OBSERVATION_IDS:
        raise Invalid(f"must have at most {limits.MAX_OBSERVATION_IDS} items", field="ids")
    rows = {
        row[0]: observation(row)
        for row in connection.execute(f"SELECT {COLUMNS} FROM observations WHERE id IN ({placeholders(ids)})", ids)
    }
    return [rows[identity] for identity in ids if identity in rows and rows[identity]["project"] not in hidden]


def timeline(
    connection: SqlConnection,
    anchor: int,
    before: int = limits.DEFAULT_TIMELINE,
    after: int = limits.DEFAULT_TIMELINE,
    *,
    hidden: frozenset[str] = NOTHING,
) -> dict[str, Any]:
    """Return the observations around one of them in its session, by time, since ids are out of order for events that
    waited in the spool. Raises NotFound for an anchor that does not exist or is hidden."""
    row = connection.execute(f"SELECT {COLUMNS} FROM observations WHERE id = ?", (anchor,)).fetchone()
    center = None if row is None else observation(row)
    if center is None or center["project"] in hidden:
        raise NotFound(f"anchor observation not found: {anchor}")
    position = (json.dumps(sorted(hidden)), center["session_id"], center["timestamp"], center["id"])
    around = f"SELECT {COLUMNS} FROM observations WHERE {SHOWN} AND session_id = ? AND (timestamp, id)"
    earlier = connection.execute(
        f"{around} < (?, ?) ORDER BY timestamp DESC, id DESC LIMIT ?", (*position, before)
    ).fetchall()
    later = connection.execute(f"{around} > (?, ?) ORDER BY timestamp, id LIMIT ?", (*position, after)).fetchall()
    return {
        "anchor": center,
        "before": [observation(row) for row in reversed(earlier)],
        "after": [observation(row) for row in later],
    }


_LIVE = (
    "o.id, o.timestamp, o.session_id, o.project, o.obs_type, o.file_path,"
    f" substr(o.content, 1, {limits.STREAM_PREVIEW_CHARS}), substr(o.details, 1, {limits.STREAM_PREVIEW_CHARS}),"
    " o.branch, o.is_pinned, s.client"
)
_LIVE_NAMES = (
    *("id", "timestamp", "session_id", "project", "obs_type", "file_path", "content_preview", "details"),
    *("branch", "is_pinned", "client"),
)


def recorded_after(
    connection: SqlConnection, after: int | None, limit: int, *, hidden: frozenset[str] = NOTHING
) -> list[dict[str, Any]]:
    """Return previews of the observations that were stored after the one with this id, in the order in which they were;
    without an id, of the last ones."""
    order = "DESC" if after is None else ""
    rows = connection.execute(
        f"SELECT {_LIVE} FROM observations AS o LEFT JOIN sessions AS s ON s.id = o.session_id"
        f" WHERE o.id > ? AND {SHOWN.replace('project', 'o.project')} ORDER BY o.id {order} LIMIT ?",
        (after or 0, json.dumps(sorted(hidden)), limit),
    ).fetchall()
    return [live_row(row) for row in (rows if after is not None else reversed(rows))]


def live_columns() -> str:
    """The columns that `live_row` reads, of the tables `o` (observations) and `s` (sessions)."""
    return _LIVE


def live_row(row: Row) -> dict[str, Any]:
    shown = dict(zip(_LIVE_NAMES, row, strict=True))
    return {**shown, "is_pinned": bool(shown["is_pinned"])}


# One session

IS_PROMPT = "(obs_type = 'user_prompt' AND prompt_id IS NOT NULL)"  # the observation of a prompt itself


def latest_prompt(connection: SqlConnection, session_id: str) -> int | None:
    """The id of the user's last prompt in a session."""
    row = connection.execute(
        "SELECT id FROM prompts WHERE session_id = ? AND source = 'user' ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return None if row is None else int(row[0])


def session_times(connection: SqlConnection, session_id: str) -> tuple[int | None, int | None]:
    """Return when a session ended, and the time of its last event; None where that is not known."""
    row = connection.execute(
        "SELECT ended_at, max(started_at, coalesce((SELECT max(timestamp) FROM observations WHERE session_id = ?1), 0),"
        " coalesce((SELECT max(timestamp) FROM prompts WHERE session_id = ?1), 0)) FROM sessions WHERE id = ?1",
        (session_id,),
    ).fetchone()
    return (None, None) if row is None else (row[0], row[1])


def has_changed_files(connection: SqlConnection, session_id: str, since: int) -> bool:
    """Whether a session has written or edited a file since then."""
    rows = connection.execute(
        f"SELECT 1 FROM observations WHERE session_id = ? AND timestamp >= ?"
        f" AND +obs_type IN ({placeholders(FILE_CHANGES)}) LIMIT 1",
        (session_id, since, *FILE_CHANGES),
    )
    return rows.fetchone() is not None


def changed_files(connection: SqlConnection, session_id: str, project: str, since: int) -> list[tuple[str, str | None]]:
    """The files that a session changed in a project since then, each with the top of its clone, the last changed
    first."""
    rows: list[tuple[str, str | None]] = connection.execute(
        "WITH changes AS (SELECT id, timestamp, file_path, clone FROM observations WHERE session_id = ?"
        f" AND timestamp >= ? AND +project = ? AND +obs_type IN ({placeholders(FILE_CHANGES)}) AND file_path > '')"
        " SELECT file_path, clone FROM (SELECT * FROM changes UNION ALL SELECT id, timestamp, t.file_path, clone"
        " FROM changes JOIN touched_files AS t ON t.observation_id = id) ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, since, project, *FILE_CHANGES, limits.MAX_PATCHED_FILES),
    ).fetchall()
    return list(dict.fromkeys(rows))


def is_action(event: Mapping[str, Any]) -> bool:
    """Whether the agent did it, other than by calling the journal."""
    metadata = event.get("metadata")
    tool = metadata.get("tool") if isinstance(metadata, dict) else None
    is_journal_call = event["type"] == "mcp_call" and isinstance(tool, str) and tool.endswith(_JOURNAL_TOOLS)
    return event["type"] not in NOT_ACTIONS and not is_journal_call


def count_actions(connection: SqlConnection, session_id: str, since: int, before_id: int | None = None) -> int:
    """Count the stored actions of a session since then, up to the observation `before_id`, without it."""
    row = connection.execute(
        f"SELECT count(*) FROM observations WHERE session_id = ? AND timestamp >= ? AND (?3 IS NULL OR id < ?3)"
        f" AND NOT (obs_type = 'mcp_call' AND coalesce(json_extract(metadata, '$.tool'), '') GLOB '*{_JOURNAL_TOOLS}')"
        f" AND +obs_type NOT IN ({placeholders(NOT_ACTIONS)})",
        (session_id, since, before_id, *NOT_ACTIONS),
    ).fetchone()
    return int(row[0])


def window_of(before: int | None, after: int | None) -> tuple[int, int]:
    return (_ALWAYS[0] if after is None else after, _ALWAYS[1] if before is None else before)


# One file

# Rows by `file_path` come from an index, in order; `touched_files` has the few changes of several files.
_TOUCHES = """WITH touches(id) AS (
    SELECT * FROM (SELECT id FROM observations WHERE file_path = :path AND timestamp > :after AND timestamp < :before
        ORDER BY timestamp DESC, id DESC LIMIT :limit)
    UNION SELECT observation_id FROM touched_files WHERE file_path = :path)"""


def file_history(
    connection: SqlConnection,
    file_path: str,
    before: int | None = None,
    after: int | None = None,
    limit: int = limits.DEFAULT_HISTORY_LIMIT,
    paths: Sequence[str] = (),
    *,
    hidden: frozenset[str] = NOTHING,
) -> dict[str, Any]:
    """Return the latest observations of a file by session: the latest session first, its observations oldest first.
    `paths` are its paths in all clones, if there are several. `more` says that there are earlier ones."""
    window = window_of(before, after)
    rows = {
        row[1]: row
        for path in paths or [file_path]
        for row in _rows_of_path(connection, path, window, limit + 1)
        if row[9] not in hidden
    }
    latest = sorted(rows.values(), key=lambda row: (-row[2], -row[1]))[:limit]
    by_session: dict[str, list[Row]] = {}
    for row in latest:
        by_session.setdefault(row[0], []).insert(0, row)
    more = {"more": True} if len(rows) > limit else {}
    sessions = [_touches(connection, *item, hidden=hidden) for item in by_session.items()]
    return {"file_path": file_path, "sessions": sessions, **more}


def _rows_of_path(connection: SqlConnection, path: str, window: tuple[int, int], limit: int) -> list[Row]:
    """Read one path at a time: the index then yields the latest rows without reading the others."""
    rows: list[Row] = connection.execute(
        f"{_TOUCHES} SELECT o.session_id, o.id, o.timestamp, o.obs_type, substr(o.content, 1, {limits.PREVIEW_CHARS}),"
        " nullif(p.content, ''), o.is_pinned, o.branch, o.clone, o.project"
        " FROM touches JOIN observations AS o USING (id)"
        " LEFT JOIN prompts AS p ON p.id = o.prompt_id AND p.source = 'user' WHERE o.timestamp > :after AND"
        " o.timestamp < :before"
        " ORDER BY o.timestamp DESC, o.id DESC LIMIT :limit",
        {"path": path, "after": window[0], "before": window[1], "limit": limit},
    ).fetchall()
    return rows


def _touches(connection: SqlConnection, session_id: str, rows: list[Row], *, hidden: frozenset[str]) -> dict[str, Any]:
    """What a session did with the file. Of a session in a hidden project, neither the project nor what was asked."""
    project, started_at, summary = connection.execute(
        "SELECT project, started_at, summary FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    touches = [_touch(row) for row in rows]
    intent = intent_of(connection, session_id) if summary is None else json.loads(summary).get("intent")
    if project in hidden:
        project = intent = None
        touches = [{**touch, "prompt_content": None} for touch in touches]
    return {
        "session_id": session_id,
        "project": project,
        "started_at": started_at,
        "summary_intent": intent,
        "touches": touches,
    }


def _touch(row: Row) -> dict[str, Any]:
    _, identity, timestamp, obs_type, preview, prompt, is_pinned, branch, clone, _ = row
    return {
        "observation_id": identity,
        "timestamp": timestamp,
        "obs_type": obs_type,
        "content_preview": preview,
        "prompt_content": prompt,
        "is_pinned": bool(is_pinned),
        **{name: value for name, value in (("branch", branch), ("clone", clone)) if value},
    }


# Everything


def sessions(
    connection: SqlConnection,
    *,
    project: str | None = None,
    prefix: str = "",
    nonempty: bool = False,
    hidden: frozenset[str] = frozenset(),
    limit: int = limits.DEFAULT_SESSIONS_LIMIT,
    offset: int = 0,
) -> list[dict[str, Any]]:
    """Return sessions, the latest started first. `prefix` is the start of an id. `nonempty` leaves out those without
    actions and prompts."""
    session_types = placeholders(SESSION_TYPES)
    has_more = (
        f" AND EXISTS (SELECT 1 FROM observations WHERE session_id = s.id AND +obs_type NOT IN ({session_types}))"
    )
    rows = connection.execute(
        "SELECT id, project, repo, cwd, client, started_at, ended_at, summary,"
        " (SELECT count(*) FROM observations WHERE session_id = s.id), (SELECT max(timestamp) FROM"
        " observations WHERE session_id = s.id), (SELECT branch FROM observations WHERE session_id = s.id"
        " AND branch IS NOT NULL ORDER BY id DESC LIMIT 1)"
        " FROM sessions AS s WHERE (?1 IS NULL OR project = ?1) AND substr(id, 1, length(?2)) = ?2"
        f" AND coalesce(project NOT IN (SELECT value FROM json_each(?5)), 1){has_more if nonempty else ''}"
        " ORDER BY started_at DESC, id LIMIT ?3 OFFSET ?4",
        (project, prefix, limit, offset, json.dumps(sorted(hidden)), *(SESSION_TYPES if nonempty else ())),
    ).fetchall()
    return [_session(connection, row, hidden) for row in rows]


def _session(connection: SqlConnection, row: Row, hidden: frozenset[str]) -> dict[str, Any]:
    names = ("session_id", "project", "repo", "cwd", "client", "started_at", "ended_at")
    return {
        **dict(zip(names, row, strict=False)),
        "branch": row[10],
        "last_event_at": row[9],
        "observation_count": row[8],
        "summary": summary_of(connection, row[0], row[7], hidden),
    }


_EXPORTED = {
    "session": ("sessions", "id, project, repo, cwd, client, started_at, ended_at, summary"),
    "prompt": ("prompts", "id, session_id, client_prompt_id, timestamp, source, content"),
    "observation": ("observations", COLUMNS),
    "injection": ("injections", "id, session_id, timestamp, items, text"),
}
_JSON_FIELDS = ("summary", "metadata", "items")


def export(connection: SqlConnection, after: str | None = None, *, hidden: frozenset[str] = NOTHING) -> dict[str, Any]:
    """Return one page of all rows, and as `next` the value of `after` for the next page, None at the end. A page has
    the rows that fit into PAGE_BYTES, and at least one."""
    kind, start = _parse_position(after)
    table, columns = _EXPORTED[kind]
    limit, room = limits.EXPORT_PAGE, limits.PAGE_BYTES
    rows: list[Row] = []
    shown = SHOWN if "project" in columns else SESSION_SHOWN
    cursor = connection.execute(
        f"SELECT {columns} FROM {table} WHERE {shown} AND id > ? ORDER BY id LIMIT ?",
        (json.dumps(sorted(hidden)), start, limit),
    )
    for row in cursor:
        room -= sum(len(value) for value in row if isinstance(value, str))
        if room < 0 and rows:
            break
        rows.append(row)
    is_cut = room < 0 or len(rows) == limit
    next_page = f"{kind}:{rows[-1][0]}" if is_cut else _next_kind(kind)
    exported = [_exported(kind, columns.split(", "), row) for row in rows]
    for row in exported if kind == "session" and hidden else ():
        row["summary"] = row["summary"] and without_hidden(connection, row["id"], row["summary"], hidden)
    return {"rows": exported, "next": next_page}


def _parse_position(after: str | None) -> tuple[str, Any]:
    kind, _, start = (after or "session:").partition(":")
    if kind not in _EXPORTED or (kind != "session" and not (start.isascii() and start.isdigit() and len(start) < 19)):
        raise Invalid("must be the `next` of the previous page", field="after")
    return kind, start if kind == "session" else int(start)


def _next_kind(kind: str) -> str | None:
    kinds = list(_EXPORTED)
    following = kinds[kinds.index(kind) + 1 :]
    return f"{following[0]}:0" if following else None


def _exported(kind: str, names: Sequence[str], row: Row) -> dict[str, Any]:
    fields = dict(zip(names, row, strict=True))
    return {
        "kind": kind,
        **{name: json.loads(fields[name]) if name in _JSON_FIELDS and fields[name] else fields[name] for name in names},
    }
