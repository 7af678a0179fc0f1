"""The keyword retriever: which notes have the words of a query, and how well they match by FTS5's bm25.

A second retriever would stand beside it: `best_matches` returns ids with text scores, and only this module and the
schema know about FTS5.

bm25 takes up to 15 us a row, and an ordinary word is in one of fifty notes. So in a large store the notes with a rare
word of the query are scored, and those with two of its frequent words; only when these are few, those with the words
in their titles and the newest of those with any word.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nudge.errors import Invalid
from nudge.words import content_words, distinct_words, has_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.memories.store import SqlConnection

MAX_WORDS = 64
_MATCHING = "FROM notes_fts WHERE notes_fts MATCH ?"
_LARGE_STORE = 1_000  # notes
_MOST_SCORED = 130  # notes of a large store that one query scores
_MOST_COUNTED = 110  # notes with a word; of two that are more frequent, either may be the rarer one
_LEAST_SCORED = 12  # scored notes, of which the best need not be the best of all
_MOST_TITLED = 30  # notes with the words in their titles that are scored
_MERGED_PAGES = 64  # of the index, in one step
_PAGES_MERGED_WITH_A_NOTE = 16
_MOST_READ = 4_096  # characters of a note whose words are not looked up in the index
_MOST_LACKING = 4  # words of a title, up to which the pairs of the others are looked for in one query
_MOST_ALIKE = 50  # titles that are compared
_FREQUENT_IN_TITLES = 200  # notes with a word in their titles, from which on it is a frequent one


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, and whether a match must have all of them or any. FTS5 gets every word quoted, so that
    nothing a user types is query syntax."""

    words: tuple[str, ...]
    all_needed: bool

    @classmethod
    def parse(cls, text: str, *, all_needed: bool, field: str = "query") -> Self:
        """`field` is what an error calls the text. Where all words are needed, none is left out, not even a stop word:
        a shorter query would match more."""
        words = distinct_words(text) if all_needed else content_words(text)[:MAX_WORDS]
        if not words:
            raise Invalid("must contain a word", field=field)
        if len(words) > MAX_WORDS:
            raise Invalid(f"must have at most {MAX_WORDS} different words", field=field)
        return cls(tuple(words), all_needed)

    def terms(self) -> list[str]:
        """The words as FTS5 takes them."""
        return [f'"{word}"' for word in self.words]

    def expression(self) -> str:
        return (" AND " if self.all_needed else " OR ").join(self.terms())


@dataclass(frozen=True, slots=True)
class Condition:
    """What a match must meet beside its words: SQL on the table `n` with its values, and the namespaces it names;
    `columns` of it are read with each match."""

    sql: Sequence[str]
    values: Sequence[Any]
    namespaces: tuple[str, ...] | None
    columns: Sequence[str]


ScoredRow = tuple[int, float, tuple[Any, ...]]
"""The id of a match, its text score and its columns."""


def best_matches(
    connection: SqlConnection, words: Words, condition: Condition, *, needed: int, limit: int
) -> list[ScoredRow]:
    """Return at most `limit` best matches, best first."""
    scope = _scope(condition.namespaces)
    whole = _NoteQuery(f"{scope}({words.expression()})")
    if not _is_large(connection, condition.namespaces):
        return _meeting(connection, _scored(connection, whole), condition, limit)
    matches: list[ScoredRow] = []
    scored: list[tuple[int, float]] = []
    if words.all_needed:
        if _count(connection, whole.expression, _MOST_SCORED + 1) <= _MOST_SCORED:
            return _meeting(connection, _scored(connection, whole), condition, limit)
    else:
        scored, is_whole = _selective_matches(connection, scope, words)
        matches = _meeting(connection, scored, condition, limit)
        if is_whole:
            return matches
    if len(matches) < needed or len(scored) < _LEAST_SCORED:
        titled = _title_matches(connection, scope, words)
        others = _meeting(connection, _scored(connection, _newest(connection, whole), titled), condition, limit)
        matches = list({match[0]: match for match in (*matches, *others)}.values())
    if len(matches) < needed:  # too few of what was scored meet the condition
        return _meeting(connection, _scored(connection, whole), condition, limit)
    return sorted(matches, key=_best_first)[:limit]


