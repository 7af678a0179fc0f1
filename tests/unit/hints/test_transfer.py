from __future__ import annotations

import json
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.errors import Invalid, QuotaExceeded, ScopeInvalid
from nudge.hints.transfer import Form, export_pieces
from tests.unit.hints.builders import (
    AWS_KEY,
    DAY,
    NOW,
    commit,
    decide_import,
    exported,
    finish,
    load,
    new_store,
    payload_with,
    put,
)

OLD, NEW = iso(NOW - DAY), iso(NOW - 1)


# Export


def test_shape_of_an_export() -> None:
    """Names sorted; a key holds its hint, or its variants in the order of their scopes."""
    store = new_store()
    second = put(store, "b", "x", "1")
    plain = put(store, "a", "y", "1")
    linux = put(store, "a", "y", "2", {"scope": {"os": ["linux"]}})
    first = put(store, "a", "x", "3")
    payload = exported(store, NOW + 5)
    assert payload == {
        "schema_version": "1.1",
        "created_at": iso(NOW),
        "session_id": "session-1",
        "components": {"a": {"hints": {"x": first, "y": [linux, plain]}}, "b": {"hints": {"x": second}}},
    }
    assert list(payload["components"]) == ["a", "b"]
    assert list(payload["components"]["a"]["hints"]) == ["x", "y"]


def test_export_of_one_component() -> None:
    """A part of the store; of a component that is not there, nothing."""
    store = new_store()
    put(store, "a", "x", "1")
    put(store, "b", "x", "1")
    assert list(exported(store, component="b")["components"]) == ["b"]
    assert exported(store, component="c")["components"] == {}


def test_secrets_stay_here() -> None:
    """A secret leaves without its value, unless it is to be revealed."""
    store = new_store()
    hint = put(store, "a", "x", AWS_KEY, {"sensitivity": "secret"})
    redacted = exported(store)["components"]["a"]["hints"]["x"]
    assert redacted == {**{name: content for name, content in hint.items() if name != "value"}, "redacted": True}
    assert exported(store, reveal=True)["components"]["a"]["hints"]["x"] == hint


@pytest.mark.parametrize("reveal", [False, True])
def test_the_pieces_of_an_export_are_the_export(reveal: bool) -> None:
    """An export that is written a hint at a time is the one that is made at once, with variants and without hints."""
    store = new_store()
    for pieces in (0, 300):
        for index in range(pieces):
            scope = {"os": ["linux"]} if index % 3 else {}
            meta = {"scope": scope, "sensitivity": "secret" if index % 7 == 0 else "normal"}
            put(store, f"c{index // 100}", f"k{index // 2}", "x" * (index + 1), meta)
        hints = store.live_hints(NOW)
        text = "".join(export_pieces(store.export_header(hints), hints, Form(reveal)))
        assert json.loads(text) == exported(store, reveal=reveal)


# Import


def test_round_trip() -> None:
    """What was exported, read into an empty store, is exported again the same: counts, times, variants and all."""
    store = new_store()
    put(
        store,
        "a",
        "x",
        {"type": "json", "data": {"n": [1.5, None]}},
        {"ttl": "P1D", "tags": ["t"], "confidence": 0.25},
        now=NOW + 1 / 3,
    )
    put(store, "a", "x", "linux", {"scope": {"os": ["linux"], "repo": ["git:o/a", "git:o/b"]}})
    put(store, "a", "x", "linux again", {"scope": {"os": ["linux"], "repo": ["git:o/a", "git:o/b"]}})
    commit(store, finish(store.decide_bump(NOW + 2 / 3, "a", "x")))
    payload = exported(store, NOW + 1)
    other = new_store()
    assert load(other, payload, now=NOW + 99) == {"imported": 2, "skipped": 0, "removed": 0, "reasons": []}
    assert exported(other, NOW + 99) == payload
    assert sorted(map(repr, other.hints())) == sorted(map(repr, store.hints()))


