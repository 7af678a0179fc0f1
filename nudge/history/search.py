"""Ranked lists of observations: the matches of a search, with filters and the explanation of a rank, and the recent
ones that matter most. `fts_query` parses the query of a search."""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import heapq
import json
import re
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from nudge.core import limits
from nudge.core.scoring import half_life
from nudge.core.spelling import OBSERVATIONS, find_corrections
from nudge.history.event import COLUMNS, check_type, observation, placeholders
from nudge.history.fts_query import FtsQuery
from nudge.history.idle import is_idle, is_own_call
from nudge.history.observations import FAILURE, TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nudge.history.event import SqlConnection

_P = ParamSpec("_P")
_T = TypeVar("_T")

RELEVANCE, RECENCY = 0.7, 0.3  # of a blended score
_INDEX = (
    f"o.id, o.timestamp, o.obs_type, substr(o.content, 1, {limits.PREVIEW_CHARS}), o.file_path, o.session_id,"
    " o.branch, o.clone"
)
_INDEX_NAMES = ("id", "timestamp", "obs_type", "content_preview", "file_path", "session_id")
_FULL = ", ".join(f"o.{name}" for name in COLUMNS.split(", "))
# CROSS JOIN keeps the full-text index first whatever the statistics say: it yields rows by rank until the limit.
_MATCHES = "FROM observations_fts AS f CROSS JOIN observations AS o ON o.id = f.rowid WHERE observations_fts MATCH ?"


# What Nudge was asked is no answer to a question about the work: its tools, a line that runs nothing but its command,
# and the end of a turn without the last words.
_NUDGE_TOOLS = "o.content GLOB 'nudge/*' OR o.content GLOB 'nudge-mcp/*' OR o.content GLOB 'plugin_nudge_nudge/*'"
_NUDGE_COMMANDS = "o.content GLOB '*nudge*' AND is_own_call(o.content)"
_NOT_WORK = (
    f" AND NOT (o.obs_type = 'mcp_call' AND ({_NUDGE_TOOLS}))"
    f" AND NOT (o.obs_type IN ('command', 'command_error') AND {_NUDGE_COMMANDS})"
    " AND NOT (o.obs_type = 'session_stop' AND o.metadata NOT LIKE '%\"last_words\"%')"
)


class SearchFilter:
    """The conditions on a match besides the words of the query. Nudge's own calls are left out, unless calls of tools
    are asked for."""

    __slots__ = ("_parts", "_work", "values")

    def __init__(
        self, project: str | None, obs_type: str | None, before: int | None, after: int | None, hidden: frozenset[str]
    ) -> None:
        check_type(obs_type)
        self._work = "" if obs_type == "mcp_call" else _NOT_WORK
        given = (
            ("o.project = ?", project),
            ("o.obs_type = ?", obs_type),
            ("o.timestamp < ?", before),
            ("o.timestamp > ?", after),
            (
                "coalesce(o.project NOT IN (SELECT value FROM json_each(?)), 1)",
                json.dumps(sorted(hidden)) if hidden else None,
            ),
        )
        self._parts = [part for part, value in given if value is not None]
        self.values = [value for _, value in given if value is not None]

    @property
    def sql(self) -> str:
        return "".join(f" AND {part}" for part in self._parts) + self._work


