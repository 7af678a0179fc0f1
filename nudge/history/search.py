"""Full-text search: its query language, and the SQL that answers it.

The language is FTS5's own, except that a word with `-`, `.`, `/` or `:` in it means its parts: FTS5 takes only
letters and digits in a bare word and calls everything else a syntax error. So the text is parsed here: operators stay
operators, every word is quoted, and what cannot be parsed is refused with its position.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import re

from nudge import limits
from nudge.errors import Invalid
from nudge.history.event import COLUMNS, check_type, marks, observation
from nudge.scoring import half_life
from nudge.words import content_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nudge.history.event import Connection

RELEVANCE, RECENCY = 0.7, 0.3  # of a blended score
_INDEX = (
    f"o.id, o.timestamp, o.obs_type, substr(o.content, 1, {limits.PREVIEW_CHARS}), o.file_path, o.session_id,"
    " o.branch, o.clone"
)
_INDEX_NAMES = ("id", "timestamp", "obs_type", "content_preview", "file_path", "session_id")
_FULL = ", ".join(f"o.{name}" for name in COLUMNS.split(", "))
# CROSS JOIN keeps the full-text index first whatever the statistics say: it yields rows by rank until the limit.
_FOUND = "FROM observations_fts AS f CROSS JOIN observations AS o ON o.id = f.rowid WHERE observations_fts MATCH ?"
_INDEXED = ("content", "file_path", "details")
_OPERATORS = ("AND", "OR", "NOT")
_NAMES = "|".join(_INDEXED)
_FILTER = re.compile(rf"(-\s*)?(\{{\s*(?:{_NAMES})(?:\s+(?:{_NAMES}))*\s*\}}|(?:{_NAMES}))\s*:(?!:)")


class SearchFilter:
    """The conditions on a match beside its words."""

    __slots__ = ("_parts", "values")

    def __init__(
        self, project: str | None, obs_type: str | None, before: int | None, after: int | None, hidden: frozenset[str]
    ) -> None:
        check_type(obs_type)
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
        return "".join(f" AND {part}" for part in self._parts)


def search_observations(
    connection: Connection,
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
    """Return matches as previews, or in full, leaving out the projects in `hidden`. Behind what has all words
    of a question come those with some of them, marked `partial`. `now` matters only for the order `blended`."""
    tokens = _scan(query)
    match, conditions = _Parser(tokens).parse() or '""', SearchFilter(project, obs_type, before, after, hidden)
    columns, show = (_FULL, observation) if full else (_INDEX, _preview)
    if order_by == "blended":
        ids = _best_first(_blended_scores(connection, match, conditions, now))[offset : offset + limit]
        rows = _fetch(connection, ids, columns)
    else:
        rows = connection.execute(
            f"SELECT {columns} {_FOUND}{conditions.sql} ORDER BY f.rank LIMIT ? OFFSET ?",
            (match, *conditions.values, limit, offset),
        ).fetchall()
    shown = [show(row) for row in rows]
    if len(rows) < limit and _is_question(tokens):
        skipped = 0 if rows or not offset else max(offset - _count(connection, match, conditions), 0)
        some = _some_words(connection, query, match, conditions, skipped + limit - len(rows))
        shown += [{**show(row), "partial": True} for row in _fetch(connection, some[skipped:], columns)]
    return shown


def _count(connection: Connection, match: str, conditions: SearchFilter) -> int:
    return int(
        connection.execute(f"SELECT count(*) {_FOUND}{conditions.sql}", (match, *conditions.values)).fetchone()[0]
    )


def _some_words(connection: Connection, query: str, whole: str, conditions: SearchFilter, most: int) -> list[int]:
    """Those with any of the words but not `whole`, by rank. An ordinary word is in half of a large history: of more
    than can be ranked in time the newest are."""
    match = f"({_any_of(query)}) NOT ({whole})"
    oldest = connection.execute(
        "SELECT rowid FROM observations_fts WHERE observations_fts MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ?",
        (match, limits.RANKED_PARTIAL),
    ).fetchone()
    rows = connection.execute(
        f"SELECT o.id {_FOUND} AND f.rowid > ?{conditions.sql} ORDER BY f.rank LIMIT ?",
        (match, oldest[0] if oldest else 0, *conditions.values, most),
    )
    return [row[0] for row in rows]


def explain_observations(
    connection: Connection,
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
    """Return what `search_observations` does, in full, each with the parts of its score and the words that it has. The
    best match has a text score of 1."""
    match, conditions = to_match(query), SearchFilter(project, obs_type, before, after, hidden)
    if order_by == "blended":
        scores = _blended_scores(connection, match, conditions, now)
        ids = _best_first(scores)[offset : offset + limit]
    else:
        ranks = connection.execute(
            f"SELECT o.id, f.rank {_FOUND}{conditions.sql} ORDER BY f.rank LIMIT ?",
            (match, *conditions.values, offset + limit),
        ).fetchall()
        scores = {identity: {"base": rank / (ranks[0][1] or -1.0)} for identity, rank in ranks}
        ids = [identity for identity, _ in ranks[offset:]]
    rows = [observation(row) for row in _fetch(connection, ids, _FULL)]
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    return [(row, scores[row["id"]], _words_in(connection, words, row["id"])) for row in rows]


def _words_in(connection: Connection, words: Sequence[str], identity: int) -> list[str]:
    sql = "SELECT 1 FROM observations_fts WHERE observations_fts MATCH ? AND rowid = ?"
    return [word for word in words if connection.execute(sql, (f'"{word}"', identity)).fetchone()]


def _preview(row: Sequence[Any]) -> dict[str, Any]:
    """Branch and clone only where they are known."""
    location = {name: value for name, value in zip(("branch", "clone"), row[-2:], strict=True) if value}
    return {**dict(zip(_INDEX_NAMES, row, strict=False)), **location}


def _best_first(scores: Mapping[int, Mapping[str, float]]) -> list[int]:
    return sorted(scores, key=lambda identity: (sum(scores[identity].values()), identity), reverse=True)


def _blended_scores(
    connection: Connection, match: str, conditions: SearchFilter, now: float
) -> dict[int, dict[str, float]]:
    """Score the best matches and the newest ones together; a row that is neither cannot win."""
    candidates: dict[int, tuple[float, int]] = {}
    for order in ("f.rank", "f.rowid DESC"):
        rows = connection.execute(
            f"SELECT o.id, f.rank, o.timestamp {_FOUND}{conditions.sql} ORDER BY {order} LIMIT ?",
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


def _fetch(connection: Connection, ids: Sequence[int], columns: str) -> list[Any]:
    rows = {
        row[0]: row
        for row in connection.execute(f"SELECT {columns} FROM observations AS o WHERE o.id IN ({marks(ids)})", ids)
    }
    return [rows[identity] for identity in ids]


# The query language


def to_match(text: str) -> str:
    """Return the text as an FTS5 expression, or raise Invalid with what is wrong and where."""
    return _Parser(_scan(text)).parse() or '""'


def _is_question(tokens: list[_Token]) -> bool:
    """Several words and nothing else, as in `what degree did I graduate with`: somebody who writes an operator means
    it, and a few words are meant as they are."""
    return len(tokens) >= limits.QUESTION_WORDS and all(token.kind == "phrase" for token in tokens)


def _any_of(text: str) -> str:
    """Any of the words that tell something."""
    return " OR ".join(f'"{word}"' for word in content_words(text)[: limits.MAX_QUESTION_WORDS]) or '""'


def _scan(text: str) -> list[_Token]:
    if len(text) > limits.MAX_SEARCH_CHARS:
        raise Invalid(f"must be at most {limits.MAX_SEARCH_CHARS} characters", field="query")
    text = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    tokens = _Scanner(text).scan()
    if not tokens:
        raise Invalid("must not be empty", field="query")
    return tokens


def _syntax_error(what: str, at: int) -> Invalid:
    return Invalid(f"{what} at character {at + 1}", field="query", at=at + 1)


class _Token:
    """`kind` is `phrase`, `filter`, `near`, an operator, or the character itself; `sql` is its form in the
    expression."""

    __slots__ = ("at", "kind", "sql", "wordy")

    def __init__(self, kind: str, at: int, sql: str, *, wordy: bool = True) -> None:
        self.kind, self.at, self.sql, self.wordy = kind, at, sql, wordy


class _Scanner:
    """Splits the text into tokens. A parenthesis groups where a word could begin; in `main()` it is text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[tuple[str, int]] = []
        self._tokens: list[_Token] = []

    def scan(self) -> list[_Token]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        for kind, at in self._open:
            if kind != "text":
                raise _syntax_error("a parenthesis is never closed: it opens", at)
        return self._tokens

    def _step(self, char: str) -> None:
        named = _FILTER.match(self._text, self._at)
        following = self._text[self._at + 1 : self._at + 2]
        if char.isspace():
            self._at += 1
        elif char == '"':
            self._string()
        elif char == "(":
            self._open_group("(", 1)
        elif char == ")":
            self._close()
        elif named:
            columns = " ".join(re.findall(_NAMES, named[2]))
            self._add("filter", len(named[0]), f"{'- ' if named[1] else ''}{{{columns}}} :")
        elif (char == "," and self._inside() == "near") or (char == "+" and not following.strip()):
            self._add(char, 1, char)
        elif char == "^" and (following.isalnum() or following == '"'):
            self._add("^", 1, "^")
        else:
            self._word()

    def _add(self, kind: str, length: int, sql: str, *, wordy: bool = True) -> None:
        self._tokens.append(_Token(kind, self._at, sql, wordy=wordy))
        self._at += length

    def _inside(self) -> str | None:
        return self._open[-1][0] if self._open else None

    def _open_group(self, kind: str, length: int) -> None:
        self._open.append((kind, self._at))
        if len(self._open) > limits.MAX_SEARCH_DEPTH:
            raise _syntax_error("too many open parentheses", self._at)
        self._add(kind, length, kind)

    def _close(self) -> None:
        if not self._open:
            raise _syntax_error("a parenthesis closes that was never opened", self._at)
        if self._open.pop()[0] == "text":
            self._at += 1
        else:
            self._add(")", 1, ")")

    def _string(self) -> None:
        end = self._at + 1
        while (end := self._text.find('"', end)) != -1 and self._text[end + 1 : end + 2] == '"':
            end += 2
        if end == -1:
            raise _syntax_error("a quote is never closed: it opens", self._at)
        inner = self._text[self._at + 1 : end].replace('""', '"')
        prefix = self._text[end + 1 : end + 2] == "*"
        self._phrase(inner, end + 1 + prefix - self._at, prefix)

    def _word(self) -> None:
        end = self._at
        while end < len(self._text) and not self._ends_word(end):
            end += 1
        word = self._text[self._at : end]
        if word == "NEAR" and self._text[end : end + 1] == "(":
            self._open_group("near", end + 1 - self._at)
        elif word in _OPERATORS:
            self._add(word, end - self._at, word)
        else:
            prefix = word.endswith("*") and _has_word(word)
            self._phrase(word.rstrip("*") if prefix else word, end - self._at, prefix)

    def _ends_word(self, at: int) -> bool:
        char = self._text[at]
        if char == "(":
            if self._text[self._at : at] == "NEAR":
                return True
            self._open.append(("text", at))
        elif char == ")":
            if self._inside() != "text":
                return True
            self._open.pop()
        return char.isspace() or char == '"' or (char == "," and self._inside() == "near")

    def _phrase(self, text: str, length: int, prefix: bool) -> None:
        quoted = '"' + text.replace('"', '""') + '"'
        self._add("phrase", length, f"{quoted} *" if prefix else quoted, wordy=_has_word(text))


