"""Which notes a query finds in small and in large stores, and by what they are ranked."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.words import content_words
from nudge.notes import ranking, retrieval, store
from nudge.notes.fields import TIERS, Draft
from nudge.notes.note import Lifetimes
from nudge.notes.retrieval import Words
from nudge.notes.store import NoteFilter
from nudge.storage import migrations
from tests.unit.notes.stored import insert_row

NOW = 1_800_000_000.0
HERE, THERE = "github.com/acme/api", "github.com/acme/api-docs"


@pytest.fixture
def notes() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection)
        yield connection


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every store is large, and the passages of few notes are scored."""
    monkeypatch.setattr(retrieval, "_EXACT_NOTES", 0)
    monkeypatch.setattr(retrieval, "_WITH_PASSAGES", 20)


def add(notes: sqlite3.Connection, title: str, content: str = "text", **fields: object) -> int:
    draft = Draft(title=title, content=content, **fields)  # type: ignore[arg-type]
    return store.store(notes, draft, NOW, Lifetimes())[0].id


def found(notes: sqlite3.Connection, text: str, where: NoteFilter | None = None, limit: int = 10) -> list[int]:
    return [match.note.id for match in ranking.recall(notes, text, where or NoteFilter(), limit, NOW)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("How many days did it take?", ["days", "take"]),
        ("what is it", ["what", "is", "it"]),
        ("Python's 3 threads", ["python", "3", "threads"]),
        ('NEAR("x" y) OR title:z*', ["near", "title"]),
    ],
)
def test_the_words_of_a_query(text: str, words: list[str]) -> None:
    """Stop words and letters that an apostrophe cut off are left out, unless there is nothing else; syntax is words."""
    assert content_words(text) == words


def test_a_query_without_words_is_refused() -> None:
    """Punctuation finds nothing, and says so."""
    with pytest.raises(Invalid):
        Words.parse("?!", all_needed=False)


def test_other_factors_move_a_note_by_less_than_a_tenth_of_the_text_score() -> None:
    """Otherwise random priorities and tiers would drown the text."""
    most = ranking._PRIORITY * limits.MAX_PRIORITY + ranking._ACCESS * ranking._MOST_ACCESSES
    most += ranking._CONFIDENCE + ranking._RECENCY + max(ranking._TIER.values()) + max(ranking._KIND.values())
    assert most < ranking.BASE / 10


def test_priority_and_tier_cannot_put_a_worse_match_first(notes: sqlite3.Connection) -> None:
    """A note with both words stands before one with one of them, whatever their priorities and tiers are."""
    best = add(notes, "Deploy key", "the staging deploy key is in the vault", tier="short", priority=1, confidence=0.5)
    add(notes, "Deploys", "every deploy is logged", tier="long", priority=10, kind="decision")
    for number in range(20):
        add(notes, f"Note {number}", "something else")
    assert found(notes, "staging deploy")[0] == best


@pytest.mark.usefixtures("bounded")
def test_a_large_store_finds_what_has_a_rare_word_or_two_frequent_ones(notes: sqlite3.Connection) -> None:
    """Old notes among hundreds that share a word with the query come first when they match it better."""
    rare = add(notes, "Old", "the xylophone is in the cellar")
    pair = add(notes, "Pair", "a deploy of the server")
    for number in range(300):
        add(notes, f"Deploy {number}", "about one deploy")
        add(notes, f"Server {number}", "about one server")
    assert set(found(notes, "xylophone server deploy")[:2]) == {rare, pair}


@pytest.mark.usefixtures("bounded")
def test_of_equal_matches_a_large_store_returns_the_newest(notes: sqlite3.Connection) -> None:
    """A word that every note has tells nothing: the newest ones are looked at."""
    ids = [add(notes, f"Number {number}", "about a deploy") for number in range(200)]
    assert set(found(notes, "deploy")) <= set(ids[-20:])
    assert len(found(notes, "deploy")) == 10


