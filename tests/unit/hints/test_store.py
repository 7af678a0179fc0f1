from __future__ import annotations

import json
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.context import Context
from nudge.core.errors import Conflict, Invalid, NotFound, QuotaExceeded, ScopeInvalid, SecretRejected
from nudge.hints.model import Change, Hint
from nudge.hints.store import HintStore
from tests.unit.hints.builders import (
    AWS_KEY,
    DAY,
    NOW,
    commit,
    decide_import,
    exported,
    finish,
    found_by,
    load,
    new_store,
    payload_with,
    put,
)

LINUX, DARWIN, WINDOWS = (Context(os=name) for name in ("linux", "darwin", "windows"))


# set


def test_first_set() -> None:
    """A new hint is version 1, created and updated now, and comes back whole."""
    hint = put(new_store(), "api", "build", "make", {"priority": 7})
    assert hint == {
        "value": "make",
        "meta": {"priority": 7},
        "version": 1,
        "created_at": iso(NOW),
        "updated_at": iso(NOW),
    }


def test_same_scope_replaces() -> None:
    """Value and meta are replaced whole; version rises; creation and counts stay."""
    store = new_store()
    put(store, "api", "build", "make", {"priority": 7, "tags": ["x"], "scope": {"os": ["linux", "darwin"]}})
    commit(store, finish(store.decide_bump(NOW + 1, "api", "build", LINUX)))
    hint = put(store, "api", "build", "make all", {"scope": {"os": ["darwin", "linux"]}}, now=NOW + 2)
    assert hint == {
        "value": "make all",
        "meta": {"scope": {"os": ["darwin", "linux"]}},
        "version": 2,
        "created_at": iso(NOW),
        "updated_at": iso(NOW + 2),
        "last_used_at": iso(NOW + 1),
        "use_count": 1,
    }
    assert len(store) == 1


def test_other_scope_adds_a_variant() -> None:
    """The same key with another scope is another hint, with its own version."""
    store = new_store()
    put(store, "api", "dir", "/srv", {"scope": {"os": ["linux"]}})
    assert put(store, "api", "dir", "/Users", {"scope": {"os": ["darwin"]}})["version"] == 1
    assert len(store) == 2


def test_deciding_changes_nothing() -> None:
    """A decision that is not applied leaves no trace."""
    store = new_store()
    put(store, "api", "build", "make", {"tags": ["x"]})
    before = exported(store)
    store.decide_set(NOW + 1, "api", "build", "other")
    store.decide_set(NOW + 1, "new", "build", "other")
    store.decide_delete(NOW + 1, "api", "build")
    finish(store.decide_bump(NOW + 1, "api", "build"))
    decide_import(store, NOW + 1, before, "replace")
    store.decide_sync(NOW + 1, {}, "scan", [("api", "x", "y", {})])
    assert exported(store) == before


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", "build", "make"), "component"),
        (("api", 5, "make"), "key"),
        (("api", "build", ""), "value"),
        (("api", "build", "make", {"priority": 0}), "meta.priority"),
        (("api", "build", "make", None, -1), "if_match_version"),
        (("api", "build", "make", None, True), "if_match_version"),
        (("api", "build", "make", None, "1"), "if_match_version"),
    ],
)
def test_bad_argument_is_refused_by_field(arguments: tuple[Any, ...], field: str) -> None:
    """Each argument is checked, and the refusal names it."""
    with pytest.raises(Invalid) as refused:
        new_store().decide_set(NOW, *arguments)
    assert refused.value.field == field


def test_matching_version_passes() -> None:
    """The version the caller has read lets its write pass, and 0 asks for a new hint."""
    store = new_store()
    assert put(store, "api", "build", "make", if_match_version=0)["version"] == 1
    assert put(store, "api", "build", "make", if_match_version=1)["version"] == 2


@pytest.mark.parametrize(
    ("expected", "scope", "actual", "said"),
    [
        (0, {}, 2, "exists already, at version 2: read it"),
        (1, {}, 2, "is at version 2, not 1: read it again"),
        (3, {}, 2, "is at version 2, not 3: read it again"),
        (2, {"os": ["linux"]}, 0, "has no version 2, as it does not exist with this scope: see what there is"),
        (1, {"os": ["linux"]}, 0, "has no version 1, as it does not exist with this scope: see what there is"),
    ],
)
def test_other_version_conflicts(expected: int, scope: dict[str, Any], actual: int, said: str) -> None:
    """Any other version is a conflict that tells both, in a sentence; it is the version of the variant with the same
    scope."""
    store = new_store()
    put(store, "api", "build", "make")
    put(store, "api", "build", "make")
    with pytest.raises(Conflict) as refused:
        store.decide_set(NOW, "api", "build", "x", {"scope": scope}, if_match_version=expected)
    assert refused.value.data == {"expected": expected, "actual": actual}
    assert refused.value.message == f"api/build {said}, then retry"


