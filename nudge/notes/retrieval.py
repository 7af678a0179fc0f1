"""The keyword retriever: which notes have the words of a query, and how well they match by FTS5's bm25.

Where the meaning of notes is known as well, `texts_for_fusion` returns what `nudge.meaning.fusion` makes a score of.
Only this module, `passages` and the schema know about FTS5.

Half of a text score is that of the whole note, half that of its best passage, each in relation to the best match; long
notes, which have more words of any query by chance, lose a little. Every match is scored: bm25 takes about 1.5 us a
row. Beyond `_EXACT_NOTES` only the best notes get the score of their passages, which takes as long again.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from nudge.core.errors import Invalid
from nudge.core.passages import NOTE_OF_ROW, note_of
from nudge.core.spelling import NOTES, find_corrections
from nudge.core.words import content_words, distinct_words, has_word, root
from nudge.meaning.fusion import text_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.notes.store import SqlConnection

MAX_WORDS = 64
_MATCHING = "FROM notes_fts WHERE notes_fts MATCH ?"
# With a plus SQLite keeps only the best, where FTS5 itself would sort all: of 1,400 matches in 1.3 ms instead of 1.7.
_IN_ORDER = "ORDER BY +rank"
_INDEXES = ("notes_fts", "passages")
_EXACT_NOTES = 20_000
_SMALL = 2_000
_WITH_PASSAGES = 50  # best notes of a larger store whose passages are scored
_LENGTH = -0.15  # power of the number of passages
_MERGED_PAGES = 64  # of the index, in one step
_PAGES_MERGED_WITH_A_NOTE = 16
_MOST_READ = 4_096  # characters of a note whose words are not looked up in the index
_MOST_TITLES_COMPARED = 50  # for one subject
_LEAST_BEGINNING = 4  # characters of a word that are looked up in place of all its forms


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, and whether a match must have all of them or any. FTS5 gets every word quoted, so that
    nothing a user types is query syntax."""

    words: tuple[str, ...]
    all_needed: bool
    corrections: Mapping[str, str] = field(default_factory=dict)
    """Misspelled words that were typed, each with the one of `words` that stands in its place."""

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

    def corrected(self, connection: SqlConnection) -> Self:
        """The same with what was likely meant in place of words that no note has."""
        corrections = find_corrections(connection, NOTES, self.words)
        if not corrections:
            return self
        words = dict.fromkeys(corrections.get(word, word) for word in self.words)
        return replace(self, words=tuple(words), corrections=corrections)

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
    columns: str


ScoredRow = tuple[int, float, tuple[Any, ...]]
"""The id of a match, its text score and its columns."""


def best_matches(connection: SqlConnection, words: Words, condition: Condition, *, limit: int) -> list[ScoredRow]:
    """Return at most `limit` best matches, best first."""
    matching = f"{_scope(condition.namespaces)}({words.expression()})"
    if _is_large(connection):
        best = connection.execute(
            f"SELECT -rank, rowid {_MATCHING} {_IN_ORDER} LIMIT {_WITH_PASSAGES}", (matching,)
        ).fetchall()
        if len(best) < _WITH_PASSAGES or best[-1][0] < best[0][0]:  # else the newest of equal ones are wanted
            matches = meeting(connection, _text_scores(connection, words, best, best).items(), condition, limit)
            if len(matches) >= limit or len(best) < _WITH_PASSAGES:
                return matches
    scores = text_scores(connection, words, condition.namespaces)
    return meeting(connection, scores.items(), condition, limit)


def text_scores(
    connection: SqlConnection, words: Words, namespaces: tuple[str, ...] | None, also: Collection[int] = ()
) -> dict[int, float]:
    """Return the text scores of all notes that match in some namespaces, or in all; `also` are notes whose passages are
    scored whatever the size of the store."""
    found: list[tuple[float, int]] = connection.execute(
        f"SELECT -rank, rowid {_MATCHING}", (f"{_scope(namespaces)}({words.expression()})",)
    ).fetchall()
    found.sort(reverse=True)  # the newest of equal matches first
    if len(found) <= _WITH_PASSAGES or not _is_large(connection):
        return _text_scores(connection, words, found, None)
    others = [match for match in found[_WITH_PASSAGES:] if match[1] in also]
    return _text_scores(connection, words, found, [*found[:_WITH_PASSAGES], *others])


