"""Recording: an event becomes an observation, at most once, in its session and under its prompt."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge import limits
from nudge.history.model import NO_ACTION, SESSION_TYPES, Event, marks, storable
from nudge.history.summary import end_session, settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nudge.history.model import Connection

_LATE = 60  # seconds by which an action may seem older than the prompt that it names: clocks and hooks are not exact


def record(connection: Connection, raw: Mapping[str, Any]) -> int | None:
    """The new observation's id; None when the event is known, or repeats one of a moment ago. The caller holds the
    transaction."""
    event = Event(raw)
    if not is_new_event(connection, event.event_id, event.timestamp):
        return None
    _keep_session(connection, event)
    if _repeats(connection, event):
        return None
    if event.type == "user_prompt":
        return _insert(connection, event, _keep_prompt(connection, event))
    observation_id = _insert(connection, event, _prompt_of(connection, event))
    if event.type == "session_end":
        end_session(connection, event.session_id, event.timestamp)
    return observation_id


def is_new_event(connection: Connection, event_id: str, timestamp: int) -> bool:
    """Note an id; False when it is noted already."""
    added = connection.execute("INSERT OR IGNORE INTO events VALUES (?, ?)", (event_id, timestamp))
    return bool(added.rowcount == 1)


def _insert(connection: Connection, event: Event, prompt_id: int | None) -> int:
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
    )
    added = connection.execute(
        "INSERT INTO observations (session_id, prompt_id, timestamp, project, obs_type, source_event, tool_name, file_path, content,"
        f" metadata) VALUES ({marks(row)})",
        row,
    )
    observation_id = int(added.lastrowid)
    for path in event.files:
        connection.execute(
            "INSERT INTO touched_files (observation_id, file_path) VALUES (?, ?)", (observation_id, path)
        )
    return observation_id


# Sessions


def _keep_session(connection: Connection, event: Event) -> None:
    """Any event may be the first that arrives of a session; the earliest one dates it, and what comes after its end
    reopens it."""
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
    kept = (
        project or event.project,
        repo or event.repo,
        cwd or event.cwd,
        event.client if client == "unknown" else client,
        min(started_at, event.timestamp),
        None if resumed else ended_at,
        None,
    )
    if kept != (project, repo, cwd, client, started_at, ended_at, summary):
        connection.execute(
            "UPDATE sessions SET project = ?, repo = ?, cwd = ?, client = ?, started_at = ?, ended_at = ?, summary = ? WHERE id = ?",
            (*kept, event.session_id),
        )


def _begin_session(connection: Connection, event: Event) -> None:
    """A new session is the moment to notice that others ended without a word."""
    settle(connection, event.timestamp)
    connection.execute(
        "INSERT INTO sessions (id, project, repo, cwd, client, started_at) VALUES (?, ?, ?, ?, ?, ?)",
        (event.session_id, event.project, event.repo, event.cwd, event.client, event.timestamp),
    )


def _repeats(connection: Connection, event: Event) -> bool:
    """Agents read the same file, and search for the same thing, again and again; within five minutes that is one
    observation.
    Two searches of one directory are the same only when they look for the same."""
    if event.type == "search" or (event.type == "file_read" and event.file_path is None):
        alike, value = "content = ?", event.content
    elif event.type == "file_read":
        alike, value = "file_path = ?", str(event.file_path)
    else:
        return False
    window = (event.timestamp - limits.DEDUPLICATION_WINDOW, event.timestamp + limits.DEDUPLICATION_WINDOW)
    # The plus sign keeps SQLite to the index over session and time: one path may have been read a hundred thousand
    # times.
    found = connection.execute(
        f"SELECT 1 FROM observations WHERE session_id = ? AND timestamp BETWEEN ? AND ? AND +obs_type = ? AND +{alike} LIMIT 1",
        (event.session_id, *window, event.type, value),
    )
    return found.fetchone() is not None


# Prompts


def _prompt_of(connection: Connection, event: Event) -> int | None:
    """The prompt that the client names, else the latest one before; what arrives later than its actions claims them
    then."""
    if event.type in SESSION_TYPES:
        return None
    return _named_prompt(connection, event) or _prompt_at(connection, event)


def _named_prompt(connection: Connection, event: Event) -> int | None:
    if event.prompt_id is None:
        return None
    row = connection.execute(
        "SELECT id FROM prompts WHERE session_id = ? AND +client_prompt_id = ? ORDER BY timestamp DESC LIMIT 1",
        (event.session_id, event.prompt_id),
    ).fetchone()
    return int(row[0]) if row else None


def _prompt_at(connection: Connection, event: Event) -> int | None:
    row = connection.execute(
        "SELECT id FROM prompts WHERE session_id = ? AND timestamp <= ? AND source = 'user' ORDER BY timestamp DESC, id DESC LIMIT 1",
        (event.session_id, event.timestamp),
    ).fetchone()
    return int(row[0]) if row else None


def _keep_prompt(connection: Connection, event: Event) -> int:
    added = connection.execute(
        "INSERT INTO prompts (session_id, client_prompt_id, timestamp, source, content) VALUES (?, ?, ?, 'user', ?)",
        (event.session_id, event.prompt_id, event.timestamp, event.content),
    )
    prompt_id = int(added.lastrowid)
    _claim_by_time(connection, event, prompt_id)
    if event.prompt_id is not None:
        _claim_by_name(connection, event, prompt_id)
    return prompt_id


def _claim_by_time(connection: Connection, event: Event, prompt_id: int) -> None:
    """Actions between this prompt and the next one are its own, unless they name a prompt that is known."""
    until = connection.execute(
        "SELECT min(timestamp) FROM prompts WHERE session_id = ? AND timestamp > ? AND source = 'user'",
        (event.session_id, event.timestamp),
    ).fetchone()[0]
    connection.execute(
        "UPDATE observations SET prompt_id = ? WHERE session_id = ? AND timestamp >= ? AND timestamp < ?"
        f" AND +obs_type NOT IN ({marks(NO_ACTION)}) AND NOT EXISTS (SELECT 1 FROM prompts AS named WHERE named.id = observations.prompt_id"
        " AND named.client_prompt_id = json_extract(observations.metadata, '$.prompt_id'))",
        (
            prompt_id,
            event.session_id,
            event.timestamp,
            limits.MAX_TIMESTAMP + 1 if until is None else until,
            *NO_ACTION,
        ),
    )


def _claim_by_name(connection: Connection, event: Event, prompt_id: int) -> None:
    connection.execute(
        f"UPDATE observations SET prompt_id = ? WHERE session_id = ? AND timestamp >= ? AND +obs_type NOT IN ({marks(NO_ACTION)})"
        " AND json_extract(metadata, '$.prompt_id') = ?",
        (prompt_id, event.session_id, event.timestamp - _LATE, *NO_ACTION, event.prompt_id),
    )


# Beside the events


def set_pinned(connection: Connection, ids: Sequence[int], pinned: bool) -> list[int]:
    """Those of the ids that exist, in the order of asking."""
    rows = connection.execute(f"SELECT id FROM observations WHERE id IN ({marks(ids)})", tuple(ids))
    known = {row[0] for row in rows}
    found = [identity for identity in dict.fromkeys(ids) if identity in known]
    connection.execute(f"UPDATE observations SET is_pinned = ? WHERE id IN ({marks(found)})", (int(pinned), *found))
    return found


def note_injection(connection: Connection, session_id: str, timestamp: float, items: Sequence[Any], text: str) -> int:
    """Keep what a session was told at its start; `items` are observation ids, or objects that hold one as `id`."""
    added = connection.execute(
        "INSERT INTO injections (session_id, timestamp, items, text) VALUES (?, ?, ?, ?)",
        (storable(session_id), int(timestamp), json.dumps(list(items), default=str), storable(text)),
    )
    return int(added.lastrowid)