@pytest.mark.usefixtures("bounded")
def test_filters_do_not_lose_matches_in_a_large_store(notes: sqlite3.Connection) -> None:
    """When what was scored does not meet the filter, all matches are scored."""
    wanted = [add(notes, f"Tagged {number}", "about a deploy", tags=("old",)) for number in range(3)]
    for number in range(200):
        add(notes, f"Number {number}", "about a deploy")
    assert sorted(found(notes, "deploy", NoteFilter(tags=("old",)))) == wanted


@pytest.mark.usefixtures("bounded")
def test_a_namespace_is_searched_on_its_own(notes: sqlite3.Connection) -> None:
    """What other repos have, even one whose name begins alike, neither appears nor uses up the room."""
    here = [add(notes, f"Here {number}", "about a deploy", namespace=HERE) for number in range(5)]
    for number in range(200):
        add(notes, f"There {number}", "about a deploy", namespace=THERE)
    assert sorted(found(notes, "deploy", NoteFilter(namespaces=(HERE,)))) == here


def test_a_note_that_moves_is_found_in_its_new_namespace(notes: sqlite3.Connection) -> None:
    """The index follows the namespace."""
    moved = add(notes, "Deploys", "about a deploy", namespace=HERE)
    store.update(notes, moved, {"namespace": THERE}, NOW, Lifetimes())
    assert found(notes, "deploy", NoteFilter(namespaces=(HERE,))) == []
    assert found(notes, "deploy", NoteFilter(namespaces=(THERE,))) == [moved]
    notes.execute("INSERT INTO notes_fts(notes_fts, rank) VALUES ('integrity-check', 1)")


@pytest.mark.usefixtures("bounded")
def test_a_note_that_answers_is_found_in_a_large_store(notes: sqlite3.Connection) -> None:
    """Notes that have every word of a query are among its first ten, though few matches are scored."""
    chance = random.Random(1)
    # Word k is about k times as rare as the first, as in real texts.
    words = [f"word{number}" for number in range(1, 400)]
    weights = [1 / number for number in range(1, 400)]
    queries = [" ".join(dict.fromkeys(chance.choices(words[20:], weights[20:], k=4))) for _ in range(50)]
    answers = [add(notes, f"Answer {number}", query) for number, query in enumerate(queries)]
    for number in range(600):
        text = " ".join(chance.choices(words, weights, k=15))
        add(notes, f"Note {number}", text, tier=chance.choice(TIERS), priority=chance.randint(1, 10))
    missed = [query for query, answer in zip(queries, answers, strict=True) if answer not in found(notes, query)]
    assert not missed


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("text", ["deploy", "deploy staging", "staging deploys"])
def test_a_title_is_found_among_many_that_mention_its_words(notes: sqlite3.Connection, text: str) -> None:
    """An old note that is called by the words of a query stands before newer ones that have them in passing."""
    titled = [add(notes, "Deploy", "how it is done", namespace=HERE), add(notes, "Deploy staging", namespace=HERE)]
    for number in range(200):
        content = f"number {number} was done after the staging deploy of a day on which a lot of other things happened"
        add(notes, f"Number {number}", content, namespace=HERE)
    for where in (NoteFilter(), NoteFilter(namespaces=(HERE,))):
        assert found(notes, text, where)[0] == titled[1]
    assert set(found(notes, "deploy")[:2]) == set(titled)


@pytest.mark.usefixtures("bounded")
def test_no_note_explains_better_than_the_best_match(notes: sqlite3.Connection) -> None:
    """The text score of the best match is the highest there is, also for a note that a large store did not rank."""
    for number in range(200):
        add(notes, f"Number {number}", "the deploy of a day on which a lot of other things happened")
    matches = ranking.recall(notes, "deploy", NoteFilter(tier="mid"), 3, NOW)
    other = store.get(notes, add(notes, "Deploy deploy", "deploy", tier="long"), NOW)
    scores = ranking.scores_of(notes, "deploy", [other], {other.id: ["deploy"]}, matches, NOW, NoteFilter())
    assert scores[other.id].components["base"] == ranking.BASE