def texts_for_fusion(
    connection: SqlConnection, words: Words, namespaces: tuple[str, ...] | None, also: Collection[int]
) -> dict[int, float]:
    """Return the text scores of notes that match, as the meaning is added to them: of all, or in a large store of the
    best ones and of those in `also`."""
    matching = f"{_scope(namespaces)}({words.expression()})"
    if not _is_large(connection):
        return _fused_scores(
            connection, words, connection.execute(f"SELECT -rank, rowid {_MATCHING}", (matching,)).fetchall(), None
        )
    # With a plus: only the rows that are wanted are scored, and none is looked up by itself.
    among = f"SELECT -rank, rowid {_MATCHING} AND +rowid IN (SELECT value FROM json_each(?))"
    best = connection.execute(f"SELECT -rank, rowid {_MATCHING} {_IN_ORDER} LIMIT {_WITH_PASSAGES}", (matching,))
    others = connection.execute(among, (matching, json.dumps(list(also))))
    found = list(dict.fromkeys([*best, *others]))
    return _fused_scores(connection, words, found, [note_id for _, note_id in found])


def _fused_scores(
    connection: SqlConnection, words: Words, found: Sequence[tuple[float, int]], among: Sequence[int] | None
) -> dict[int, float]:
    if not found:
        return {}
    passages = _passage_scores(connection, words, among)
    best = max(whole for whole, _ in found) or 1.0
    best_passage = max((score for score, _ in passages.values()), default=0.0) or 1.0
    return {
        note_id: text_score(whole / best, passages.get(note_id, (0.0, 1))[0] / best_passage) for whole, note_id in found
    }


def _text_scores(
    connection: SqlConnection,
    words: Words,
    found: Sequence[tuple[float, int]],
    candidates: Sequence[tuple[float, int]] | None,
) -> dict[int, float]:
    """The text scores of notes with the scores of their whole texts, best first. Only the passages of `candidates` are
    scored, or of all."""
    if not found:
        return {}
    best = found[0][0] or 1.0
    scores = {} if candidates is None else {note_id: 0.5 * whole / best for whole, note_id in found}
    passages = _passage_scores(connection, words, None if candidates is None else [match[1] for match in candidates])
    best_passage = max((score for score, _ in passages.values()), default=0.0) or 1.0
    for whole, note_id in found if candidates is None else candidates:
        passage, length = passages.get(note_id, (0.0, 1))
        scores[note_id] = 0.5 * (whole / best + passage / best_passage) * length**_LENGTH
    return scores


def _passage_scores(
    connection: SqlConnection, words: Words, note_ids: Sequence[int] | None
) -> dict[int, tuple[float, int]]:
    """The score of the best passage of some notes, or of all that match, and how many passages each note has."""
    among, values = "", []
    if note_ids is not None:
        # With a plus: only the rows that are wanted are scored, and none is looked up by itself.
        among, values = f"AND +{NOTE_OF_ROW} IN (SELECT value FROM json_each(?))", [json.dumps(note_ids)]
    rows = connection.execute(
        f"SELECT rowid, -rank FROM passages WHERE passages MATCH ? {among}", (" OR ".join(words.terms()), *values)
    )
    best: dict[int, tuple[float, int]] = {}
    for row, score in rows:
        note_id, count = note_of(row)
        if note_id not in best or best[note_id][0] < score:
            best[note_id] = score, count
    return best


def words_in(
    connection: SqlConnection,
    words: Words,
    ids: Collection[int],
    *,
    texts: Mapping[int, str] | None = None,
) -> dict[int, list[str]]:
    """Return those of the words that each note has, in any form that has the same stem. With the texts of the notes, in
    lower case, short ones are read here; in a large store the index takes five times as long. How the index folds
    other letters than those of ASCII is its own, and the parts of a name (`a_b`) are a phrase."""
    words_by_note: dict[int, list[str]] = {note_id: [] for note_id in ids}
    if texts is not None and all(word.isascii() and "_" not in word for word in words.words):
        words_by_note |= _words_read(words, {note_id: texts[note_id] for note_id in ids})
        ids = [note_id for note_id in ids if not _is_readable(texts[note_id])]
    if ids:
        for number, note_id in _looked_up(connection, words, ids):
            words_by_note[note_id].append(words.words[number])
    return words_by_note


