"""Whatever is typed into a search, it is understood or refused; whatever was stored, its words find it."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nudge.core.errors import Invalid
from nudge.history.search import search_observations
from tests import effort
from tests.unit.history.stored import NOW, event, filled, prompt

OPERATORS = ("AND", "OR", "NOT", "NEAR(", "NEAR", "(", ")", '"', '""', "*", "^", "+", "-", ":", "{", "}", ",", " ")
COLUMNS = ("content:", "file_path :", "- content :", "{content file_path}:")
TEXTS = ("word", "test", "9", ".", "/", "\\", "'", ";", "\0", "\ud800", "é", "日本", "\N{COMBINING ACUTE ACCENT}")
SYNTAX = st.sampled_from(OPERATORS + COLUMNS + TEXTS)
QUERIES = (
    st.text()
    | st.lists(SYNTAX, max_size=12).map("".join)
    | st.lists(SYNTAX | st.text(max_size=4), max_size=12).map(" ".join)
)
WORDS = st.text(st.sampled_from(string.ascii_letters + string.digits + "äßéñøжщдλ日本"), min_size=1, max_size=12)
JOINTS = st.sampled_from(
    [" ", "-", ".", "/", ":", "::", "_", "--", " -", " = ", "(", ") ", ", ", "\n", "'", "=", "@", "#", "\\"]
)
STORED = filled(event(content="word test 9 é 日本 AND"), prompt("some words"))


def understood(query: str, **options: Any) -> bool:
    try:
        search_observations(STORED, query, **options)
    except Invalid as refused:
        return refused.field != "query"
    return True


@given(query=QUERIES)
def test_any_text_is_searched_for_or_refused(query: str) -> None:
    """Nothing but Invalid comes out of a query: no traceback, no error of the database. Words alone are never
    refused."""
    assert understood(query) or not query.replace(" ", "").isalnum() or set(query.split()) & set(OPERATORS)


@given(query=QUERIES, order=st.sampled_from(["relevance", "blended"]))
def test_filters_and_orders_never_change_that(query: str, order: str) -> None:
    """The same text is understood, or refused, in every order and under every filter."""
    everything = {
        "project": "app",
        "obs_type": "command",
        "before": NOW,
        "after": 0,
        "limit": 1,
        "offset": 1,
        "now": NOW,
    }
    assert understood(query) == understood(query, order_by=order, **everything)


def is_operator(word: str) -> bool:
    return word in ("AND", "OR", "NOT", "NEAR")


@given(
    words=st.lists(WORDS.filter(lambda word: not is_operator(word)), min_size=1, max_size=8),
    joints=st.lists(JOINTS, min_size=8),
)
@settings(max_examples=effort.times(80))
def test_a_phrase_that_was_stored_is_found(words: list[str], joints: list[str]) -> None:
    """Copied as it stands, with whatever is between its words; refused only when its parentheses make no sense."""
    phrase = "".join(word + joint for word, joint in zip(words, joints, strict=False))
    connection = filled(event(content=phrase), event(content="something else"))
    try:
        result = search_observations(connection, phrase)
    except Invalid:
        assume("(" not in phrase and ")" not in phrase)
        raise
    assert 1 in [row["id"] for row in result]


@given(words=st.lists(WORDS, min_size=1, max_size=6), start=st.integers(0, 5), length=st.integers(1, 6))
@settings(max_examples=effort.times(60))
def test_any_part_of_it_is_found_in_quotes(words: list[str], start: int, length: int) -> None:
    """Consecutive words, operators too, when they are quoted."""
    part = words[start % len(words) :][:length]
    connection = filled(event(content=" ".join(words)))
    assert search_observations(connection, '"' + " ".join(part) + '"')