def _has_word(text: str) -> bool:
    return any(char.isalnum() for char in text)


class _Parser:
    """Parses with FTS5's precedence: adjacent words first, then NOT, AND, OR. A token without a letter or digit (`--`,
    `->`) is ignored."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def parse(self) -> str:
        expression = self._or()
        if self._next < len(self._tokens):
            raise self._misplaced()
        return expression

    def _or(self) -> str:
        return self._chain("OR", self._and)

    def _and(self) -> str:
        return self._chain("AND", self._not)

    def _chain(self, operator: str, operand: Callable[[], str]) -> str:
        parts = [operand()]
        while self._takes(operator):
            parts.append(operand())
        parts = [part for part in parts if part]
        return parts[0] if len(parts) == 1 else f" {operator} ".join(f"({part})" for part in parts)

    def _not(self) -> str:
        kept = self._adjacent()
        while self._takes("NOT"):
            excluded = self._adjacent()
            kept = f"({kept}) NOT ({excluded})" if kept and excluded else kept
        return kept

    def _adjacent(self) -> str:
        """Adjacent words, which must all match. FTS5 needs an explicit AND beside a parenthesis."""
        items = [self._item()]
        while (kind := self._kind()) is not None and kind not in (*_OPERATORS, ")", ",", "+"):
            items.append(self._item())
        items = [item for item in items if item]
        grouped = any(item.endswith(")") for item in items)
        return (" AND " if grouped else " ").join(items)

    def _item(self) -> str:
        selected = self._take("filter")
        if self._takes("("):
            inner = self._or()
            self._need(")")
            expression = f"({inner})" if inner else ""
        elif self._kind() == "near":
            expression = self._near()
        else:
            expression = self._words()
        return f"{selected.sql} {expression}" if selected and expression else expression

    def _words(self) -> str:
        first = "^ " if self._takes("^") else ""
        phrases = [self._need("phrase")]
        while self._takes("+"):
            phrases.append(self._need("phrase"))
        joined = " + ".join(phrase.sql for phrase in phrases if phrase.wordy)
        return first + joined if joined else ""

    def _near(self) -> str:
        self._need("near")
        phrases = [self._need("phrase")]
        while self._kind() == "phrase":
            phrases.append(self._need("phrase"))
        distance = f", {self._distance()}" if self._takes(",") else ""
        self._need(")")
        words = " ".join(phrase.sql for phrase in phrases if phrase.wordy)
        return f"NEAR({words}{distance})" if words else ""

    def _distance(self) -> int:
        token = self._need("phrase")
        number = token.sql.strip('"')
        if not number.isascii() or not number.isdigit() or len(number) > 6:
            raise _syntax_error("NEAR needs a whole number after the comma", token.at)
        return int(number)

    def _kind(self) -> str | None:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else None

    def _take(self, kind: str) -> _Token | None:
        if self._kind() != kind:
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _takes(self, kind: str) -> bool:
        return self._take(kind) is not None

    def _need(self, kind: str) -> _Token:
        token = self._take(kind)
        if token is None:
            raise self._misplaced()
        return token

    def _misplaced(self) -> Invalid:
        """The error for a missing operand, or for a token where none is allowed."""
        if self._next == len(self._tokens):
            last = self._tokens[-1]
            return _syntax_error(f"a word must follow {last.sql}", last.at)
        token = self._tokens[self._next]
        name = "NEAR" if token.kind == "near" else token.sql
        return _syntax_error(f"{name} cannot stand", token.at)
