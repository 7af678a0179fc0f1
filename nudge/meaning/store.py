"""Vectors in SQLite, beside the notes that they are of. Each function takes a connection; the caller holds the
transaction.

Triggers keep them in step: a note that is new or whose text changes is queued in `notes_to_embed` and loses its
vectors, and one that goes takes them along. So nothing needs to know about vectors that stores, deletes, archives,
restores or imports notes. Without a model nothing is queued.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from nudge.core.passages import note_of, passages_of, rows_of

SqlConnection = sqlite3.Connection
_COLUMNS = "fingerprint, directory, name, revision, sha256, dimension, bytes"
_HAS_NO_VECTOR = f"NOT EXISTS (SELECT 1 FROM passage_vectors WHERE {rows_of('notes.id', 'passage')})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Model:
    """The model in use. `revision` and `sha256` are those of a download; empty for a directory of the user."""

    fingerprint: str
    directory: str
    name: str
    revision: str
    sha256: str
    dimension: int
    bytes: int


@dataclass(frozen=True, slots=True)
class QueuedNote:
    """A note that waits to be embedded: its place in the queue, and its passages by row, each with the title."""

    place: int
    passages: Sequence[tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class StoredVector:
    """The vector of one piece of a passage, as whole numbers from -127 to 127 that `scale` multiplies."""

    passage: int
    scale: float
    vector: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    notes: int
    waiting: int

    @property
    def embedded(self) -> int:
        return max(self.notes - self.waiting, 0)


def read_model(connection: SqlConnection) -> Model | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM embedding_model").fetchone()  # noqa: S608 - constants only
    return None if row is None else Model(*row)


def use_model(connection: SqlConnection, model: Model) -> bool:
    """Use a model from now on, and queue the notes without vectors; return whether that is every note, since it is
    another model."""
    current = read_model(connection)
    is_other = current is None or current.fingerprint != model.fingerprint
    if is_other:
        forget_model(connection)
    connection.execute("DELETE FROM embedding_model")
    marks = ", ".join("?" * len(astuple(model)))
    connection.execute(f"INSERT INTO embedding_model ({_COLUMNS}) VALUES ({marks})", astuple(model))  # noqa: S608
    lost = f"INSERT OR IGNORE INTO notes_to_embed (note_id) SELECT id FROM notes WHERE {_HAS_NO_VECTOR}"  # noqa: S608
    connection.execute(f"{lost} ORDER BY updated_at DESC")
    return is_other


def forget_model(connection: SqlConnection) -> None:
    """Use no model, and delete every vector."""
    for table in ("embedding_model", "passage_vectors", "removed_vectors", "notes_to_embed"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constants only


def progress(connection: SqlConnection) -> Progress:
    counted = "SELECT (SELECT count(*) FROM notes), (SELECT count(*) FROM notes_to_embed)"
    return Progress(*connection.execute(counted).fetchone())


def count_lost(connection: SqlConnection) -> int:
    """The notes that have no vectors and do not wait for any: their rows were lost, or the model failed at them."""
    waiting = "SELECT note_id FROM notes_to_embed"
    counted = f"SELECT count(*) FROM notes WHERE {_HAS_NO_VECTOR} AND id NOT IN ({waiting})"  # noqa: S608 - constants
    return int(connection.execute(counted).fetchone()[0])


def next_queued(connection: SqlConnection, most: int) -> list[QueuedNote]:
    """The notes that waited longest, with their passages. A damaged note may have none."""
    queued = connection.execute("SELECT n, note_id FROM notes_to_embed ORDER BY n LIMIT ?", (most,)).fetchall()
    return [QueuedNote(place, _passages(connection, note_id)) for place, note_id in queued]


def _passages(connection: SqlConnection, note_id: int) -> list[tuple[int, str, str]]:
    low, high = passages_of(note_id)
    found = connection.execute("SELECT rowid, title, content FROM passages WHERE rowid BETWEEN ? AND ?", (low, high))
    return [(row, str(title), str(content)) for row, title, content in found]


def keep_vectors(
    connection: SqlConnection, fingerprint: str, embedded: Iterable[tuple[int, Sequence[StoredVector]]]
) -> None:
    """Store the vectors of notes by their place in the queue. Those of a note that was changed or deleted meanwhile, or
    of a model that is no longer used, are dropped."""
    model = read_model(connection)
    if model is None or model.fingerprint != fingerprint:
        return
    for place, vectors in embedded:
        if connection.execute("DELETE FROM notes_to_embed WHERE n = ?", (place,)).rowcount:
            connection.executemany(
                "INSERT INTO passage_vectors (passage, fingerprint, scale, vector) VALUES (?, ?, ?, ?)",
                [(one.passage, fingerprint, one.scale, one.vector) for one in vectors],
            )


def newest(connection: SqlConnection) -> tuple[int, int]:
    """The numbers of the newest vector that was ever stored and of the newest removal."""
    rows = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    return rows.get("passage_vectors", 0), rows.get("removed_vectors", 0)


def vectors_after(
    connection: SqlConnection, number: int, fingerprint: str, dimension: int
) -> list[tuple[int, int, float, bytes]]:
    """Number, note, scale and vector of what was stored after a number. A damaged row is left out."""
    rows = connection.execute(
        "SELECT n, passage, scale, vector FROM passage_vectors"
        " WHERE n > ? AND fingerprint = ? AND length(vector) = ? ORDER BY n",
        (number, fingerprint, dimension),
    )
    return [(n, note_of(passage)[0], scale, vector) for n, passage, scale, vector in rows]


def removed_after(connection: SqlConnection, number: int) -> list[int]:
    """The numbers of vectors that were removed after a removal."""
    return [n for (n,) in connection.execute("SELECT n FROM removed_vectors WHERE at > ?", (number,))]


def forget_removals(connection: SqlConnection, most: int) -> None:
    """Drop what is known of removals but for the newest: who needs an older one loads every vector again."""
    connection.execute("DELETE FROM removed_vectors WHERE at <= (SELECT max(at) FROM removed_vectors) - ?", (most,))


def oldest_removal(connection: SqlConnection) -> int:
    """The number of the oldest removal that is still known; 0 when none is."""
    return int(connection.execute("SELECT coalesce(min(at), 0) FROM removed_vectors").fetchone()[0])
