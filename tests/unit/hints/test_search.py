from __future__ import annotations

import random
from functools import reduce
from itertools import pairwise
from math import log
from operator import add
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.context import Context
from nudge.core.errors import Invalid
from nudge.core.words import split_words, stem
from nudge.hints.model import Hint
from nudge.hints.ranking import OrderKey, order_key
from nudge.hints.store import HintStore
from tests.unit.hints.builders import NOW, commit, finish, found_by, new_store, put


@pytest.fixture
def store() -> HintStore:
    store = new_store()
    put(store, "api", "build", "docker compose build router", {"tags": ["build", "docker"], "priority": 9})
    put(store, "api", "test", "pytest -q", {"tags": ["test"], "priority": 8, "reason": "fast suite"})
    put(store, "web", "build", {"type": "command", "cmd": "npm run build"}, {"tags": ["build"], "priority": 7})
    put(store, "web", "ports", {"type": "json", "data": {"http": 8080}}, {"priority": 6, "scope": {"os": ["linux"]}})
    return store


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["api/build", "api/test", "web/build"]),
        ({"component": "web"}, ["web/build"]),
        ({"component": "nope"}, []),
        ({"keys": ["build"]}, ["api/build", "web/build"]),
        ({"keys": ["test", "nope", "build"]}, ["api/build", "api/test", "web/build"]),
        ({"tags": ["docker"]}, ["api/build"]),
        ({"tags": ["docker", "test", "nope"]}, ["api/build", "api/test"]),
        ({"tags": ["nope"]}, []),
        ({"component": "api", "keys": ["test"], "tags": ["build"]}, []),
        ({"component": "web", "tags": ["build"]}, ["web/build"]),
        ({"keys": ["build"], "tags": ["docker"]}, ["api/build"]),
        ({"regex": "dock.*build"}, ["api/build"]),
        ({"regex": "^web$"}, ["web/build"]),
        ({"regex": "run build$"}, ["web/build"]),
        ({"regex": "SUITE"}, []),
        ({"regex": "(?i)SUITE"}, ["api/test"]),
        ({"regex": "^docker$"}, ["api/build"]),
        ({"component": "api", "regex": "build"}, ["api/build"]),
        ({"limit": 2}, ["api/build", "api/test"]),
        ({"component": "web", "context": Context(os="linux"), "regex": '"http":8080'}, ["web/ports"]),
    ],
)
def test_filters(store: HintStore, query: dict[str, Any], found: list[str]) -> None:
    """All filters must hold; one of the keys and one of the tags is enough; only what applies is found, best first."""
    assert found_by(store, **query) == found


def test_entry(store: HintStore) -> None:
    """Each find has its names, the hint, the score and why it was found."""
    [entry] = finish(store.query(NOW, tags=["docker"], regex="router"))["hints"]
    assert (entry["component"], entry["key"]) == ("api", "build")
    assert entry["hint"] == finish(store.get(NOW, "api", "build"))["hint"]
    assert entry["score"] == entry["match_explain"]["score"] == 0.38
    assert entry["match_explain"]["reasons"] == [
        "tag docker",
        "regex found in value",
        "no scope: applies everywhere",
        "priority 9",
    ]


def test_all_variants_that_apply_are_found() -> None:
    """Variants are finds of their own, ranked."""
    store = new_store()
    put(store, "api", "build", "anywhere")
    put(store, "api", "build", "linux", {"scope": {"os": ["linux"]}})
    put(store, "api", "build", "darwin", {"scope": {"os": ["darwin"]}})
    result = finish(store.query(NOW, context=Context(os="linux")))["hints"]
    assert [entry["hint"]["value"] for entry in result] == ["linux", "anywhere"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"component": ""}, "component"),
        ({"keys": []}, "keys"),
        ({"keys": "build"}, "keys"),
        ({"keys": [1]}, "keys[0]"),
        ({"tags": []}, "tags"),
        ({"tags": ["x", ""]}, "tags[1]"),
        ({"tags": [f"t{i}" for i in range(101)]}, "tags"),
        ({"regex": ""}, "regex"),
        ({"regex": 5}, "regex"),
        ({"regex": "("}, "regex"),
        ({"regex": "(a)\\1"}, "regex"),
        ({"regex": "x" * 300}, "regex"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": True}, "limit"),
    ],
)
def test_bad_filter_is_refused_by_field(store: HintStore, query: dict[str, Any], field: str) -> None:
    """Each parameter is checked, and the refusal names it."""
    with pytest.raises(Invalid) as refused:
        finish(store.query(NOW, **query))
    assert refused.value.field == field


