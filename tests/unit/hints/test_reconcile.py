from __future__ import annotations

from typing import Any

import pytest

from nudge.core.context import Context
from nudge.core.errors import Invalid, QuotaExceeded
from nudge.hints.store import HintStore
from tests.unit.hints.builders import AWS_KEY, NOW, commit, finish, new_store, put

REPO = {"repo": "git:github.com/org/x"}


def make(cmd: str) -> dict[str, str]:
    return {"type": "command", "cmd": cmd}


def sync(
    store: HintStore,
    *found: tuple[str, str, Any, str],
    now: float = NOW,
    scope: Any = REPO,
    added_by: str = "nudge scan",
) -> dict[str, Any]:
    items = [(component, key, value, {"reason": reason, "confidence": 0.4}) for component, key, value, reason in found]
    return commit(store, store.decide_sync(now, scope, added_by, items))


def entry(component: str, key: str, value: Any, reason: str) -> dict[str, Any]:
    return {"component": component, "key": key, "value": value, "reason": reason}


NOTHING: dict[str, Any] = {"added": [], "updated": [], "removed": [], "kept": [], "unchanged": 0}


def test_first_sync_adds() -> None:
    """What was found is set under the scope, marked with who found it."""
    store = new_store()
    report = sync(store, ("api", "test", make("make test"), "Makefile:12"))
    assert report == {**NOTHING, "added": [entry("api", "test", make("make test"), "Makefile:12")]}
    assert store.hints()[0].meta == {
        "reason": "Makefile:12",
        "confidence": 0.4,
        "scope": REPO,
        "source": "tool-output",
        "added_by": "nudge scan",
    }


def test_second_sync_changes_nothing() -> None:
    """The same finds are the same hints, whatever the spelling of the repo."""
    store = new_store()
    sync(store, ("api", "test", make("make test"), "Makefile:12"))
    before = store.hints()
    assert sync(
        store,
        ("api", "test", make("make test"), "Makefile:12"),
        now=NOW + 9,
        scope={"repo": "git@github.com:org/x.git"},
    ) == {**NOTHING, "unchanged": 1}
    assert store.hints() == before


def test_changed_find_is_updated_and_keeps_its_counts() -> None:
    """A new command or another line is a new version of the same hint."""
    store = new_store()
    sync(store, ("api", "test", make("make test"), "Makefile:12"), ("api", "run", make("make run"), "Makefile:1"))
    hint = next(hint for hint in store.hints() if hint.key == "test")
    commit(store, finish(store.decide_bump(NOW + 1, "api", "test", Context(repo="git:org/x"))))
    report = sync(
        store,
        ("api", "test", make("make check"), "Makefile:12"),
        ("api", "run", make("make run"), "Makefile:2"),
        now=NOW + 9,
    )
    assert report["updated"] == [
        entry("api", "test", make("make check"), "Makefile:12"),
        entry("api", "run", make("make run"), "Makefile:2"),
    ]
    after = next(hint for hint in store.hints() if hint.key == "test")
    assert (after.version, after.created_at, after.updated_at, after.use_count) == (2, hint.created_at, NOW + 9, 1)

    commit(store, finish(store.decide_bump(NOW + 1, "api", "test", Context(repo="git:org/x"))))


def test_vanished_find_is_removed() -> None:
    """What is no longer found goes."""
    store = new_store()
    sync(store, ("api", "test", make("make test"), "Makefile:12"), ("api", "run", make("make run"), "Makefile:14"))
    report = sync(store, ("api", "test", make("make test"), "Makefile:12"))
    assert report == {**NOTHING, "removed": [entry("api", "run", make("make run"), "Makefile:14")], "unchanged": 1}
    assert [hint.key for hint in store.hints()] == ["test"]


def test_what_the_tool_could_not_look_at_stays() -> None:
    """As it is: neither removed, nor replaced by a second-best find."""
    store = new_store()
    first = [("api", "test", make("npm test"), "package.json:3"), ("api", "run", make("npm start"), "package.json:4")]
    sync(store, *first)
    before = store.hints()
    result = [("api", "test", make("npm ci && npm test"), {"reason": "ci.yml:9"})]
    decision = store.decide_sync(
        NOW + 1, REPO, "nudge scan", result, lambda held, _new: held.meta["reason"].startswith("package.json")
    )
    assert commit(store, decision) == {**NOTHING, "unchanged": 2}
    assert store.hints() == before


