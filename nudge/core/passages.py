"""Passages of notes: pieces of about 80 words that end where a sentence ends, with an index of their own.

A long text has some words of any query somewhere; a passage that has several of them together is about them. Each
passage carries the title of its note, which says what it is about.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import re
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

PASSAGE_WORDS = 80
# A row of the index is a note's id, the number of its passages and the number of this one: with a match one knows how
# long the note is.
_BITS = 12
_SHIFT = 2 * _BITS

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def split_passages(text: str, most: int = PASSAGE_WORDS) -> list[str]:
    """Return the passages of a text, of at most so many words, at least one. A sentence that is longer is cut."""
    passages: list[str] = []
    words: list[str] = []
    for sentence in _short_sentences(text, most):
        if len(words) + len(sentence) > most and words:
            passages.append(" ".join(words))
            words = []
        words += sentence
    return [*passages, " ".join(words)] if words or not passages else passages


def _short_sentences(text: str, most: int) -> Iterator[list[str]]:
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        for start in range(0, len(words), most):
            yield words[start : start + most]


def index_passages(connection: sqlite3.Connection, note_id: int, title: str, content: str) -> None:
    """Replace the passages of a note in the index. A deleted note loses them by a trigger."""
    connection.execute(f"DELETE FROM passages WHERE {rows_of('?1')}", (note_id,))
    passages = split_passages(content)
    connection.executemany(
        "INSERT INTO passages (rowid, title, content) VALUES (?, ?, ?)",
        (
            (note_id << _SHIFT | len(passages) << _BITS | number, title, passage)
            for number, passage in enumerate(passages)
        ),
    )


def note_of(row: int) -> tuple[int, int]:
    """Return the note of a row of the index, and how many passages that note has."""
    return row >> _SHIFT, row >> _BITS & (1 << _BITS) - 1


def rows_of(note: str, row: str = "rowid") -> str:
    """The condition for the rows of a note, in SQL; `note` is its id there, `row` the column with the number of a
    row."""
    return f"{row} BETWEEN {note} << {_SHIFT} AND ({note} << {_SHIFT}) + {(1 << _SHIFT) - 1}"


def passages_of(note_id: int) -> tuple[int, int]:
    """The lowest and the highest row that a note may have."""
    return note_id << _SHIFT, (note_id + 1 << _SHIFT) - 1


NOTE_OF_ROW = f"rowid >> {_SHIFT}"
"""The note of a row, in SQL."""
