from __future__ import annotations

from typing import Any

import pytest

from nudge.errors import Invalid
from nudge.hints.fields import parse_name
from nudge.hints.model import parse_meta
from nudge.hints.ttl import parse_ttl

WHOLE = {
    "reason": "custom router image",
    "tags": ["build", "docker"],
    "priority": 7,
    "confidence": 0.8,
    "ttl": "PT2H",
    "sensitivity": "normal",
    "scope": {"branch": ["dev"]},
    "source": "agent",
    "added_by": "agent:codex",
}


def test_every_field_is_kept() -> None:
    """Meta with every field comes back whole."""
    assert parse_meta(WHOLE) == WHOLE


def test_defaults_are_not_written_down() -> None:
    """No meta, null and an empty object are the same, and stay empty."""
    assert parse_meta(None) == parse_meta({}) == {}


def test_null_is_not_given() -> None:
    """A model that fills in every field says null for those it has nothing to say about."""
    assert parse_meta({"reason": None, "tags": None, "ttl": None, "scope": None, "priority": 3}) == {"priority": 3}


def test_empty_scope_is_no_scope() -> None:
    """`scope: {}` means everywhere, as no scope does."""
    assert parse_meta({"scope": {}}) == parse_meta({"scope": {"branch": [], "env_match": {}}}) == {}


def test_zero_confidence_is_a_value() -> None:
    """0 is kept, not taken for "not given"."""
    assert parse_meta({"confidence": 0}) == {"confidence": 0}


def test_tags_are_deduplicated_in_order() -> None:
    """The first mention of a tag gives its place."""
    assert parse_meta({"tags": ["b", "a", "b"]})["tags"] == ["b", "a"]


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ([], "meta"),
        ("x", "meta"),
        ({"colour": "red"}, "meta.colour"),
        ({"reason": 1}, "meta.reason"),
        ({"reason": "x" * 501}, "meta.reason"),
        ({"reason": "two\nlines"}, "meta.reason"),
        ({"tags": "build"}, "meta.tags"),
        ({"tags": [f"t{i}" for i in range(21)]}, "meta.tags"),
        ({"tags": ["ok", ""]}, "meta.tags[1]"),
        ({"tags": ["x" * 65]}, "meta.tags[0]"),
        ({"tags": ["a\tb"]}, "meta.tags[0]"),
        ({"tags": [["a"]]}, "meta.tags[0]"),
        ({"priority": 0}, "meta.priority"),
        ({"priority": 11}, "meta.priority"),
        ({"priority": True}, "meta.priority"),
        ({"priority": 7.0}, "meta.priority"),
        ({"priority": "7"}, "meta.priority"),
        ({"confidence": -0.1}, "meta.confidence"),
        ({"confidence": 1.1}, "meta.confidence"),
        ({"confidence": True}, "meta.confidence"),
        ({"confidence": float("nan")}, "meta.confidence"),
        ({"ttl": "2 hours"}, "meta.ttl"),
        ({"sensitivity": "public"}, "meta.sensitivity"),
        ({"source": "gossip"}, "meta.source"),
        ({"source": ["user"]}, "meta.source"),
        ({"added_by": 3}, "meta.added_by"),
        ({"added_by": "x" * 129}, "meta.added_by"),
        ({"scope": []}, "meta.scope"),
        ({"scope": {"planet": ["earth"]}}, "meta.scope.planet"),
    ],
)
def test_bad_meta_is_refused_by_field(meta: Any, field: str) -> None:
    """Meta that breaks a rule is refused, and the refusal names the field."""
    with pytest.raises(Invalid) as refused:
        parse_meta(meta)
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["", " ", " api", "api ", "a\nb", "a\0", "x" * 129, 5, None, "\udfff"])
def test_bad_name(name: object) -> None:
    """A component or key is a short printable text with no blank around it."""
    with pytest.raises(Invalid) as refused:
        parse_name(name, "component")
    assert refused.value.field == "component"


@pytest.mark.parametrize("name", ["api", "packages/api", "env.FEATURE_X", "http proxy", "ключ", "x" * 128])
def test_good_name(name: str) -> None:
    """Paths, dots, inner blanks and any script are fine."""
    assert parse_name(name, "component") == name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT90S", 90),
        ("PT2H", 7_200),
        ("P1DT2H", 93_600),
        ("P2W", 1_209_600),
        ("P1W1D", 691_200),
        ("PT1H30M", 5_400),
        ("PT1.5H", 5_400),
        ("PT0,5S", 0.5),
        ("P1DT0S", 86_400),
        ("session", None),
    ],
)
def test_ttl(text: str, seconds: float | None) -> None:
    """Weeks to seconds, a fraction in the last part; `session` has no seconds of its own."""
    assert parse_ttl(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "PT0S",
        "P0D",
        "-PT1H",
        "PT-1H",
        "PT1.5H3M",
        "pt2h",
        "2h",
        "PT1H ",
        "P99999W",
        "PT1S1H",
        "Session",
        "P１D",
    ],
)
def test_bad_ttl(text: str) -> None:
    """Months and years have no fixed length; nothing, less than nothing and more than a year are no lifetime."""
    with pytest.raises(Invalid) as refused:
        parse_ttl(text)
    assert refused.value.field == "meta.ttl"
