"""Which note a prompt is about, and what of it is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from nudge.core import limits
from nudge.core.words import stem
from nudge.notes import store
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes
from nudge.notes.store import NoteFilter
from nudge.storage import migrations
from nudge.telling.common_words import weight_of
from nudge.telling.prompt import Text, parse_prompt, relevance, search_words
from nudge.telling.prompt_notes import deciding_text, lines_about, relevant_notes
from tests.unit.notes.stored import LIFETIMES, NOW


@pytest.fixture
def decisions() -> Iterator[sqlite3.Connection]:
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


def titles_about(decisions: sqlite3.Connection, prompt: str, namespace: str = "acme/api") -> list[str]:
    found = relevant_notes(decisions, prompt, NoteFilter(namespaces=(namespace,)), None, NOW + 1)
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
def test_a_prompt_about_a_decision_finds_it(decisions: sqlite3.Connection, prompt: str) -> None:
    """By its rare words, also in a store of a few notes, and only in the namespace that is asked for."""
    assert titles_about(decisions, prompt) == ["Sessions live in Redis, not in Postgres"]


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
def test_a_prompt_about_something_else_finds_nothing(decisions: sqlite3.Connection, prompt: str) -> None:
    """One shared word, or a few of many, is not enough; small talk has no words that count."""
    assert titles_about(decisions, prompt) == []


def test_a_note_that_was_superseded_is_not_told(decisions: sqlite3.Connection) -> None:
    """The note that holds now takes its place, whatever its own words are; of two decisions the later one counts."""
    prompt = "let's move the sessions into postgres so that we can drop redis"
    draft = Draft(title="All state is in SQLite", content="One writer is enough.", namespace="acme/api")
    winner = store.store(decisions, draft, NOW, Lifetimes())[0].id
    store.resolve(decisions, winner, 1, NOW, Lifetimes())
    where = NoteFilter(namespaces=("acme/api",))
    (told,) = relevant_notes(decisions, prompt, where, None, NOW + 1)
    assert (told.note.id, told.supersedes and told.supersedes.id) == (winner, 1)
    store.resolve(decisions, 1, winner, NOW + 2, Lifetimes())
    (told,) = relevant_notes(decisions, prompt, where, None, NOW + 3)
    assert (told.note.id, told.supersedes) == (1, None)
    store.resolve(decisions, 2, 1, NOW + 4, Lifetimes())
    store.update(decisions, 2, {"namespace": "elsewhere"}, NOW + 4, Lifetimes())
    assert relevant_notes(decisions, prompt, where, None, NOW + 5) == []


@pytest.mark.parametrize(
    ("prompt", "title", "passage"),
    [
        (
            "let's upgrade to node 22",
            "Node 20 until the image is rebuilt",
            "Do not go to node 22: sharp has no binary.",
        ),
        ("backport it to release/2.8, the parser too", "release/2.8 is closed", "No backports of the parser."),
        ("why is retry_budget so low?", "retry_budget is 3", "More retries kept a failing upstream down."),
        ("Should money be a float?", "Money is in cents", "Floats lost a cent in the invoices."),
    ],
)
def test_names_and_rare_words_that_stand_together_say_what_a_prompt_is_about(
    prompt: str, title: str, passage: str
) -> None:
    """A word with its number, a branch, an identifier; two words that few prompts have."""
    assert relevance(parse_prompt(prompt), Text(title, passage)) is not None


@pytest.mark.parametrize(
    ("prompt", "title", "passage"),
    [
        ("rename the variable tmp in src/server.ts", "The server logs JSON", "src/server.ts sets it up."),
        ("add a test for this function please", "Tests need the database", "Add a fixture for each test."),
        ("thanks, that works", "Work in progress is committed as wip", "Thanks to the hook."),
    ],
)
def test_common_words_and_paths_do_not(prompt: str, title: str, passage: str) -> None:
    """What was decided about a file is told when the file is opened."""
    assert relevance(parse_prompt(prompt), Text(title, passage)) is None


def test_a_long_note_needs_more_in_common() -> None:
    """It has any two words somewhere; a passage must have them together, and the more passages, the more words."""
    parts = parse_prompt("does the parser keep comments in yaml?")
    assert relevance(parts, Text("Minutes", "The yaml parser drops comments.")) is not None
    elsewhere = "Something else entirely. " * 2_000
    scattered = f"A parser was written. {elsewhere} Comments were read. {elsewhere} It is in yaml."
    assert relevance(parts, Text("Minutes", scattered)) is None


def test_the_parts_of_names_and_units_are_words() -> None:
    """As they are written in code; the order of two words beside each other does not matter."""
    parts = parse_prompt("raise the pack size to 128MiB in SnapshotEncoder")
    assert relevance(parts, Text("Packs are 64 MiB", "Requests cost.")) is not None
    encoder = Text("No allocation in the snapshot path", "GC pauses.", ["src/Net/SnapshotEncoder.cs"])
    assert relevance(parts, encoder) is not None
    assert relevance(parse_prompt("rename token x"), Text("Semver", "Token renames are major.")) is not None
    assert {"snapshot", "encoder", "snapshotencoder", "mib"} <= set(
        search_words(parts, "128MiB SnapshotEncoder").split()
    )


def test_a_record_needs_the_names_in_the_prompt() -> None:
    """A decision is told to whoever is about to do something else than it says; what only records that something
    happened is told when it has what was asked for."""
    parts = parse_prompt("let's plan a camping trip to Denver")
    camping = ("Camping trip in the mountains", "Bring a tent.")
    assert relevance(parts, Text(*camping)) is not None
    assert relevance(parts, Text(*camping, is_record=True)) is None
    assert relevance(parts, Text(*camping[:1], "Near Denver, with a tent.", is_record=True)) is not None


def test_one_sentence_of_a_long_prompt_needs_more() -> None:
    """A pasted report has some words of any note in one of its sentences."""
    about = "Should money be kept as a float?"
    note = Text("Money is never a float", "It lost a cent in the invoices.")
    report = "Steps, expected behavior and versions follow: click the green button, wait, look at the red panel below. "
    assert relevance(parse_prompt(about), note) is not None
    assert relevance(parse_prompt(f"{about} {report * 3}"), note) is not None
    other = Text("Manifests are rendered", "Helm was rejected for Kubernetes: overlays for staging.")
    pods = "Jobs fail in a Kubernetes pod on several stages."
    assert relevance(parse_prompt(pods), other) is not None
    assert relevance(parse_prompt(f"{pods} {report * 3}"), other) is None


def test_common_words_are_stems() -> None:
    """Each is in one paragraph, and every word of a prompt is looked up by its stem."""
    assert weight_of(stem("tests")) < weight_of(stem("snapshots")) < weight_of(stem("kubernetes"))
    assert weight_of("pleas") == weight_of("12") == 0.0


def test_what_is_told_of_a_long_text_is_its_end() -> None:
    """A short one is told whole; of a conversation or a commit the end, where the decision stands."""
    assert deciding_text("Use SQLite.\n\nOne writer is enough.", 100) == "Use SQLite. One writer is enough."
    long = "We talked about many things first. " * 30 + "So: retries are capped at three. No jitter."
    told = deciding_text(long, 120)
    assert told.startswith("… ") and told.endswith("So: retries are capped at three. No jitter.") and len(told) <= 120


def test_a_note_of_another_branch_is_told_there_only() -> None:
    """Or where the prompt names the branch."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection)
    draft = Draft(
        title="Sessions live in Redis",
        content="Postgres vacuum could not keep up.",
        namespace="acme/api",
        kind="decision",
        origin={"branch": "spike/redis"},
    )
    store.store(connection, draft, NOW, Lifetimes())

    def told(prompt: str, branch: str | None) -> int:
        return len(lines_about(connection, prompt, "acme/api", branch, NOW + 1))

    prompt = "let's move the sessions into postgres, drop redis"
    assert [told(prompt, branch) for branch in ("main", "spike/redis", None)] == [0, 1, 1]
    assert told(f"{prompt} as spike/redis has it", "main") == 1
    connection.close()


