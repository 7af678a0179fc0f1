"""Vectors and notes: whatever happens to notes, by whichever operation, a vector is of a note that is there, and of the
text that it has now."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.meaning import search_ops, store
from nudge.meaning.embedder import open_embedder
from nudge.process.backup_rows import remove_bad_rows
from nudge.storage.database_files import replace_database
from tests.unit.meaning.service import TERMINAL, Service
from tests.unit.meaning.tiny import GROUPS, make_model

WORDS = [word for group in GROUPS for word in group]
ASKED = ("ship", "cash", "hour")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Two models, of other dimensions."""
    base = tmp_path_factory.mktemp("models")
    return {dimension: make_model(base / str(dimension), dimension=dimension, seed=dimension) for dimension in (16, 24)}


@pytest.fixture(scope="module", autouse=True)
def at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_ops, "_SETTLE", 0.0)
        yield


class World:
    """A store with a model, another one to exchange notes with, and what may happen to both."""

    def __init__(self, base: Path, models: dict[int, Path]) -> None:
        self.base, self.models = base, models
        self.backups: list[Path] = []
        self.own = Service(base / "own.db")
        self.own.use(models[16])
        with closing(Service(base / "other.db")) as other:
            other.use(models[16])

    def close(self) -> None:
        self.own.close()

    @property
    def ids(self) -> list[int]:
        return [note_id for (note_id,) in self.own.sql("SELECT id FROM notes ORDER BY id")]

    def one(self, number: int) -> int | None:
        return self.ids[number % len(self.ids)] if self.ids else None

    def store(self, number: int) -> None:
        self.own.store(f"About {number}", self._text(number))

    @staticmethod
    def _text(number: int) -> str:
        word = WORDS[number % len(WORDS)]
        return f"The {word} is {number}. " * (1 + 30 * (number % 3)) + f"We do a {WORDS[-1 - number % len(WORDS)]}."

    def update(self, number: int) -> None:
        if note := self.one(number):
            self.own("memory_update", id=note, content=self._text(number + 7))

    def touch(self, number: int) -> None:
        """What changes no text."""
        if note := self.one(number):
            self.own("memory_update", id=note, tags=[f"t{number}"])

    def delete(self, number: int) -> None:
        if note := self.one(number):
            self.own("memory_delete", id=note)

    def archive(self, number: int) -> None:
        if note := self.one(number):
            self.own("memory_forget", ids=[note])

    def unarchive(self, _: int) -> None:
        archived = self.own("memory_archive_list")["memories"]
        if archived:
            self.own("memory_archive_restore", id=archived[0]["id"])

    def expire(self, number: int) -> None:
        """It is gone at once, and its row when it is swept."""
        if note := self.one(number):
            self.own.change("UPDATE notes SET expires_at = 1.0 WHERE id = ?", note)
            self.check()
            self.own("memory_gc")

    def consolidate(self, number: int) -> None:
        if len(self.ids) > 1:
            self.own("memory_consolidate", ids=self.ids[:2], title=f"Both {number}", summary=self._text(number))

    def bring(self, number: int) -> None:
        notes = [{"title": f"Brought {number}-{one}", "content": self._text(number + one)} for one in range(2)]
        self.own("memory_import", memories=notes)

    def sync(self, number: int) -> None:
        """With another store, which has a model too: it gets a note, and both exchange theirs."""
        with closing(Service(self.base / "other.db")) as other:
            other.store(f"There {number}", self._text(number))
            other.embed()
        self.own("memory_sync", path=str(self.base / "other.db"), direction=("merge", "pull", "push")[number % 3])
        with closing(Service(self.base / "other.db")) as other:
            check(other, self.models[16])

    def back_up(self, _: int) -> None:
        path = self.base / f"backup{len(self.backups)}.db"
        self.own("backup", path=str(path))
        self.backups.append(path)

    def restore(self, number: int) -> None:
        if self.backups:
            path = self.own.database.path
            self.own.close()
            replace_database(str(self.backups[number % len(self.backups)]), path, remove_bad_rows)
            self.own = Service(Path(path))

    def another_model(self, number: int) -> None:
        self.own("semantic_use", call=TERMINAL, directory=str(self.models[(16, 24)[number % 2]]))

    def embed(self, _: int) -> None:
        self.own.loop.run_until_complete(self.own.app.meaning.start())
        self.own.embed()
        assert self.own.sql("SELECT count(*) FROM notes_to_embed") == [(0,)]

    def check(self, _: int = 0) -> None:
        ((directory,),) = self.own.sql("SELECT directory FROM embedding_model")
        check(self.own, Path(directory))
        there = {one for (one,) in self.own.sql("SELECT id FROM notes WHERE expires_at IS NULL OR expires_at > 1")}
        for text in ASKED:
            assert set(self.own.recalled(text)) <= there


def check(service: Service, directory: Path) -> None:
    """Each vector is one of the text of a note that is there, by the model in use; a note has all of its vectors, or
    none and waits."""
    embedder = open_embedder(str(directory))

    def read(connection: sqlite3.Connection) -> tuple[Any, ...]:
        notes = [note for (note,) in connection.execute("SELECT id FROM notes")]
        queued = {note for (note,) in connection.execute("SELECT note_id FROM notes_to_embed")}
        vectors = connection.execute("SELECT passage, scale, vector, fingerprint FROM passage_vectors").fetchall()
        due = [store.QueuedNote(note, store._passages(connection, note)) for note in notes if note not in queued]
        return set(notes), queued, vectors, due

    notes, queued, vectors, due = service.read(read)
    assert queued <= notes
    expected = sorted(
        (one.passage, one.scale, one.vector, embedder.fingerprint)
        for _, pieces in search_ops._embed(embedder, due)
        for one in pieces
    )
    assert sorted(vectors) == [
        (passage, pytest.approx(scale), vector, mark) for passage, scale, vector, mark in expected
    ]


STEPS: tuple[Callable[[World, int], None], ...] = (
    *(World.store, World.update, World.touch, World.delete, World.archive, World.unarchive, World.expire),
    *(World.consolidate, World.bring, World.sync, World.back_up, World.restore, World.another_model),
    *(World.embed, World.check, World.store, World.embed),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40)), max_size=14))
def test_vectors_are_of_the_notes_that_are_there(
    models: dict[int, Path], steps: list[tuple[Callable[[World, int], None], int]]
) -> None:
    """Stored, updated, deleted, archived and restored, expired, consolidated, imported, synchronized both ways,
    replaced by a backup, and embedded by another model, in any order."""
    with tempfile.TemporaryDirectory() as base, closing(World(Path(base), models)) as world:
        for step, number in steps:
            step(world, number)
        world.check()
        world.embed(0)
        world.check()