@pytest.mark.parametrize("number", ["6462", "issue 6462", "DB6462", "\ue0006462"])
def test_the_index_of_namespaces_is_not_searched_by_words(notes: sqlite3.Connection, number: str) -> None:
    """The key of the namespace `db` is made of the digits 6462."""
    add(notes, "Vacuum", "postgres vacuum", namespace="db")
    assert found(notes, number) == []
    assert ranking.search(notes, number, NoteFilter(), 10, NOW) == []
    assert store.find_notes(notes, NoteFilter(), number, NOW) == []


def test_all_words_are_all_words(notes: sqlite3.Connection) -> None:
    """What forgets or searches by all words leaves none out: without `c` or `not` it would match more."""
    wanted = add(notes, "Vitamin c dosage")
    add(notes, "Vitamin b dosage")
    assert [match.note.id for match in ranking.search(notes, "vitamin c", NoteFilter(), 10, NOW)] == [wanted]
    assert [note.id for note in store.find_notes(notes, NoteFilter(), "vitamin c", NOW)] == [wanted]
    with pytest.raises(Invalid, match="at most 64 different words"):
        ranking.search(notes, " ".join(f"w{number}" for number in range(65)), NoteFilter(), 10, NOW)


def test_the_index_is_merged_in_small_steps(notes: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as one segment, finds the same, and says when nothing is left to do."""
    monkeypatch.setattr(retrieval, "_MERGED_PAGES", 4)
    for number in range(600):
        add(notes, f"Note {number}", f"about number {number} " + " ".join(f"w{number}x{part}" for part in range(40)))
    before = found(notes, "number")
    assert retrieval.count_segments(notes) > 1
    steps = 1
    more = retrieval.merge_segments(notes, begin=True)
    while more:
        more = retrieval.merge_segments(notes)
        steps += 1
    assert retrieval.count_segments(notes) == 1 and steps > 2
    assert found(notes, "number") == before
    assert not retrieval.merge_segments(notes)


def test_words_of_a_note_are_found_in_every_form(notes: sqlite3.Connection) -> None:
    """A look at the text before the index leaves out no form of a word that has the same stem."""
    forms = (
        "fly flies flying be being beings bus bu try tries trying die dies dying see seeing run running cafe caf\u00e9"
    )
    others = "relational relate deployment deploying sky skies"
    for number, word in enumerate((forms + " " + others).split()):
        add(notes, f"Note {number}", word.upper() if number % 2 else word, tags=(word,))
    every = [store.get(notes, note_id, NOW) for (note_id,) in notes.execute("SELECT id FROM notes").fetchall()]
    for text in (*forms.split(), "related", "deploy", "deployments", "skys", "Caf\u00e9"):
        words = Words.parse(text, all_needed=True)
        expected = retrieval.words_in(notes, words, [note.id for note in every])
        texts = {note.id: f"{note.draft.title} {note.draft.content} {note.draft.tags}".lower() for note in every}
        assert retrieval.words_in(notes, words, texts.keys(), texts=texts) == expected
        assert any(expected.values())


def test_single_notes_leave_few_segments(notes: sqlite3.Connection) -> None:
    """Each search looks into all segments of the index: a note that is stored alone adds one, and some are merged with
    it."""
    most = 0
    for number in range(100):
        add(notes, f"Note {number}", f"a text with number {number}")
        if number % 4 == 0:
            retrieval.merge_new_segments(notes)
        most = max(most, retrieval.count_segments(notes))
    assert most <= 10
    assert found(notes, "number 57")[0] == 58


def test_titles_about_a_subject_have_all_of_its_words(notes: sqlite3.Connection) -> None:
    """In any form, or deny something about one of them; in the namespace, the newest first and not too many."""
    has_all, denied = add(notes, "Target of deployments"), add(notes, "Do not deploy on Friday")
    other, elsewhere = add(notes, "Deploy key"), add(notes, "Deploy target", namespace="elsewhere")
    ids = retrieval.titles_about(notes, [("deploy", "target")], ("not",), "global")
    assert ids == [denied, has_all] and other not in ids and elsewhere not in ids
    many = [add(notes, f"Deploy target {number}") for number in range(60)]
    assert retrieval.titles_about(notes, [("deployment", "targets")], ("not",), "global")[:50] == many[:-51:-1]
    assert retrieval.titles_about(notes, [[f"w{number}" for number in range(400)]], ("not",), "global") == []


def test_no_match_is_lost_among_thousands_with_the_same_words(notes: sqlite3.Connection) -> None:
    """Every note with a word of the query is scored: the best one is first, however frequent its words are."""
    chance = random.Random(2)
    words = [f"common{number}" for number in range(30)]
    best = add(notes, "Answer", "common1 common2 common3 common4")
    for number in range(1_500):
        add(notes, f"Note {number}", " ".join(chance.sample(words, 12)))
    assert found(notes, "common1 common2 common3 common4")[0] == best


def test_a_long_note_does_not_win_by_its_length(notes: sqlite3.Connection) -> None:
    """It has the words of the query in places that have nothing to do with each other; a short note is about them."""
    filler = ". ".join(f"Item {number} of the minutes was about something else entirely" for number in range(60))
    long = f"The staging area was cleaned. {filler}. A key was lost. {filler}. Rotation of duties was agreed. {filler}."
    add(notes, "Minutes of the staging key rotation meeting", long + " staging staging key key rotation rotation")
    short = add(notes, "Vault", "The staging key is rotated by the on-call engineer every month")
    assert found(notes, "who does the rotation of the staging key")[0] == short


def test_passages_follow_their_note(notes: sqlite3.Connection) -> None:
    """An update replaces them, a deleted or archived note has none."""
    note_id = add(notes, "Deploy", "before " + "x. " * 200)
    store.update(notes, note_id, {"content": "after the change"}, NOW, Lifetimes())
    assert notes.execute("SELECT content FROM passages").fetchall() == [("after the change",)]
    store.delete(notes, note_id, NOW)
    assert notes.execute("SELECT count(*) FROM passages").fetchone() == (0,)


def test_notes_of_an_older_database_get_passages() -> None:
    """The migration splits what is stored."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as old:
        migrations.migrate(old, migrations.MIGRATIONS[: migrations.MIGRATIONS.index(migrations._PASSAGES)])
        insert_row(old, "Deploy", "One sentence of the note. " * 40)
        migrations.migrate(old)
        assert old.execute("SELECT count(*) FROM passages").fetchone() == (3,)
        assert found(old, "sentence") == [1]


@pytest.mark.parametrize("typed", ["databse", "dtaabase", "databaase", "dstabase"])
def test_a_misspelled_word_is_found(notes: sqlite3.Connection, typed: str) -> None:
    """By the nearest word that notes have; and what was looked for is known."""
    wanted = add(notes, "Storage", "The database is PostgreSQL")
    add(notes, "Other", "something else")
    assert found(notes, f"which {typed}") == [wanted]
    assert ranking.query_words(notes, typed).corrections == {typed: "database"}
    assert [match.note.id for match in ranking.search(notes, typed, NoteFilter(), 10, NOW)] == [wanted]


@pytest.mark.parametrize("typed", ["related", "second", "catch", "studies"])
def test_a_word_that_is_typed_right_is_not_changed(notes: sqlite3.Connection, typed: str) -> None:
    """Though no note has it, and notes have words that look like it."""
    add(notes, "Words", "relaxed secoed batch studio")
    assert ranking.query_words(notes, typed).corrections == {}