def test_merge_takes_the_newer() -> None:
    """The newer update wins and brings its fields, while versions count on from here; an equal or older one is left out
    with the reason."""
    store = new_store()
    load(store, payload_with({"x": {"value": "old", "updated_at": OLD, "version": 9, "use_count": 3}}))
    assert load(store, payload_with({"x": {"value": "same", "updated_at": OLD}})) == {
        "imported": 0,
        "skipped": 1,
        "removed": 0,
        "reasons": [{"component": "api", "key": "x", "reason": "not newer than the one here"}],
    }
    load(store, payload_with({"x": {"value": "new", "updated_at": NEW, "version": 2}}))
    hint = finish(store.get(NOW, "api", "x"))["hint"]
    assert (hint["value"], hint["version"], "use_count" in hint) == ("new", 10, False)


@pytest.mark.parametrize("mode", ["merge", "replace"])
@pytest.mark.parametrize(
    ("theirs", "value", "version"), [(1, "other", 3), (2, "other", 3), (7, "other", 7), (1, "two", 2)]
)
def test_a_version_that_was_seen_never_means_something_else(mode: str, theirs: int, value: str, version: int) -> None:
    """What an import overwrites counts on; what it repeats stays at its number."""
    store = new_store()
    put(store, "api", "k", "one")
    put(store, "api", "k", "two", now=NOW + 1)
    load(store, payload_with({"k": {"value": value, "version": theirs, "updated_at": iso(NOW + 2)}}), mode, now=NOW + 3)
    assert exported(store, NOW + 3)["components"]["api"]["hints"]["k"]["version"] == version


def test_a_hand_written_file_is_taken_and_an_edited_one_changes_what_it_says() -> None:
    """Without schema_version and times the file wins, as a `set` would; what it does not change stays as it is."""
    store = new_store()
    written = {"components": {"api": {"hints": {"x": {"value": "first"}, "y": {"value": "same"}}}}}
    assert load(store, written)["imported"] == 2
    written["components"]["api"]["hints"]["x"]["value"] = "edited"
    report = load(store, written, now=NOW + 1)
    assert report["imported"] == 1
    assert report["reasons"] == [{"component": "api", "key": "y", "reason": "already here, unchanged"}]
    hint = finish(store.get(NOW + 1, "api", "x"))["hint"]
    assert (hint["value"], hint["version"], hint["created_at"]) == ("edited", 2, iso(NOW))


def test_a_bare_text_in_a_hand_written_file_is_the_value() -> None:
    """`"lint": "npm run lint"` says all there is to say."""
    store = new_store()
    assert load(store, {"components": {"api": {"hints": {"lint": "npm run lint"}}}})["imported"] == 1
    assert finish(store.get(NOW, "api", "lint"))["hint"]["value"] == "npm run lint"


def test_an_export_calls_itself_1_1_when_it_holds_a_list_of_variants() -> None:
    """And 1.0 when not; a file of 1.0 that holds one is still taken."""
    store = new_store()
    put(store, "api", "x", "1")
    assert exported(store)["schema_version"] == "1.0"
    put(store, "api", "x", "2", {"scope": {"os": ["linux"]}})
    payload = exported(store)
    assert payload["schema_version"] == "1.1"
    assert load(new_store(), {**payload, "schema_version": "1.0"})["imported"] == 2


def test_skip_keeps_what_is_here() -> None:
    """Only what is missing comes in."""
    store = new_store()
    put(store, "api", "x", "mine", now=NOW - 2 * DAY)
    report = load(store, payload_with({"x": {"value": "theirs"}, "y": {"value": "new"}}), "skip")
    assert (report["imported"], report["skipped"]) == (1, 1)
    assert report["reasons"] == [{"component": "api", "key": "x", "reason": "already here"}]
    assert finish(store.get(NOW, "api", "x"))["hint"]["value"] == "mine"