def text_scores(connection: SqlConnection, words: Words, ids: Collection[int]) -> dict[int, float]:
    """Return the text scores of those notes that match."""
    # One query for all: bm25 counts the notes with each word again for every query.
    lowest, highest = min(ids, default=0), max(ids, default=0)
    rows = connection.execute(
        f"SELECT rowid, -rank {_MATCHING} AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))",
        (words.expression(), lowest, highest, json.dumps(list(ids))),
    )
    return dict(rows.fetchall())


def words_in(
    connection: SqlConnection,
    words: Words,
    ids: Collection[int],
    *,
    column: str | None = None,
    texts: Mapping[int, str] | None = None,
) -> dict[int, list[str]]:
    """Return those of the words that each note, or one column of it, has, in any form that has the same stem. With the
    texts of the notes, in lower case, short ones are read here; in a large store the index takes five times as long.
    How the index folds other letters than those of ASCII is its own, and the parts of a name (`a_b`) are a phrase."""
    words_by_note: dict[int, list[str]] = {note_id: [] for note_id in ids}
    if texts is not None and all(word.isascii() and "_" not in word for word in words.words):
        readable = {note_id for note_id in ids if len(texts[note_id]) <= _MOST_READ and texts[note_id].isascii()}
        for note_id in readable:
            words_by_note[note_id] = [word for word in words.words if has_word(texts[note_id], word)]
        ids = [note_id for note_id in ids if note_id not in readable]
    if not ids:
        return words_by_note
    prefix = f"{column} : " if column else ""
    # The plus keeps FTS5 from a search for each id, which takes as long as a look at hundreds of matches.
    having = f"SELECT rowid {_MATCHING} AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))"
    among = (min(ids), max(ids), json.dumps(list(ids)))
    rows = connection.execute(
        " UNION ALL ".join(f"SELECT {number}, * FROM ({having})" for number in range(len(words.words))),
        [value for term in words.terms() for value in (prefix + term, *among)],
    )
    for number, note_id in rows:
        words_by_note[note_id].append(words.words[number])
    return words_by_note


def count_segments(connection: SqlConnection) -> int:
    """In how many parts of the index a word is looked up."""
    return int(connection.execute("SELECT count(DISTINCT segid) FROM notes_fts_idx").fetchone()[0])


def merge_segments(connection: SqlConnection, *, begin: bool = False, pages: int | None = None) -> bool:
    """Merge some pages of the index toward one segment, and return whether there is more to do; 64 pages take some
    milliseconds. `begin` makes all segments part of one merge."""
    before, pages = connection.total_changes, pages or _MERGED_PAGES
    connection.execute("INSERT INTO notes_fts(notes_fts, rank) VALUES ('merge', ?)", (-pages if begin else pages,))
    return connection.total_changes - before >= 2  # documented: fewer changes than two mean that nothing was left


def merge_new_segments(connection: SqlConnection) -> None:
    """Merge the small segments that single notes leave, in the transaction of one. Each search looks into all of them,
    and FTS5 itself waits until there are sixteen of a size."""
    merge_segments(connection, pages=_PAGES_MERGED_WITH_A_NOTE)


def count_matches(connection: SqlConnection, word: str, namespaces: tuple[str, ...] | None, most: int) -> int:
    """How many notes have a word, counted up to `most`."""
    return _count(connection, f'{_scope(namespaces)}("{word}")', most)


def titles_alike(connection: SqlConnection, words: Sequence[str], namespace: str) -> list[int]:
    """Return the ids of notes that may have most of these words in their titles: all of a namespace, or the newest of
    many, and perhaps some of other namespaces.

    A title that lacks no more of the words than it may has two of any that are two more. Numbers and long words are
    mostly rare: few titles have two of them.
    """
    may_lack = len(words) - most_of(words)
    by_rarity = sorted(words, key=lambda word: (word.isalpha(), -len(word)))
    if may_lack > _MOST_LACKING:
        return _titles_by_rarest(connection, by_rarity, may_lack, namespace)
    rows = connection.execute(
        f"SELECT rowid {_MATCHING} LIMIT {_MOST_ALIKE + 1}", (f"title : {_two_of(by_rarity[: may_lack + 2])}",)
    ).fetchall()
    if len(rows) <= _MOST_ALIKE:
        return [row[0] for row in rows]
    return _titles_by_rarest(connection, by_rarity, may_lack, namespace)


