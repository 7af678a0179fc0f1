"""What a query may look like, and what it finds."""

from __future__ import annotations

import pytest

from nudge.core.errors import Invalid
from nudge.history.search import search_observations
from tests.unit.history.stored import empty
from tests.unit.history.test_search import ids_found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cargo", {1}),
        ("cargo test", {1}),
        ("tests", {1, 6}),  # stemmed: `test` and `tests` are one
        ("run", {2, 6}),
        ('"cargo test"', {1}),
        ('"test cargo"', set()),
        ("car*", {1}),
        ("cargo OR npm", {1, 2}),
        ("tests NOT cargo", {6}),
        ("cargo AND auth", {1}),
        ("(cargo OR npm) AND build", {2}),
        ("build (cargo OR npm)", {2}),
        ("file_path: auth", {3}),
        ("content : auth", {1, 3}),
        ("{content file_path}: mod", {3}),
        ("- file_path : auth", {1, 3}),
        ("NEAR(cargo auth, 3)", {1}),
        ("NEAR(cargo auth, 0)", set()),
        ("cargo + test", {1}),
        ("^cargo", {1}),
        ("^test", set()),
        ('"cargo te"*', {1}),
    ],
)
def test_fts5_syntax_means_what_it_says(query: str, expected: set[int]) -> None:
    """Operators, phrases, prefixes, columns, NEAR, and parentheses beside words, which FTS5 alone refuses."""
    assert ids_found(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("build-all", {2}),
        ("auth::tests", {1}),
        ("/src/auth/mod.rs", {3}),
        ("mod.rs", {3}),
        ("http://localhost:8080/health", {4}),
        ("localhost:8080", {4}),
        ("ValueError: bad-input", {5}),
        ("main()", {5}),
        ("main() raises", {5}),
        ("-- auth", {1, 3}),
        ("cargo test -- auth::tests", {1}),
        ("run --", {2, 6}),
        ("src/au*", {3}),
        ("what's", set()),
        ("cargo, test", {1}),
        ("{cargo}", {1}),
        ("[cargo]", {1}),
        ("cargo;", {1}),
        ("cargo AND --", {1}),
        ("-- OR cargo", {1}),
        ("cargo NOT --", {1}),
        ("f(cargo test)", set()),
        ("--", set()),
        ("* cargo", {1}),
        ("c++", set()),
        ("near", set()),
        ("cargo\0test", {1}),
        ("TODO:", set()),
        ('cargo "test', {1}),
        ("what's cargo's test", set()),
    ],
)
def test_a_plain_phrase_just_works(query: str, expected: set[int]) -> None:
    """Whatever an agent copies out of a terminal is searched for by its words."""
    assert ids_found(query) == expected


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("cargo AND", 7),
        ("AND cargo", 1),
        ("OR", 1),
        ("NOT cargo", 1),
        ("cargo AND OR test", 11),
        ("(cargo", 1),
        ("cargo)", 6),
        ("cargo (test OR", 7),
        ("()", 2),
        ("content:", 1),
        ("a +", 3),
        ("NEAR(", 1),
        ("NEAR(a, x)", 9),
        ("NEAR()", 6),
        ("NEAR(a AND b)", 8),
        ("(" * 20 + "a" + ")" * 20, 17),
        ("a OR (b NOT)", 12),
    ],
)
def test_a_syntax_error_says_where(query: str, at: int) -> None:
    """The place is a character of the text as it was given."""
    with pytest.raises(Invalid) as refused:
        search_observations(empty(), query)
    assert refused.value.field == "query"
    assert refused.value.data["at"] == at
    assert f"at character {at}" in refused.value.message


@pytest.mark.parametrize("query", ["", "   ", "x" * 1_001])
def test_a_query_has_some_words_and_not_too_many(query: str) -> None:
    """Nothing to look for is a mistake, and so is a whole file."""
    with pytest.raises(Invalid, match="query: "):
        search_observations(empty(), query)
