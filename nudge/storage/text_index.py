"""Texts that lie beside the history's own full-text index, searched as if they were in it: in memory, since they are to
leave no trace."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice

from nudge.storage.migrations import TOKENIZER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PORTION = 5_000  # documents at once


def find(match: str, documents: Iterable[tuple[int, str, str | None]]) -> Iterator[int]:
    """The numbers of those documents (number, content, file_path) that an FTS5 expression matches."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5(content, file_path, content='', tokenize='{TOKENIZER}')"
        )
        waiting = iter(documents)
        while portion := list(islice(waiting, _PORTION)):
            connection.executemany("INSERT INTO texts(rowid, content, file_path) VALUES (?, ?, ?)", portion)
            yield from [row[0] for row in connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (match,))]
            connection.execute("INSERT INTO texts(texts) VALUES ('delete-all')")