# TTL


def test_expired_hint_is_nowhere() -> None:
    """From the moment it expires a hint is seen by no read, counted nowhere and changed by no write."""
    store = new_store()
    put(store, "api", "build", "make", {"ttl": "PT1H", "tags": ["t"]})
    then = NOW + 3_600
    assert finish(store.get(then - 1, "api", "build"))["hint"]["value"] == "make"
    for read in (store.get, store.decide_bump):
        with pytest.raises(NotFound, match="component api is not known"):
            finish(read(then, "api", "build"))
    with pytest.raises(NotFound, match="component api is not known"):
        store.decide_delete(then, "api", "build")
    assert finish(store.query(then)) == {"hints": []}
    assert finish(store.list_components(then)) == {"components": []}
    assert finish(store.list_components(then, "api")) == {"components": [], "hints": []}
    assert exported(store, then)["components"] == {}


def test_set_after_expiry_starts_anew() -> None:
    """An expired hint does not exist: version 1, fresh counts, and 0 matches."""
    store = new_store()
    put(store, "api", "build", "make", {"ttl": "PT1H"})
    commit(store, finish(store.decide_bump(NOW, "api", "build")))
    hint = put(store, "api", "build", "make", now=NOW + DAY, if_match_version=0)
    assert hint == {
        "value": "make",
        "meta": {},
        "version": 1,
        "created_at": iso(NOW + DAY),
        "updated_at": iso(NOW + DAY),
    }


def test_set_renews_the_ttl_and_use_does_not() -> None:
    """Life is counted from the last set."""
    store = new_store()
    put(store, "api", "build", "make", {"ttl": "PT1H"})
    commit(store, finish(store.decide_bump(NOW + 3_000, "api", "build")))
    with pytest.raises(NotFound):
        finish(store.get(NOW + 3_600, "api", "build"))
    put(store, "api", "build", "make", {"ttl": "PT1H"}, now=NOW + 3_599)
    assert finish(store.get(NOW + 7_000, "api", "build"))["hint"]["value"] == "make"


def test_sweep_frees_what_expired() -> None:
    """A sweep removes expired hints and nothing else."""
    store = new_store()
    put(store, "api", "short", "x", {"ttl": "PT1S"})
    put(store, "api", "long", "x", {"ttl": "P1D"})
    put(store, "api", "session", "x")
    assert not store.decide_sweep(NOW)
    store.apply(store.decide_sweep(NOW + 1))
    assert sorted(hint.key for hint in store.hints()) == ["long", "session"]


def test_default_ttl_is_written_down() -> None:
    """A default duration becomes the hint's own; the default `session` does not, and what is given wins."""
    store = new_store(default_ttl="PT1H")
    assert put(store, "api", "a", "x")["meta"] == {"ttl": "PT1H"}
    assert put(store, "api", "b", "x", {"ttl": "session"})["meta"] == {"ttl": "session"}
    assert put(new_store(), "api", "c", "x")["meta"] == {}


def test_bad_default_ttl() -> None:
    """A setting that no hint could have is refused at the start."""
    with pytest.raises(Invalid, match="default_ttl"):
        new_store(default_ttl="forever")


# Quotas


def test_quota_of_hints() -> None:
    """The last place can be taken, the next hint is refused with what to do; changing what is there goes on."""
    store = new_store(max_hints=2)
    put(store, "a", "x", "1")
    put(store, "b", "x", "1")
    with pytest.raises(QuotaExceeded, match=r"limit of 2 hints .* NUDGE_MAX_HINTS") as refused:
        store.decide_set(NOW, "c", "x", "1")
    assert refused.value.data == {"limit": "hints", "max": 2}
    assert put(store, "a", "x", "2")["version"] == 2