def _knowing_own_calls(search: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let the connection, which is the first argument, call `is_own_call` in SQL. On its first search only: SQLite
    prepares every statement anew for it, and to ask whether it is there takes longer than a search."""

    @wraps(search)
    def searched(*arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return search(*arguments, **options)
        except Exception as error:  # SQLite's own; this package knows a connection by its methods only
            if "is_own_call" not in str(error):
                raise
        connection: Any = arguments[0]
        connection.create_function("is_own_call", 1, is_own_call, deterministic=True)
        return search(*arguments, **options)

    return searched


@_knowing_own_calls
def search_observations(
    connection: SqlConnection,
    query: str,
    *,
    project: str | None = None,
    obs_type: str | None = None,
    before: int | None = None,
    after: int | None = None,
    order_by: str = "relevance",
    limit: int = limits.DEFAULT_SEARCH_LIMIT,
    offset: int = 0,
    now: float = 0.0,
    full: bool = False,
    hidden: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """Return matches as previews, or in full, without those of the projects in `hidden`. For a question, matches with
    only some of the words follow, marked `partial`. `now` matters only for the order `blended`. Raises Invalid for a
    query that cannot be parsed."""
    conditions = SearchFilter(project, obs_type, before, after, hidden)
    columns, show = (_FULL, observation) if full else (_INDEX, _preview)

    def rank(match: str) -> list[Sequence[Any]]:
        if order_by == "blended":
            ids = _best_first(_blended_scores(connection, match, conditions, now))[offset : offset + limit]
            return _fetch(connection, ids, columns)
        rows: list[Sequence[Any]] = connection.execute(
            f"SELECT {columns} {_MATCHES}{conditions.sql} ORDER BY f.rank LIMIT ? OFFSET ?",
            (match, *conditions.values, limit, offset),
        ).fetchall()
        return rows

    parsed = FtsQuery(query)
    # What has all the words shows that each of them occurs: none is looked up, and none corrected.
    rows = rank(parsed.match) if parsed.needs_all_words else []
    if not rows:
        corrected = correct_query(connection, query)
        if corrected.corrections or not parsed.needs_all_words:
            parsed, rows = corrected, rank(corrected.match)
    shown = [show(row) for row in rows]
    if len(rows) < limit and parsed.is_question:
        skipped = 0 if rows or not offset else max(offset - _count(connection, parsed.match, conditions), 0)
        some = _some_words(connection, parsed, conditions, skipped + limit - len(rows))
        shown += [{**show(row), "partial": True} for row in _fetch(connection, some[skipped:], columns)]
    return shown


_MARK, _END = "\x01", "\x02"  # around a word that was found; no stored text has them
_FOUND_TOKENS = 24  # words of an error that are shown


def add_found_texts(connection: SqlConnection, query: str, rows: Sequence[dict[str, Any]]) -> None:
    """Add `found_text` to each row that was found by words of its error or other details, which its content lacks: the
    place in that text where they are."""
    parsed = correct_query(connection, query)
    match = parsed.any_word() if parsed.is_question else parsed.match
    by_id = {row["id"]: row for row in rows}
    found = connection.execute(
        "SELECT rowid, highlight(observations_fts, 0, ?, ?), snippet(observations_fts, 2, ?, ?, '…', ?)"
        f" FROM observations_fts WHERE observations_fts MATCH ? AND rowid IN ({placeholders(by_id)})",
        (_MARK, _END, _MARK, _END, _FOUND_TOKENS, match, *by_id),
    )
    for identity, content, details in found:
        if _marked(details) - _marked(content):
            by_id[identity]["found_text"] = details.replace(_MARK, "").replace(_END, "")


def _marked(text: str | None) -> set[str]:
    return {word.lower() for word in re.findall(f"{_MARK}(.*?){_END}", text or "", re.DOTALL)}


def correct_query(connection: SqlConnection, query: str) -> FtsQuery:
    """Parse a query; a word that no observation has stands for one that is nearly the same."""
    parsed = FtsQuery(query)
    if parsed.is_question:  # found by its other words
        return parsed
    corrections = find_corrections(connection, OBSERVATIONS, parsed.words)
    return parsed.replace_words(corrections) if corrections else parsed


def _count(connection: SqlConnection, match: str, conditions: SearchFilter) -> int:
    return int(
        connection.execute(f"SELECT count(*) {_MATCHES}{conditions.sql}", (match, *conditions.values)).fetchone()[0]
    )


def _some_words(connection: SqlConnection, query: FtsQuery, conditions: SearchFilter, most: int) -> list[int]:
    """The ids of matches with some but not all of the words, by rank. A common word is in half of a large history: only
    the newest RANKED_PARTIAL matches are ranked."""
    match = f"({query.any_word()}) NOT ({query.match})"
    oldest = connection.execute(
        "SELECT rowid FROM observations_fts WHERE observations_fts MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ?",
        (match, limits.RANKED_PARTIAL),
    ).fetchone()
    rows = connection.execute(
        f"SELECT o.id {_MATCHES} AND f.rowid > ?{conditions.sql} ORDER BY f.rank LIMIT ?",
        (match, oldest[0] if oldest else 0, *conditions.values, most),
    )
    return [row[0] for row in rows]


@_knowing_own_calls
def explain_observations(
    connection: SqlConnection,
    query: str,
    *,
    project: str | None = None,
    obs_type: str | None = None,
    before: int | None = None,
    after: int | None = None,
    order_by: str = "relevance",
    limit: int = limits.DEFAULT_SEARCH_LIMIT,
    offset: int = 0,
    now: float = 0.0,
    hidden: frozenset[str] = frozenset(),
) -> list[tuple[dict[str, Any], dict[str, float], list[str]]]:
    """Return the matches of `search_observations` in full, each with the parts of its score and the words of the query
    that it has. The best match has a text score of 1."""
    parsed, conditions = correct_query(connection, query), SearchFilter(project, obs_type, before, after, hidden)
    match = parsed.match
    if order_by == "blended":
        scores = _blended_scores(connection, match, conditions, now)
        ids = _best_first(scores)[offset : offset + limit]
    else:
        ranks = connection.execute(
            f"SELECT o.id, f.rank {_MATCHES}{conditions.sql} ORDER BY f.rank LIMIT ?",
            (match, *conditions.values, offset + limit),
        ).fetchall()
        scores = {identity: {"base": rank / (ranks[0][1] or -1.0)} for identity, rank in ranks}
        ids = [identity for identity, _ in ranks[offset:]]
    rows = [observation(row) for row in _fetch(connection, ids, _FULL)]
    words = list(dict.fromkeys(re.findall(r"\w+", parsed.text.lower())))
    return [(row, scores[row["id"]], _words_in(connection, words, row["id"])) for row in rows]


def _words_in(connection: SqlConnection, words: Sequence[str], identity: int) -> list[str]:
    sql = "SELECT 1 FROM observations_fts WHERE observations_fts MATCH ? AND rowid = ?"
    return [word for word in words if connection.execute(sql, (f'"{word}"', identity)).fetchone()]


def _preview(row: Sequence[Any]) -> dict[str, Any]:
    """An observation without its text; `branch` and `clone` only where they are known."""
    location = {name: value for name, value in zip(("branch", "clone"), row[-2:], strict=True) if value}
    return {**dict(zip(_INDEX_NAMES, row, strict=False)), **location}


def _best_first(scores: Mapping[int, Mapping[str, float]]) -> list[int]:
    return sorted(scores, key=lambda identity: (sum(scores[identity].values()), identity), reverse=True)


def _blended_scores(
    connection: SqlConnection, match: str, conditions: SearchFilter, now: float
) -> dict[int, dict[str, float]]:
    """Return the score of the best matches and of the newest ones; a row that is neither cannot rank first."""
    candidates: dict[int, tuple[float, int]] = {}
    for order in ("f.rank", "f.rowid DESC"):
        rows = connection.execute(
            f"SELECT o.id, f.rank, o.timestamp {_MATCHES}{conditions.sql} ORDER BY {order} LIMIT ?",
            (match, *conditions.values, limits.BLENDED_CANDIDATES),
        )
        candidates.update((row[0], (row[1], row[2])) for row in rows)
        if len(candidates) < limits.BLENDED_CANDIDATES:
            break  # all matches are candidates already
    best = min((rank for rank, _ in candidates.values()), default=-1.0) or -1.0
    return {
        identity: {"base": RELEVANCE * (rank / best), "recency": RECENCY * half_life(now - timestamp)}
        for identity, (rank, timestamp) in candidates.items()
    }


def _fetch(connection: SqlConnection, ids: Sequence[int], columns: str) -> list[Any]:
    rows = {
        row[0]: row
        for row in connection.execute(
            f"SELECT {columns} FROM observations AS o WHERE o.id IN ({placeholders(ids)})", ids
        )
    }
    return [rows[identity] for identity in ids]


# Recent observations

# A score falls with age. The newest rows of every type are merged by the upper bound of their scores, so the number of
# rows that are read does not grow with the history.
_OTHER_PROJECTS = 0.3  # weight relative to the same project
_HEAVIEST_TYPE = max(TYPES, key=lambda name: TYPES[name].recent)
_WITH_PROJECT, _WITHOUT_PROJECT = (0.5, 0.3, 0.2), (0.6, 0.4, 0.0)


def recent_observations(
    connection: SqlConnection,
    *,
    project: str | None,
    now: float,
    limit: int = limits.DEFAULT_RECENT_LIMIT,
    hidden: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """Return observations with their `score`, best first, without those of the projects in `hidden`; none for an
    unknown project."""
    if project is not None and not _has_rows(connection, project):
        return []
    observations: list[dict[str, Any]] = []
    files: set[str] = set()
    for value, identity, file_path, whose in _recent_by_score(connection, project, now):
        if len(observations) == limit:
            break
        if whose not in hidden and (file_path is None or file_path not in files):
            files.add(file_path or "")
            row = connection.execute(f"SELECT {COLUMNS} FROM observations WHERE id = ?", (identity,)).fetchone()
            observations.append({**observation(row), "score": round(value, 6)})
    return observations


_WORK = ("git_commit", "git_push", "command_error", "file_edit", "file_write", "user_prompt")


def recent_work(
    connection: SqlConnection, *, project: str | None, now: float, limit: int, hidden: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """Return commits, failures, edits and prompts of one project, or of all but the `hidden`, newest first; a file that
    was edited several times is there once."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM observations WHERE (?1 IS NULL OR project = ?1)"
        f" AND +obs_type IN ({', '.join(map(repr, _WORK))})"
        " ORDER BY timestamp DESC, id DESC",
        (project,),
    )
    observations: list[dict[str, Any]] = []
    files: set[str] = set()
    for row in map(observation, rows):
        if len(observations) == limit:
            break
        path = row["file_path"]
        is_told_before = path is not None and path in files
        if row["project"] in hidden or is_told_before or (row["obs_type"] == FAILURE and is_idle(row["content"])):
            continue
        files.add(path or "")
        score = _recent_score(row["obs_type"], now - row["timestamp"], True, project_given=project is not None)
        observations.append({**row, "score": round(score, 6)})
    return observations