def fill(store: HintStore, count: int, **meta: Any) -> None:
    for index in range(count):
        put(store, f"c{index // 100}", f"k{index:04}", "x", meta)


def test_search_pauses() -> None:
    """A walk over many hints, over much text, or over scopes that are costly to compare, lets others have their
    turn."""
    many, heavy, costly = new_store(), new_store(), new_store()
    fill(many, 2 * limits.HINTS_PER_SLICE + 1, scope={"os": ["darwin"]})
    fill(heavy, 2 * limits.REGEX_BLOCK)
    for index in range(3):
        put(heavy, "heavy", f"k{index}", "x" * (limits.CHARS_PER_SLICE - 2))
        globs = [f"**/a{index}/**/{letter}" for letter in "bcd"]
        put(costly, "c", f"k{index}", "x", {"scope": {"cwd_glob": globs, "branch": [f"b{index}"]}})
    here = Context(os="linux", cwd="/a")
    assert sum(1 for _ in many.query(NOW, context=here)) == 2
    assert sum(1 for _ in heavy.query(NOW, regex="never")) >= 2
    assert sum(1 for _ in costly.query(NOW, context=here)) >= 1


@pytest.mark.parametrize("query", [{}, {"regex": "x"}, {"tags": ["t"]}])
def test_writes_during_a_pause_do_not_disturb(query: dict[str, Any]) -> None:
    """A query answers from the moment it began."""
    store = new_store()
    fill(store, limits.HINTS_PER_SLICE + 1, tags=["t"], priority=9, scope={"os": ["darwin"]})
    put(store, "last", "one", "x", {"tags": ["t"], "priority": 1})
    steps = store.query(NOW, limit=100, context=Context(os="linux"), **query)
    next(steps)
    for hint in store.hints():
        store.apply(store.decide_delete(NOW, hint.component, hint.key).change)
    put(store, "new", "one", "x", {"tags": ["t"]})
    assert [entry["component"] for entry in finish(steps)["hints"]] == ["last"]


@pytest.mark.parametrize("query", [{}, {"tags": ["t"]}, {"tags": ["t", "odd"]}, {"keys": ["k1", "k2"]}, {"regex": "x"}])
def test_a_large_group_is_ranked_like_a_small_one(query: dict[str, Any]) -> None:
    """The best of more hints than are sorted for a query are the best of all, also after changes and after a minute."""
    store = new_store()
    for index in range(limits.SORTED_GROUP + 100):
        meta = {"tags": ["t", *(["odd"] if index % 2 else [])], "priority": 1 + index * 7 % 10}
        put(store, f"c{index // 100}", f"k{index % 3}", "x", {**meta, "scope": {"branch": [f"b{index}"]}})
    here = Context(branch="b0")
    for index in range(30):
        now = NOW + 40 * index
        put(store, "free", f"k{index % 3}", "x", {"tags": ["t"], "priority": 1 + index % 10}, now=now)
        if index % 3 == 0:
            commit(store, finish(store.decide_bump(now, "free", "k0", here)))
        ranked = sorted(
            (hint for hint in store.hints() if hint.scope.check(here).eligible), key=lambda hint: order_key(hint, now)
        )
        keys = query.get("keys", ["k0", "k1", "k2"])
        expected = [f"{hint.component}/{hint.key}" for hint in ranked if hint.key in keys]
        assert found_by(store, now=now, context=here, limit=3, **query) == expected[:3]


# Nothing found


def test_a_miss_says_why_not() -> None:
    """What passes every filter but is not for here is named, the nearest first; what no filter lets through is not."""
    store = new_store()
    put(store, "api", "far", "x", {"tags": ["t"], "scope": {"os": ["darwin"], "branch": ["dev"]}})
    put(store, "api", "near", "x", {"tags": ["t"], "scope": {"os": ["darwin"]}})
    put(store, "api", "other", "x", {"scope": {"os": ["darwin"]}})
    assert finish(store.query(NOW, tags=["t"], context=Context(os="linux"))) == {
        "hints": [],
        "why_not": [
            {"component": "api", "key": "near", "reasons": ["os=linux, needs darwin"]},
            {"component": "api", "key": "far", "reasons": ["branch unknown, needs dev", "os=linux, needs darwin"]},
        ],
    }


def test_only_a_miss_says_why_not() -> None:
    """One hit is an answer; and where nothing matches at all there is nothing to explain."""
    store = new_store()
    put(store, "api", "a", "x", {"scope": {"os": ["darwin"]}})
    put(store, "api", "b", "x")
    assert list(finish(store.query(NOW, context=Context(os="linux")))) == ["hints"]
    assert finish(store.query(NOW, keys=["nowhere"])) == {"hints": []}