def test_quota_of_a_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """One component cannot fill the store; its variants count."""
    monkeypatch.setattr(limits, "MAX_HINTS_PER_COMPONENT", 2)
    store = new_store()
    put(store, "a", "x", "1")
    put(store, "a", "x", "1", {"scope": {"os": ["linux"]}})
    with pytest.raises(QuotaExceeded, match="per component"):
        store.decide_set(NOW, "a", "y", "1")
    put(store, "b", "y", "1")


def test_quota_of_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of components is bounded too, and a deleted one makes room."""
    monkeypatch.setattr(limits, "MAX_COMPONENTS", 2)
    store = new_store()
    put(store, "a", "x", "1")
    put(store, "b", "x", "1")
    with pytest.raises(QuotaExceeded, match="2 components"):
        store.decide_set(NOW, "c", "x", "1")
    commit(store, store.decide_delete(NOW, "a", "x"))
    assert put(store, "c", "x", "1")["version"] == 1


def test_expired_hints_make_room() -> None:
    """What expired does not count, and the write that needs its place frees it."""
    store = new_store(max_hints=2)
    put(store, "a", "x", "1", {"ttl": "PT1S"})
    put(store, "b", "x", "1", {"ttl": "PT1S"})
    put(store, "c", "x", "1", now=NOW + 1)
    assert [hint.component for hint in store.hints()] == ["c"]


def asking_for(*names: str, **meta: Any) -> dict[str, Any]:
    return {"scope": {"env_required": list(names)}, **meta}


def test_quota_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scopes together ask for so many variables, each counted once: a caller may have to tell all of them with one
    call."""
    monkeypatch.setattr(limits, "MAX_ENV_NAMES", 3)
    store = new_store()
    put(store, "api", "x", "1", asking_for("A", "B"))
    put(store, "api", "y", "1", asking_for("B", "C"))
    with pytest.raises(QuotaExceeded, match="3 environment variables"):
        store.decide_set(NOW, "api", "z", "1", asking_for("D"))
    put(store, "api", "y", "2", asking_for("B", "C"))
    put(store, "api", "z", "1", asking_for("A", "C"))
    assert store.env_names() == {"A", "B", "C"}