def _recent_score(row_type: str, age: float, same_project: bool, *, project_given: bool) -> float:
    recency, kind, project = _WITH_PROJECT if project_given else _WITHOUT_PROJECT
    return (
        recency * half_life(age) + kind * TYPES[row_type].recent + project * (1.0 if same_project else _OTHER_PROJECTS)
    )


def _has_rows(connection: SqlConnection, project: str) -> bool:
    return connection.execute("SELECT 1 FROM observations WHERE project = ? LIMIT 1", (project,)).fetchone() is not None


class _RecentStream:
    """Rows of one type, or of the project, newest first. `bound` is the highest score that a row of that age can have;
    `exact` is its score, or None when the project's stream has the row, too."""

    __slots__ = ("_now", "_project", "_rows", "_type")

    def __init__(self, connection: SqlConnection, now: float, project: str | None, obs_type: str | None) -> None:
        self._now, self._project, self._type = now, project, obs_type
        where, value = ("project", project) if obs_type is None else ("obs_type", obs_type)
        self._rows = connection.execute(
            f"SELECT id, timestamp, file_path, project, obs_type FROM observations WHERE {where} = ? ORDER BY"
            " timestamp DESC, id DESC",
            (value,),
        )

    def next(self) -> Any:
        return self._rows.fetchone()

    def bound(self, row: Any) -> float:
        return self._score(self._type or _HEAVIEST_TYPE, row)

    def exact(self, row: Any) -> float | None:
        if self._type is not None and self._project is not None and row[3] == self._project:
            return None
        return self._score(row[4], row)

    def _score(self, obs_type: str, row: Any) -> float:
        return _recent_score(obs_type, self._now - row[1], self._type is None, project_given=self._project is not None)


def _recent_by_score(
    connection: SqlConnection, project: str | None, now: float
) -> Iterator[tuple[float, int, str | None, str | None]]:
    """Yield every observation as (score, id, file, project), best first, newer first among equals. There is one stream
    for the project and one for each type. The head of a stream is queued under its bound; a row with a lower score is
    queued again under that score."""
    heap: list[tuple[float, int, int, Any, _RecentStream | None]] = []

    def push(value: float, row: Any, stream: _RecentStream | None) -> None:
        heapq.heappush(heap, (-value, -row[1], -row[0], row, stream))

    def advance(stream: _RecentStream) -> None:
        if (row := stream.next()) is not None:
            push(stream.bound(row), row, stream)

    for obs_type in TYPES if project is None else (*TYPES, None):
        advance(_RecentStream(connection, now, project, obs_type))
    while heap:
        negative, _, _, row, stream = heapq.heappop(heap)
        value = -negative if stream is None else stream.exact(row)
        if stream is not None:
            advance(stream)
        if value is not None and value < -negative:
            push(value, row, None)
        elif value is not None:
            yield value, row[0], row[2], row[3]
