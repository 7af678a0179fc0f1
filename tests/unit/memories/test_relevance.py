"""Which notes a prompt is about."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from nudge.memories import store
from nudge.memories.note import Draft, Lifetimes
from nudge.memories.relevance import relevant_notes, subject_words
from nudge.memories.store import NoteFilter
from nudge.storage import migrations

NOW = 1_800_000_000.0


@pytest.fixture
def notes() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection)
    for title, content, namespace in (
        ("Sessions live in Redis, not in Postgres", "Postgres was tried and vacuum could not keep up.", "acme/api"),
        ("Money is stored in cents", "Amounts are integer cents; floats lost a cent in the invoices.", "acme/api"),
        ("Sessions live in Redis in the shop too", "Session tokens are kept there.", "acme/shop"),
    ):
        draft = Draft(title=title, content=content, namespace=namespace, kind="decision")
        store.store(connection, draft, NOW, Lifetimes())
    yield connection
    connection.close()


def _titles(notes: sqlite3.Connection, prompt: str, namespace: str = "acme/api") -> list[str]:
    found = relevant_notes(notes, prompt, NoteFilter(namespaces=(namespace,)), 3, NOW + 1)
    return [one.note.draft.title for one in found]


@pytest.mark.parametrize(
    "prompt",
    [
        "let's move the sessions into postgres so that we can drop redis",
        "please move the session storage to Redis",
        "The deploy went well yesterday evening, thanks a lot.\nShould the sessions still live in redis or postgres?",
    ],
    ids=["whole", "an order", "one sentence of it"],
)
def test_a_prompt_about_a_decision_finds_it(notes: sqlite3.Connection, prompt: str) -> None:
    """By its rare words, also in a store of a few notes, and only in the namespace that is asked for."""
    assert _titles(notes, prompt) == ["Sessions live in Redis, not in Postgres"]


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "?!",
        "yes please",
        "can you do that again?",
        "run the tests",
        "redis",
        "add a page with the opening hours of the shop in Redis Street, with a map, photographs and a contact form",
    ],
)
def test_a_prompt_about_something_else_finds_nothing(notes: sqlite3.Connection, prompt: str) -> None:
    """One shared word, or a few of many, is not enough; small talk has no words that count."""
    assert _titles(notes, prompt) == []


def test_subject_words_are_what_a_prompt_is_about() -> None:
    """Neither the words in which something is asked nor small numbers count."""
    assert subject_words("Could you please fix the 2 flaky tests of the scheduler in 2031?") == (
        "flaky",
        "tests",
        "scheduler",
        "2031",
    )


def test_a_note_that_was_superseded_is_not_told(notes: sqlite3.Connection) -> None:
    """The note that holds now takes its place, whatever its own words are; of two decisions the later one counts."""
    prompt = "let's move the sessions into postgres so that we can drop redis"
    draft = Draft(title="All state is in SQLite", content="One writer is enough.", namespace="acme/api")
    winner = store.store(notes, draft, NOW, Lifetimes())[0].id
    store.resolve(notes, winner, 1, NOW, Lifetimes())
    where = NoteFilter(namespaces=("acme/api",))
    (told,) = relevant_notes(notes, prompt, where, 3, NOW + 1)
    assert (told.note.id, told.supersedes and told.supersedes.id) == (winner, 1)
    store.resolve(notes, 1, winner, NOW + 2, Lifetimes())
    (told,) = relevant_notes(notes, prompt, where, 3, NOW + 3)
    assert (told.note.id, told.supersedes) == (1, None)
    store.resolve(notes, 2, 1, NOW + 4, Lifetimes())
    store.update(notes, 2, {"namespace": "elsewhere"}, NOW + 4, Lifetimes())
    assert relevant_notes(notes, prompt, where, 3, NOW + 5) == []