def test_a_variable_that_nobody_asks_for_any_more_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint that goes, expires or is replaced takes its variables with it, unless another asks for them too."""
    monkeypatch.setattr(limits, "MAX_ENV_NAMES", 3)
    store = new_store()
    put(store, "api", "x", "1", asking_for("A", "B"))
    put(store, "api", "y", "1", asking_for("B", "C", ttl="PT1S"))
    put(store, "api", "z", "1", asking_for("D"), now=NOW + 1)
    assert store.env_names() == {"A", "B", "D"}
    load(store, payload_with({"w": {"value": "1", "meta": asking_for("B", "E", "F")}}), "replace")
    assert store.env_names() == {"B", "E", "F"}


# The secret guard


@pytest.mark.parametrize(
    ("component", "key", "value", "meta", "field"),
    [
        ("api", "k", AWS_KEY, {}, "value"),
        ("api", "env.DB_PASSWORD", "correct-horse-9battery", {}, "value"),
        ("api", "k", {"type": "command", "cmd": f"deploy {AWS_KEY}"}, {}, "value.cmd"),
        ("api", "k", {"type": "path", "abs": f"/home/{AWS_KEY}"}, {}, "value.abs"),
        ("api", "k", {"type": "template", "format": "jinja", "body": AWS_KEY}, {}, "value.body"),
        (
            "api",
            "k",
            {"type": "template", "format": "jinja", "body": "x", "defaults": {"a": AWS_KEY}},
            {},
            "value.defaults",
        ),
        ("api", "k", {"type": "json", "data": [{"a": ["x", AWS_KEY]}]}, {}, "value.data"),
        ("api", "k", {"type": "json", "data": {AWS_KEY: 1}}, {}, "value.data"),
        ("api", "k", {"type": "json", "data": {"db_password": "correct-horse-9battery"}}, {}, "value.data"),
        (AWS_KEY, "k", "x", {}, "component"),
        ("api", AWS_KEY, "x", {}, "key"),
        ("api", "k", "x", {"reason": f"see {AWS_KEY}"}, "meta.reason"),
        ("api", "k", "x", {"tags": ["ok", AWS_KEY]}, "meta.tags[1]"),
        ("api", "k", "x", {"added_by": AWS_KEY}, "meta.added_by"),
        ("api", "k", "x", {"scope": {"env_match": {"KEY": ["a", AWS_KEY]}}}, "meta.scope.env_match.KEY"),
    ],
)
def test_secret_is_rejected(component: str, key: str, value: Any, meta: dict[str, Any], field: str) -> None:
    """Wherever it hides, a secret is refused by field and kind, and is not repeated."""
    with pytest.raises(SecretRejected) as refused:
        new_store().decide_set(NOW, component, key, value, meta)
    assert refused.value.field == field
    assert refused.value.data["kind"]
    assert AWS_KEY not in str(refused.value.to_json())


def test_rejection_tells_the_override() -> None:
    """Whoever means it is told how to say so."""
    with pytest.raises(SecretRejected, match=r'to keep it anyway, set meta.sensitivity to "secret"$'):
        new_store().decide_set(NOW, "api", "k", AWS_KEY)


def test_marked_secret_is_kept() -> None:
    """`sensitivity: secret` lets the value pass, and only the value."""
    store = new_store()
    assert put(store, "api", "k", AWS_KEY, {"sensitivity": "secret"})["value"] == AWS_KEY
    with pytest.raises(SecretRejected, match="only the value"):
        store.decide_set(NOW, "api", "k", "x", {"sensitivity": "secret", "reason": AWS_KEY})


def test_guard_can_be_off() -> None:
    """Without the guard everything passes."""
    assert put(new_store(secret_guard=False), "api", "k", AWS_KEY)["value"] == AWS_KEY


# get


def test_each_system_gets_its_own() -> None:
    """One key, one variant per operating system, and each caller gets the one that applies."""
    store = new_store()
    for name, path in (("linux", "/srv"), ("darwin", "/Users/dev"), ("windows", "c:\\code")):
        put(store, "http-proxy", "directory", path, {"scope": {"os": [name]}})
    result = [
        finish(store.get(NOW, "http-proxy", "directory", here))["hint"]["value"] for here in (LINUX, DARWIN, WINDOWS)
    ]
    assert result == ["/srv", "/Users/dev", "c:\\code"]


def test_more_specific_variant_wins() -> None:
    """Where several apply, the better score is returned and the reasons say that there was a choice."""
    store = new_store()
    put(store, "api", "build", "anywhere")
    put(store, "api", "build", "here", {"scope": {"os": ["linux"]}})
    answer = finish(store.get(NOW, "api", "build", LINUX))
    assert answer["hint"]["value"] == "here"
    assert answer["match_explain"]["reasons"] == ["os=linux allowed", "best of 2 variants that apply"]
    assert finish(store.get(NOW, "api", "build", DARWIN))["hint"]["value"] == "anywhere"


def test_use_outweighs_age() -> None:
    """A variant that keeps working beats one that is merely there."""
    store = new_store()
    put(store, "api", "build", "used", {"scope": {"env_required": ["A"]}})
    put(store, "api", "build", "new", {"scope": {"env_required": ["B"]}}, now=NOW + 1)
    here = Context(env={"A": "", "B": ""})
    assert finish(store.get(NOW + 1, "api", "build", here))["hint"]["value"] == "new"
    commit(store, finish(store.decide_bump(NOW + 1, "api", "build", Context(env={"A": ""}))))
    assert finish(store.get(NOW + 1, "api", "build", here))["hint"]["value"] == "used"


def test_unknown_component() -> None:
    """The miss says that the component itself is unknown."""
    with pytest.raises(NotFound, match="component api is not known") as missed:
        finish(new_store().get(NOW, "api", "build"))
    assert missed.value.data == {"component": "api", "key": "build", "why_not": []}


def test_unknown_key_suggests_known_ones() -> None:
    """The miss names what the component does have, a few of them."""
    store = new_store()
    for index in range(12):
        put(store, "api", f"k{index:02}", "x")
    with pytest.raises(NotFound, match="api has no key build") as missed:
        finish(store.get(NOW, "api", "build"))
    assert missed.value.data["known_keys"] == [f"k{index:02}" for index in range(10)]


def test_why_not() -> None:
    """A miss by scope tells each variant's scope and what stood in the way, the nearest first."""
    store = new_store()
    put(store, "api", "build", "a", {"scope": {"branch": ["dev"], "os": ["darwin"]}})
    put(store, "api", "build", "b", {"scope": {"branch": ["dev"]}})
    with pytest.raises(NotFound, match="none of its 2 variants applies here") as missed:
        finish(store.get(NOW, "api", "build", Context(branch="main", os="linux")))
    assert missed.value.data["why_not"] == [
        {"scope": {"branch": ["dev"]}, "reasons": ["branch=main, needs dev"]},
        {
            "scope": {"branch": ["dev"], "os": ["darwin"]},
            "reasons": ["branch=main, needs dev", "os=linux, needs darwin"],
        },
    ]


