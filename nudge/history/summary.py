"""Session summaries, computed from a session's rows: intent, changed files, failures, commits, counts."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge import limits
from nudge.history.event import placeholders
from nudge.history.observations import FAILURE, FILE_CHANGES, NOT_ACTIONS, UNFAILED_COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nudge.history.event import SqlConnection

# `+obs_type` makes SQLite use the index over sessions: by the one over types it would read the whole history.


def end_session(connection: SqlConnection, session_id: str, timestamp: int) -> None:
    """Close a session, unless later events show that it was resumed."""
    if _last_event(connection, session_id) <= timestamp:
        _close(connection, session_id, timestamp)


def settle(connection: SqlConnection, now: float) -> int:
    """Close sessions that have been silent for SILENT_SESSION seconds, and make the summary of ended sessions without
    one again; return how many sessions changed."""
    rows = connection.execute("SELECT id, ended_at FROM sessions WHERE summary IS NULL").fetchall()
    settled = 0
    for session_id, ended_at in rows:
        last = _last_event(connection, session_id)
        if ended_at is not None or last < now - limits.SILENT_SESSION:
            _close(connection, session_id, last if ended_at is None else ended_at)
            settled += 1
    return settled


def _close(connection: SqlConnection, session_id: str, timestamp: int) -> None:
    summary = json.dumps(summarize(connection, session_id), separators=(",", ":"))
    connection.execute("UPDATE sessions SET ended_at = ?, summary = ? WHERE id = ?", (timestamp, summary, session_id))


def _last_event(connection: SqlConnection, session_id: str) -> int:
    """The time of the last observation; of a session without any, its start."""
    row = connection.execute(
        "SELECT coalesce((SELECT max(timestamp) FROM observations WHERE session_id = :id),"
        " (SELECT started_at FROM sessions WHERE id = :id), 0)",
        {"id": session_id},
    ).fetchone()
    return int(row[0])


def summarize(connection: SqlConnection, session_id: str) -> dict[str, Any]:
    """Compute the summary from the stored rows alone."""
    words = last_words(connection, session_id)
    return {
        **({"last_words": words} if words else {}),
        "intent": intent(connection, session_id),
        "files": _files(connection, session_id),
        "failed": _failures(connection, session_id),
        "commits": _commits(connection, session_id),
        "counts": _counts(connection, session_id),
    }


def summary_of(connection: SqlConnection, session_id: str, stored: str | None) -> dict[str, Any]:
    """Return the stored summary, or compute one for a session that has not ended."""
    summary: dict[str, Any] = summarize(connection, session_id) if stored is None else json.loads(stored)
    return summary


def intent(connection: SqlConnection, session_id: str) -> str | None:
    """Return the first prompt that led to an action, which `yes` and `thanks` do not."""
    row = connection.execute(
        "SELECT content FROM prompts AS p WHERE session_id = ? AND source = 'user' AND content <> ''"
        " AND EXISTS (SELECT 1 FROM observations AS o"
        f" WHERE o.prompt_id = p.id AND o.obs_type NOT IN ({placeholders(NOT_ACTIONS)}))"
        " ORDER BY timestamp, id LIMIT 1",
        (session_id, *NOT_ACTIONS),
    ).fetchone()
    return " ".join(row[0].split())[: limits.INTENT_CHARS] if row else None


def last_words(connection: SqlConnection, session_id: str) -> str:
    """Return the last message of the assistant that a session end or turn end has; empty when there is none."""
    row = connection.execute(
        "SELECT json_extract(metadata, '$.last_words') AS words FROM observations WHERE session_id = ?"
        " AND +obs_type IN ('session_end', 'session_stop') AND words <> '' ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return str(row[0]) if row else ""


def _files(connection: SqlConnection, session_id: str) -> list[str]:
    """Changed files in the order of their first change."""
    rows = connection.execute(
        "WITH changes AS (SELECT id, timestamp, file_path FROM observations WHERE session_id = ? AND"
        f" +obs_type IN ({placeholders(FILE_CHANGES)})),"
        " named AS (SELECT id, timestamp, file_path FROM changes WHERE file_path IS NOT NULL UNION ALL"
        " SELECT id, timestamp, also.file_path FROM changes JOIN touched_files AS also ON also.observation_id"
        " = changes.id)"
        " SELECT file_path FROM named GROUP BY file_path ORDER BY min(timestamp), min(id), file_path LIMIT ?",
        (session_id, *FILE_CHANGES, limits.MAX_SUMMARY_ITEMS),
    )
    return [row[0] for row in rows]


def _failures(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    """Each command that failed, once, with the id of the observation in which it passed afterwards, if any."""
    rows = connection.execute(
        "SELECT content, max(id), max(timestamp) FROM observations WHERE session_id = ? AND +obs_type = ?"
        " GROUP BY content ORDER BY min(timestamp), min(id) LIMIT ?",
        (session_id, FAILURE, limits.MAX_SUMMARY_ITEMS),
    ).fetchall()
    return [
        {"command": command, "id": failed_id, "passed": _passed(connection, session_id, command, timestamp, failed_id)}
        for command, failed_id, timestamp in rows
    ]


def _passed(connection: SqlConnection, session_id: str, command: str, timestamp: int, failed_id: int) -> int | None:
    """The id of the same command later with exit code 0. Without an exit code it does not count as a success."""
    row = connection.execute(
        "SELECT id FROM observations WHERE session_id = ? AND (timestamp, id) > (?, ?) AND +obs_type IN"
        f" ({placeholders(UNFAILED_COMMANDS)})"
        " AND content = ? AND json_extract(metadata, '$.exit_code') = 0 ORDER BY timestamp, id LIMIT 1",
        (session_id, timestamp, failed_id, *UNFAILED_COMMANDS, command),
    ).fetchone()
    return int(row[0]) if row else None


def _commits(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT id, content, metadata FROM observations WHERE session_id = ? AND +obs_type = 'git_commit'"
        " ORDER BY timestamp, id LIMIT ?",
        (session_id, limits.MAX_SUMMARY_ITEMS),
    )
    return [{"id": row[0], "hash": _hash(json.loads(row[2])), "command": row[1]} for row in rows]


def _hash(metadata: dict[str, Any]) -> str | None:
    commit = metadata.get("commit") or metadata.get("commit_hash") or metadata.get("hash")
    return str(commit) if commit else None


def _counts(connection: SqlConnection, session_id: str) -> dict[str, int]:
    rows = connection.execute(
        "SELECT obs_type, count(*) FROM observations WHERE session_id = ? GROUP BY obs_type ORDER BY obs_type",
        (session_id,),
    )
    return dict(rows.fetchall())
