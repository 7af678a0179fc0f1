"""The model in use, in PRIMARY: loaded with the first question, it makes vectors of questions and, in the background,
of notes.

Nothing waits for it for long: without an answer in time, words alone decide. What fails is remembered for
`nudge status` and `nudge doctor`, and tried again after a while.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nudge.core import limits
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.errors import NudgeError
from nudge.meaning import store
from nudge.meaning.embedder import ModelUnusable, open_embedder
from nudge.meaning.everyday import EVERYDAY, NEAREST
from nudge.meaning.groups import connected
from nudge.meaning.pieces import split_pieces
from nudge.meaning.store import Model, Progress, QueuedNote, StoredVector
from nudge.settings.table import KEYWORD

if TYPE_CHECKING:
    from nudge.core.app import App
    from nudge.meaning.embedder import Embedder, Floats
    from nudge.meaning.fusion import Closeness
    from nudge.meaning.index import VectorIndex

_log = logging.getLogger(__name__)
_RETRY = 60.0  # seconds after a failure
_SETTLE = 0.2  # seconds after a note was stored: what is stored at once is embedded together
_NOTES_PER_BATCH = 4  # of the texts of a batch: a note has some pieces
_KNOWN_REMOVALS = 10_000
_STORES_NO_NOTE = frozenset(("nudge.memory_recall", "nudge.record", "nudge.set_hint", "nudge.bump", "nudge.inject"))
_OFF = "the tier is keyword; start the server with: nudge serve --tier semantic"
_NO_MODEL = "no model is in use; nudge semantic on"


@dataclass(frozen=True, slots=True)
class Loaded:
    model: Model
    embedder: Embedder
    index: VectorIndex
    everyday: Floats
    """The vectors of what is asked of any repository."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with its vector, to be compared with the vectors that one transaction sees."""

    loaded: Loaded
    vector: Floats

    @property
    def everyday(self) -> float:
        nearest: list[float] = sorted((self.loaded.everyday @ self.vector).tolist())[-NEAREST:]
        return sum(nearest) / NEAREST

    def reworded(self, text: str) -> AskedQuestion:
        with suppress(Exception):  # a model may raise anything
            return ask(self.loaded, text)
        return AskedQuestion(self.loaded, 0 * self.vector)

    def closeness(self, connection: sqlite3.Connection) -> Closeness | None:
        return self.loaded.index.search(connection, self.vector)


def ask(loaded: Loaded, text: str) -> AskedQuestion:
    """Return a question; a text without a word is like nothing."""
    return AskedQuestion(loaded, loaded.embedder.encode([text[: limits.MAX_QUESTION_CHARS]])[0])