def test_why_not_is_bounded() -> None:
    """A key with many variants does not answer a miss with all of them."""
    store = new_store()
    for index in range(30):
        put(store, "api", "build", "x", {"scope": {"branch": [f"b{index}"]}})
    with pytest.raises(NotFound) as missed:
        finish(store.get(NOW, "api", "build"))
    assert len(missed.value.data["why_not"]) == limits.MAX_WHY_NOT


# bump


def test_bump_counts_use() -> None:
    """Credit raises the count and the time of use, and nothing else."""
    store = new_store()
    before = put(store, "api", "build", "make")
    hint = commit(store, finish(store.decide_bump(NOW + 5, "api", "build", delta=4)))["hint"]
    assert hint == {**before, "use_count": 4, "last_used_at": iso(NOW + 5)}
    assert finish(store.get(NOW + 5, "api", "build"))["hint"] == hint


def test_negative_bump() -> None:
    """Failures have a count of their own: the uses stay, and a failure is none."""
    store = new_store()
    put(store, "api", "build", "make")
    commit(store, finish(store.decide_bump(NOW + 5, "api", "build", delta=7)))
    result = commit(store, finish(store.decide_bump(NOW + 9, "api", "build", delta=-5)))
    assert (result["hint"]["use_count"], result["hint"]["failure_count"]) == (7, 5) and "note" not in result
    assert result["hint"]["last_used_at"] == iso(NOW + 5)


def test_a_hint_that_fails_as_often_as_it_works() -> None:
    """It is to be corrected, and that is what is said; the failures of the old value then count no more."""
    store = new_store()
    put(store, "api", "build", "make")
    assert commit(store, finish(store.decide_bump(NOW, "api", "build", delta=-1)))["note"].endswith("or delete it")
    commit(store, finish(store.decide_bump(NOW, "api", "build")))
    assert "note" in commit(store, finish(store.decide_bump(NOW, "api", "build", delta=-1)))
    assert put(store, "api", "build", "make", {"priority": 6})["failure_count"] == 2
    corrected = put(store, "api", "build", "make all")
    assert corrected["use_count"] == 1 and "failure_count" not in corrected


def test_bump_credits_what_get_returns() -> None:
    """The context decides which variant gets the credit."""
    store = new_store()
    put(store, "api", "build", "l", {"scope": {"os": ["linux"]}})
    put(store, "api", "build", "d", {"scope": {"os": ["darwin"]}})
    assert commit(store, finish(store.decide_bump(NOW, "api", "build", DARWIN)))["hint"]["value"] == "d"
    assert "use_count" not in finish(store.get(NOW, "api", "build", LINUX))["hint"]
    with pytest.raises(NotFound):
        finish(store.decide_bump(NOW, "api", "build", WINDOWS))


@pytest.mark.parametrize("delta", [0, 1_001, -1_001, True, 1.0, "1", None])
def test_bad_delta(delta: object) -> None:
    """A credit is a whole number other than 0, of bounded size."""
    store = new_store()
    put(store, "api", "build", "make")
    with pytest.raises(Invalid) as refused:
        finish(store.decide_bump(NOW, "api", "build", delta=delta))
    assert refused.value.field == "delta"


# delete


def test_delete_one() -> None:
    """What was deleted comes back once more, and is gone with its component."""
    store = new_store()
    hint = put(store, "api", "build", "make", {"tags": ["t"]})
    assert commit(store, store.decide_delete(NOW, "api", "build")) == {"deleted": True, "previous": hint}
    assert len(store) == 0
    assert finish(store.list_components(NOW)) == {"components": []}


def test_delete_takes_all_variants() -> None:
    """Without a scope every variant goes, and all are told in the order of their scopes."""
    store = new_store()
    everywhere = put(store, "api", "build", "x")
    linux = put(store, "api", "build", "y", {"scope": {"os": ["linux"]}})
    assert commit(store, store.decide_delete(NOW, "api", "build"))["previous"] == [linux, everywhere]
    assert len(store) == 0


