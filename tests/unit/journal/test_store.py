"""Attempts in the store: how they are found, and what a change compares."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from nudge.core.errors import Conflict, NotFound
from nudge.journal import store as journal
from nudge.journal.attempts import Attempt, Plan, Resolution
from nudge.notes import archive, store, transfer
from nudge.notes.fields import Draft
from nudge.notes.foreign_notes import ForeignNotes
from nudge.notes.store import OPEN
from nudge.storage import migrations
from tests.unit.notes.stored import LIFETIMES, NOW, add, insert_row

PLAN = Plan("goal", "make bench exits 0", "the cache is cold", "warm it")


def start(notes: sqlite3.Connection, session: str = "s1", namespace: str = "api", **options: Any) -> Attempt:
    return journal.start(notes, PLAN, session, Draft("", "", namespace=namespace), NOW, **options)


@pytest.mark.parametrize(
    ("condition", "index"), [("n.attempt_session = ?", "attempts_"), ("n.namespace = ?", "attempts_open (namespace=?)")]
)
def test_open_attempts_are_found_by_an_index(notes: sqlite3.Connection, condition: str, index: str) -> None:
    """Of a session and of a repo: no other note is read."""
    sql = f"EXPLAIN QUERY PLAN SELECT n.id FROM notes n WHERE {OPEN} AND {condition}"  # noqa: S608 - a test's own words
    [row] = notes.execute(sql, ("x",)).fetchall()
    assert index in row[3] and row[3].startswith("SEARCH")


def test_a_note_of_another_kind_is_no_attempt(notes: sqlite3.Connection) -> None:
    """Whatever its metadata are."""
    other = add(notes, "t", metadata={"session_id": "s1"})
    with pytest.raises(NotFound):
        journal.get(notes, other.id)
    assert journal.open_in_session(notes, "s1") == []


def test_of_two_changes_of_what_was_read_once_the_second_is_refused(notes: sqlite3.Connection) -> None:
    """After an adoption the owner is another, after a resolution there is an outcome: both are named."""
    attempt = start(notes)
    journal.adopt(notes, attempt, "s2", NOW + 1)
    with pytest.raises(Conflict, match="belongs to session s2"):
        journal.adopt(notes, attempt, "s3", NOW + 2)
    current = journal.get(notes, attempt.id)
    journal.resolve(notes, current, Resolution("confirmed"), NOW + 3, LIFETIMES)
    with pytest.raises(Conflict, match="resolved before: confirmed"):
        journal.resolve(notes, current, Resolution("falsified"), NOW + 4, LIFETIMES)
    assert journal.get(notes, attempt.id).status == "confirmed"


def _all_notes(notes: sqlite3.Connection) -> Iterator[transfer.IncomingNote]:
    return ForeignNotes(lambda sql, values: notes.execute(sql, values).fetchall(), NOW).notes()


def test_an_attempt_that_travels_keeps_its_state(notes: sqlite3.Connection) -> None:
    """Through an export and an import: the open one is open, the other has its outcome."""
    first, second = start(notes), start(notes, "s2")
    journal.resolve(notes, second, Resolution("falsified", lesson={"takeaway": "look first"}), NOW, LIFETIMES)
    exported = list(_all_notes(notes))
    notes.execute("DELETE FROM notes")
    transfer.Merge(notes, NOW, LIFETIMES).add_notes(exported)
    assert [one.note.uid for one in journal.open_in_namespace(notes, "api")] == [first.note.uid]
    listed = journal.list_attempts(notes, journal.AttemptFilter(namespace="api"), 10)
    assert [one.status for one in listed] == ["open", "falsified"]


def test_a_copy_that_is_still_open_does_not_undo_an_outcome(notes: sqlite3.Connection) -> None:
    """Also when it was updated later: of two machines one had resolved it."""
    attempt = start(notes)
    [copy] = _all_notes(notes)
    journal.resolve(notes, attempt, Resolution("confirmed"), NOW + 1, LIFETIMES)
    merge = transfer.Merge(notes, NOW + 3, LIFETIMES)
    merge.add_notes([replace(copy, updated_at=NOW + 2)])
    assert journal.get(notes, attempt.id).status == "confirmed" and merge.counts == {transfer.UNCHANGED: 1}


def test_a_database_from_before_the_journal_gets_its_columns() -> None:
    """With the notes that it has."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as old:
        before = migrations.MIGRATIONS[: migrations.MIGRATIONS.index(migrations._JOURNAL)]
        migrations.migrate(old, before)
        insert_row(old, "a note", namespace="api")
        migrations.migrate(old)
        attempt = start(old)
        assert [one.id for one in journal.open_in_session(old, "s1")] == [attempt.id]
        assert old.execute("SELECT count(*) FROM notes").fetchone() == (2,)


def test_an_archived_attempt_comes_back_with_its_outcome(notes: sqlite3.Connection) -> None:
    """A resolved one can be forgotten as any note."""
    attempt = start(notes)
    journal.resolve(notes, attempt, Resolution("abandoned"), NOW, LIFETIMES)
    archive.forget(notes, store.NoteFilter(namespaces=("api",)), None, NOW)
    with pytest.raises(NotFound):
        journal.get(notes, attempt.id)
    archive.restore(notes, attempt.id, NOW, LIFETIMES)
    assert journal.get(notes, attempt.id).status == "abandoned"
