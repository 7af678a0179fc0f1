"""Write events to the history: each is stored at most once, in its session and under its prompt."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.text import to_unicode
from nudge.history import projects
from nudge.history.event import UNKNOWN_CLIENT, Event, placeholders
from nudge.history.observations import NOT_ACTIONS, SESSION_TYPES
from nudge.history.sessions import close_session, close_silent_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

_MAX_SKEW = 60  # seconds by which an action may seem older than its prompt: hooks run concurrently


def insert_event(connection: SqlConnection, raw: Mapping[str, Any]) -> int | None:
    """Store an event and return the observation's id; None when it is stored already or repeats a recent one. The
    caller holds the transaction."""
    event = Event(raw)
    if not add_event_id(connection, event.event_id, event.timestamp):
        return None
    projects.add(connection, event.project, event.clone)
    _update_session(connection, event)
    if _is_repeated(connection, event) or (event.type == "session_stop" and not _replace_stop(connection, event)):
        return None
    if event.type == "user_prompt":
        return _insert(connection, event, _insert_prompt(connection, event))
    observation_id = _insert(connection, event, _prompt_of(connection, event))
    if event.type == "session_end":
        close_session(connection, event.session_id, event.timestamp)
    return observation_id


def add_event_id(connection: SqlConnection, event_id: str, timestamp: int) -> bool:
    """Store an event id; return whether it was new."""
    added = connection.execute("INSERT OR IGNORE INTO events VALUES (?, ?)", (event_id, timestamp))
    return bool(added.rowcount == 1)


def _insert(connection: SqlConnection, event: Event, prompt_id: int | None) -> int:
    row = (
        event.session_id,
        prompt_id,
        event.timestamp,
        event.project,
        event.type,
        event.source_event,
        event.tool_name,
        event.file_path,
        event.content,
        event.metadata,
        event.details,
        event.branch,
        event.clone,
    )
    added = connection.execute(
        "INSERT INTO observations (session_id, prompt_id, timestamp, project, obs_type, source_event,"
        f" tool_name, file_path, content, metadata, details, branch, clone) VALUES ({placeholders(row)})",
        row,
    )
    observation_id = int(added.lastrowid)
    for path in event.files:
        connection.execute(
            "INSERT INTO touched_files (observation_id, file_path) VALUES (?, ?)", (observation_id, path)
        )
    return observation_id


# Sessions


def _update_session(connection: SqlConnection, event: Event) -> None:
    """Create or complete the session's row. Events arrive in any order: the earliest gives the session's start, and one
    after its end reopens it."""
    row = connection.execute(
        "SELECT project, repo, cwd, client, started_at, ended_at, summary FROM sessions WHERE id = ?",
        (event.session_id,),
    ).fetchone()
    if row is None:
        _begin_session(connection, event)
        return
    project, repo, cwd, client, started_at, ended_at, summary = row
    resumed = ended_at is not None and (
        ended_at < event.timestamp or (ended_at == event.timestamp and event.type == "session_start")
    )
    updated = (
        project or event.project,
        repo or event.repo,
        cwd or event.cwd,
        event.client if client == UNKNOWN_CLIENT else client,
        min(started_at, event.timestamp),
        None if resumed else ended_at,
        None,
    )
    if updated != (project, repo, cwd, client, started_at, ended_at, summary):
        connection.execute(
            "UPDATE sessions SET project = ?, repo = ?, cwd = ?, client = ?, started_at = ?, ended_at = ?,"
            " summary = ? WHERE id = ?",
            (*updated, event.session_id),
        )


def _begin_session(connection: SqlConnection, event: Event) -> None:
    """Insert the session, and close others that have been silent for long."""
    close_silent_sessions(connection, event.timestamp)
    connection.execute(
        "INSERT INTO sessions (id, project, repo, cwd, client, started_at) VALUES (?, ?, ?, ?, ?, ?)",
        (event.session_id, event.project, event.repo, event.cwd, event.client, event.timestamp),
    )


def _is_repeated(connection: SqlConnection, event: Event) -> bool:
    """Whether the session read the same file, or searched for the same, within DEDUPLICATION_WINDOW. Two searches of
    one directory are the same only when they look for the same."""
    if event.type == "search" or (event.type == "file_read" and event.file_path is None):
        condition, value = "content = ?", event.content
    elif event.type == "file_read":
        condition, value = "file_path = ?", str(event.file_path)
    else:
        return False
    window = (event.timestamp - limits.DEDUPLICATION_WINDOW, event.timestamp + limits.DEDUPLICATION_WINDOW)
    # `+` keeps SQLite on the index over session and time: one path may have been read a hundred thousand times.
    rows = connection.execute(
        "SELECT 1 FROM observations WHERE session_id = ? AND timestamp BETWEEN ? AND ? AND +obs_type = ? AND"
        f" +{condition} LIMIT 1",
        (event.session_id, *window, event.type, value),
    )
    return rows.fetchone() is not None


def _replace_stop(connection: SqlConnection, event: Event) -> bool:
    """Delete the last end of a turn before the new one is stored: a session keeps one. False, to keep the old one, when
    there was no action in between: an answer to thanks says less than the words before it."""
    row = connection.execute(
        "SELECT id, timestamp FROM observations WHERE session_id = ? AND +obs_type = 'session_stop'",
        (event.session_id,),
    ).fetchone()
    if row is None:
        return True
    last_id, last_time = row
    has_acted = connection.execute(
        "SELECT 1 FROM observations WHERE session_id = ? AND timestamp >= ? AND id > ?"
        f" AND +obs_type NOT IN ({placeholders(NOT_ACTIONS)}) LIMIT 1",
        (event.session_id, last_time, last_id, *NOT_ACTIONS),
    ).fetchone()
    if has_acted is None or event.timestamp < last_time:
        return False
    connection.execute("DELETE FROM observations WHERE id = ?", (last_id,))
    return True


# Prompts


def _prompt_of(connection: SqlConnection, event: Event) -> int | None:
    """Return the prompt that the client names, else the latest before the event. A prompt that arrives after its
    actions claims them when it is stored."""
    if event.type in SESSION_TYPES:
        return None
    return _named_prompt(connection, event) or _prompt_at(connection, event)


def _named_prompt(connection: SqlConnection, event: Event) -> int | None:
    if event.prompt_id is None:
        return None
    row = connection.execute(
        "SELECT id FROM prompts WHERE session_id = ? AND +client_prompt_id = ? ORDER BY timestamp DESC LIMIT 1",
        (event.session_id, event.prompt_id),
    ).fetchone()
    return int(row[0]) if row else None


def _prompt_at(connection: SqlConnection, event: Event) -> int | None:
    row = connection.execute(
        "SELECT id FROM prompts WHERE session_id = ? AND timestamp <= ? AND source = 'user' ORDER BY timestamp"
        " DESC, id DESC LIMIT 1",
        (event.session_id, event.timestamp),
    ).fetchone()
    return int(row[0]) if row else None


def _insert_prompt(connection: SqlConnection, event: Event) -> int:
    added = connection.execute(
        "INSERT INTO prompts (session_id, client_prompt_id, timestamp, source, content) VALUES (?, ?, ?, 'user', ?)",
        (event.session_id, event.prompt_id, event.timestamp, event.content),
    )
    prompt_id = int(added.lastrowid)
    _claim_by_time(connection, event, prompt_id)
    if event.prompt_id is not None:
        _claim_by_name(connection, event, prompt_id)
    return prompt_id


def _claim_by_time(connection: SqlConnection, event: Event, prompt_id: int) -> None:
    """Assign the actions between this prompt and the next one to it, unless they name a stored prompt. Actions in the
    same second that were stored before it stay with the prompt before."""
    until = connection.execute(
        "SELECT min(timestamp) FROM prompts WHERE session_id = ? AND timestamp > ? AND source = 'user'",
        (event.session_id, event.timestamp),
    ).fetchone()[0]
    connection.execute(
        "UPDATE observations SET prompt_id = ? WHERE session_id = ? AND timestamp >= ? AND timestamp < ?"
        " AND (timestamp > ? OR prompt_id IS NULL)"
        f" AND +obs_type NOT IN ({placeholders(NOT_ACTIONS)}) AND NOT EXISTS (SELECT 1 FROM prompts AS named WHERE"
        " named.id = observations.prompt_id"
        " AND named.client_prompt_id = json_extract(observations.metadata, '$.prompt_id'))",
        (
            prompt_id,
            event.session_id,
            event.timestamp,
            limits.MAX_TIMESTAMP + 1 if until is None else until,
            event.timestamp,
            *NOT_ACTIONS,
        ),
    )


def _claim_by_name(connection: SqlConnection, event: Event, prompt_id: int) -> None:
    connection.execute(
        "UPDATE observations SET prompt_id = ? WHERE session_id = ? AND timestamp >= ? AND +obs_type NOT IN"
        f" ({placeholders(NOT_ACTIONS)})"
        " AND json_extract(metadata, '$.prompt_id') = ?",
        (prompt_id, event.session_id, event.timestamp - _MAX_SKEW, *NOT_ACTIONS, event.prompt_id),
    )


# Pins and injections


def set_pinned(connection: SqlConnection, ids: Sequence[int], pinned: bool) -> list[int]:
    """Pin or unpin observations; return the ids that exist."""
    rows = connection.execute(f"SELECT id FROM observations WHERE id IN ({placeholders(ids)})", tuple(ids))
    existing = {row[0] for row in rows}
    pinned_ids = [identity for identity in dict.fromkeys(ids) if identity in existing]
    connection.execute(
        f"UPDATE observations SET is_pinned = ? WHERE id IN ({placeholders(pinned_ids)})", (int(pinned), *pinned_ids)
    )
    return pinned_ids


def store_injection(
    connection: SqlConnection, session_id: str, timestamp: float, items: Sequence[Any], text: str
) -> int:
    """Store a text that was injected into a session; `items` are observation ids, or objects with one as `id`."""
    added = connection.execute(
        "INSERT INTO injections (session_id, timestamp, items, text) VALUES (?, ?, ?, ?)",
        (to_unicode(session_id), int(timestamp), json.dumps(list(items), default=str), to_unicode(text)),
    )
    return int(added.lastrowid)