@pytest.mark.parametrize(("scope", "left"), [({}, "y"), ({"os": ["linux"]}, "x")])
def test_delete_one_variant(scope: dict[str, Any], left: str) -> None:
    """A scope picks its variant; the empty one picks the variant that applies everywhere."""
    store = new_store()
    put(store, "api", "build", "x")
    put(store, "api", "build", "y", {"scope": {"os": ["linux"]}})
    commit(store, store.decide_delete(NOW, "api", "build", scope))
    assert [hint.value for hint in store.hints()] == [left]


def test_delete_nothing() -> None:
    """What is not there cannot be deleted; a wrong scope is told the ones there are."""
    store = new_store()
    put(store, "api", "build", "x", {"scope": {"os": ["linux"]}})
    with pytest.raises(NotFound, match="api has no key test"):
        store.decide_delete(NOW, "api", "test")
    with pytest.raises(NotFound, match="no variant with that scope") as missed:
        store.decide_delete(NOW, "api", "build", {})
    assert missed.value.data["scopes"] == [{"os": ["linux"]}]


# list


def test_list_components() -> None:
    """Components by name, with how many hints each has, variants counted."""
    store = new_store()
    put(store, "b", "x", "1")
    put(store, "a", "x", "1")
    put(store, "a", "x", "1", {"scope": {"os": ["linux"]}})
    assert finish(store.list_components(NOW)) == {
        "components": [{"name": "a", "hint_count": 2}, {"name": "b", "hint_count": 1}]
    }
    assert finish(store.list_components(NOW, None, DARWIN)) == {
        "components": [
            {"name": "a", "hint_count": 2, "eligible_count": 1},
            {"name": "b", "hint_count": 1, "eligible_count": 1},
        ]
    }


def test_list_one_component_whatever_the_context() -> None:
    """Every variant is shown; the context only marks which apply, and why not."""
    store = new_store()
    linux = put(store, "a", "x", "1", {"scope": {"os": ["linux"]}})
    plain = put(store, "a", "b", "1")
    put(store, "other", "x", "1")
    assert finish(store.list_components(NOW, "a", DARWIN)) == {
        "components": [{"name": "a", "hint_count": 2}],
        "hints": [
            {"key": "b", "hint": plain, "eligible": True, "reasons": ["no scope: applies everywhere"]},
            {"key": "x", "hint": linux, "eligible": False, "reasons": ["os=darwin, needs linux"]},
        ],
    }


def test_a_full_component_is_listed_in_parts() -> None:
    """An answer stays below what a call may carry: `more`, and the rest from an offset. Nothing is left out."""
    store = new_store()
    for number in range(limits.MAX_HINTS_PER_COMPONENT):
        put(store, "a", f"k{number:03}", "x" * 8_000)
    keys: list[str] = []
    has_more = True
    while has_more:
        page = finish(store.list_components(NOW, "a", offset=len(keys)))
        assert 0 < len(json.dumps(page)) < limits.MAX_BODY_BYTES
        assert page["components"] == [{"name": "a", "hint_count": limits.MAX_HINTS_PER_COMPONENT}]
        keys += [entry["key"] for entry in page["hints"]]
        has_more = page.get("more", False)
    assert keys == [f"k{number:03}" for number in range(limits.MAX_HINTS_PER_COMPONENT)]


def test_env_names() -> None:
    """Only the variables that scopes ask for, everywhere or at one place."""
    store = new_store()
    put(store, "a", "x", "1", {"scope": {"env_required": ["CI"]}})
    put(store, "a", "y", "1", {"scope": {"env_match": {"MODE": "1"}}})
    put(store, "b", "x", "1", {"scope": {"env_required": ["HOME"]}})
    assert store.env_names() == {"CI", "MODE", "HOME"}
    assert store.env_names("a") == {"CI", "MODE"}
    assert store.env_names("a", "y") == {"MODE"}
    assert store.env_names("none") == frozenset()