def _two_of(words: Sequence[str]) -> str:
    """The expression for two of the words; for the word where there is one."""
    terms = [f'"{word}"' for word in words]
    pairs = [f"({term} AND ({' OR '.join(terms[at:])}))" for at, term in enumerate(terms[:-1], 1)]
    return f"({' OR '.join(pairs or terms)})"


def _titles_by_rarest(connection: SqlConnection, by_rarity: Sequence[str], may_lack: int, namespace: str) -> list[int]:
    """The same where many titles have two of the words that should be rare: by counting how many have each."""
    frequencies: dict[str, int] = {}
    counts: Counter[int] = Counter()
    rare = 0
    for word in by_rarity:
        ids = _titled(connection, word)
        frequencies[word] = len(ids)
        if len(ids) < _FREQUENT_IN_TITLES:
            counts.update(ids)
            rare += 1
            alike = [note_id for note_id, count in counts.items() if count >= rare - may_lack]
            if rare > may_lack and len(alike) <= _MOST_ALIKE:
                return alike
    rarest = sorted(frequencies, key=lambda word: (frequencies[word], -len(word)))[: may_lack + 1]
    either = " OR ".join(f'"{word}"' for word in rarest)
    rows = connection.execute(
        f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT {_MOST_ALIKE}",
        (f"{_scope((namespace,))}title : ({either})",),
    )
    return [row[0] for row in rows]


def _titled(connection: SqlConnection, word: str) -> list[int]:
    """The notes with a word in their titles, or some of them when it is a frequent one."""
    rows = connection.execute(f"SELECT rowid {_MATCHING} LIMIT {_FREQUENT_IN_TITLES}", (f'title : "{word}"',))
    return [row[0] for row in rows]


