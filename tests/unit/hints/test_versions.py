"""What a hint said before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.hints.model import Change, Hint
from nudge.hints.store import HintStore
from nudge.hints.transfer import Form, export_components
from tests.unit.hints.builders import AWS_KEY, DAY, NOW, commit, exported, finish, found_by, load, new_store, put

SECRET = {"sensitivity": "secret"}
EARLIER = {"version": 1, "value": "make all", "set_at": "2026-11-16T08:30:00Z", "by": "agent:codex", "session": "s-1"}


def hint_of(store: HintStore, key: str = "build") -> Hint:
    (hint,) = store.find_variants(NOW + DAY, "api", key)
    return hint


def said(store: HintStore, key: str = "build") -> list[Any]:
    return [one.value for one in hint_of(store, key).earlier]


def replayed(store: HintStore) -> HintStore:
    """Another store, from the log that a compaction writes."""
    other = new_store()
    for hint in store.hints():
        record = json.loads(json.dumps(Change(puts=(hint,), is_whole=True).to_record()))
        other.apply(Change.from_record(record))
    return other


def payload(hint: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": "1.2", "components": {"api": {"hints": {"build": hint}}}}


def test_each_value_is_kept_with_who_set_it() -> None:
    """The last one first: its version, reason, time, author and session."""
    store = new_store()
    put(store, "api", "build", "make", {"reason": "as in CI", "added_by": "agent:codex"}, session="s-1")
    put(store, "api", "build", "make -j", now=NOW + 1, session="s-2")
    put(store, "api", "build", "make -j4", now=NOW + 2)
    last, first = hint_of(store).earlier
    assert (first.version, first.value, first.reason, first.set_at) == (1, "make", "as in CI", NOW)
    assert (first.by, first.session) == ("agent:codex", "s-1")
    assert (last.version, last.value, last.session) == (2, "make -j", "s-2")
    assert hint_of(store).session is None


def test_credit_and_the_same_value_again_are_no_version() -> None:
    store = new_store()
    put(store, "api", "build", "make", session="s-1")
    put(store, "api", "build", "make -j", session="s-2")
    put(store, "api", "build", "make -j", {"tags": ["ci"]}, session="s-3")
    commit(store, finish(store.decide_bump(NOW, "api", "build")))
    assert said(store) == ["make"]
    assert hint_of(store).session == "s-3"


def test_another_reason_is_a_version() -> None:
    store = new_store()
    put(store, "api", "build", "make", {"reason": "a guess"})
    put(store, "api", "build", "make", {"reason": "CI runs it"})
    assert [one.reason for one in hint_of(store).earlier] == ["a guess"]


def test_the_last_ones_are_kept() -> None:
    """At most MAX_EARLIER_VERSIONS, and as many bytes as one value of the largest size takes."""
    store = new_store()
    for number in range(14):
        put(store, "api", "build", f"make {number}")
    assert said(store) == [f"make {number}" for number in range(12, 2, -1)]
    for number in range(3):
        put(store, "api", "large", str(number) * (limits.MAX_VALUE_BYTES - 2))
    assert [value[0] for value in said(store, "large")] == ["1"]


def test_they_go_with_the_hint() -> None:
    """Deleted or expired, then set again: it has said nothing before."""
    store = new_store()
    for value in ("make", "make -j"):
        put(store, "api", "build", value)
    commit(store, store.decide_delete(NOW, "api", "build"))
    put(store, "api", "build", "ninja")
    assert said(store) == []
    put(store, "api", "short", "one", {"ttl": "PT1H"})
    put(store, "api", "short", "two", now=NOW + 2 * 3600)
    assert said(store, "short") == []


def test_secrets_say_nothing_of_what_they_were() -> None:
    """A hint that becomes a secret was meant to be one before; what replaces a secret does not tell it either."""
    store = new_store()
    put(store, "api", "build", "hunter2-old")
    put(store, "api", "build", "hunter2", {**SECRET, "reason": "the vault's"})
    (before,) = hint_of(store).earlier
    assert before.is_redacted and before.version == 1
    put(store, "api", "build", "see the vault")
    kept = hint_of(store).earlier
    assert [one.is_redacted for one in kept] == [True, True]
    assert [one.reason for one in kept] == [None, None]
    assert "hunter2" not in json.dumps(exported(store, versions=True))


def test_a_compacted_log_has_them() -> None:
    """With the session, and without a second entry for what is put again."""
    store = new_store()
    for number, value in enumerate(("make", "make -j", "ninja")):
        put(store, "api", "build", value, now=NOW + number, session=f"s-{number}")
    other = replayed(store)
    assert hint_of(other).earlier == hint_of(store).earlier
    assert hint_of(other).session == "s-2"
    put(other, "api", "build", "bazel")
    assert said(other) == ["ninja", "make -j", "make"]


def test_a_large_change_keeps_them() -> None:
    """As applying it does, also where one change removes a hint and puts it again."""
    store = new_store()
    for key in ("build", "test"):
        put(store, "api", key, "make")
    new = [Hint.of("api", key, "ninja", {}, created_at=NOW, updated_at=NOW + 1) for key in ("build", "test", "run")]
    change = Change(tuple(new), (hint_of(store, "test").identity,))
    store.swap(store.prepare(change))
    assert said(store) == ["make"]
    assert said(store, "test") == said(store, "run") == []


def test_records_of_earlier_releases_are_read() -> None:
    """They have neither field; and a record with a hint as it was set has no earlier values."""
    store = new_store()
    put(store, "api", "build", "make")
    put(store, "api", "build", "ninja", session="s-1")
    record = Change(puts=(hint_of(store),)).to_record()["puts"][0]
    assert "earlier" not in record and record["session"] == "s-1"
    old = Hint.from_record({name: content for name, content in record.items() if name != "session"})
    assert (old.session, old.earlier) == (None, ())


def test_search_does_not_find_them() -> None:
    store = new_store()
    put(store, "api", "build", "cargo build")
    put(store, "api", "build", "ninja")
    assert found_by(store, text="cargo") == []
    assert found_by(store, text="ninja") == ["api/build"]


def test_an_export_has_them_when_asked() -> None:
    """What one store writes another reads: it is imported with them, and the log of the import has them."""
    store = new_store()
    for value in ("make", "ninja"):
        put(store, "api", "build", value, session="s-1")
    assert "earlier" not in json.dumps(exported(store)) and exported(store)["schema_version"] == "1.0"
    whole = exported(store, versions=True)
    assert whole["schema_version"] == "1.2"
    other = new_store()
    assert load(other, whole, now=NOW + 1)["imported"] == 1
    assert hint_of(other).earlier == hint_of(store).earlier
    assert export_components(other.hints(), Form(versions=True)) == whole["components"]


def test_an_import_is_guarded() -> None:
    """An earlier value that looks like a secret, or of a hint that is one, comes without the value."""
    store = new_store()
    load(store, payload({"value": "make", "earlier": [{**EARLIER, "value": f"deploy {AWS_KEY}"}, EARLIER]}))
    assert [one.value for one in hint_of(store).earlier] == [None, "make all"]
    other = new_store()
    load(other, payload({"value": "hunter2", "meta": SECRET, "earlier": [EARLIER]}))
    assert said(other) == [None]


@pytest.mark.parametrize(
    ("earlier", "field"),
    [
        ({}, "earlier"),
        ([EARLIER] * 11, "earlier"),
        ([{**EARLIER, "version": 0}], "earlier[0].version"),
        ([{**EARLIER, "set_at": "yesterday"}], "earlier[0].set_at"),
        ([{"value": "x", "version": 1}], "earlier[0].set_at"),
        ([{**EARLIER, "by": "x" * 200}], "earlier[0].by"),
        ([{**EARLIER, "more": 1}], "earlier[0].more"),
    ],
)
def test_what_is_malformed_is_refused(earlier: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        load(new_store(), payload({"value": "make", "earlier": earlier}))
    assert refused.value.field == f"payload.components.api.hints.build.{field}"
