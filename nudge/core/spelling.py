"""Misspelled words of a query: what an index has that differs by one slip of the fingers.

A word is corrected only where the index has it in no form at all, so that what is typed right is never changed. To look
for the neighbors of one word takes about 2 ms.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence

from nudge.core.words import stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class SqlConnection(Protocol):
        def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...


NOTES, OBSERVATIONS = "notes_fts", "observations_fts"
_SHORTEST, _SHORTEST_CHANGED = 5, 6  # letters, for swapped ones and for others; shorter words have too many neighbors
_MOST_CORRECTED = 3  # words of a query
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE = {key: row[max(at - 1, 0) : at] + row[at + 1 : at + 2] for row in _ROWS for at, key in enumerate(row)}


def find_corrections(connection: SqlConnection, index: str, words: Iterable[str]) -> dict[str, str]:
    """Return the words that nothing in an index has, each with one that is a slip away. Words are in lower case."""
    unknown = [word for word in words if _is_plain(word) and not _has_any(connection, index, [word])]
    corrections = ((word, _nearest(connection, index, word)) for word in unknown[:_MOST_CORRECTED])
    return {word: correction for word, correction in corrections if correction is not None}


def _is_plain(word: str) -> bool:
    return len(word) >= _SHORTEST and word.isascii() and word.isalpha()


def _has_any(connection: SqlConnection, index: str, words: Sequence[str]) -> bool:
    match = " OR ".join(f'"{word}"' for word in words)
    found = connection.execute(f"SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT 1", (match,)).fetchone()
    return found is not None


def _nearest(connection: SqlConnection, index: str, word: str) -> str | None:
    """The likeliest slip away that the index has, found by halving."""
    left = list(dict.fromkeys(_one_slip_away(word)))
    if not _has_any(connection, index, left):
        return None
    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if _has_any(connection, index, half) else left[len(half) :]
    return left[0]


def _one_slip_away(word: str) -> Iterator[str]:
    """Two letters swapped, one missing, one too many, or the key beside the right one; the first letter is right. Any
    other letter would make other words of right ones: related is not relaxed."""
    # Within the stem: with another ending it would be another word, not a slip.
    halves = [(word[:at], word[at:]) for at in range(1, len(stem(word)))]
    yield from (left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1)
    if len(word) < _SHORTEST_CHANGED:
        return
    yield from (left + letter + right for left, right in halves for letter in string.ascii_lowercase)
    yield from (left + right[1:] for left, right in halves if right)
    yield from (left + letter + right[1:] for left, right in halves if right for letter in _BESIDE[right[0]])