class Meaning:
    """The meaning of notes, as far as there is a model."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.problem: str | None = None
        """Why the model cannot be used, and what to do."""
        self._model: Model | None = None
        self._is_known = False
        self._loaded: Loaded | None = None
        self._loading: asyncio.Task[None] | None = None
        self._embedding: asyncio.Task[None] | None = None
        self._failed_at: float | None = None
        self._texts: dict[str, Floats] = {}
        """The vectors of texts that are not stored: hints."""

    @property
    def is_on(self) -> bool:
        return self._app.lifetime.settings.tier != KEYWORD

    async def model(self) -> Model | None:
        """The model that the database names, whether or not it can be used."""
        if not self._is_known and self._app.database is not None:
            self._model = await self._app.read(store.read_model)
            self._is_known = True
            if self._model is not None:
                self._app.on_write.add(self._note_write)
        return self._model

    async def has_model(self) -> bool:
        """Whether there is a model to use, as far as the database can be read."""
        try:
            return self.is_on and await self.model() is not None
        except NudgeError:
            return False

    def forget(self) -> None:
        """Look again for the model: it was changed, or its database replaced."""
        self._is_known, self._loaded, self._failed_at, self.problem = False, None, None, None
        self._texts = {}
        self._app.on_write.discard(self._note_write)

    async def reason(self) -> str | None:
        """Why meaning is not used, as a sentence; None when it is."""
        if not self.is_on:
            return _OFF
        try:
            return _NO_MODEL if await self.model() is None else self.problem
        except NudgeError as error:
            return error.message

    async def question(self, text: str, timeout: float = limits.QUESTION_TIMEOUT) -> AskedQuestion | None:
        """Return a question to search by; None without a model, or when it takes longer than `timeout` seconds."""
        if not self.is_on or (self._is_known and self._model is None):
            return None
        asking = asyncio.ensure_future(self._ask(text))  # a call is no task, which a timeout needs
        await asyncio.wait([asking], timeout=timeout)
        return asking.result() if asking.done() else None

    async def _ask(self, text: str) -> AskedQuestion | None:
        try:
            loaded = await self._load()
            if loaded is None:
                return None
            return await asyncio.to_thread(ask, loaded, text)
        except NudgeError:  # the database cannot be read: the search itself says so
            return None
        except Exception as error:  # a model may raise anything
            self._fail(f"the model failed ({type(error).__name__}); load it again with: nudge semantic on")
            return None

    async def _load(self) -> Loaded | None:
        """The loaded model. Loading goes on when the caller does not wait for it any longer."""
        if self._loaded is not None:
            return self._loaded
        if self._failed_at is not None and boot_seconds() - self._failed_at < _RETRY:
            return None
        model = await self.model()
        if model is None:
            return None
        if self._loading is None or self._loading.done():
            self._loading = self._app.in_background(self._open(model))
        await asyncio.wait([self._loading])
        return self._loaded

    async def _open(self, model: Model) -> None:
        try:
            loaded = await asyncio.to_thread(_open, model)
            # A hundred thousand vectors take half a second, for which no question should wait.
            await self._app.require_database().read(loaded.index.load, timeout=None)
        except ModelUnusable as error:
            self._fail(str(error))
            return
        if model == self._model:
            self._loaded, self.problem, self._failed_at = loaded, None, None

    def _fail(self, problem: str) -> None:
        if problem != self.problem:
            _log.warning("meaning: %s", problem)
        self.problem, self._failed_at, self._loaded = problem, boot_seconds(), None

    async def alike(self, ids: Sequence[int], least: float) -> list[list[int]]:
        """Return the groups of notes that say nearly the same; none without a model."""
        loaded = await self._load() if self.is_on and len(ids) > 1 else None
        if loaded is None:
            return []
        index = loaded.index
        return connected(await self._app.read(lambda connection: index.pairs(connection, ids, least)))

    async def closest(self, text: str, others: Sequence[str], least: float) -> list[tuple[int, float]]:
        """Return which of a few other texts mean nearly the same, by their places, with the cosine, the closest first.
        Their vectors are kept in memory; with a slow model the first call may find only some of them."""
        if not self.is_on or (self._is_known and self._model is None) or (loaded := await self._load()) is None:
            return []
        if len(self._texts) > limits.MAX_TEXTS_EMBEDDED:
            self._texts.clear()
        missing = [one for one in dict.fromkeys((text, *others)) if one not in self._texts]
        embedding = asyncio.ensure_future(asyncio.to_thread(_embed_texts, loaded.embedder, missing, self._texts))
        await asyncio.wait([embedding], timeout=limits.QUESTION_TIMEOUT)
        question = self._texts.get(text)
        if question is None:
            return []
        known = ((place, self._texts[one]) for place, one in enumerate(others) if one in self._texts)
        close = [(place, cosine) for place, vector in known if (cosine := float(vector @ question)) >= least]
        return sorted(close, key=lambda one: -one[1])

    # Embedding what is stored

    def _note_write(self, name: str) -> None:
        if name not in _STORES_NO_NOTE:
            self.wake()

    def wake(self) -> None:
        """Embed what waits, in the background."""
        if self.is_on and (self._embedding is None or self._embedding.done()):
            self._embedding = self._app.in_background(self._embed_queued())

    async def start(self) -> None:
        """Go on where the last server stopped. Without notes that wait nothing is loaded."""
        if await self.has_model():
            self.wake()

    async def embedded(self) -> None:
        """Wait until no note waits, or embedding has failed."""
        while self._embedding is not None and not self._embedding.done():
            await asyncio.wait([self._embedding])

    async def _embed_queued(self) -> None:
        await asyncio.sleep(_SETTLE)
        while queued := await self._app.read(partial(store.next_queued, most=1)):
            loaded = await self._load()
            if loaded is None:
                return
            most = max(loaded.embedder.batch // _NOTES_PER_BATCH, 1)
            queued = await self._app.read(partial(store.next_queued, most=most))
            vectors = await self._vectors_of(loaded.embedder, queued)
            await self._app.write(Call(), partial(_keep, fingerprint=loaded.model.fingerprint, embedded=vectors))

    async def _vectors_of(
        self, embedder: Embedder, queued: Sequence[QueuedNote]
    ) -> list[tuple[int, Sequence[StoredVector]]]:
        """The vectors of notes. One that the model fails at gets none, and is found by its words."""
        try:
            return await asyncio.to_thread(_embed, embedder, queued)
        except Exception as error:
            if len(queued) == 1:
                _log.warning("meaning: a note cannot be embedded: %s", type(error).__name__)
                return [(queued[0].place, ())]
        return [one for note in queued for one in await self._vectors_of(embedder, [note])]

    async def report(self) -> dict[str, Any]:
        """Which model is in use, how many notes are embedded, and the reason if notes are not found by meaning."""
        model: Model | None = None
        counts = Progress(0, 0)
        with suppress(NudgeError):
            model = await self.model()
            if model is not None:
                counts = await self._app.read(store.progress)
        if model is None:
            return {"model": None, "search": None, "reason": await self.reason()}
        return {
            "model": model.name,
            "search": "exact",
            "reason": await self.reason(),
            "dimension": model.dimension,
            "directory": model.directory,
            "revision": model.revision or None,
            "loaded": self._loaded is not None,
            "notes": counts.notes,
            "embedded": counts.embedded,
            "waiting": counts.waiting,
        }


def _open(model: Model) -> Loaded:
    embedder = open_embedder(model.directory)
    if embedder.fingerprint != model.fingerprint:
        raise ModelUnusable(
            f"{model.directory} has another model now than the one that the notes were embedded with; embed them anew"
            f" with: nudge semantic on {model.directory}"
        )
    from nudge.meaning.index import VectorIndex

    index = VectorIndex(model.fingerprint, model.dimension)
    return Loaded(model, embedder, index, embed_everyday(embedder))


def embed_everyday(embedder: Embedder) -> Floats:
    import numpy

    found: dict[str, Floats] = {}
    _embed_texts(embedder, EVERYDAY, found)
    return numpy.array([found.get(text, numpy.zeros(embedder.dimension)) for text in EVERYDAY], numpy.float32)


def _embed_texts(embedder: Embedder, texts: Sequence[str], into: dict[str, Floats]) -> None:
    with suppress(Exception):  # a model may raise anything; what has no vector is not found
        for start in range(0, len(texts), embedder.batch):
            part = texts[start : start + embedder.batch]
            into.update(zip(part, embedder.encode(part), strict=True))


def _keep(
    connection: sqlite3.Connection, *, fingerprint: str, embedded: Sequence[tuple[int, Sequence[StoredVector]]]
) -> None:
    store.keep_vectors(connection, fingerprint, embedded)
    store.forget_removals(connection, _KNOWN_REMOVALS)


def _embed(embedder: Embedder, queued: Sequence[QueuedNote]) -> list[tuple[int, Sequence[StoredVector]]]:
    from nudge.meaning.index import quantize

    pieces = [
        (note.place, row, text)
        for note in queued
        for row, title, content in note.passages
        for text in split_pieces(title, content)
    ]
    embedded: dict[int, list[StoredVector]] = {note.place: [] for note in queued}
    for start in range(0, len(pieces), embedder.batch):
        part = pieces[start : start + embedder.batch]
        vectors = embedder.encode([text for _, _, text in part])
        for (place, row, _), vector in zip(part, vectors, strict=True):
            embedded[place].append(StoredVector(row, *quantize(vector)))
    return list(embedded.items())