def test_the_best_note_is_told_whole_and_few_follow(decisions: sqlite3.Connection) -> None:
    """A line is at most as long as the room in the answer."""
    content = "Redis holds the sessions since postgres vacuum could not keep up with them. " * 20
    draft = Draft(title="Sessions in redis, in detail", content=content, namespace="acme/api", kind="note")
    store.store(decisions, draft, NOW, LIFETIMES)
    lines = lines_about(decisions, "let's move the sessions into postgres, drop redis", "acme/api", None, NOW + 1)
    assert 1 <= len(lines) <= limits.PROMPT_LINES
    assert all(len(line.text) <= limits.PROMPT_CHARS for line in lines)


@pytest.mark.parametrize(
    ("prompt", "is_told"),
    [
        ("migrate the models to swiftdata", True),  # written as one word
        ("rewrite the player with GRDB", False),  # what the note decided for, and nothing else in common
        ("add the sentry sdk", True),  # named among others that are refused
    ],
)
def test_one_word_is_enough_where_a_note_decides_against_it(prompt: str, is_told: bool) -> None:
    note = Text("Storage by GRDB", "No SwiftData, it lost relations. Never send crashes to Firebase or Sentry.")
    assert (relevance(parse_prompt(prompt), note) is not None) == is_told


def test_more_is_needed_where_a_mechanical_edit_is_asked_for() -> None:
    """Unless the note is about such edits."""
    note = Text("Balance data lives in yaml", "Match the numbers of the sheet; no constants in code.")
    assert relevance(parse_prompt("match the yaml to the numbers"), note)
    assert not relevance(parse_prompt("indent the yaml files of the balance"), note)
    about_edits = Text("Balance data lives in yaml", "Indent it by two, the sheet's reader needs that.")
    assert relevance(parse_prompt("indent the yaml files of the balance"), about_edits)


def test_the_extension_of_a_file_is_no_word_that_is_shared() -> None:
    note = Text("Secrets of flux", "The keys stand in .sops.yaml and in keys/prod.yaml, one for each site.")
    assert not relevance(parse_prompt("how many yaml documents are there"), note)
    assert not relevance(parse_prompt("make SyncClient.swift shorter"), Text("Sync", "SyncClient keeps positions."))