# A change of many hints


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_a_large_change_is_prepared_and_swapped(mode: str) -> None:
    """Nothing is seen of it until it is swapped in; then the store is as if it had been applied."""
    swapped, applied = new_store(), new_store()
    for store in (swapped, applied):
        put(store, "api", "k0", "old", {"tags": ["x"], "scope": {"env_required": ["CI"]}})
        put(store, "other", "kept", "old")
        found_by(store, tags=["x"])
    hints = {f"k{n}": {"value": f"v{n}", "meta": {"tags": ["x"]}, "updated_at": iso(NOW + 1)} for n in range(150)}
    payload = payload_with(hints)
    load(applied, payload, mode, now=NOW + 2)
    before, after = exported(swapped, NOW + 2), exported(applied, NOW + 2)
    index = swapped.prepare(decide_import(swapped, NOW + 2, payload, mode).change)
    assert exported(swapped, NOW + 2) == before != after
    swapped.swap(index)
    assert exported(swapped, NOW + 2) == after
    assert found_by(swapped, tags=["x"], limit=100) == found_by(applied, tags=["x"], limit=100)
    assert swapped.env_names() == applied.env_names() and len(swapped) == len(applied)


# last_seen


def held(store: HintStore) -> dict[str, Hint]:
    return {hint.key: hint for hint in store.hints()}


def sweep(store: HintStore, now: float) -> Change:
    change = store.decide_sweep(now)
    store.apply(Change.from_record(json.loads(json.dumps(change.to_record()))))
    return change


def test_a_session_hint_lives_until_30_days_without_use() -> None:
    """Set, read, bumped or credited counts as use; one that nobody touched is swept, one with a duration is not."""
    store = new_store()
    for key in ("set", "read", "bumped", "lowered", "untouched"):
        put(store, "api", key, "v")
        commit(store, finish(store.decide_bump(NOW, "api", key, Context())))
    put(store, "api", "timed", "v", {"ttl": "P60D"})
    later = NOW + 20 * DAY
    put(store, "api", "set", "w", now=later)
    finish(store.get(later, "api", "read"))
    commit(store, finish(store.decide_bump(later, "api", "bumped", Context())))
    commit(store, finish(store.decide_bump(later, "api", "lowered", Context(), -1)))
    sweep(store, later)
    sweep(store, NOW + 31 * DAY)
    assert set(held(store)) == {"set", "read", "bumped", "lowered", "timed"}
    sweep(store, NOW + 51 * DAY)
    assert set(held(store)) == {"timed"}


def test_a_read_is_noted_once_a_day_and_shows_nowhere() -> None:
    """Reads do not become writes: the next sweep notes them, one record a day for a hint; nothing else changes."""
    store = new_store()
    before = put(store, "api", "test", "v")
    finish(store.get(NOW + DAY / 2, "api", "test"))
    assert len(sweep(store, NOW + DAY / 2)) == 0
    for _ in range(3):
        finish(store.get(NOW + 2 * DAY, "api", "test"))
    assert len(sweep(store, NOW + 2 * DAY)) == 1
    finish(store.get(NOW + 2.5 * DAY, "api", "test"))
    assert len(sweep(store, NOW + 2.5 * DAY)) == 0
    assert held(store)["test"].last_seen == NOW + 2 * DAY
    assert held(store)["test"].to_json() == before
    assert exported(store)["components"]["api"]["hints"]["test"] == before


def test_an_imported_hint_is_as_good_as_set() -> None:
    """However old it is: its idle time begins with the import."""
    old = exported_with_one_hint()
    store = new_store()
    load(store, old, now=NOW + 60 * DAY)
    sweep(store, NOW + 61 * DAY)
    assert set(held(store)) == {"test"}


def exported_with_one_hint() -> dict[str, Any]:
    store = new_store()
    put(store, "api", "test", "v")
    return exported(store)


def test_many_reads_are_noted_in_small_records() -> None:
    """One record of the log holds at most APPENDED_HINTS of them; the others wait for the next, and are not idle."""
    store = new_store()
    keys = [f"k{number}" for number in range(limits.APPENDED_HINTS + 1)]
    for key in keys:
        put(store, "api", key, "v")
    for key in keys:
        finish(store.get(NOW + 30 * DAY, "api", key))
    assert len(sweep(store, NOW + 30.5 * DAY)) == limits.APPENDED_HINTS
    assert len(sweep(store, NOW + 30.5 * DAY)) == 1
    assert len(store) == len(keys)


# What is near


def test_get_hint_with_an_unknown_component_names_what_is_near() -> None:
    """`shop/test` for `cart/test`, where it applies here."""
    store = new_store()
    put(store, "shop", "test", "make test", {"scope": {"os": ["linux"]}})
    with pytest.raises(NotFound, match="did you mean shop/test") as missed:
        finish(store.get(NOW, "cart", "test", LINUX))
    assert missed.value.data["near"] == ["shop/test"]
    with pytest.raises(NotFound) as elsewhere:
        finish(store.get(NOW, "cart", "test", WINDOWS))
    assert "near" not in elsewhere.value.data


