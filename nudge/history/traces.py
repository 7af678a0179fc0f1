"""What one session did, in order: its prompts, its actions, and what it was told."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import groupby

from nudge.core import limits
from nudge.core.errors import NotFound
from nudge.history.queries import IS_PROMPT, NOTHING, SESSION_SHOWN, SHOWN, window_of
from nudge.history.summary import summary_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

    Row = Sequence[Any]


def trace(
    connection: SqlConnection,
    session_id: str,
    before: int | None = None,
    after: int | None = None,
    limit: int = limits.DEFAULT_TRACE_LIMIT,
    *,
    hidden: frozenset[str] = NOTHING,
) -> dict[str, Any]:
    """Return a session's prompts with the observations of each, at most `limit` of both together. Both bounds are
    exclusive; a prompt before them is included if one of the observations belongs to it. `more` says that there is a
    next page, after the latest time in this one. Raises NotFound for an unknown or hidden session."""
    row = connection.execute(
        "SELECT project, started_at, ended_at, summary FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None or row[0] in hidden:
        raise NotFound(f"session not found: {session_id}")
    window, more = _cut(connection, session_id, window_of(before, after), limit)
    return {
        "session_id": session_id,
        "project": row[0],
        "started_at": row[1],
        "ended_at": row[2],
        "summary": summary_of(connection, session_id, row[3], hidden),
        "prompts": _prompts(connection, session_id, window, limit, hidden),
        "injections": _injections(connection, session_id, window),
        **({"more": True} if more else {}),
    }


def _cut(
    connection: SqlConnection, session_id: str, window: tuple[int, int], limit: int
) -> tuple[tuple[int, int], bool]:
    """Return the window cut to `limit` rows, and whether it was cut. It ends between two seconds, so that `after` finds
    the rest; only a second that alone has more rows than the limit is split."""
    own = "session_id = ?1 AND timestamp > ?2 AND timestamp < ?3"
    times = connection.execute(
        f"SELECT timestamp FROM (SELECT timestamp FROM observations WHERE {own} AND NOT {IS_PROMPT}"
        f" UNION ALL SELECT timestamp FROM prompts WHERE {own}) ORDER BY timestamp LIMIT ?4",
        (session_id, *window, limit + 1),
    ).fetchall()
    if len(times) <= limit:
        return window, False
    (first,), (beyond,) = times[0], times[-1]
    return (window[0], beyond if first < beyond else beyond + 1), True


def _prompts(
    connection: SqlConnection, session_id: str, window: tuple[int, int], limit: int, hidden: frozenset[str]
) -> list[dict[str, Any]]:
    by_prompt, unprompted = _actions(connection, session_id, window, limit, hidden)
    rows = connection.execute(
        "SELECT id, timestamp, source, content, coalesce((SELECT min(id) FROM observations AS own WHERE"
        " own.prompt_id = prompts.id AND own.obs_type = 'user_prompt'), 0) FROM prompts WHERE session_id = ?1"
        " AND ((timestamp > ?2 AND timestamp < ?3) OR id IN (SELECT value FROM json_each(?4)))"
        " ORDER BY timestamp, id LIMIT ?5",
        (session_id, *window, json.dumps(list(by_prompt)), limit + len(by_prompt)),
    ).fetchall()
    prompts = [
        {
            "prompt_id": row[0],
            "timestamp": row[1],
            "source": row[2],
            "content": row[3],
            "observation_count": len(by_prompt.get(row[0], ())),
            "observations": by_prompt.get(row[0], []),
        }
        for row in rows
    ]
    return _interleave(prompts, [(row[1], row[4]) for row in rows], unprompted)


def _actions(
    connection: SqlConnection, session_id: str, window: tuple[int, int], limit: int, hidden: frozenset[str]
) -> tuple[dict[int, list[Any]], list[Any]]:
    """Observations by prompt, and those without one. A prompt's own observation is the prompt and is left out."""
    by_prompt: dict[int, list[Any]] = {}
    unprompted: list[Any] = []
    rows = connection.execute(
        f"SELECT prompt_id, id, timestamp, obs_type, file_path, substr(content, 1, {limits.PREVIEW_CHARS}),"
        " is_pinned FROM observations"
        f" WHERE {SHOWN} AND session_id = ? AND timestamp > ? AND timestamp < ? AND NOT {IS_PROMPT}"
        " ORDER BY timestamp, id LIMIT ?",
        (json.dumps(sorted(hidden)), session_id, *window, limit),
    )
    for prompt_id, *row in rows:
        (unprompted if prompt_id is None else by_prompt.setdefault(prompt_id, [])).append(_action(row))
    return by_prompt, unprompted


