"""The stored rows that a session's start may be told of: hints, notes and attempts, as `start.build` takes them.

Hooks load this module: only the standard library is imported.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.branches import holds_on
from nudge.core.context import Context, project_of
from nudge.core.visibility import EVERYTHING, Visibility
from nudge.history import queries
from nudge.history.sessions import Place
from nudge.repofile import SOURCE
from nudge.telling import hint_selection
from nudge.telling.file import TOLD_KINDS, possible_names
from nudge.telling.start import CONTINUED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

    LastSeen = Callable[[str], float | None]

# What the index `notes_pinned` is over: the notes that somebody gave the tag `pinned`.
_IS_PINNED = "instr(tags, '\"pinned\"') > 0"
_BRANCH = "CASE WHEN json_valid(origin) THEN json_extract(origin, '$.branch') END"
_IS_READABLE = "typeof(title) = 'text' AND typeof(content) = 'text' AND typeof(updated_at) IN ('real', 'integer')"
"""A damaged row is shown in lists of notes; it must not keep the others from being told."""
_NOTES = (
    f"SELECT id, kind, title, substr(content, 1, ?), updated_at, {_BRANCH} FROM notes"
    f" WHERE (expires_at IS NULL OR expires_at > ?) AND confidence >= ? AND {_IS_READABLE} AND"
)
_LATEST_NOTES = f" ORDER BY updated_at DESC LIMIT {4 * limits.INJECTED_NOTES}"
_PINNED_NOTES = f"{_NOTES} namespace IN (?, 'global') AND {_IS_PINNED} {_LATEST_NOTES}"
_NOTES_ABOUT_FILES = (
    f"{_NOTES} namespace = ? AND kind IN (SELECT value FROM json_each(?)) AND id IN (SELECT note_id FROM note_files"
    " WHERE is_given AND path IN (SELECT value FROM json_each(?)) OR NOT is_given AND path IN (SELECT value FROM"
    f" json_each(?))) {_LATEST_NOTES}"
)
_OPEN_ATTEMPTS = (
    "SELECT id, title, json_extract(metadata, '$.hypothesis'), json_extract(metadata, '$.prediction'),"
    f" attempt_session, updated_at, namespace, {_BRANCH} FROM notes"
    f" WHERE kind = 'attempt' AND attempt_session IS NOT NULL AND attempt_outcome IS NULL AND {_IS_READABLE}"
)


def digest_options(
    context: Context,
    visible: Visibility,
    session_id: str | None,
    source: str,
    now: float,
    instructions: str = "",
) -> dict[str, Any]:
    """The arguments of `start.build`, without hints, notes and attempts."""
    return {
        "project": context.project or project_of(context.repo, context.cwd),
        "session_id": session_id,
        "now": now,
        "source": source,
        "place": Place(context.cwd, context.branch),
        "visible": visible,
        "instructions": instructions,
    }


def stored_lines(
    connection: SqlConnection, options: Mapping[str, Any], last_seen: LastSeen = lambda _session: None
) -> dict[str, Any]:
    """The notes and attempts for `start.build`. `last_seen` returns when a server last saw a session, for what the
    history does not hold."""
    project, now, branch = options["project"], options["now"], options["place"].branch
    rows = attempts_at_start(
        connection, project, options["session_id"], options["source"], now, last_seen, options["visible"], branch
    )
    return {"notes": lambda files: start_notes(connection, project, files, branch, now), "attempts": rows}


def hint_rows(hits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of a query as `start.build` takes them: the best of several variants, a secret without its value.
    A hint whose file is not in this clone is left out."""
    from nudge.hints.fields import search_text

    rows: dict[str, dict[str, Any]] = {}
    for hit in hits:
        hint, name = hit["hint"], f"{hit['component']}/{hit['key']}"
        meta = hint["meta"]
        if hit.get("is_gone"):
            continue
        value = None if meta.get("sensitivity") == "secret" else search_text(hint["value"])
        reasons = hit["match_explain"]["reasons"]
        row = {
            "name": name,
            "value": value,
            "score": hit["score"],
            "is_used": bool(hint.get("use_count")),
            "stale": hit.get("stale"),
            "reasons": reasons,
            "origin": hint_origin(meta),
            "reason": meta.get("reason") or "",
        }
        rows.setdefault(name, row)
    return list(rows.values())