def test_replace_makes_the_store_the_payload() -> None:
    """Everything else goes, and what is older wins too."""
    store = new_store()
    put(store, "api", "x", "mine")
    put(store, "api", "x", "variant", {"scope": {"os": ["linux"]}})
    put(store, "web", "y", "mine")
    report = load(store, payload_with({"x": {"value": "theirs", "updated_at": OLD}}), "replace")
    assert report == {"imported": 1, "skipped": 0, "removed": 2, "reasons": []}
    assert [(hint.component, hint.key, hint.value) for hint in store.hints()] == [("api", "x", "theirs")]


def test_replace_keeps_what_the_payload_names_and_cannot_bring() -> None:
    """A secret that was exported without its value, or that the guard refuses, is here still; only what is not named
    goes."""
    store = new_store()
    put(store, "api", "token", AWS_KEY, {"sensitivity": "secret"})
    put(store, "api", "other", "mine")
    put(store, "api", "gone", "mine")
    put(store, "api", "over", "mine", {"ttl": "PT1S"}, now=NOW - 2)
    payload = exported(store)["components"]["api"]["hints"]
    report = load(store, payload_with({"token": payload["token"], "other": {"value": AWS_KEY}}), "replace")
    assert (report["imported"], report["skipped"], report["removed"]) == (0, 2, 1)
    assert {hint.key: hint.value for hint in store.hints()} == {"token": AWS_KEY, "other": "mine"}


def test_a_time_from_the_future_is_now() -> None:
    """A clock that runs ahead elsewhere neither lengthens a TTL here nor spoils the times of later sets."""
    store = new_store()
    times = dict.fromkeys(("created_at", "updated_at", "last_used_at"), "2199-01-01T00:00:00Z")
    load(store, payload_with({"x": {"value": "1", "meta": {"ttl": "PT1H"}, "use_count": 1, **times}}))
    [hint] = store.hints()
    assert (hint.created_at, hint.updated_at, hint.last_used_at, hint.expires_at) == (NOW, NOW, NOW, NOW + 3_600)
    put(store, "api", "x", "2", {"ttl": "PT1H"}, now=NOW + 60)
    assert store.hints()[0].expires_at == NOW + 3_660


def test_the_last_version_can_be_read_back() -> None:
    """A hint that came with the highest version there is can be set and exported, and its export imported."""
    store = new_store()
    load(store, payload_with({"x": {"value": "1", "version": limits.MAX_VERSION}}))
    assert put(store, "api", "x", "2")["version"] == limits.MAX_VERSION
    assert load(new_store(), exported(store, NOW + 1), now=NOW + 1)["imported"] == 1


def test_list_and_single_are_both_read() -> None:
    """A key may hold a hint or a list of variants."""
    store = new_store()
    variants = [{"value": "a"}, {"value": "b", "meta": {"scope": {"os": ["linux"]}}}]
    assert load(store, payload_with({"x": {"value": "1"}, "y": variants, "z": []}))["imported"] == 3


def test_redacted_hint_is_skipped() -> None:
    """A hint without its value cannot be used, and says so; `redacted: false` is an ordinary hint."""
    store = new_store()
    report = load(
        store,
        payload_with(
            {"x": {"redacted": True, "meta": {"sensitivity": "secret"}}, "y": {"value": "1", "redacted": False}}
        ),
    )
    assert (report["imported"], report["skipped"]) == (1, 1)
    assert "without its value" in report["reasons"][0]["reason"]


def test_secret_is_skipped_alone() -> None:
    """One secret does not block a pack; it is named by field and kind and not repeated."""
    store = new_store()
    report = load(
        store,
        payload_with(
            {"x": {"value": AWS_KEY}, "y": {"value": "ok"}, "z": {"value": AWS_KEY, "meta": {"sensitivity": "secret"}}}
        ),
    )
    assert (report["imported"], report["skipped"]) == (2, 1)
    assert report["reasons"][0]["reason"].startswith("value looks like a secret")
    assert AWS_KEY not in str(report)