def test_why_not_is_short() -> None:
    """However many are kept away, the nearest few are named."""
    store = new_store()
    for index in range(150):
        put(
            store,
            "api",
            f"k{index:03}",
            "x",
            {"scope": {"os": ["darwin"], **({} if index % 30 == 29 else {"branch": ["dev"]})}},
        )
    why_not = finish(store.query(NOW, context=Context(os="linux")))["why_not"]
    assert len(why_not) == limits.MAX_QUERY_WHY_NOT
    assert [miss["key"] for miss in why_not] == ["k029", "k059", "k089", "k119", "k149"]


# Questions


def partial_by(store: HintStore, text: str, **query: Any) -> list[tuple[str, bool]]:
    """What a query by words returns: the key, and whether it is marked."""
    hits = finish(store.query(NOW, text=text, **query))["hints"]
    return [(hit["key"], hit.get("partial", False)) for hit in hits]


@pytest.fixture
def asked() -> HintStore:
    store = new_store()
    put(store, "shop", "deploy", "make deploy", {"priority": 1, "reason": "to staging, after the tests"})
    put(store, "shop", "db", "docker compose up postgres", {"reason": "the database of the tests", "tags": ["db"]})
    put(store, "shop", "test", "make test", {"priority": 9, "reason": "needs the database"})
    put(store, "web", "test", "npm test", {"scope": {"os": ["windows"]}})
    return store


def test_a_question_finds_what_has_some_of_its_words(asked: HintStore) -> None:
    """Behind what has all of the words, marked, those with some: the more and the rarer the words, the earlier."""
    assert partial_by(asked, "how do I start the postgres database?") == [("db", True), ("test", True)]
    assert partial_by(asked, "database of the tests") == [("db", False), ("test", True), ("deploy", True)]
    [first, *_] = finish(asked.query(NOW, text="where is the postgres database"))["hints"]
    assert first["match_explain"]["reasons"][0] == "some of the words found: postgres, database"


def test_stop_words_find_nothing(asked: HintStore) -> None:
    """`the`, `of` and `to` are in several hints, and say nothing about what is asked."""
    assert partial_by(asked, "what is the color of the zebra to you") == []


def test_few_words_and_a_regex_are_meant_as_they_are(asked: HintStore) -> None:
    """Fewer than four words are no question, nor is one beside a regex."""
    assert partial_by(asked, "postgres zebra fox") == []
    assert partial_by(asked, "postgres zebra fox quokka") == [("db", True)]
    assert partial_by(asked, "postgres zebra fox quokka", regex="docker") == []


def test_the_other_filters_hold_for_questions_too(asked: HintStore) -> None:
    """Component, keys, tags, scope and limit; `more` says that there are others."""
    question = "how do I start the tests database"
    assert partial_by(asked, question, keys=["deploy"]) == [("deploy", True)]
    assert partial_by(asked, question, tags=["db"]) == [("db", True)]
    assert partial_by(asked, question, component="web") == []
    assert partial_by(asked, question, component="web", context=Context(os="windows")) == [("test", True)]
    result = finish(asked.query(NOW, text=question, limit=1))
    assert len(result["hints"]) == 1 and result["more"] is True


def test_a_question_sees_every_word_of_a_long_hint(asked: HintStore) -> None:
    """Also those behind the words that are indexed; a long hint without any of them is not found."""
    words = " ".join(f"word{number}" for number in range(limits.INDEXED_WORDS + 20))
    put(asked, "shop", "long", f"{words} quokka")
    assert partial_by(asked, "which quokka lives where today") == [("long", True)]
    assert partial_by(asked, "which giraffe lives where today") == []


def test_among_many_hints_a_rare_word_decides(asked: HintStore) -> None:
    """However many have the common words; what was found by a rarer one is ranked by them too."""
    for number in range(limits.RANKED_HINTS + 10):
        put(asked, f"c{number // 100}", f"k{number}", "run the ordinary service")
    put(asked, "shop", "rare", "the quokka service")
    assert partial_by(asked, "run the ordinary quokka service today", limit=2)[0] == ("rare", True)


def test_a_question_among_many_equal_hints_is_ranked_by_its_words() -> None:
    """Hints with more of the common words come first, then by score; a filter is applied to all, not to the first."""
    store = new_store()
    for number in range(2 * limits.RANKED_HINTS):
        text = "run common text" if number % 2 else "run common"
        put(store, f"c{number // 100}", f"k{number:04}", text, {"priority": 1 + number * 7 % 10})
    put(store, "c0", "rare", "quokka", {"priority": 1})
    put(store, "last", "only", "run", {"priority": 1})
    hits = finish(store.query(NOW, text="run common text quokka", limit=100))["hints"]
    ranked = sorted(
        (hint for hint in store.hints() if b"text" in hint.blob.split()), key=lambda hint: order_key(hint, NOW)
    )
    assert [hit["key"] for hit in hits] == ["rare", *(hint.key for hint in ranked[:99])]
    assert partial_by(store, "how do I run the tests", component="last") == [("only", True)]


