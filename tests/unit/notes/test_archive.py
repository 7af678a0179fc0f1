"""What leaves the store and comes back: expiry, forgetting, consolidation."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from nudge.core.errors import Conflict, NotFound
from nudge.notes import archive, ranking, store
from nudge.notes.fields import PASSING_KINDS, Draft
from nudge.notes.store import NoteFilter
from nudge.storage import migrations
from tests.unit.notes.stored import LIFETIMES, NOW, add, insert_row


def test_what_expires_or_is_forgotten_is_archived_and_comes_back(notes: sqlite3.Connection) -> None:
    """Restored with its tier and a fresh expiry, so that the next sweep does not take it again."""
    note = add(notes, "gone", "fleeting", tier="short", tags=("t",))
    later = NOW + 30_000
    assert archive.sweep(notes, later) == 1 and archive.sweep(notes, later) == 0
    assert [(row["title"], row["archive_reason"]) for row in archive.list_archived(notes, 10)] == [("gone", "gc")]
    restored = archive.restore(notes, note.id, later, LIFETIMES)
    assert restored.draft == note.draft and restored.expires_at == later + 21_600
    assert archive.sweep(notes, later) == 0 and archive.list_archived(notes, 10) == []
    assert len(archive.forget(notes, NoteFilter(), "fleeting", later, dry_run=True)) == 1
    assert len(archive.forget(notes, NoteFilter(namespaces=("global",)), "fleeting", later)) == 1
    assert archive.stats(notes)["by_reason"] == [{"reason": "forgotten", "count": 1}]
    assert archive.purge(notes) == 1


def test_consolidation_keeps_tags_and_the_highest_priority(notes: sqlite3.Connection) -> None:
    """One note in place of several; the originals are in the archive."""
    ids = [add(notes, f"part {n}", tags=(f"t{n}",), priority=n).id for n in (2, 7)]
    whole = archive.consolidate(notes, ids, Draft(title="Whole", content="all", tier="long"), NOW, LIFETIMES)
    assert (whole.draft.tags, whole.draft.priority) == (("t2", "t7"), 7)
    assert {row["title"] for row in archive.list_archived(notes, 10)} == {"part 2", "part 7"}
    with pytest.raises(NotFound):
        archive.consolidate(notes, [whole.id, 99], Draft(title="x", content="y"), NOW, LIFETIMES)


def test_an_expired_note_is_gone_at_once(notes: sqlite3.Connection) -> None:
    """Before the sweep it is found by nothing, and a new note may have its title; the old one is in the archive."""
    old = add(notes, "fleeting", "word", tier="short")
    later = NOW + 30_000
    assert (
        ranking.recall(notes, "word", NoteFilter(), 10, later) == [] == store.list_notes(notes, NoteFilter(), 10, later)
    )
    with pytest.raises(NotFound):
        store.get(notes, old.id, later)
    new, previous = store.store(notes, Draft(title="fleeting", content="again"), later, LIFETIMES)
    assert previous is None and new.id != old.id
    assert [row["id"] for row in archive.list_archived(notes, 10)] == [old.id]
    with pytest.raises(Conflict):
        archive.restore(notes, old.id, later, LIFETIMES)


def test_links_come_back_with_a_note(notes: sqlite3.Connection) -> None:
    """Both ends may have been archived; the link is there again when both are."""
    one, two = add(notes, "one", "word"), add(notes, "two", "word")
    store.link(notes, one.id, two.id, "derived_from", NOW)
    archive.forget(notes, NoteFilter(), "word", NOW)
    archive.restore(notes, one.id, NOW, LIFETIMES)
    assert store.links_of(notes, one.id) == []
    archive.restore(notes, two.id, NOW, LIFETIMES)
    assert [link["relation"] for link in store.links_of(notes, one.id)] == ["derived_from"]


def test_consolidation_moves_links_and_takes_no_other_title(notes: sqlite3.Connection) -> None:
    """Links between the parts go, links to others become links of the whole."""
    one, two, other = add(notes, "one"), add(notes, "two"), add(notes, "other")
    store.link(notes, one.id, two.id, "related_to", NOW)
    store.link(notes, other.id, two.id, "supersedes", NOW)
    with pytest.raises(Conflict):
        archive.consolidate(notes, [one.id, two.id], Draft(title="other", content="x"), NOW, LIFETIMES)
    whole = archive.consolidate(notes, [one.id, two.id], Draft(title="one", content="both"), NOW, LIFETIMES)
    links = [(link["source_id"], link["target_id"]) for link in store.links_of(notes, whole.id)]
    assert links == [(other.id, whole.id)]


def test_groups_share_a_namespace_and_their_first_tag(notes: sqlite3.Connection) -> None:
    """Only as many together as fit into one note, and none below the least number."""
    for number in range(3):
        add(notes, f"db {number}", tags=("db", "x"))
        add(notes, f"large {number}", "x" * 40_000, tags=("large",))
    add(notes, "elsewhere", namespace="b", tags=("db",))
    add(notes, "untagged")
    (group,) = archive.groups(notes, NoteFilter(), 2, NOW)
    assert group[:2] == ("global", "db") and [note.draft.title for note in group[2]] == ["db 0", "db 1", "db 2"]
    draft = archive.consolidated_draft(*group, NOW)
    assert all(f"## db {number}\ntext" in draft.content for number in range(3))
    assert (draft.tier, draft.source, draft.namespace) == ("long", "consolidation", "global")


def test_decisions_of_before_are_kept_for_good() -> None:
    """The migration makes live `mid` notes of the kinds that are kept `long`; others stay as they are."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as old:
        migrations.migrate(old, migrations.MIGRATIONS[: migrations.MIGRATIONS.index(migrations._KEPT_KINDS)])
        now = time.time()
        for kind in ("decision", "bugfix", "feature", "refactor", "discovery", "lesson", *PASSING_KINDS):
            insert_row(old, kind, now=now, kind=kind)
        insert_row(old, "today", now=now, kind="decision", tier="short")
        expired = insert_row(old, "expired", now=now - 8 * 86_400, kind="decision")
        before = {row[0]: row for row in old.execute("SELECT * FROM notes")}
        migrations.migrate(old)
        kept = old.execute("SELECT title FROM notes WHERE tier = 'long' AND expires_at IS NULL ORDER BY id").fetchall()
        assert [row[0] for row in kept] == ["decision", "bugfix", "feature", "refactor", "discovery", "lesson"]
        others = old.execute("SELECT * FROM notes WHERE tier <> 'long'").fetchall()
        assert len(others) == 5 and all(row == before[row[0]] for row in others)
        assert archive.sweep(old, now) == 1 and archive.list_archived(old, 9)[0]["id"] == expired