def _action(row: Row) -> dict[str, Any]:
    identity, timestamp, obs_type, file_path, preview, is_pinned = row
    return {
        "id": identity,
        "timestamp": timestamp,
        "obs_type": obs_type,
        "file_path": file_path,
        "content_preview": preview,
        "is_pinned": bool(is_pinned),
    }


def _interleave(
    prompts: list[dict[str, Any]], moments: list[tuple[int, int]], unprompted: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Put observations without a prompt between the prompts, one entry with source `system` for each gap. `moments` are
    time and observation id of the prompts; the id orders rows within a second: a session starts before its first
    prompt."""
    gaps = {
        place: list(group)
        for place, group in groupby(unprompted, lambda row: bisect_right(moments, (row["timestamp"], row["id"])))
    }
    entries: list[dict[str, Any]] = []
    for place in range(len(prompts) + 1):
        entries += [prompts[place - 1]] if place else []
        entries += [_system_entry(gaps[place])] if place in gaps else []
    return entries


def _system_entry(unprompted: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "prompt_id": None,
        "timestamp": unprompted[0]["timestamp"],
        "source": "system",
        "content": "",
        "observation_count": len(unprompted),
        "observations": unprompted,
    }


def _injections(connection: SqlConnection, session_id: str, window: tuple[int, int]) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT id, timestamp, items, text FROM injections WHERE session_id = ? AND timestamp > ? AND"
        " timestamp < ? ORDER BY timestamp, id",
        (session_id, *window),
    )
    return [{"id": row[0], "timestamp": row[1], "items": json.loads(row[2]), "text": row[3]} for row in rows]


def injected_as(connection: SqlConnection, identity: int | str, *, hidden: frozenset[str] = NOTHING) -> dict[str, Any]:
    """Return whether a hint (`api/test`), a note (`m12`) or an observation (its id) was injected: its last section, the
    tokens of its line at four characters each, and the latest sessions that got it."""
    rows = connection.execute(
        "SELECT i.session_id, i.timestamp, i.text, item.key FROM injections AS i, json_each(i.items) AS item"
        " WHERE instr(i.items, ?) AND (item.value = ?2 OR json_extract(i.items, item.fullkey || '.id') = ?2)"
        f" AND {SESSION_SHOWN.replace('?', '?4')}"
        " ORDER BY i.timestamp DESC, i.id DESC LIMIT ?3",
        (str(identity), identity, limits.MAX_INJECTED_SESSIONS, json.dumps(sorted(hidden))),
    ).fetchall()
    return {
        **injected_line(*(rows[0][2:] if rows else ("", 0))),
        "included": bool(rows),
        "sessions": [{"session_id": session, "timestamp": when} for session, when, _, _ in rows],
    }


def injected_line(text: str, number: int) -> dict[str, Any]:
    """Return the section and the tokens of the line of an injected text that item `number` describes."""
    section, passed = None, 0
    for line in text.splitlines():
        if not line.startswith("-"):
            section = line.lstrip("# ").strip() or section
        elif passed == number:
            return {"included": True, "section": section, "tokens": -(-len(line) // 4)}
        else:
            passed += 1
    return {"included": False, "section": None, "tokens": None}
