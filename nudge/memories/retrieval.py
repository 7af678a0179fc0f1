"""The keyword retriever: which notes have the words of a query, and how well they match by FTS5's bm25.

A second retriever would stand beside it: `best_matches` returns ids with text scores, and only this module and the
schema know about FTS5.

bm25 takes up to 15 us a row, and an ordinary word is in one of fifty notes. So in a large store the notes with a rare
word of the query are scored, and those with two of its frequent words; only when these are few, the newest of those
with any word.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nudge.memories.query import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.memories.store import Connection

_MATCHING = "FROM notes_fts WHERE notes_fts MATCH ?"
_LARGE = 1_000  # notes
_MOST_SCORED = 200  # notes of a large store that one query scores
_FEW = 30  # scored notes, of which the best need not be the best of all
_MOST_ALIKE = 50  # titles that are compared


@dataclass(frozen=True, slots=True)
class Condition:
    """What a match must meet beside its words: SQL on the table `n` with its values, and the namespaces it names."""

    sql: Sequence[str]
    values: Sequence[Any]
    namespaces: tuple[str, ...] | None = None


def best_matches(
    connection: Connection, words: Words, condition: Condition, *, needed: int, limit: int
) -> list[tuple[int, float]]:
    """Return the ids of at most `limit` best matches with their text scores, best first."""
    scope = _scope(condition.namespaces)
    whole = _Query(f"{scope}({words.expression()})")
    if not _is_large(connection, condition.namespaces):
        return _scored(connection, whole, condition, limit)
    found: dict[int, float] = {}
    if not words.all_needed and (telling := _telling(connection, scope, words)):
        found |= _scored(connection, telling, condition, limit)
    if len(found) < max(needed, _FEW):
        found |= _scored(connection, _newest(connection, whole), condition, limit)
    if len(found) < needed:  # too few of what was scored meet the condition
        return _scored(connection, whole, condition, limit)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]


def text_scores(connection: Connection, words: Words, ids: Iterable[int]) -> dict[int, float]:
    """Return the text scores of those notes that match."""
    return dict(row for note_id in ids if (row := _one(connection, "rowid, -rank", words.expression(), note_id)))


def words_in(connection: Connection, words: Words, note_id: int, column: str | None = None) -> list[str]:
    """Return those of the words that a note, or one column of it, has, in any form that has the same stem."""
    prefix = f"{column} : " if column else ""
    pairs = zip(words.words, words.terms(), strict=True)
    return [word for word, term in pairs if _one(connection, "rowid", prefix + term, note_id)]


def count_matches(connection: Connection, word: str, namespaces: tuple[str, ...] | None, most: int) -> int:
    """How many notes have a word, counted up to `most`."""
    found = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 {_MATCHING} LIMIT ?)", (f'{_scope(namespaces)}("{word}")', most)
    )
    return int(found.fetchone()[0])


def titles_alike(connection: Connection, words: Sequence[str], namespace: str) -> list[int]:
    """Return the ids of the newest notes of a namespace that may have most of these words in their titles.

    Whichever words a title lacks, it has one of any that are more than it may lack: the rarest ones are looked for.
    """
    terms = [f'"{word}"' for word in words]
    frequency = f"SELECT count(*) FROM (SELECT 1 {_MATCHING} LIMIT {_MOST_ALIKE})"
    counts = {term: connection.execute(frequency, (term,)).fetchone()[0] for term in terms}
    rarest = sorted(terms, key=lambda term: (counts[term], -len(term)))[: len(terms) - most_of(terms) + 1]
    expression = f"{_scope((namespace,))}title : ({' OR '.join(rarest)})"
    rows = connection.execute(f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT {_MOST_ALIKE}", (expression,))
    return [row[0] for row in rows]


def most_of(words: Sequence[str]) -> int:
    """Two thirds of them, and at least two."""
    return max(min(len(words), 2), (2 * len(words) + 2) // 3)


def count_notes(connection: Connection, namespaces: tuple[str, ...] | None, most: int) -> int:
    """How many notes there are in some namespaces, or in all, counted up to `most`."""
    marks = ", ".join("?" * len(namespaces or ()))
    where = "" if namespaces is None else f"WHERE namespace IN ({marks})"
    counted = f"SELECT count(*) FROM (SELECT 1 FROM notes {where} LIMIT ?)"
    return int(connection.execute(counted, (*(namespaces or ()), most)).fetchone()[0])


def _one(connection: Connection, columns: str, expression: str, note_id: int) -> tuple[Any, ...] | None:
    found = connection.execute(f"SELECT {columns} {_MATCHING} AND rowid = ?", (expression, note_id))
    row: tuple[Any, ...] | None = found.fetchone()
    return row


@dataclass(frozen=True, slots=True)
class _Query:
    """An FTS5 expression, and the lowest id that is looked at."""

    expression: str
    lowest_id: int = 0


def _scored(connection: Connection, query: _Query, condition: Condition, limit: int) -> list[tuple[int, float]]:
    # CROSS JOIN keeps the full-text index first: it yields rows by rank until the limit.
    return connection.execute(
        "SELECT f.rowid, -f.rank FROM notes_fts AS f CROSS JOIN notes AS n ON n.id = f.rowid"
        f" WHERE notes_fts MATCH ? AND f.rowid >= ? AND {' AND '.join(condition.sql)} ORDER BY f.rank LIMIT ?",
        (query.expression, query.lowest_id, *condition.values, limit),
    ).fetchall()


def _scope(namespaces: tuple[str, ...] | None) -> str:
    """A namespace is indexed as one word, its bytes in hex; bm25 gives that column no weight."""
    if namespaces is None:
        return ""
    keys = " OR ".join(f'"{namespace.encode().hex()}"' for namespace in namespaces)
    return f"({keys}) AND "


def _is_large(connection: Connection, namespaces: tuple[str, ...] | None) -> bool:
    marks = ", ".join("?" * len(namespaces or ()))
    where = "" if namespaces is None else f"WHERE namespace IN ({marks})"
    beyond = f"SELECT 1 FROM notes {where} LIMIT 1 OFFSET {_LARGE}"
    return connection.execute(beyond, namespaces or ()).fetchone() is not None


def _newest(connection: Connection, query: _Query) -> _Query:
    """The same for the newest of the matches."""
    oldest = connection.execute(
        f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT 1 OFFSET ?", (query.expression, _MOST_SCORED - 1)
    ).fetchone()
    return _Query(query.expression, oldest[0] if oldest else 0)


def _telling(connection: Connection, scope: str, words: Words) -> _Query | None:
    """The query for notes with a rare word, or with two frequent ones. No word is in it twice: bm25 would count it
    twice."""

    def count(expression: str) -> int:
        found = connection.execute(f"SELECT count(*) {_MATCHING}", (expression,))
        return int(found.fetchone()[0])

    counts = {term: count(term) for term in words.terms()}
    # To look at one namespace only costs as much as a frequent word: words that are rare everywhere do without.
    frequent = [term for term, number in counts.items() if number > _MOST_SCORED // 2]
    scope = scope if frequent else ""
    counts |= {term: count(f"{scope}({term})") for term in frequent if scope}
    rare, frequent, room = [], [], _MOST_SCORED
    for term in sorted(counts, key=counts.__getitem__):
        if counts[term] <= room // 2:
            rare.append(term)
            room -= counts[term]
        else:
            frequent.append(term)
    together = next((pairs for pairs in _pairs(frequent) if count(f"{scope}({pairs})") <= room), None)
    parts = [*rare, *([together] if together else [])]
    return _Query(f"{scope}({' OR '.join(parts)})") if parts else None


def _pairs(terms: Sequence[str]) -> Iterator[str]:
    """Expressions for two or more of the terms, which are given rarest first; each for fewer notes than the last."""
    if len(terms) >= 4:
        yield f"(({terms[0]} OR {terms[2]}) AND ({terms[1]} OR {terms[3]}))"
    for most in range(2, len(terms) + 1):
        yield f"({' AND '.join(terms[:most])})"
