"""A note that was deleted and comes back is the same note: what names its number still means it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from nudge.core import limits
from nudge.core.errors import NotFound
from nudge.notes import archive, store
from nudge.notes.archive_ops import purge_deleted
from nudge.proposals import store as proposals
from nudge.storage import migrations
from nudge.storage.archive_migration import KEPT_WITH_ARCHIVE
from tests.unit.notes.stored import LIFETIMES, NOW, add
from tests.unit.service import Service as Application


class Service(Application):
    prefix = "nudge.memory_"


def remove(notes: sqlite3.Connection, *ids: int, reason: str = archive.DELETED) -> None:
    """One after the other, as several clicks do."""
    for note_id in ids:
        store.archive_notes(notes, [store.get(notes, note_id, NOW)], reason, NOW)


def tell(notes: sqlite3.Connection, note_id: int) -> None:
    notes.execute(
        "INSERT INTO told (session_id, timestamp, moment, kind, name, text, reason, uses, is_shadow, project)"
        " VALUES ('s', 1, 'prompt', 'note', ?, 'text', '', '[]', 0, '')",
        (f"m{note_id}",),
    )


def told(notes: sqlite3.Connection) -> list[str]:
    return [name for (name,) in notes.execute("SELECT name FROM told ORDER BY name")]


def test_it_has_its_number_again(notes: sqlite3.Connection) -> None:
    """With its text, tags, files and times, also after others were stored meanwhile."""
    one = add(notes, "one", "text", tags=("t",), tier="short", metadata={"files": ["a.py"]})
    remove(notes, one.id)
    other = add(notes, "two")
    later = NOW + 30
    restored = archive.restore(notes, one.id, later, LIFETIMES)
    assert restored == one and other.id != one.id
    files = notes.execute("SELECT path FROM note_files WHERE note_id = ?", (one.id,)).fetchall()
    assert files == [("a.py",)]


def test_links_between_several_come_back(notes: sqlite3.Connection) -> None:
    """In whatever order they went and come; those to notes that stayed, too."""
    one, two, stays = (add(notes, title).id for title in ("one", "two", "stays"))
    store.link(notes, one, two, "derived_from", NOW)
    store.link(notes, two, stays, "related_to", NOW)
    before = store.link_rows(notes, two)
    for back in ((one, two), (two, one)):
        remove(notes, one, two)
        assert store.link_rows(notes, stays) == []
        for note_id in back:
            archive.restore(notes, note_id, NOW, LIFETIMES)
        assert store.link_rows(notes, two) == before


def test_told_lines_and_proposals_wait_for_it(notes: sqlite3.Connection) -> None:
    """They are kept with an archived note, hidden where they could not be decided, and go when it goes for good."""
    one, two = add(notes, "one").id, add(notes, "two").id
    tell(notes, one)
    proposals.propose(notes, proposals.CONTRADICTION, (one, two), {}, "model", NOW)
    for reason in (archive.DELETED, "forgotten"):
        remove(notes, one, reason=reason)
        assert told(notes) == [f"m{one}"]
        assert proposals.find(notes, (), limit=5) == []
        archive.restore(notes, one, NOW, LIFETIMES)
        assert told(notes) == [f"m{one}"]
        assert [proposal.notes for proposal in proposals.find(notes, (), limit=5)] == [(one, two)]
    remove(notes, one)
    assert archive.purge(notes) == 1
    assert told(notes) == []
    assert notes.execute("SELECT count(*) FROM proposals").fetchone() == (0,)


def test_a_deletion_for_good_leaves_nothing(notes: sqlite3.Connection) -> None:
    one = add(notes, "one").id
    tell(notes, one)
    store.delete(notes, one, NOW)
    assert told(notes) == []
    with pytest.raises(NotFound):
        archive.restore(notes, one, NOW, LIFETIMES)


def test_an_earlier_database_keeps_them_from_now_on() -> None:
    """The migration changes the triggers of a file that has notes and lines."""
    at = migrations.MIGRATIONS.index(KEPT_WITH_ARCHIVE)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        migrations.migrate(connection, migrations.MIGRATIONS[:at])
        one = add(connection, "one").id
        tell(connection, one)
        migrations.migrate(connection)
        remove(connection, one)
        assert told(connection) == [f"m{one}"]


def test_a_deletion_can_be_undone_for_a_minute(service: Service) -> None:
    """Through the operations: the note is gone at once, is restored under its number, and is gone for good after."""
    stored = service("store", title="Zebra", content="stripes")["id"]
    before = service("get", id=stored)["memory"]
    assert service("delete", id=stored, undoable=True) == {"deleted": True, "id": stored}
    with pytest.raises(NotFound):
        service("get", id=stored)
    assert service("list")["count"] == 0
    assert service("archive_restore", id=stored)["memory"] == before
    service("delete", id=stored, undoable=True)
    forgotten = service("store", title="Okapi", content="stripes")["id"]
    service("forget", ids=[forgotten])
    asyncio.run(purge_deleted(service.app))
    assert service("archive_stats")["count"] == 2  # not a minute has passed
    service.ahead = limits.UNDO_KEPT + 1
    asyncio.run(purge_deleted(service.app))
    assert [(row["id"], row["archive_reason"]) for row in service("archive_list")["memories"]] == [
        (forgotten, "forgotten")
    ]


def test_without_asking_nothing_is_kept(service: Service) -> None:
    stored = service("store", title="Zebra", content="stripes")["id"]
    service("delete", id=stored)
    assert service("archive_stats")["count"] == 0
