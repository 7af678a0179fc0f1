"""Notes in SQLite: upsert, recall, links, namespaces, archive."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from nudge.errors import Conflict, Invalid, NotFound
from nudge.memories import archive, store
from nudge.memories.note import Draft, Lifetimes, Note
from nudge.memories.store import Filter
from nudge.storage import migrations

NOW = 1_800_000_000.0
LIFETIMES = Lifetimes()


@pytest.fixture
def notes() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        migrations.migrate(connection)
        yield connection


def add(notes: sqlite3.Connection, title: str, content: str = "text", now: float = NOW, **fields: Any) -> Note:
    return store.store(notes, Draft(title=title, content=content, **fields), now, LIFETIMES)[0]


def titles(matches: list[store.Match]) -> list[str]:
    return [match.note.draft.title for match in matches]


def test_the_same_title_in_a_namespace_is_the_same_note(notes: sqlite3.Connection) -> None:
    """An update never lowers the tier, keeps the higher priority, replaces the rest and returns what was there."""
    first = add(notes, "Database", "PostgreSQL", tier="long", priority=8, tags=("db",))
    second, previous = store.store(
        notes, Draft(title="Database", content="SQLite", tier="short", priority=3), NOW + 5, LIFETIMES
    )
    assert previous == first and second.id == first.id
    assert (second.draft.content, second.draft.tier, second.draft.priority, second.draft.tags) == (
        "SQLite",
        "long",
        8,
        (),
    )
    assert add(notes, "Database", namespace="other").id != first.id


def test_a_tier_has_its_lifetime(notes: sqlite3.Connection) -> None:
    """Six hours, seven days, for good; an expiry of its own wins."""
    expiries = {tier: add(notes, tier, tier=tier).expires_at for tier in ("short", "mid", "long")}
    assert expiries == {"short": NOW + 21_600, "mid": NOW + 604_800, "long": None}
    assert add(notes, "own", expires_at=NOW + 60).expires_at == NOW + 60


def test_search_needs_all_words_and_recall_any(notes: sqlite3.Connection) -> None:
    """Words are stemmed; query syntax is only words."""
    add(notes, "Migrations", "We migrated the database with alembic.")
    add(notes, "Caching", "Redis caches sessions.")
    assert titles(store.search(notes, "database migration", Filter(), 10, NOW)) == ["Migrations"]
    assert store.search(notes, "database redis", Filter(), 10, NOW) == []
    assert set(titles(store.recall(notes, "which database and cache?", Filter(), 10, NOW))) == {"Migrations", "Caching"}
    assert titles(store.recall(notes, 'NEAR("redis" OR *) AND -sessions:^', Filter(), 10, NOW)) == ["Caching"]
    with pytest.raises(Invalid):
        store.recall(notes, "?!", Filter(), 10, NOW)


def test_the_filters(notes: sqlite3.Connection) -> None:
    """Namespace, tier, kind, tags, time and priority narrow what is found."""
    add(notes, "one", "word", namespace="a", tier="long", kind="decision", tags=("x", "y"), priority=9)
    add(notes, "two", "word", namespace="b", now=NOW + 100)
    for where in (
        *(Filter(namespaces=("a",)), Filter(tier="long"), Filter(kind="decision"), Filter(tags=("y",))),
        *(Filter(min_priority=6), Filter(until=NOW + 50)),
    ):
        assert titles(store.recall(notes, "word", where, 10, NOW)) == ["one"], where
        assert [note.draft.title for note in store.listed(notes, where, 10, NOW)] == ["one"]
    assert titles(store.recall(notes, "word", Filter(since=NOW + 50), 10, NOW)) == ["two"]


def test_the_text_decides_and_the_rest_only_between_equals(notes: sqlite3.Connection) -> None:
    """A note of the highest priority and tier does not come before a plainly better match."""
    add(notes, "Weak", "the deployment of other things takes long words", tier="long", priority=10)
    add(notes, "Strong", "deployment deployment rollback rollback", tier="short", priority=1)
    assert titles(store.recall(notes, "deployment rollback", Filter(), 10, NOW))[0] == "Strong"
    add(notes, "Twin A", "identical words", priority=2)
    add(notes, "Twin B", "identical words", priority=9)
    assert titles(store.recall(notes, "identical", Filter(), 10, NOW)) == ["Twin B", "Twin A"]


def test_a_recall_extends_promotes_and_raises(notes: sqlite3.Connection) -> None:
    """The fifth recall makes a `mid` note `long`, every tenth raises its priority, each extends a life."""
    short, mid = add(notes, "short", tier="short"), add(notes, "mid", tier="mid")
    for _ in range(10):
        store.touch(notes, [short.id, mid.id], NOW, LIFETIMES)
    after_short, after_mid = store.get(notes, short.id, NOW), store.get(notes, mid.id, NOW)
    assert after_short.expires_at == NOW + 21_600 + 10 * 3_600 and after_short.draft.tier == "short"
    assert after_mid.draft.tier == "long" and after_mid.expires_at is None
    assert (after_mid.access_count, after_mid.draft.priority, after_mid.last_accessed_at) == (10, 6, NOW)


def test_links_go_with_their_notes(notes: sqlite3.Connection) -> None:
    """Four relations, no link to itself, none to a note that is not there; deleting a note deletes its links."""
    one, two = add(notes, "one"), add(notes, "two")
    store.link(notes, one.id, two.id, "supersedes", NOW)
    store.link(notes, one.id, two.id, "supersedes", NOW)
    assert [link["relation"] for link in store.links_of(notes, two.id)] == ["supersedes"]
    with pytest.raises(Invalid):
        store.link(notes, one.id, one.id, "related_to", NOW)
    with pytest.raises(NotFound):
        store.link(notes, one.id, 99, "related_to", NOW)
    store.delete(notes, one.id, NOW)
    assert store.links_of(notes, two.id) == []


def test_resolving_a_contradiction_demotes_the_loser(notes: sqlite3.Connection) -> None:
    """The winner supersedes it and is touched; the loser keeps priority 1 and confidence 0.1."""
    winner, loser = add(notes, "new"), add(notes, "old", priority=9)
    store.resolve(notes, winner.id, loser.id, NOW, LIFETIMES)
    demoted = store.get(notes, loser.id, NOW).draft
    assert (demoted.priority, demoted.confidence) == (1, 0.1)
    assert store.get(notes, winner.id, NOW).access_count == 1
    assert store.links_of(notes, winner.id)[0]["relation"] == "supersedes"


def test_what_expires_or_is_forgotten_is_archived_and_comes_back(notes: sqlite3.Connection) -> None:
    """Restored with its tier and a fresh expiry, so that the next sweep does not take it again."""
    note = add(notes, "gone", "fleeting", tier="short", tags=("t",))
    later = NOW + 30_000
    assert archive.sweep(notes, later) == 1 and archive.sweep(notes, later) == 0
    assert [(row["title"], row["archive_reason"]) for row in archive.archived(notes, 10)] == [("gone", "gc")]
    restored = archive.restore(notes, note.id, later, LIFETIMES)
    assert restored.draft == note.draft and restored.expires_at == later + 21_600
    assert archive.sweep(notes, later) == 0 and archive.archived(notes, 10) == []
    assert len(archive.forget(notes, Filter(), "fleeting", later, dry_run=True)) == 1
    assert len(archive.forget(notes, Filter(namespaces=("global",)), "fleeting", later)) == 1
    assert archive.stats(notes)["by_reason"] == [{"reason": "forgotten", "count": 1}]
    assert archive.purge(notes) == 1


def test_consolidation_keeps_tags_and_the_highest_priority(notes: sqlite3.Connection) -> None:
    """One note in place of several; the originals are in the archive."""
    ids = [add(notes, f"part {n}", tags=(f"t{n}",), priority=n).id for n in (2, 7)]
    whole = archive.consolidate(notes, ids, Draft(title="Whole", content="all", tier="long"), NOW, LIFETIMES)
    assert (whole.draft.tags, whole.draft.priority) == (("t2", "t7"), 7)
    assert {row["title"] for row in archive.archived(notes, 10)} == {"part 2", "part 7"}
    with pytest.raises(NotFound):
        archive.consolidate(notes, [whole.id, 99], Draft(title="x", content="y"), NOW, LIFETIMES)


def test_a_title_that_is_taken_is_a_conflict(notes: sqlite3.Connection) -> None:
    """An update or a restore never overwrites another note."""
    add(notes, "one")
    two = add(notes, "two")
    with pytest.raises(Conflict):
        store.update(notes, two.id, {"title": "one"}, NOW, LIFETIMES)
    assert store.update(notes, two.id, {"title": "three", "tier": "long"}, NOW, LIFETIMES).expires_at is None


def test_similar_titles_are_reported(notes: sqlite3.Connection) -> None:
    """Most of the words in common, in the same namespace."""
    known = add(notes, "Deploy with docker compose")
    add(notes, "Deploy with docker compose", namespace="other")
    assert store.similar_titles(notes, add(notes, "How to deploy with docker compose"), NOW) == [known.id]
    assert store.similar_titles(notes, add(notes, "Deploy by hand"), NOW) == []


def test_an_expired_note_is_gone_at_once(notes: sqlite3.Connection) -> None:
    """Before the sweep it is found by nothing, and a new note may have its title; the old one is in the archive."""
    old = add(notes, "fleeting", "word", tier="short")
    later = NOW + 30_000
    assert store.recall(notes, "word", Filter(), 10, later) == [] == store.listed(notes, Filter(), 10, later)
    with pytest.raises(NotFound):
        store.get(notes, old.id, later)
    new, previous = store.store(notes, Draft(title="fleeting", content="again"), later, LIFETIMES)
    assert previous is None and new.id != old.id
    assert [row["id"] for row in archive.archived(notes, 10)] == [old.id]
    with pytest.raises(Conflict):
        archive.restore(notes, old.id, later, LIFETIMES)


def test_links_come_back_with_a_note(notes: sqlite3.Connection) -> None:
    """Both ends may have been archived; the link is there again when both are."""
    one, two = add(notes, "one", "word"), add(notes, "two", "word")
    store.link(notes, one.id, two.id, "derived_from", NOW)
    archive.forget(notes, Filter(), "word", NOW)
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
    (group,) = archive.groups(notes, Filter(), 2, NOW)
    assert group[:2] == ("global", "db") and [note.draft.title for note in group[2]] == ["db 0", "db 1", "db 2"]
    draft = archive.consolidated_draft(*group, NOW)
    assert all(f"## db {number}\ntext" in draft.content for number in range(3))
    assert (draft.tier, draft.source, draft.namespace) == ("long", "consolidation", "global")


def test_a_short_name_is_a_namespace_while_it_is_unambiguous(notes: sqlite3.Connection) -> None:
    """The namespace of that very name comes first; of two repos with one name the error names both."""
    add(notes, "one", namespace="github.com/acme/api")
    assert store.find_namespace(notes, "API") == "github.com/acme/api" == store.find_namespace(notes, "acme/api")
    assert store.find_namespace(notes, "web") == "web"
    add(notes, "two", namespace="gitlab.com/other/api")
    with pytest.raises(Invalid) as refused:
        store.find_namespace(notes, "api")
    assert "github.com/acme/api, gitlab.com/other/api" in refused.value.message
    add(notes, "three", namespace="api")
    assert store.find_namespace(notes, "api") == "api"


def test_private_namespaces_are_hidden(notes: sqlite3.Connection) -> None:
    """By the names of private projects, but for where the caller is or what it names."""
    for namespace in ("github.com/acme/api", "github.com/acme/secret", "secret"):
        add(notes, "note", "word", namespace=namespace)
    hidden = store.private_namespaces(notes, ["secret"], None)
    assert hidden == ("github.com/acme/secret", "secret")
    assert store.private_namespaces(notes, ["secret"], "secret") == ("github.com/acme/secret",)
    matches = store.recall(notes, "word", Filter(hidden=hidden), 10, NOW)
    assert [match.note.draft.namespace for match in matches] == ["github.com/acme/api"]
    assert store.namespace_counts(notes, NOW, hidden) == [{"namespace": "github.com/acme/api", "count": 1}]