def hint_origin(meta: Mapping[str, Any]) -> str | None:
    """How a hint came about that no user or agent set."""
    from nudge.hints.reconcile import SCANNED_BY, is_guess

    if meta.get("source") == SOURCE:
        return SOURCE
    if is_guess(meta):
        return hint_selection.GUESSED
    return hint_selection.SCANNED if meta.get("added_by") == SCANNED_BY else None


# Notes and open attempts


def start_notes(
    connection: SqlConnection, namespace: str | None, files: Sequence[str], branch: str | None, now: float
) -> list[dict[str, Any]]:
    """The notes that may be told at a start, as rows of id, kind, title, content and updated_at: those that somebody
    pinned, in a namespace or globally, then those of the namespace about the files of work that was left open. None of
    another branch, and none that was resolved in favor of another, which leaves it a confidence of 0.1. Does not touch
    them: being told must not prolong the life of a wrong note."""
    values = (2 * limits.PROMPT_NOTE_CHARS, now, limits.DOUBTFUL_CONFIDENCE)
    found = connection.execute(_PINNED_NOTES, (*values, namespace)).fetchall()
    if files:
        names = {name for path in files for name in possible_names(path)}
        found += connection.execute(
            _NOTES_ABOUT_FILES,
            (*values, namespace, json.dumps(TOLD_KINDS), json.dumps(files), json.dumps(sorted(names))),
        )
    columns = ("id", "kind", "title", "content", "updated_at", "branch")
    rows = {row[0]: dict(zip(columns, row, strict=True)) for row in found}
    return [row for row in rows.values() if holds_on(row["branch"], branch)]


def _open_attempts(connection: SqlConnection, namespace: str | None, session: str | None) -> list[dict[str, Any]]:
    """The open attempts of a repo and of a session, the latest first, as rows of id, goal, hypothesis, prediction,
    session, updated_at, namespace and the branch that they were started on."""
    # Two queries, each with an index of its own: with OR, SQLite would look at every attempt that there ever was.
    rows = connection.execute(
        f"{_OPEN_ATTEMPTS} AND namespace = ? UNION {_OPEN_ATTEMPTS} AND attempt_session = ? ORDER BY id DESC LIMIT ?",
        (namespace, session, limits.MAX_ATTEMPTS_LISTED),
    )
    names = ("id", "goal", "hypothesis", "prediction", "session", "updated_at", "namespace", "branch")
    return [dict(zip(names, row, strict=True)) for row in rows]


def is_session_gone(
    connection: SqlConnection, session: str, updated_at: float, now: float, last_seen: float | None
) -> bool:
    """Whether the session that owns an attempt has ended, or was not seen for half an hour. `last_seen` is when a
    server last saw it, None for a session that has ended.

    The end is not compared with the other times: hooks report the wall clock, which may have been set since the
    server's clock began."""
    ended_at, last = queries.session_times(connection, session)
    if ended_at is not None and last_seen is None:
        return True
    return now - max(updated_at, last or 0.0, last_seen or 0.0) > limits.ORPHANED_AFTER


def attempts_at_start(
    connection: SqlConnection,
    namespace: str | None,
    session: str | None,
    source: str,
    now: float,
    last_seen: LastSeen = lambda _session: None,
    visible: Visibility = EVERYTHING,
    branch: str | None = None,
) -> list[dict[str, Any]]:
    """The attempt that the digest begins with, as a list of at most one row of id, goal, hypothesis, prediction,
    updated_at, is_own and others: the own attempt of a session that continues, else the latest orphan of the repo
    on this branch. `others` is the number of further ones."""
    rows = [row for row in _open_attempts(connection, namespace, session) if visible.shows(row["namespace"])]
    own = [row for row in rows if row["session"] == session]
    if own and source in CONTINUED:
        return [{**own[0], "is_own": True, "others": len(own) - 1}]
    orphans = [
        row
        for row in rows
        if row["session"] != session
        and (branch is None or row["branch"] in (None, branch))
        and is_session_gone(connection, row["session"], row["updated_at"], now, last_seen(row["session"]))
    ]
    return [{**orphans[0], "is_own": False, "others": len(orphans) - 1}] if orphans else []
