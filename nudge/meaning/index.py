"""Every vector in memory, and how close the notes are to a question.

The search is exact: it compares the question with each vector, in blocks. 100,000 of them take some milliseconds, so
there is no approximate index. The vectors are loaded with the first question; before each further one, what was stored
or removed meanwhile is read from the same transaction as the notes: a note and its vectors are never of two times.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

from nudge.meaning import store
from nudge.meaning.fusion import CHANCE, LEAST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.meaning.embedder import Floats
    from nudge.meaning.store import SqlConnection

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

LEVELS = 127
_BLOCK = 4_096  # vectors that are compared at once: as floats they fit into a processor's cache
_SPARE = 1.25  # room for new vectors, in relation to those that are there


def quantize(vector: Floats) -> tuple[float, bytes]:
    """Return a vector as whole numbers, and what to multiply them by."""
    largest = float(numpy.abs(vector).max())
    scale = largest / LEVELS if largest else 1.0
    return scale, numpy.rint(vector / scale).astype(numpy.int8).tobytes()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Vectors at one time: row by row the vector, its scale and its note's place in `ids`; per note the number of
    pieces. Nothing in it is changed any more."""

    vectors: Array
    scales: Array
    places: Array
    is_removed: Array
    ids: Array
    pieces: Array


class VectorIndex:
    """The vectors of one model. `search` may be called by several threads."""

    def __init__(self, fingerprint: str, dimension: int) -> None:
        self.fingerprint, self.dimension = fingerprint, dimension
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._newest = self._newest_removal = 0
        self._vectors = numpy.empty((0, self.dimension), numpy.int8)
        self._numbers = numpy.empty(0, numpy.int64)
        self._scales = numpy.empty(0, numpy.float32)
        self._notes = numpy.empty(0, numpy.int64)
        self._is_removed = numpy.zeros(0, bool)
        self._snapshot: _Snapshot | None = None

    def load(self, connection: SqlConnection) -> None:
        """Read every vector, so that the first question does not wait for it."""
        with self._lock:
            self._bring_up_to_date(connection)

    def search(self, connection: SqlConnection, question: Floats) -> NoteCloseness | None:
        """Return how close the notes are that have vectors in this transaction; None when none has."""
        with self._lock:
            self._bring_up_to_date(connection)
            snapshot = self._snapshot = self._snapshot or self._take_snapshot()
        return None if not len(snapshot.ids) else NoteCloseness(snapshot, question)

    def pairs(self, connection: SqlConnection, ids: Sequence[int], least: float) -> list[tuple[int, int]]:
        """Return the pairs of notes whose first vectors, those of their beginnings, have at least this cosine."""
        with self._lock:
            self._bring_up_to_date(connection)
            live = numpy.flatnonzero(~self._is_removed[: self._count])
            notes, first = numpy.unique(self._notes[live], return_index=True)
            is_wanted = numpy.isin(notes, numpy.array(ids, numpy.int64))
            notes, rows = notes[is_wanted], live[first[is_wanted]]
            vectors = self._vectors[rows].astype(numpy.float32) * self._scales[rows][:, None]
        ones, others = numpy.nonzero(numpy.triu(vectors @ vectors.T, k=1) >= least)
        return list(zip(notes[ones].tolist(), notes[others].tolist(), strict=True))

    def _bring_up_to_date(self, connection: SqlConnection) -> None:
        newest, removal = store.newest(connection)
        if (newest, removal) == (self._newest, self._newest_removal):
            return
        # Another database took the place of this one, or removals were forgotten that happened meanwhile.
        is_older = newest < self._newest or removal < self._newest_removal
        is_known = removal == self._newest_removal or 0 < store.oldest_removal(connection) <= self._newest_removal + 1
        if is_older or not is_known:
            self._clear()
        elif self._count:
            self._remove(store.removed_after(connection, self._newest_removal))
        self._append(store.vectors_after(connection, self._newest, self.fingerprint, self.dimension))
        self._newest, self._newest_removal = newest, removal
        self._snapshot = None

    def _remove(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        is_removed = self._is_removed.copy()
        is_removed[: self._count] |= numpy.isin(self._numbers[: self._count], numpy.array(numbers, numpy.int64))
        self._is_removed = is_removed
        if 2 * int(is_removed[: self._count].sum()) > self._count:
            self._keep(numpy.flatnonzero(~is_removed[: self._count]), 0)

    def _append(self, rows: Sequence[tuple[int, int, float, bytes]]) -> None:
        if not rows:
            return
        start, end = self._count, self._count + len(rows)
        if end > len(self._vectors):
            self._keep(numpy.arange(start), len(rows))
        self._vectors[start:end] = numpy.frombuffer(b"".join(row[3] for row in rows), numpy.int8).reshape(
            len(rows), self.dimension
        )
        self._numbers[start:end] = [row[0] for row in rows]
        self._notes[start:end] = [row[1] for row in rows]
        self._scales[start:end] = [row[2] for row in rows]
        self._count = end

    def _keep(self, rows: Array, more: int) -> None:
        """Copy some of the vectors to new arrays with room for more; who searches the old ones goes on."""
        kept = len(rows)
        room = int((kept + more) * (_SPARE if kept else 1.0))

        def moved(old: Array) -> Array:
            new = numpy.zeros((room, *old.shape[1:]), old.dtype)
            new[:kept] = old[rows]
            return new

        self._vectors, self._numbers, self._scales = moved(self._vectors), moved(self._numbers), moved(self._scales)
        self._notes, self._is_removed = moved(self._notes), moved(self._is_removed)
        self._count = kept

    def _take_snapshot(self) -> _Snapshot:
        count = self._count
        ids, places = numpy.unique(self._notes[:count], return_inverse=True)
        is_removed = self._is_removed[:count]
        pieces = numpy.bincount(places[~is_removed], minlength=len(ids))
        return _Snapshot(self._vectors[:count], self._scales[:count], places, is_removed, ids, pieces)


class NoteCloseness:
    """How close each note is to one question: the cosine of its closest piece, less what one of many pieces is closer
    by chance."""

    def __init__(self, snapshot: _Snapshot, question: Floats) -> None:
        cosines = self._of_pieces = _cosines(snapshot, question)
        best = numpy.full(len(snapshot.ids), -1.0, numpy.float32)
        numpy.maximum.at(best, snapshot.places, cosines)
        self._places, self._ids = snapshot.places, snapshot.ids
        self._cosines = best
        self._values = best - CHANCE * numpy.sqrt(2 * numpy.log(numpy.maximum(snapshot.pieces, 1)))
        self._values[snapshot.pieces == 0] = -2.0

    def of(self, ids: Iterable[int]) -> dict[int, float]:
        wanted = numpy.array(sorted(set(ids)), numpy.int64)
        places = numpy.minimum(numpy.searchsorted(self._ids, wanted), len(self._ids) - 1)
        found = (self._ids[places] == wanted) & (self._values[places] > -2.0)
        return dict(zip(wanted[found].tolist(), self._values[places[found]].tolist(), strict=True))

    def nearest(self, most: int) -> list[int]:
        close = numpy.flatnonzero(self._values >= LEAST)
        order = numpy.lexsort((-self._ids[close], -self._values[close]))[:most]
        nearest: list[int] = self._ids[close[order]].tolist()
        return nearest

    def cosines(self) -> dict[int, float]:
        live = self._values > -2.0
        return dict(zip(self._ids[live].tolist(), self._cosines[live].tolist(), strict=True))

    def agreements(self) -> dict[int, float]:
        order = numpy.lexsort((-self._of_pieces, self._places))
        _, first = numpy.unique(self._places[order], return_index=True)
        second = numpy.minimum(first + 1, len(order) - 1)
        # A note with one piece has no second one: what stands there is of another note, or was removed.
        has_second = (self._places[order[second]] == self._places[order[first]]) & (self._of_pieces[order[second]] > -1)
        seconds = numpy.where(has_second, self._of_pieces[order[second]], self._cosines)
        live = self._values > -2.0
        means = (self._cosines + seconds) / 2
        return dict(zip(self._ids[live].tolist(), means[live].tolist(), strict=True))


def _cosines(snapshot: _Snapshot, question: Floats) -> Floats:
    count = len(snapshot.scales)
    result = numpy.empty(count, numpy.float32)
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = snapshot.vectors[block].astype(numpy.float32) @ question
    result *= snapshot.scales
    result[snapshot.is_removed] = -1.0
    return result