def test_expired_hint_is_skipped() -> None:
    """What is over when it arrives does not come in."""
    report = load(new_store(), payload_with({"x": {"value": "1", "updated_at": OLD, "meta": {"ttl": "PT1H"}}}))
    assert report["reasons"] == [{"component": "api", "key": "x", "reason": "expired"}]


def test_no_default_ttl_is_added() -> None:
    """An import changes no field."""
    store = new_store(default_ttl="PT1H")
    load(store, payload_with({"x": {"value": "1"}}))
    assert store.hints()[0].meta == {}


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (None, "payload"),
        ([], "payload"),
        ({"schema_version": "1.0"}, "payload.components"),
        ({"schema_version": 1.0, "components": {}}, "payload.schema_version"),
        ({"schema_version": "one", "components": {}}, "payload.schema_version"),
        ({"schema_version": "0.9", "components": {}}, "payload.schema_version"),
        ({"schema_version": "1.0", "components": []}, "payload.components"),
        ({"schema_version": "1.0", "components": {}, "extra": 1}, "payload.extra"),
        ({"schema_version": "1.0", "components": {}, "created_at": "x"}, "payload.created_at"),
        ({"schema_version": "1.0", "components": {}, "session_id": 1}, "payload.session_id"),
        ({"schema_version": "1.0", "components": {"api": {}}}, "payload.components.api.hints"),
        ({"schema_version": "1.0", "components": {"api": {"hints": {}, "x": 1}}}, "payload.components.api.x"),
        ({"schema_version": "1.0", "components": {"api": {"hints": []}}}, "payload.components.api.hints"),
        ({"schema_version": "1.0", "components": {" api": {"hints": {}}}}, "payload.components. api"),
        (payload_with({"": {"value": "x"}}), "payload.components.api.hints."),
        (payload_with({"build": 5}), "payload.components.api.hints.build"),
        (payload_with({"build": {}}), "payload.components.api.hints.build.value"),
        (payload_with({"build": {"value": "x", "colour": 1}}), "payload.components.api.hints.build.colour"),
        (payload_with({"build": {"value": "x", "redacted": 1}}), "payload.components.api.hints.build.redacted"),
        (
            payload_with({"build": {"value": "x", "meta": {"priority": 11}}}),
            "payload.components.api.hints.build.meta.priority",
        ),
        (
            payload_with({"build": {"redacted": True, "meta": {"priority": 11}}}),
            "payload.components.api.hints.build.meta.priority",
        ),
        (payload_with({"build": [{"value": "x"}, {"value": 5}]}), "payload.components.api.hints.build[1].value"),
        (
            payload_with({"build": [{"value": "x"}, {"value": "y", "meta": {"scope": {}}}]}),
            "payload.components.api.hints.build[1]",
        ),
    ],
)
def test_malformed_payload_is_refused_whole(payload: Any, field: str) -> None:
    """The first error refuses everything and names its place."""
    store = new_store()
    with pytest.raises(Invalid) as refused:
        decide_import(store, NOW, payload)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("content", "sentence"), [(8080, "must be a text, an object or a list"), ([8080], "must be a text or an object")]
)
def test_what_a_hint_in_a_file_may_be(content: Any, sentence: str) -> None:
    """The error names all three forms, and inside a list of variants the two that it takes."""
    with pytest.raises(Invalid, match=f"{sentence}$"):
        decide_import(new_store(), NOW, payload_with({"port": content}))


def test_bad_glob_in_a_payload() -> None:
    """A bad scope keeps its own error."""
    with pytest.raises(ScopeInvalid) as refused:
        load(new_store(), payload_with({"x": {"value": "1", "meta": {"scope": {"cwd_glob": ["/a/../b"]}}}}))
    assert refused.value.field == "payload.components.api.hints.x.meta.scope.cwd_glob[0]"