@pytest.mark.parametrize(
    ("meta", "scope"),
    [
        ({"reason": "mine"}, REPO),
        ({"source": "user", "added_by": "nudge scan"}, REPO),
        ({"source": "tool-output", "added_by": "other tool"}, REPO),
        ({"source": "tool-output", "added_by": "nudge scan"}, {"repo": "git:org/y"}),
        ({"source": "tool-output", "added_by": "nudge scan"}, {**REPO, "os": ["linux"]}),
    ],
)
def test_hint_of_others_is_never_touched(meta: dict[str, Any], scope: dict[str, Any]) -> None:
    """A hint that somebody else set, or that has another scope, is neither changed nor removed."""
    store = new_store()
    put(store, "api", "test", "pytest -x", {**meta, "scope": scope})
    sync(store, ("api", "test", make("make test"), "Makefile:12"), now=NOW + 1)
    sync(store, now=NOW + 2)
    assert [hint.value for hint in store.hints()] == ["pytest -x"]


def test_kept_hint_is_reported() -> None:
    """Where a person's hint stands in the way, the report says so and shows theirs."""
    store = new_store()
    put(store, "api", "test", "pytest -x", {"reason": "mine", "scope": REPO})
    put(store, "api", "key", AWS_KEY, {"sensitivity": "secret", "scope": REPO})
    report = sync(
        store, ("api", "test", make("make test"), "Makefile:12"), ("api", "key", make("make key"), "Makefile:13")
    )
    assert report["kept"] == [entry("api", "test", "pytest -x", "mine"), entry("api", "key", "[REDACTED:secret]", "")]


def test_secret_in_a_find_is_left_out() -> None:
    """A credential in a manifest is not taken over, an old hint for it goes, and the rest comes in."""
    store = new_store()
    sync(store, ("api", "deploy", make("deploy"), "Makefile:1"))
    report = sync(
        store,
        ("api", "deploy", make(f"deploy {AWS_KEY}"), "Makefile:1"),
        ("api", "test", make("make test"), "Makefile:2"),
    )
    assert [each["key"] for each in report["added"]] == ["test"]
    assert [each["key"] for each in report["removed"]] == ["deploy"]
    assert report["skipped"][0]["reason"].startswith("value.cmd looks like a secret")


def test_first_of_two_finds_counts() -> None:
    """A tool names its best source first."""
    store = new_store()
    report = sync(
        store, ("api", "test", make("make test"), "Makefile:1"), ("api", "test", make("npm test"), "package.json:3")
    )
    assert [each["value"]["cmd"] for each in report["added"]] == ["make test"]


def test_default_ttl_applies() -> None:
    """Found hints live as long as any other that is set without a lifetime."""
    store = new_store(default_ttl="P1D")
    sync(store, ("api", "test", make("make test"), "Makefile:1"))
    assert store.hints()[0].meta["ttl"] == "P1D"
    assert sync(store, ("api", "test", make("make test"), "Makefile:1"), now=NOW + 1)["unchanged"] == 1


def test_bad_find_is_refused_by_place() -> None:
    """The find that breaks a rule is named, and nothing is changed."""
    store = new_store()
    with pytest.raises(Invalid) as refused:
        sync(store, ("api", "test", make("ok"), "x"), ("api", "run", {"type": "command"}, "y"))
    assert refused.value.field == "commands[1].value.cmd"
    assert len(store) == 0


def test_quota_holds() -> None:
    """A scan cannot fill the store beyond its limit; what it removes makes room."""
    store = new_store(max_hints=2)
    sync(store, ("api", "a", "1", "x"), ("api", "b", "1", "x"))
    sync(store, ("api", "c", "1", "x"), ("api", "b", "1", "x"))
    with pytest.raises(QuotaExceeded):
        sync(store, *(("api", f"k{index}", "1", "x") for index in range(3)))
