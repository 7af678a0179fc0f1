"""Vectors in memory: they are those of the transaction that reads them, and the search is exact."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import log, sqrt

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.core.passages import passages_of
from nudge.meaning import store
from nudge.meaning.fusion import CHANCE
from nudge.meaning.index import VectorIndex, quantize
from nudge.meaning.store import Model, StoredVector
from nudge.notes import store as notes
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes, Note
from nudge.storage import migrations

DIMENSION = 8
MODEL = Model("fingerprint", "/model", "model", "", "", DIMENSION, 1)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(_database()) as opened:
        yield opened


def _database() -> sqlite3.Connection:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    opened.execute("PRAGMA foreign_keys = ON")
    migrations.migrate(opened)
    store.use_model(opened, MODEL)
    return opened


def vector(seed: int) -> numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]]:
    made = numpy.random.default_rng(seed).normal(size=DIMENSION).astype(numpy.float32)
    return made / numpy.float32(numpy.linalg.norm(made))


def add(connection: sqlite3.Connection, seed: int) -> int:
    draft = Draft(title=f"t{seed}", content=f"text {seed}")
    return notes.store(connection, draft, 1.0, Lifetimes())[0].id


def embed(connection: sqlite3.Connection, seeds: dict[int, int]) -> None:
    """Embed what waits: a note has as many pieces as its seed says, each with a vector of its own."""
    rows = connection.execute("SELECT n, note_id FROM notes_to_embed").fetchall()
    embedded = [
        (
            place,
            [
                StoredVector(passages_of(note)[0] + 4_096, *quantize(vector(100 * seeds[note] + piece)))
                for piece in range(1 + seeds[note] % 3)
            ],
        )
        for place, note in rows
    ]
    store.keep_vectors(connection, MODEL.fingerprint, embedded)


def expected(seeds: dict[int, int], question: int) -> dict[int, float]:
    found = {}
    for note, seed in seeds.items():
        count = 1 + seed % 3
        best = max(float(vector(100 * seed + piece) @ vector(question)) for piece in range(count))
        found[note] = best - CHANCE * sqrt(2 * log(count))
    return found


def test_a_vector_survives_its_numbers() -> None:
    """Whole numbers of one byte keep a cosine to a hundredth."""
    one, other = vector(1), vector(2)
    scale, raw = quantize(one)
    stored = numpy.frombuffer(raw, numpy.int8).astype(numpy.float32) * scale
    assert float(stored @ other) == pytest.approx(float(one @ other), abs=0.01)
    assert quantize(numpy.zeros(DIMENSION, numpy.float32)) == (1.0, bytes(DIMENSION))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("astudrxe"), st.integers(0, 5)), max_size=30), st.integers(0, 3))
def test_the_index_is_what_the_database_has(steps: list[tuple[str, int]], question: int) -> None:
    """Whatever happens to notes between two questions: stored, changed, touched, deleted, archived and restored,
    embedded or not yet. The index compares exactly the vectors of the notes that are there."""
    index = VectorIndex(MODEL.fingerprint, DIMENSION)
    live: dict[int, int] = {}
    pending: dict[int, int] = {}
    archived: list[tuple[Note, int]] = []
    with closing(_database()) as connection:
        for number, (step, which) in enumerate(steps):
            known = sorted({**live, **pending})
            note = known[which % len(known)] if known else None
            if step == "a":
                pending[add(connection, number)] = number
            elif step == "e":
                embed(connection, pending)
                live, pending = {**live, **pending}, {}
            elif step == "s":
                found = index.search(connection, vector(question))
                assert (found.of(live) if found else {}) == pytest.approx(expected(live, question), abs=0.02)
            elif note is not None and step == "u":
                notes.update(connection, note, {"content": f"other {number}"}, 2.0, Lifetimes())
                live.pop(note, None)
                pending[note] = number
            elif note is not None and step == "t":
                notes.touch(connection, [note], 3.0, Lifetimes())
            elif note is not None and step == "d":
                notes.delete(connection, note, 4.0)
                live.pop(note, None), pending.pop(note, None)
            elif note is not None and step == "r":
                archived.append((notes.get(connection, note, 4.0), number))
                notes.archive_notes(connection, [archived[-1][0]], "forgotten", 4.0)
                live.pop(note, None), pending.pop(note, None)
            elif step == "x" and archived:
                old, seed = archived.pop()
                notes.insert(connection, old.draft, 5.0, expires_at=None, note_id=old.id)
                pending[old.id] = seed
        found = index.search(connection, vector(question))
        every = {**live, **pending}
        assert (found.of(every) if found else {}) == pytest.approx(expected(live, question), abs=0.02)
        rows = connection.execute("SELECT DISTINCT passage >> 24 FROM passage_vectors").fetchall()
        assert {note for (note,) in rows} == set(live)


def test_an_embedding_of_a_text_that_changed_is_dropped(connection: sqlite3.Connection) -> None:
    """A note that is changed while it is embedded waits again, and gets no vector of its former text."""
    note = add(connection, 1)
    (queued,) = store.next_queued(connection, 5)
    assert [text for _, _, text in queued.passages] == ["text 1"]
    notes.update(connection, note, {"content": "other"}, 2.0, Lifetimes())
    old = StoredVector(queued.passages[0][0], *quantize(vector(1)))
    store.keep_vectors(connection, MODEL.fingerprint, [(queued.place, [old])])
    assert connection.execute("SELECT count(*) FROM passage_vectors").fetchone() == (0,)
    assert store.progress(connection).waiting == 1
    store.keep_vectors(connection, "another", [(store.next_queued(connection, 5)[0].place, [old])])
    assert store.progress(connection).waiting == 1


def test_removals_that_were_forgotten(connection: sqlite3.Connection) -> None:
    """An index that missed removals which are no longer known loads everything again."""
    seeds = {add(connection, seed): seed for seed in range(6)}
    embed(connection, seeds)
    index = VectorIndex(MODEL.fingerprint, DIMENSION)
    assert index.search(connection, vector(9)) is not None
    gone = min(seeds)
    notes.delete(connection, gone, 2.0)
    store.forget_removals(connection, 0)
    found = index.search(connection, vector(9))
    assert found is not None and set(found.of(seeds)) == set(seeds) - {gone}


def test_another_database_takes_its_place(connection: sqlite3.Connection) -> None:
    """After a restore the vectors are those of the other file."""
    seeds = {add(connection, seed): seed for seed in range(6)}
    embed(connection, seeds)
    index = VectorIndex(MODEL.fingerprint, DIMENSION)
    index.search(connection, vector(9))
    with closing(_database()) as other:
        one = {add(other, 3): 3}
        embed(other, one)
        found = index.search(other, vector(9))
        assert found is not None and found.of(seeds) == pytest.approx(expected(one, 9), abs=0.02)


def test_two_pieces_agree(connection: sqlite3.Connection) -> None:
    """The agreement of a note is the mean of its two closest pieces; of one piece, what that has. A note that is gone
    has none, and its pieces count for no other."""
    seeds = {add(connection, seed): seed for seed in range(7)}
    embed(connection, seeds)
    index = VectorIndex(MODEL.fingerprint, DIMENSION)
    index.load(connection)
    gone = max(seeds)
    notes.delete(connection, gone, 2.0)
    found = index.search(connection, vector(7))
    assert found is not None
    wanted = {}
    for note, seed in seeds.items():
        cosines = sorted(float(vector(100 * seed + piece) @ vector(7)) for piece in range(1 + seed % 3))[-2:]
        wanted[note] = sum(cosines) / len(cosines)
    del wanted[gone]
    assert found.agreements() == pytest.approx(wanted, abs=0.02)


def test_nearest_first(connection: sqlite3.Connection) -> None:
    """The closest first, and only what is close enough."""
    seeds = {add(connection, seed): seed for seed in range(0, 60, 3)}
    embed(connection, seeds)
    found = VectorIndex(MODEL.fingerprint, DIMENSION).search(connection, vector(7))
    assert found is not None
    values = expected(seeds, 7)
    order = sorted((note for note in seeds if values[note] >= 0.1), key=lambda note: -values[note])
    assert found.nearest(3) == order[:3]
    assert all(values[note] > 0.06 for note in found.nearest(99))
