"""Notes in SQLite: upsert, touching, links."""

from __future__ import annotations

import sqlite3

import pytest

from nudge.core.errors import Conflict, Invalid, NotFound
from nudge.notes import store
from nudge.notes.fields import Draft
from tests.unit.notes.stored import LIFETIMES, NOW, add


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


def test_a_link_can_be_deleted(notes: sqlite3.Connection) -> None:
    """In its direction, of one relation or of all; one that does not exist is not found."""
    one, two = add(notes, "one").id, add(notes, "two").id
    for relation in ("supersedes", "contradicts", "derived_from"):
        store.link(notes, one, two, relation, NOW)
    store.link(notes, two, one, "related_to", NOW)
    assert store.delete_links(notes, one, two, "contradicts", NOW) == 1
    assert store.delete_links(notes, one, two, None, NOW) == 2
    assert [link["relation"] for link in store.links_of(notes, one)] == ["related_to"]
    for relation_of, pair in ((None, (one, two)), ("supersedes", (two, one)), (None, (one, 99))):
        with pytest.raises(NotFound):
            store.delete_links(notes, *pair, relation_of, NOW)


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
