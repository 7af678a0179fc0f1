from __future__ import annotations

import json
from typing import Any

import pytest

from nudge.core.clock import iso
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.hints.fields import parse_timestamp
from nudge.hints.model import Change, Hint, hint_from_json, next_version, parse_meta, parse_ttl
from tests.unit.hints.builders import DAY, NOW

META = {"reason": "why", "tags": ["a"], "ttl": "P1D", "scope": {"branch": ["dev"]}}


def hint_at(now: float, **more: Any) -> Hint:
    return Hint.of("api", "build", "make", dict(META), created_at=now, updated_at=now, **more)


def test_wire_form() -> None:
    """Times are ISO, counts appear once there are any, and names stay outside."""
    fresh = hint_at(NOW).to_json()
    assert fresh == {"value": "make", "meta": META, "version": 1, "created_at": iso(NOW), "updated_at": iso(NOW)}
    used = hint_at(NOW, last_used_at=NOW, use_count=2, failure_count=1).to_json()
    assert (used["last_used_at"], used["use_count"], used["failure_count"]) == (iso(NOW), 2, 1)


def test_wire_form_is_a_copy() -> None:
    """What is done to an answer does not reach the hint."""
    hint = hint_at(NOW)
    hint.to_json()["meta"]["scope"]["branch"].append("main")
    assert hint.meta == META


@pytest.mark.parametrize("now", [NOW, NOW + 0.123456, 1_700_000_000.000001, 4_000_000_000.999999])
def test_wire_round_trip(now: float) -> None:
    """A hint read back from its wire form is the same hint, to the last digit of its times."""
    hint = hint_at(now, last_used_at=now, use_count=3, failure_count=1, version=12)
    assert hint_from_json("api", "build", json.loads(json.dumps(hint.to_json())), now + 99) == hint


def test_what_is_missing_starts_now() -> None:
    """A hand-written hint needs a value only."""
    hint = hint_from_json("api", "build", {"value": "make"}, NOW)
    assert (hint.version, hint.created_at, hint.updated_at, hint.last_used_at, hint.use_count) == (1, NOW, NOW, None, 0)


def test_creation_is_never_after_the_update() -> None:
    """A hint that says only when it was updated was not created later."""
    hint = hint_from_json("api", "build", {"value": "make", "updated_at": iso(NOW - DAY)}, NOW)
    assert hint.created_at == hint.updated_at == NOW - DAY


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("make", "hint"),
        ({}, "hint.value"),
        ({"value": "make", "component": "api"}, "hint.component"),
        ({"value": "make", "version": 0}, "hint.version"),
        ({"value": "make", "version": True}, "hint.version"),
        ({"value": "make", "use_count": -1}, "hint.use_count"),
        ({"value": "make", "failure_count": -1}, "hint.failure_count"),
        ({"value": "make", "created_at": "yesterday"}, "hint.created_at"),
        ({"value": "make", "updated_at": 1_800_000_000}, "hint.updated_at"),
        ({"value": "make", "last_used_at": None}, "hint.last_used_at"),
        ({"value": "make", "last_used_at": "1969-12-31T23:59:59Z"}, "hint.last_used_at"),
        ({"value": "make", "last_used_at": "2200-01-01T00:00:00Z"}, "hint.last_used_at"),
        ({"value": "make", "meta": {"priority": 11}}, "hint.meta.priority"),
        ({"value": {"type": "path", "abs": "x"}}, "hint.value.abs"),
    ],
)
def test_bad_wire_form_is_refused_by_field(raw: Any, field: str) -> None:
    """Each field of a hint from outside is checked, and the refusal names it."""
    with pytest.raises(Invalid) as refused:
        hint_from_json("api", "build", raw, NOW)
    assert refused.value.field == field


def test_bad_glob_keeps_its_error() -> None:
    """A bad glob is a bad scope wherever it comes from."""
    with pytest.raises(ScopeInvalid) as refused:
        hint_from_json("api", "build", {"value": "make", "meta": {"scope": {"cwd_glob": ["../x"]}}}, NOW)
    assert refused.value.field == "hint.meta.scope.cwd_glob[0]"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T08:00:00", NOW),
        ("2027-01-15T09:30:00+01:30", NOW),
        ("2027-01-15T08:00:00.5Z", NOW + 0.5),
        ("2027-01-15T08:00:00.123456+00:00", NOW + 0.123456),
    ],
)
def test_timestamp(text: str, seconds: float) -> None:
    """`Z`, an offset or neither; fractions are kept."""
    assert parse_timestamp(text, "at") == seconds


def test_expiry_counts_from_the_update() -> None:
    """A hint lives until its update plus its lifetime, that moment excluded."""
    hint = hint_at(NOW)
    assert hint.live_at(NOW + DAY - 0.001)
    assert not hint.live_at(NOW + DAY)


def test_session_hint_has_no_expiry() -> None:
    """Without a duration only the end of the session ends it."""
    hint = Hint.of("api", "build", "make", {}, created_at=NOW, updated_at=NOW)
    assert hint.expires_at is None and hint.live_at(NOW * 2)


def test_time_never_stands_still() -> None:
    """Each version is later than the one before, also when the clock is not."""
    held = hint_at(NOW)
    for _ in range(100):
        later = next_version(held, "api", "build", "make", {}, NOW)
        assert later.updated_at > held.updated_at
        assert later.to_json()["updated_at"] > held.to_json()["updated_at"]
        held = later


def test_change_survives_its_record() -> None:
    """A change written as JSON and read back is equal, floats included."""
    change = Change(
        (hint_at(NOW + 1 / 3, last_used_at=NOW + 1 / 7, use_count=1, failure_count=2),), (("api", "x", "{}"),)
    )
    again = Change.from_record(json.loads(json.dumps(change.to_record())))
    assert again == change
    assert again.puts[0].scope.key == change.puts[0].scope.key
    assert again.puts[0].texts == change.puts[0].texts


def test_empty_change_is_false() -> None:
    """Nothing to log is easy to see."""
    assert not Change()
    assert Change(removals=(("a", "b", "{}"),))


# Meta

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


def test_a_lifetime_of_many_digits_is_too_long() -> None:
    """The rule that it breaks is the maximum, not the form."""
    with pytest.raises(Invalid, match="at most 366 days"):
        parse_ttl("P99999999999D")
