"""The summary of a session that is stored when it ends, computed from the session's rows.

`+obs_type` in a query makes SQLite use the index over sessions: by the one over types it would read the whole history.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
from collections import Counter

from nudge.core import limits
from nudge.core.text import unwrap_command
from nudge.history.event import placeholders
from nudge.history.failing_jobs import has_passed, is_same_job
from nudge.history.observations import FAILURE, FILE_CHANGES, NOT_ACTIONS, UNFAILED_COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

_LEAST_WORDS = 4  # of a prompt or of last words that are told
_FIRST_IDEOGRAPHIC = "\u2e80"
# The user's prompts that led to an action, which `yes` and `thanks` do not.
INTENTS = (
    "FROM prompts AS p WHERE session_id = ? AND source = 'user' AND content <> '' AND EXISTS (SELECT 1 FROM"
    f" observations AS o WHERE o.prompt_id = p.id AND o.obs_type NOT IN ({placeholders(NOT_ACTIONS)}))"
)


def summarize(connection: SqlConnection, session_id: str) -> dict[str, Any]:
    """Compute the summary from the stored rows alone."""
    words = last_words_of(connection, session_id)
    return {
        **({"last_words": words} if words else {}),
        "intent": intent_of(connection, session_id),
        "files": _changed_files(connection, session_id),
        "failed": _failed_commands(connection, session_id),
        "commits": _commits(connection, session_id),
        "counts": _counts(connection, session_id),
    }


def summary_of(
    connection: SqlConnection, session_id: str, stored: str | None, hidden: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the stored summary, or compute one for a session that has not ended; without what the session did in
    `hidden` projects."""
    summary: dict[str, Any] = summarize(connection, session_id) if stored is None else json.loads(stored)
    return without_hidden(connection, session_id, summary, hidden)


def without_hidden(
    connection: SqlConnection, session_id: str, summary: dict[str, Any], hidden: frozenset[str]
) -> dict[str, Any]:
    """Return a summary without what the session did in `hidden` projects. What it said last may be about that."""
    rows = rows_in(connection, session_id, hidden)
    if not rows:
        return summary
    ids, files = {row[0] for row in rows}, {row[2] for row in rows}
    counts = Counter(summary["counts"])
    counts.subtract(obs_type for _, obs_type in {(row[0], row[1]) for row in rows})
    return {
        "intent": summary["intent"],
        "files": [path for path in summary["files"] if path not in files],
        "failed": [failed for failed in summary["failed"] if failed["id"] not in ids],
        "commits": [commit for commit in summary["commits"] if commit["id"] not in ids],
        "counts": dict(+counts),
    }


def rows_in(connection: SqlConnection, session_id: str, projects: frozenset[str]) -> list[Any]:
    """Return id, type and file of what a session did in these projects, with a row for each file."""
    if not projects:
        return []
    there = "session_id = ?1 AND project IN (SELECT value FROM json_each(?2))"
    rows: list[Any] = connection.execute(
        f"SELECT id, obs_type, file_path FROM observations WHERE {there} UNION SELECT id, obs_type, t.file_path"
        f" FROM observations JOIN touched_files AS t ON t.observation_id = id WHERE {there}",
        (session_id, json.dumps(sorted(projects))),
    ).fetchall()
    return rows


def intent_of(connection: SqlConnection, session_id: str) -> str | None:
    """Return the first prompt that led to an action, which `yes` and `thanks` do not."""
    row = connection.execute(
        f"SELECT content {INTENTS} ORDER BY timestamp, id LIMIT 1", (session_id, *NOT_ACTIONS)
    ).fetchone()
    return " ".join(unwrap_command(row[0]).split())[: limits.INTENT_CHARS] if row else None


def last_words_of(connection: SqlConnection, session_id: str) -> str:
    """Return the last message of the assistant that a session end or turn end has; empty when there is none."""
    row = connection.execute(
        "SELECT json_extract(metadata, '$.last_words') AS words FROM observations WHERE session_id = ?"
        " AND +obs_type IN ('session_end', 'session_stop') AND words <> '' ORDER BY timestamp DESC, id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return str(row[0]) if row else ""


def _changed_files(connection: SqlConnection, session_id: str) -> list[str]:
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


def _failed_commands(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    """Each command that failed, once, with the id of the observation in which it, or its job with another command,
    passed afterwards, if any."""
    rows = connection.execute(
        "SELECT content, max(id), max(timestamp) FROM observations WHERE session_id = ? AND +obs_type = ?"
        " GROUP BY content ORDER BY min(timestamp), min(id) LIMIT ?",
        (session_id, FAILURE, limits.MAX_SUMMARY_ITEMS),
    ).fetchall()
    passed = _passed_commands(connection, session_id) if rows else []
    return [
        {"command": command, "id": failed_id, "passed": _passed_later(passed, command, (timestamp, failed_id))}
        for command, failed_id, timestamp in rows
    ]


def _passed_commands(connection: SqlConnection, session_id: str) -> list[tuple[tuple[int, int], str]]:
    """Return time and id, and the text, of each command that passed, first to last. One without an exit code does not
    count, nor does one whose failure a pipe hid."""
    rows = connection.execute(
        "SELECT timestamp, id, content, obs_type, metadata FROM observations WHERE session_id = ?"
        f" AND +obs_type IN ({placeholders(UNFAILED_COMMANDS)}) AND json_extract(metadata, '$.exit_code') = 0"
        " ORDER BY timestamp DESC, id DESC LIMIT ?",
        (session_id, *UNFAILED_COMMANDS, limits.TOLD_COMMANDS_READ),
    ).fetchall()
    return [((timestamp, row_id), content) for timestamp, row_id, content, *rest in reversed(rows) if has_passed(*rest)]


def _passed_later(passed: Sequence[tuple[tuple[int, int], str]], failed: str, when: tuple[int, int]) -> int | None:
    later = ((row_id, content) for (timestamp, row_id), content in passed if (timestamp, row_id) > when)
    return next((row_id for row_id, content in later if content == failed or is_same_job(content, failed)), None)


def _commits(connection: SqlConnection, session_id: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT id, content, metadata FROM observations WHERE session_id = ? AND +obs_type = 'git_commit'"
        " ORDER BY timestamp, id LIMIT ?",
        (session_id, limits.MAX_SUMMARY_ITEMS),
    )
    return [{"id": row[0], "hash": _commit_hash(json.loads(row[2])), "command": row[1]} for row in rows]


def _commit_hash(metadata: dict[str, Any]) -> str | None:
    commit = metadata.get("commit") or metadata.get("commit_hash") or metadata.get("hash")
    return str(commit) if commit else None


def _counts(connection: SqlConnection, session_id: str) -> dict[str, int]:
    rows = connection.execute(
        "SELECT obs_type, count(*) FROM observations WHERE session_id = ? GROUP BY obs_type ORDER BY obs_type",
        (session_id,),
    )
    return dict(rows.fetchall())


def says_something(text: str) -> bool:
    """Whether a prompt or last words are of four words or more: `ok go on` and `All done.` tell another agent nothing.
    In a script that does not separate words, two characters count as a word."""
    return max(len(text.split()), sum(char >= _FIRST_IDEOGRAPHIC for char in text) // 2) >= _LEAST_WORDS