@pytest.mark.parametrize(("component", "key"), [("shpo", "test"), ("shop", "tets"), ("shopp", "tests")])
def test_get_hint_says_did_you_mean_for_typos(component: str, key: str) -> None:
    """In the component, in the key, or in both."""
    store = new_store()
    put(store, "shop", "test", "make test")
    put(store, "billing", "deploy", "make deploy")
    with pytest.raises(NotFound, match=r"did you mean shop/test\?"):
        finish(store.get(NOW, component, key))


# bump without a context


def test_bump_without_a_context_credits_the_only_variant() -> None:
    """Even if it does not apply here; with a context it must."""
    store = new_store()
    put(store, "shop", "test", "v", {"scope": {"os": ["linux"]}})
    assert commit(store, finish(store.decide_bump(NOW, "shop", "test", only_here=False)))["hint"]["use_count"] == 1
    with pytest.raises(NotFound):
        finish(store.decide_bump(NOW, "shop", "test", WINDOWS))


def test_bump_without_a_context_among_variants_asks_for_the_scope() -> None:
    """None applies here and there are two: E_INVALID names both scopes, and `scope` chooses one."""
    store = new_store()
    for system in ("linux", "darwin"):
        put(store, "shop", "test", system, {"scope": {"os": [system]}})
    with pytest.raises(Invalid, match="os linux") as refused:
        finish(store.decide_bump(NOW, "shop", "test", only_here=False))
    assert {"os": ["darwin"]} in refused.value.data["scopes"]
    credited = finish(store.decide_bump(NOW, "shop", "test", scope={"os": ["darwin"]})).result["hint"]
    assert (credited["value"], credited["use_count"]) == ("darwin", 1)
    with pytest.raises(NotFound, match="no variant with that scope"):
        finish(store.decide_bump(NOW, "shop", "test", scope={"os": ["windows"]}))


# files_open


def test_files_open_below_a_cwd_glob_count_as_a_match() -> None:
    """The directory of the caller may be another, or unknown."""
    store = new_store()
    put(store, "shop", "test", "v", {"scope": {"cwd_glob": ["**/shop"]}})
    here = Context(cwd="/home/me", files_open=["/work/cart/a.py", "/work/shop/src/b.py"])
    assert finish(store.get(NOW, "shop", "test", here))["match_explain"]["reasons"][0] == "open file below **/shop"
    assert finish(store.get(NOW, "shop", "test", Context(files_open=["/work/shop/b.py"])))
    with pytest.raises(NotFound):
        finish(store.get(NOW, "shop", "test", Context(cwd="/home/me", files_open=["/work/shop.py"])))


# Results say when there are more


def test_query_says_when_there_are_more() -> None:
    """Beyond the limit; exactly the limit is not more."""
    store = new_store()
    for key in ("a", "b", "c"):
        put(store, "shop", key, "v")
    assert "more" not in finish(store.query(NOW, limit=3))
    cut = finish(store.query(NOW, limit=2))
    assert cut["more"] is True and len(cut["hints"]) == 2


def test_a_query_fits_into_one_answer() -> None:
    """The largest hints that there can be, as JSON in less than 1 MiB; the others are `more`."""
    store = new_store()
    branches = [f"{number:03}{'é' * 100}" for number in range(limits.MAX_SCOPE_ITEMS)]
    for number in range(limits.MAX_QUERY_LIMIT):
        put(store, "shop", f"k{number}", "é" * (limits.MAX_VALUE_BYTES // 2 - 20), {"scope": {"branch": branches}})
    cut = finish(store.query(NOW, context=Context(branch=branches[0]), limit=limits.MAX_QUERY_LIMIT))
    assert cut["more"] is True and 10 < len(cut["hints"]) < limits.MAX_QUERY_LIMIT
    assert len(json.dumps(cut).encode()) < limits.MAX_BODY_BYTES


def test_dots_in_a_path_value_are_e_scope_invalid() -> None:
    """As seed 001 has it: traversal."""
    for path in ("/srv/../etc", "c:\\code\\..\\x"):
        with pytest.raises(ScopeInvalid, match="segment"):
            new_store().decide_set(NOW, "api", "dir", {"type": "path", "abs": path})
