"""Notes in SQLite: upsert, recall, touching, links."""

from __future__ import annotations

import sqlite3

import pytest

from nudge.errors import Conflict, Invalid, NotFound
from nudge.memories import retrieval, store
from nudge.memories.note import Draft
from nudge.memories.store import NoteFilter
from tests.unit.memories.stored import LIFETIMES, NOW, add


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
    assert titles(store.search(notes, "database migration", NoteFilter(), 10, NOW)) == ["Migrations"]
    assert store.search(notes, "database redis", NoteFilter(), 10, NOW) == []
    assert set(titles(store.recall(notes, "which database and cache?", NoteFilter(), 10, NOW))) == {
        "Migrations",
        "Caching",
    }
    assert titles(store.recall(notes, 'NEAR("redis" OR *) AND -sessions:^', NoteFilter(), 10, NOW)) == ["Caching"]
    with pytest.raises(Invalid):
        store.recall(notes, "?!", NoteFilter(), 10, NOW)


def test_the_filters(notes: sqlite3.Connection) -> None:
    """Namespace, tier, kind, tags, time and priority narrow what is found."""
    add(notes, "one", "word", namespace="a", tier="long", kind="decision", tags=("x", "y"), priority=9)
    add(notes, "two", "word", namespace="b", now=NOW + 100)
    for where in (
        *(NoteFilter(namespaces=("a",)), NoteFilter(tier="long"), NoteFilter(kind="decision"), NoteFilter(tags=("y",))),
        *(NoteFilter(min_priority=6), NoteFilter(until=NOW + 50)),
    ):
        assert titles(store.recall(notes, "word", where, 10, NOW)) == ["one"], where
        assert [note.draft.title for note in store.list_notes(notes, where, 10, NOW)] == ["one"]
    assert titles(store.recall(notes, "word", NoteFilter(since=NOW + 50), 10, NOW)) == ["two"]


def test_the_text_decides_and_the_rest_only_between_equals(notes: sqlite3.Connection) -> None:
    """A note of the highest priority and tier does not come before a plainly better match."""
    add(notes, "Weak", "the deployment of other things takes long words", tier="long", priority=10)
    add(notes, "Strong", "deployment deployment rollback rollback", tier="short", priority=1)
    assert titles(store.recall(notes, "deployment rollback", NoteFilter(), 10, NOW))[0] == "Strong"
    add(notes, "Twin A", "identical words", priority=2)
    add(notes, "Twin B", "identical words", priority=9)
    assert titles(store.recall(notes, "identical", NoteFilter(), 10, NOW)) == ["Twin B", "Twin A"]


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


@pytest.mark.parametrize("frequent", [2, 10_000])
def test_similar_titles_are_found_among_many_with_the_same_words(
    notes: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, frequent: int
) -> None:
    """In its namespace, whether its words are rare in titles or frequent ones."""
    monkeypatch.setattr(retrieval, "_FREQUENT_IN_TITLES", frequent)
    known = add(notes, "Deploy with docker compose")
    add(notes, "Deploy with docker compose", namespace="elsewhere")
    for number in range(20):
        add(notes, f"Deploy number {number}")
        add(notes, f"Docker image {number}")
    assert store.similar_titles(notes, add(notes, "How to deploy with docker compose"), NOW) == [known.id]


def test_a_resolved_note_ranks_below_the_one_that_won(notes: sqlite3.Connection) -> None:
    """Even where its text matches better."""
    loser = add(notes, "Router state is kept in Redis", "The router state router state is in Redis.")
    winner = add(notes, "Where the router keeps what it knows", "Its state is in SQLite since one writer is enough.")
    query = "router state"
    assert [match.note.id for match in store.recall(notes, query, NoteFilter(), 5, NOW)] == [loser.id, winner.id]
    store.resolve(notes, winner.id, loser.id, NOW, LIFETIMES)
    assert [match.note.id for match in store.recall(notes, query, NoteFilter(), 5, NOW)] == [winner.id, loser.id]
    assert [match.note.id for match in store.recall(notes, query, NoteFilter(), 1, NOW)] == [winner.id]