@pytest.mark.parametrize("version", ["2.0", "1.3", "1.99"])
def test_future_schema_is_refused(version: str) -> None:
    """A payload of a newer version is not guessed at."""
    with pytest.raises(Invalid, match="newer Nudge"):
        load(new_store(), {"schema_version": version, "components": {}})


def test_quota_refuses_the_whole_import() -> None:
    """Nothing is taken of what does not fit as a whole; replacing is counted by what will be there."""
    store = new_store(max_hints=2)
    put(store, "web", "x", "mine")
    payload = payload_with({"a": {"value": "1"}, "b": {"value": "2"}})
    with pytest.raises(QuotaExceeded):
        load(store, payload)
    assert len(store) == 1
    assert load(store, payload, "replace")["imported"] == 2


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_an_import_that_is_larger_than_the_store_names_both_numbers(mode: str) -> None:
    """Deleting hints cannot make room for it: the message has the number of its hints, the limit, and the setting."""
    store = new_store(max_hints=2)
    put(store, "c", "old", "x")
    many = payload_with({f"k{number}": {"value": "x"} for number in range(4)})
    with pytest.raises(QuotaExceeded, match=r"^4 hints at once are more than the limit of 2: .*NUDGE_MAX_HINTS=4 "):
        load(store, many, mode)
    with pytest.raises(QuotaExceeded, match="delete some, or raise NUDGE_MAX_HINTS"):
        load(store, payload_with({"a": {"value": "x"}, "b": {"value": "x"}}))


def test_expired_place_is_not_counted_twice() -> None:
    """A hint that takes the place of an expired one fills that place: the sweep frees no second one."""
    store = new_store(max_hints=3)
    put(store, "api", "a", "over", {"ttl": "PT1S"})
    put(store, "api", "b", "mine")
    hints = {key: {"value": "theirs"} for key in ("a", "c", "d")}
    with pytest.raises(QuotaExceeded):
        load(store, payload_with(hints), now=NOW + 1)
    del hints["d"]
    assert load(store, payload_with(hints), now=NOW + 1)["imported"] == 2


def test_reasons_are_bounded() -> None:
    """All skipped hints are counted, the first of them explained."""
    hints = {f"k{index}": {"redacted": True} for index in range(150)}
    report = load(new_store(), payload_with(hints))
    assert report["skipped"] == 150
    assert len(report["reasons"]) == limits.MAX_IMPORT_REASONS


def test_an_import_is_decided_by_the_store_of_that_moment() -> None:
    """What is written between the reading of a payload and the decision counts as there."""
    store = new_store()
    incoming = store.read_payload(NOW, payload_with({"a": {"value": "theirs", "updated_at": OLD}, "b": "theirs"}))
    put(store, "api", "a", "mine")
    assert commit(store, store.decide_import(NOW, incoming, "merge"))["skipped"] == 1
    assert finish(store.get(NOW, "api", "a"))["hint"]["value"] == "mine"
    assert finish(store.get(NOW, "api", "b"))["hint"]["value"] == "theirs"


def test_a_page_of_an_export_is_refused() -> None:
    """A payload that says in `next` that it has more is not imported as if it were all; null means that it is."""
    page = {**payload_with({"a": "x"}), "next": "t:500"}
    with pytest.raises(Invalid, match=r"this is one page of an export.*nudge export -o FILE"):
        load(new_store(), page)
    assert load(new_store(), {**page, "next": None})["imported"] == 1


def test_a_hint_that_expires_before_the_commit_is_skipped() -> None:
    """The commit decides, not the reading."""
    store = new_store()
    incoming = store.read_payload(NOW, payload_with({"a": {"value": "x", "meta": {"ttl": "PT1M"}}}))
    assert store.decide_import(NOW + 61, incoming, "merge").result["reasons"][0]["reason"] == "expired"