def most_of(words: Sequence[str]) -> int:
    """Two thirds of them, and at least two."""
    return max(min(len(words), 2), (2 * len(words) + 2) // 3)


def count_notes(connection: SqlConnection, namespaces: tuple[str, ...] | None, most: int) -> int:
    """How many notes there are in some namespaces, or in all, counted up to `most`."""
    marks = ", ".join("?" * len(namespaces or ()))
    where = "" if namespaces is None else f"WHERE namespace IN ({marks})"
    counted = f"SELECT count(*) FROM (SELECT 1 FROM notes {where} LIMIT ?)"
    return int(connection.execute(counted, (*(namespaces or ()), most)).fetchone()[0])


@dataclass(frozen=True, slots=True)
class _NoteQuery:
    """An FTS5 expression, and the lowest id that is looked at."""

    expression: str
    lowest_id: int = 0


def _scored(
    connection: SqlConnection, query: _NoteQuery, others: Collection[int] = (), *, most: int = -1
) -> list[tuple[int, float]]:
    """The matches of a query with their text scores, and those of `others` that have lower ids; `most` of them where it
    is not negative, by their ids."""
    # Without ORDER BY: for the order by rank FTS5 prepares and runs a second statement, which takes 0.2 ms. With a
    # plus: each row is looked at, and only those that are wanted are scored.
    lower = [note_id for note_id in others if note_id < query.lowest_id]
    wanted = "AND (+rowid >= ? OR +rowid IN (SELECT value FROM json_each(?)))" if lower else ""
    values = (query.lowest_id, json.dumps(lower)) if lower else ()
    return connection.execute(
        f"SELECT rowid, -rank {_MATCHING} AND rowid >= ? {wanted} LIMIT ?",
        (query.expression, min(lower, default=query.lowest_id), *values, most),
    ).fetchall()


def _meeting(
    connection: SqlConnection, scored: Iterable[tuple[int, float]], condition: Condition, limit: int
) -> list[ScoredRow]:
    """Those of the notes that meet the condition, best first, `limit` at most. Rows are read until there are enough."""
    best = sorted(scored, key=_best_first)
    meet = (
        f"SELECT n.id, {', '.join(condition.columns)} FROM notes n"
        f" WHERE n.id IN (SELECT value FROM json_each(?)) AND {' AND '.join(condition.sql)}"
    )
    matches: list[ScoredRow] = []
    start, size = 0, limit
    while start < len(best) and len(matches) < limit:
        part = best[start : start + size]
        rows = connection.execute(meet, (json.dumps([note_id for note_id, _ in part]), *condition.values))
        columns = {row[0]: row[1:] for row in rows}
        matches += [(note_id, text, columns[note_id]) for note_id, text in part if note_id in columns]
        start, size = start + size, 4 * size
    return matches[:limit]


def _best_first(match: tuple[int, float] | ScoredRow) -> tuple[float, int]:
    return -match[1], -match[0]  # the newest of equal matches


def _scope(namespaces: tuple[str, ...] | None) -> str:
    """A namespace is indexed as one word, its bytes in hex behind a character that no other word has; bm25 gives that
    column no weight."""
    if namespaces is None:
        return ""
    keys = " OR ".join(f'"\ue000{namespace.encode().hex()}"' for namespace in namespaces)
    return f"({keys}) AND "


def _is_large(connection: SqlConnection, namespaces: tuple[str, ...] | None) -> bool:
    marks = ", ".join("?" * len(namespaces or ()))
    where = "" if namespaces is None else f"WHERE namespace IN ({marks})"
    beyond = f"SELECT 1 FROM notes {where} LIMIT 1 OFFSET {_LARGE_STORE}"
    return connection.execute(beyond, namespaces or ()).fetchone() is not None


def _count(connection: SqlConnection, expression: str, most: int) -> int:
    """How many notes match, counted up to `most`."""
    rows = connection.execute(f"SELECT count(*) FROM (SELECT 1 {_MATCHING} LIMIT ?)", (expression, most))
    return int(rows.fetchone()[0])


def _counts(connection: SqlConnection, terms: Sequence[str]) -> dict[str, int]:
    """How many notes have each of the terms, in one statement."""
    one = f"(SELECT count(*) FROM (SELECT 1 {_MATCHING} LIMIT {_MOST_COUNTED}))"
    row = connection.execute(f"SELECT {', '.join([one] * len(terms))}", terms).fetchone()
    return dict(zip(terms, row, strict=True))


def _title_matches(connection: SqlConnection, scope: str, words: Words) -> list[int]:
    """The newest notes that have all the words in their titles; without any, those that have one of them."""
    for operator in (" AND ", " OR "):
        rows = connection.execute(
            f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT {_MOST_TITLED}",
            (f"{scope}title : ({operator.join(words.terms())})",),
        ).fetchall()
        if rows or words.all_needed:
            break
    return [note_id for (note_id,) in rows]


def _newest(connection: SqlConnection, query: _NoteQuery) -> _NoteQuery:
    """The same for the newest of the matches."""
    oldest = connection.execute(
        f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT 1 OFFSET ?", (query.expression, _MOST_SCORED - 1)
    ).fetchone()
    return _NoteQuery(query.expression, oldest[0] if oldest else 0)


def _selective_matches(connection: SqlConnection, scope: str, words: Words) -> tuple[list[tuple[int, float]], bool]:
    """The notes with a rare word, or with two frequent ones, with their text scores, and whether these are all that
    match."""
    counts = _counts(connection, words.terms())
    # To look at one namespace only costs as much as a frequent word: words that are rare everywhere do without.
    frequent = [term for term, number in counts.items() if number > _MOST_SCORED // 2]
    scope = scope if frequent else ""
    counts |= {term: _count(connection, f"{scope}({term})", _MOST_COUNTED) for term in frequent if scope}
    rare, frequent, room = [], [], _MOST_SCORED
    for term in sorted(counts, key=counts.__getitem__):
        if counts[term] <= room // 2:
            rare.append(term)
            room -= counts[term]
        else:
            frequent.append(term)
    # The first expression is rarely too wide: to count its matches takes a third as long as to score them. Where it is,
    # the others are counted, as bm25 looks at every note with any of their words. No word is in one twice: bm25 would
    # count it twice.
    for number, pairs in enumerate(_pairs(frequent)):
        if number and _count(connection, f"{scope}({pairs})", room + 1) > room:
            continue
        matches = _scored(connection, _NoteQuery(f"{scope}({' OR '.join((*rare, pairs))})"), most=_MOST_SCORED + 1)
        if len(matches) <= _MOST_SCORED:
            return matches, False
    return _scored(connection, _NoteQuery(f"{scope}({' OR '.join(rare)})")) if rare else [], not frequent


def _pairs(terms: Sequence[str]) -> Iterator[str]:
    """Expressions for two or more of the terms, which are given rarest first; each for fewer notes than the last."""
    if len(terms) >= 4:
        yield f"(({terms[0]} OR {terms[2]}) AND ({terms[1]} OR {terms[3]}))"
    for most in range(2, len(terms) + 1):
        yield f"({' AND '.join(terms[:most])})"