@pytest.mark.parametrize("seed", range(40))
def test_a_question_finds_what_a_scan_of_all_hints_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any of the words and in the same order, whether few or many have each word."""
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(limits, "RANKED_HINTS", chance.randint(0, 30))
    vocabulary = [f"{letter}word" for letter in "bcdfghjk"]
    store = new_store()
    for number in range(chance.randint(1, 60)):
        words = [word for at, word in enumerate(vocabulary) if chance.random() < (at + 1) / 9]
        put(store, "api", f"k{number}", " ".join(["any", *words]), {"priority": chance.randint(1, 10)})
    finish(store.index_words())
    for number in range(0, 20, 3):  # the index follows changes
        put(store, "api", f"k{number}", " ".join(chance.sample(vocabulary, 3)))
    for _ in range(10):
        asked = [*chance.sample(vocabulary, chance.randint(2, 7)), "zebra", "quokka"]
        assert found_by(store, text=" ".join(asked), limit=100) == _found_by_scan(store, asked)


def _found_by_scan(store: HintStore, asked: list[str]) -> list[str]:
    """All hints with any of the words; those with the greatest sum of the weights of their words first."""
    words = {hint.key: set(hint.value.split()) for hint in store.hints()}
    counts = {word: sum(word in others for others in words.values()) for word in asked}
    rarest_first = sorted(filter(counts.get, counts), key=counts.__getitem__)  # one order: sums of floats depend on it

    def key(hint: Hint) -> tuple[float, OrderKey]:
        weights = [log(1 + len(words) / counts[word]) for word in rarest_first if word in words[hint.key]]
        return -reduce(add, weights, 0.0), order_key(hint, NOW)

    matching = [hint for hint in store.hints() if words[hint.key] & set(asked)]
    return [f"{hint.component}/{hint.key}" for hint in sorted(matching, key=key)]


def test_of_many_common_words_the_rarest_count() -> None:
    """However many common words a question has, a hint with a rare word comes first, and the best of the others
    follow."""
    store = new_store()
    common = [f"{letter}common" for letter in "bcdfghjklm"]
    assert len(common) > limits.MAX_COMMON_WORDS
    for number in range(limits.RANKED_HINTS + 10):
        put(store, f"c{number // 100}", f"k{number}", " ".join(common), {"priority": 9 if number == 300 else 5})
    put(store, "shop", "rare", f"quokka {' '.join(common)}", {"priority": 1})
    put(store, "shop", "alone", "zebra", {"priority": 1})
    question = " ".join([*common, "quokka", "zebra", "giraffe"])
    assert partial_by(store, question, limit=3)[0] == ("rare", True)
    assert ("k300", True) in partial_by(store, question, limit=3)
    assert partial_by(store, question, component="shop") == [("rare", True), ("alone", True)]


@pytest.mark.parametrize("seed", range(10))
def test_prefixes_and_phrases_find_what_a_scan_of_all_hints_finds(seed: int) -> None:
    """Also after words were added and removed."""
    chance = random.Random(seed)
    vocabulary = ["run", "runs", "running", "rung", "test", "tests", "té", "te", "happy", "happily", "a", "ab", "zz"]
    store = new_store()
    for _ in range(12):
        text = chance.choice([" ", "_", ", "]).join(chance.choices(vocabulary, k=4))
        put(store, "c", f"k{chance.randint(1, 8)}", text)
        prefix = chance.choice(["r", "run", "runn", "t", "te", "tes", "a", "z", "happ", "x"])
        first, last = chance.choices(vocabulary, k=2)
        split = {hint.key: split_words(hint.value) for hint in store.hints()}
        starts = {key for key, words in split.items() if any(word.startswith(prefix) for word in words)}
        wanted = [stem(word) for word in split_words(f"{first} {last}")]
        adjacent = {key for key, words in split.items() if wanted in map(list, pairwise(map(stem, words)))}
        keys = {"c", *split}  # component and keys are words, too: neither starts with a prefix from above
        assert not any(key.startswith(prefix) for key in keys)
        assert {hit.split("/")[1] for hit in found_by(store, text=f"{prefix}*", limit=100)} == starts
        assert {hit.split("/")[1] for hit in found_by(store, text=f'"{first} {last}"', limit=100)} == adjacent
