"""Stores of notes with vectors, and questions to them; each text is embedded once in a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from nudge.meaning import search_ops, store
from nudge.meaning.index import VectorIndex
from nudge.meaning.search_ops import AskedQuestion, Loaded
from nudge.meaning.store import Model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.embedder import Embedder, Floats
    from nudge.meaning.fusion import Closeness


class Cached:
    """An embedder that remembers."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Floats] = {}
        self.dimension, self.fingerprint, self.batch = embedder.dimension, embedder.fingerprint, 64

    def encode(self, texts: Sequence[str]) -> Floats:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(missing), self._embedder.batch):
            part = missing[start : start + self._embedder.batch]
            self._known.update(zip(part, self._embedder.encode(part), strict=True))
        return numpy.array([self._known[text] for text in texts], numpy.float32)


class EmbeddedStore:
    """The vectors of one store by one model, beside its notes."""

    def __init__(self, connection: sqlite3.Connection, embedder: Cached) -> None:
        index = VectorIndex(embedder.fingerprint, embedder.dimension)
        model = Model(embedder.fingerprint, "/", "measured", "", "", embedder.dimension, 0)
        self._loaded = Loaded(model, embedder, index, search_ops.embed_everyday(embedder))
        store.use_model(connection, model)
        while queued := store.next_queued(connection, 64):
            store.keep_vectors(connection, embedder.fingerprint, search_ops._embed(embedder, queued))
        index.load(connection)

    def ask(self, text: str) -> AskedQuestion:
        return search_ops.ask(self._loaded, text)

    def ask_by(self, embedder: Embedder, text: str) -> AskedQuestion:
        """Embedded anew, for who measures it."""
        return search_ops.ask(replace(self._loaded, embedder=embedder), text)


class Both:
    """Two models at once: the mean of how close a note is by each. Measured only; the product has one."""

    def __init__(self, connection: sqlite3.Connection, embedders: Iterable[Cached]) -> None:
        self._held = []
        for embedder in embedders:
            copy = sqlite3.connect(":memory:", isolation_level=None)
            connection.backup(copy)
            self._held.append((copy, EmbeddedStore(copy, embedder)))

    def ask(self, text: str) -> AskedBoth:
        return AskedBoth(self, [(copy, held.ask(text)) for copy, held in self._held])


@dataclass(frozen=True, slots=True)
class AskedBoth:
    store: Both
    questions: Sequence[tuple[sqlite3.Connection, AskedQuestion]]

    @property
    def everyday(self) -> float:
        return sum(question.everyday for _, question in self.questions) / len(self.questions)

    def reworded(self, text: str) -> AskedBoth:
        return self.store.ask(text)

    def closeness(self, connection: sqlite3.Connection) -> Closeness | None:
        del connection  # each model has a copy with the same ids
        found = (question.closeness(copy) for copy, question in self.questions)
        return _Mean([one for one in found if one is not None])


class _Mean:
    def __init__(self, parts: Sequence[Closeness]) -> None:
        self._parts = parts

    def of(self, ids: Iterable[int]) -> dict[int, float]:
        wanted = list(ids)
        return _mean([part.of(wanted) for part in self._parts])

    def nearest(self, most: int) -> list[int]:
        values = self.of({note for part in self._parts for note in part.nearest(most)})
        return sorted(values, key=lambda note: -values[note])[:most]

    def cosines(self) -> dict[int, float]:
        return _mean([part.cosines() for part in self._parts])

    def agreements(self) -> dict[int, float]:
        return _mean([part.agreements() for part in self._parts])


def _mean(values: Sequence[Mapping[int, float]]) -> dict[int, float]:
    return {note: sum(one[note] for one in values) / len(values) for note in values[0]}