def _is_readable(text: str) -> bool:
    return len(text) <= _MOST_READ and text.isascii()


def _words_read(words: Words, texts: Mapping[int, str]) -> dict[int, list[str]]:
    return {
        note_id: [word for word in words.words if has_word(text, word)]
        for note_id, text in texts.items()
        if _is_readable(text)
    }


def _looked_up(connection: SqlConnection, words: Words, ids: Collection[int]) -> Iterable[tuple[int, int]]:
    """Return pairs of the number of a word and a note that has it."""
    # The plus keeps FTS5 from a search for each id, which takes as long as a look at hundreds of matches.
    having = f"SELECT rowid {_MATCHING} AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))"
    among = (min(ids), max(ids), json.dumps(list(ids)))
    return connection.execute(
        " UNION ALL ".join(f"SELECT {number}, * FROM ({having})" for number in range(len(words.words))),
        [value for term in words.terms() for value in (term, *among)],
    )


def count_segments(connection: SqlConnection) -> int:
    """In how many parts of an index a word is looked up, at most."""
    counts = (connection.execute(f"SELECT count(DISTINCT segid) FROM {index}_idx").fetchone() for index in _INDEXES)
    return max(int(count) for (count,) in counts)


def merge_segments(connection: SqlConnection, *, begin: bool = False, pages: int | None = None) -> bool:
    """Merge some pages of the indexes toward one segment each, and return whether there is more to do; 64 pages take
    some milliseconds. `begin` makes all segments part of one merge."""
    pages = pages or _MERGED_PAGES
    left = [_merge(connection, index, -pages if begin else pages) for index in _INDEXES]  # a step of each
    return any(left)


def _merge(connection: SqlConnection, index: str, pages: int) -> bool:
    before = connection.total_changes
    connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before >= 2  # documented: fewer changes than two mean that nothing was left


def merge_new_segments(connection: SqlConnection) -> None:
    """Merge the small segments that single notes leave, in the transaction of one. Each search looks into all of them,
    and FTS5 itself waits until there are sixteen of a size."""
    merge_segments(connection, pages=_PAGES_MERGED_WITH_A_NOTE)


def titles_about(
    connection: SqlConnection, subjects: Sequence[Sequence[str]], negations: Sequence[str], namespace: str
) -> list[int]:
    """Return the ids of the newest notes of a namespace whose titles may have all words of one of the subjects, or have
    one of the negations and a word of a subject."""
    scope = _scope((namespace,))
    queries = [" AND ".join(map(_any_form, words[:MAX_WORDS])) for words in subjects if words]
    every = sorted({_any_form(word) for words in subjects for word in words})[:MAX_WORDS]
    if every:
        denied = " OR ".join(f'"{word}"' for word in negations)
        queries.append(f"({denied}) AND ({' OR '.join(every)})")
    newest = f"SELECT rowid {_MATCHING} ORDER BY rowid DESC LIMIT {_MOST_TITLES_COMPARED}"
    ids = {row[0] for query in queries for row in connection.execute(newest, (f"{scope}title : ({query})",))}
    return sorted(ids, reverse=True)


def _any_form(word: str) -> str:
    """The term for a word in any form. "deployment" and "deploy" have stems of their own, which begin alike."""
    beginning = root(word)[:-1]
    return f'"{beginning}" *' if len(beginning) >= _LEAST_BEGINNING and beginning.isalpha() else f'"{word}"'


def meeting(
    connection: SqlConnection, scored: Iterable[tuple[int, float]], condition: Condition, limit: int
) -> list[ScoredRow]:
    """Those of the notes that meet the condition, best first, `limit` at most. Rows are read until there are enough."""
    best = sorted(scored, key=_best_first)
    meet = (
        f"SELECT n.id, {condition.columns} FROM notes n"
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


def is_small(connection: SqlConnection) -> bool:
    """Whether the indexes are merged within a fraction of a second."""
    return _latest(connection) <= _SMALL


def _is_large(connection: SqlConnection) -> bool:
    """Whether more notes were stored than are scored exactly: counting them takes as long as a query."""
    return _latest(connection) > _EXACT_NOTES


def _latest(connection: SqlConnection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM notes").fetchone()[0])
