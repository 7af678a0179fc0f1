"""Which notes a query finds first, and which notes a prompt is about."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nudge.core.errors import Invalid
from nudge.notes import ranking, store
from nudge.notes.store import NoteFilter
from nudge.storage import migrations
from tests.unit.notes.stored import LIFETIMES, NOW, add


def titles(matches: list[ranking.Match]) -> list[str]:
    return [match.note.draft.title for match in matches]


def test_search_needs_all_words_and_recall_any(notes: sqlite3.Connection) -> None:
    """Words are stemmed; query syntax is only words."""
    add(notes, "Migrations", "We migrated the database with alembic.")
    add(notes, "Caching", "Redis caches sessions.")
    assert titles(ranking.search(notes, "database migration", NoteFilter(), 10, NOW)) == ["Migrations"]
    assert ranking.search(notes, "database redis", NoteFilter(), 10, NOW) == []
    assert set(titles(ranking.recall(notes, "which database and cache?", NoteFilter(), 10, NOW))) == {
        "Migrations",
        "Caching",
    }
    assert titles(ranking.recall(notes, 'NEAR("redis" OR *) AND -sessions:^', NoteFilter(), 10, NOW)) == ["Caching"]
    with pytest.raises(Invalid):
        ranking.recall(notes, "?!", NoteFilter(), 10, NOW)


def test_the_filters(notes: sqlite3.Connection) -> None:
    """Namespace, tier, kind, tags, time and priority narrow what is found."""
    add(notes, "one", "word", namespace="a", tier="long", kind="decision", tags=("x", "y"), priority=9)
    add(notes, "two", "word", namespace="b", now=NOW + 100)
    for where in (
        *(NoteFilter(namespaces=("a",)), NoteFilter(tier="long"), NoteFilter(kind="decision"), NoteFilter(tags=("y",))),
        *(NoteFilter(min_priority=6), NoteFilter(until=NOW + 50)),
    ):
        assert titles(ranking.recall(notes, "word", where, 10, NOW)) == ["one"], where
        assert [note.draft.title for note in store.list_notes(notes, where, 10, NOW)] == ["one"]
    assert titles(ranking.recall(notes, "word", NoteFilter(since=NOW + 50), 10, NOW)) == ["two"]


def test_the_text_decides_and_the_rest_only_between_equals(notes: sqlite3.Connection) -> None:
    """A note of the highest priority and tier does not come before a plainly better match."""
    add(notes, "Weak", "the deployment of other things takes long words", tier="long", priority=10)
    add(notes, "Strong", "deployment deployment rollback rollback", tier="short", priority=1)
    assert titles(ranking.recall(notes, "deployment rollback", NoteFilter(), 10, NOW))[0] == "Strong"
    add(notes, "Twin A", "identical words", priority=2)
    add(notes, "Twin B", "identical words", priority=9)
    assert titles(ranking.recall(notes, "identical", NoteFilter(), 10, NOW)) == ["Twin B", "Twin A"]


def test_similar_titles_are_reported(notes: sqlite3.Connection) -> None:
    """Those that say the same, or something else, of one subject; in the same namespace."""
    known = add(notes, "Deploy with docker compose")
    add(notes, "Deploy with docker compose", namespace="other")
    assert ranking.similar_titles(notes, add(notes, "How to deploy with docker compose"), NOW) == [known.id]
    assert ranking.similar_titles(notes, add(notes, "Deploy by hand"), NOW) == []


def test_similar_titles_are_found_among_many_with_the_same_words(notes: sqlite3.Connection) -> None:
    """In its namespace."""
    known = add(notes, "Deploy with docker compose")
    add(notes, "Deploy with docker compose", namespace="elsewhere")
    for number in range(20):
        add(notes, f"Deploy number {number}")
        add(notes, f"Docker image {number}")
    assert ranking.similar_titles(notes, add(notes, "How to deploy with docker compose"), NOW) == [known.id]


@pytest.mark.parametrize(("pairs", "missed"), [("title_pairs.txt", 2), ("title_pairs_unseen.txt", 1)])
def test_titles_that_contradict_each_other_are_told_from_those_that_look_alike(pairs: str, missed: int) -> None:
    """Whichever of two notes is stored first. All that is reported contradicts, and nearly all that contradicts is
    reported."""
    text = (Path(__file__).parent / pairs).read_text()
    contradicting, alike = (
        [tuple(line.split(" | ")) for line in part.strip().splitlines()[1:]] for part in text.split("[")[1:]
    )
    for order in (1, -1):
        assert not [pair for pair in alike if _is_reported(*pair[::order])]
        assert sum(_is_reported(*pair[::order]) for pair in contradicting) >= len(contradicting) - missed


def _is_reported(first: str, second: str) -> bool:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection)
        known, new = add(connection, first), add(connection, second)
        return ranking.similar_titles(connection, new, NOW) == [known.id]


def test_a_resolved_note_ranks_below_the_one_that_won(notes: sqlite3.Connection) -> None:
    """Even where its text matches better."""
    loser = add(notes, "Router state is kept in Redis", "The router state router state is in Redis.")
    winner = add(notes, "Where the router keeps what it knows", "Its state is in SQLite since one writer is enough.")
    query = "router state"
    assert [match.note.id for match in ranking.recall(notes, query, NoteFilter(), 5, NOW)] == [loser.id, winner.id]
    store.resolve(notes, winner.id, loser.id, NOW, LIFETIMES)
    assert [match.note.id for match in ranking.recall(notes, query, NoteFilter(), 5, NOW)] == [winner.id, loser.id]
    assert [match.note.id for match in ranking.recall(notes, query, NoteFilter(), 1, NOW)] == [winner.id]
