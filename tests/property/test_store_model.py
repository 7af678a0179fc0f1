"""The store against a model so plain that it cannot be wrong: a dict from names and scope to what was last set."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nudge.core.context import Context
from nudge.core.errors import Conflict, NotFound, QuotaExceeded
from nudge.hints.model import Change, Decision, Hint
from nudge.hints.scope import parse_scope
from nudge.hints.store import HintStore
from tests import effort
from tests.unit.hints.builders import exported

START = 1_800_000_000.0
MAX_HINTS = 6
COMPONENTS, KEYS, TAGS = ("api", "web"), ("build", "test"), ("red", "blue")
SCOPES: tuple[dict[str, Any], ...] = ({}, {"os": ["linux"]}, {"branch": ["dev"], "os": ["linux", "darwin"]})
HERE = Context(os="linux", branch="dev")

Result = TypeVar("Result")
Name = tuple[str, str, str]


def finish(generator: Generator[None, None, Result]) -> Result:
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            result: Result = stop.value
            return result


def new_store() -> HintStore:
    return HintStore("session", START, max_hints=MAX_HINTS)


def by_identity(store: HintStore) -> dict[Name, Hint]:
    return {hint.identity: hint for hint in store.hints()}


@dataclass
class Entry:
    value: str
    tags: list[str]
    version: int
    uses: int
    failures: int
    expires_at: float | None


class StoreAgainstDict(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.now = START
        self.store = new_store()
        self.log: list[str] = []
        self.model: dict[Name, Entry] = {}

    def commit(self, decision: Decision) -> dict[str, Any]:
        self._log(decision.change)
        return decision.result

    def _log(self, change: Change) -> None:
        self.log.append(json.dumps(change.to_record()))
        self.store.apply(change)

    def live(self) -> dict[Name, Entry]:
        return {
            name: entry for name, entry in self.model.items() if entry.expires_at is None or self.now < entry.expires_at
        }

    def observed(self, store: HintStore) -> dict[Name, Entry]:
        held = [hint for hint in store.hints() if hint.live_at(self.now)]
        return {
            hint.identity: Entry(
                hint.value,
                hint.meta.get("tags", []),
                hint.version,
                hint.use_count,
                hint.failure_count,
                hint.expires_at,
            )
            for hint in held
        }

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        component=st.sampled_from(COMPONENTS),
        key=st.sampled_from(KEYS),
        scope=st.sampled_from(SCOPES),
        value=st.sampled_from("xyz"),
        tags=st.lists(st.sampled_from(TAGS), unique=True),
        seconds=st.sampled_from([None, 1, 60]),
        expected=st.sampled_from([None, None, None, 0, 1, 2]),
    )
    def set(
        self,
        component: str,
        key: str,
        scope: dict[str, Any],
        value: str,
        tags: list[str],
        seconds: int | None,
        expected: int | None,
    ) -> None:
        meta: dict[str, Any] = {"tags": tags, "scope": scope, **({"ttl": f"PT{seconds}S"} if seconds else {})}
        name = (component, key, parse_scope(scope).key)
        held = self.live().get(name)
        try:
            hint = self.commit(self.store.decide_set(self.now, component, key, value, meta, expected))["hint"]
        except Conflict:
            assert expected is not None and expected != (held.version if held else 0)
        except QuotaExceeded:
            assert held is None and len(self.live()) == MAX_HINTS
        else:
            assert expected in (None, held.version if held else 0)
            updated_at = next(hint.updated_at for hint in self.store.hints() if hint.identity == name)
            version, uses = (held.version + 1, held.uses) if held else (1, 0)
            failures = held.failures if held and held.value == value else 0
            self.model[name] = Entry(value, tags, version, uses, failures, updated_at + seconds if seconds else None)
            assert (hint["value"], hint["version"]) == (value, version)

    @rule(component=st.sampled_from(COMPONENTS), key=st.sampled_from(KEYS), scope=st.sampled_from([None, *SCOPES]))
    def delete(self, component: str, key: str, scope: dict[str, Any] | None) -> None:
        wanted = None if scope is None else parse_scope(scope).key
        gone = [name for name in self.live() if name[:2] == (component, key) and wanted in (None, name[2])]
        try:
            previous = self.commit(self.store.decide_delete(self.now, component, key, scope))["previous"]
        except NotFound:
            assert gone == []
        else:
            assert len(previous if isinstance(previous, list) else [previous]) == len(gone)
            for name in gone:
                del self.model[name]

    @rule(component=st.sampled_from(COMPONENTS), key=st.sampled_from(KEYS), delta=st.sampled_from([-2, 1, 3]))
    def bump(self, component: str, key: str, delta: int) -> None:
        here = {name: entry for name, entry in self.live().items() if name[:2] == (component, key)}
        try:
            returned = finish(self.store.get(self.now, component, key, HERE))["hint"]
            hint = self.commit(finish(self.store.decide_bump(self.now, component, key, HERE, delta)))["hint"]
        except NotFound:
            assert here == {}
        else:
            assert (hint["value"], hint["version"], hint["meta"]) == (
                returned["value"],
                returned["version"],
                returned["meta"],
            )
            credited = here[component, key, parse_scope(hint["meta"].get("scope", {})).key]
            credited.uses += max(delta, 0)
            credited.failures += max(-delta, 0)
            assert (hint.get("use_count", 0), hint.get("failure_count", 0)) == (credited.uses, credited.failures)

    @rule()
    def sweep(self) -> None:
        self._log(self.store.decide_sweep(self.now))
        assert len(self.store) == len(self.live())

    @rule(mode=st.sampled_from(["merge", "skip", "replace"]))
    def import_own_export(self, mode: str) -> None:
        self.now += (
            0.001  # later than any of the hints: two that were set at one moment are told apart by a microsecond
        )
        payload = (self.store.export(self.now))["payload"]
        report = self.commit(self.store.decide_import(self.now, self.store.read_payload(self.now, payload), mode))
        assert (report["imported"], report["skipped"])[mode != "replace"] == len(self.live())

    @rule()
    def restart(self) -> None:
        """A store that is replayed from the log answers as the one that wrote it."""
        again = new_store()
        for record in self.log:
            again.apply(Change.from_record(json.loads(record)))
        assert by_identity(again) == by_identity(self.store)
        assert (again.export(self.now)) == (self.store.export(self.now))
        assert finish(again.query(self.now, context=HERE)) == finish(self.store.query(self.now, context=HERE))
        self.store = again

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.restart()

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert self.observed(self.store) == self.live()
        assert len(self.store) <= MAX_HINTS

    @invariant()
    def every_index_agrees(self) -> None:
        """Each way to look finds what a look at everything finds."""
        names = self.live()
        for component in COMPONENTS:
            counted = sum(name[0] == component for name in names)
            assert len(finish(self.store.list_components(self.now, component))["hints"]) == counted
            assert self._found(component=component) == counted
        for key in KEYS:
            assert self._found(keys=[key]) == sum(name[1] == key for name in names)
        for tag in TAGS:
            assert self._found(tags=[tag]) == sum(tag in entry.tags for entry in names.values())
        for value in "xyz":
            assert self._found(text=value) == sum(entry.value == value for entry in names.values())
        assert self._found() == len(names)

    def _found(self, **query: Any) -> int:
        return len(finish(self.store.query(self.now, context=HERE, **query))["hints"])


StoreAgainstDict.TestCase.settings = settings(max_examples=effort.times(60), stateful_step_count=30)
TestStoreAgainstDict: Any = pytest.mark.timeout(120)(StoreAgainstDict.TestCase)


# Scopes

_WORDS = st.sampled_from(["a", "b", "dev", "hotfix/*", "X1"])
_GLOBS = st.sampled_from(["**/api", "**/api/", "/work/{a,b}", "/work//x", "C:\\code\\*", "c:/code/*", "**"])
_REPOS = st.sampled_from(
    [
        "git:org/x",
        "git@github.com:Org/X.git",
        "https://host/org/x",
        "/srv/repo",
        "file:///srv/repo/",
        "ssh://git@h/o/y.git",
    ]
)
_VALUES = st.text("abc", max_size=2)


def _lists(items: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(items, max_size=4)


_SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "cwd_glob": _lists(_GLOBS),
        "repo": _REPOS | _lists(_REPOS),
        "branch": _lists(_WORDS),
        "os": _lists(st.sampled_from(["linux", "darwin", "windows"])),
        "env_required": _lists(st.sampled_from("ABC")),
        "env_match": st.dictionaries(st.sampled_from("ABC"), _VALUES | _lists(_VALUES)),
    },
)


def _shuffled(scope: dict[str, Any], pick: st.DataObject) -> dict[str, Any]:
    names = pick.draw(st.permutations(list(scope)))
    return {name: _shuffled_content(scope[name], pick) for name in names}


def _shuffled_content(content: Any, pick: st.DataObject) -> Any:
    if isinstance(content, dict):
        return _shuffled(content, pick)
    return pick.draw(st.permutations(content * 2)) if isinstance(content, list) else content


@given(_SCOPES)
def test_normal_form_is_idempotent(scope: dict[str, Any]) -> None:
    """A scope in normal form is its own normal form, also after JSON."""
    once = parse_scope(scope)
    again = parse_scope(json.loads(json.dumps(once.fields)))
    assert (again.fields, again.key, again.size) == (once.fields, once.key, once.size)


@given(_SCOPES, st.data())
def test_normal_form_knows_no_order(scope: dict[str, Any], data: st.DataObject) -> None:
    """Order and repetition do not make another scope."""
    assert parse_scope(_shuffled(scope, data)).key == parse_scope(scope).key


# Export and import

_TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12)
_NAMES = _TEXT.filter(lambda name: name == name.strip())
_LINES = st.text(
    st.one_of(st.characters(exclude_categories=("Cc", "Cs")), st.sampled_from("\n\t")), min_size=1, max_size=20
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _LINES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_ANY_VALUE = (
    _LINES
    | st.builds(
        lambda cmd, shell: {"type": "command", "cmd": cmd, "shell": shell}, _LINES, st.sampled_from(["bash", "cmd"])
    )
    | st.builds(
        lambda body, names: {"type": "template", "format": "jinja", "body": body, "defaults": names},
        _LINES,
        st.dictionaries(_TEXT, _LINES, max_size=2),
    )
    | st.builds(lambda data: {"type": "json", "data": data}, _JSON)
    | st.sampled_from([{"type": "path", "abs": "/work/x"}, {"type": "path", "abs": "C:\\x", "os": ["windows"]}])
)
_ANY_META = st.fixed_dictionaries(
    {},
    optional={
        "reason": _TEXT,
        "tags": st.lists(_TEXT, max_size=4),
        "priority": st.integers(1, 10),
        "confidence": st.floats(0, 1) | st.integers(0, 1),
        "ttl": st.sampled_from(["session", "P2W", "PT1.5H"]),
        "sensitivity": st.sampled_from(["normal", "secret"]),
        "source": st.sampled_from(["user", "agent"]),
        "added_by": _TEXT,
        "scope": _SCOPES,
    },
)
_WRITES = st.lists(st.tuples(_NAMES, _NAMES, _ANY_VALUE, _ANY_META, st.floats(0, 1_000), st.integers(0, 3)), max_size=8)


@settings(max_examples=60)
@given(_WRITES, st.sampled_from(["merge", "replace", "skip"]))
def test_round_trip_changes_no_field(writes: list[tuple[str, str, Any, Any, float, int]], mode: str) -> None:
    """Export, import into an empty store, export: the same payload and the same hints, to the last bit."""
    store, other = (HintStore("session", START, secret_guard=False) for _ in range(2))
    for component, key, value, meta, after, uses in writes:
        store.apply(store.decide_set(START + after, component, key, value, meta).change)
        context = Context(cwd="/work/a", repo="git:org/x", branch="dev", os="linux", env={})
        if (
            uses
            and next(hint for hint in store.hints() if (hint.component, hint.key) == (component, key))
            .scope.check(context)
            .eligible
        ):
            store.apply(finish(store.decide_bump(START + after, component, key, context, uses)).change)
    payload = json.loads(json.dumps(exported(store, START + 1_001, reveal=True)))
    decision = other.decide_import(START + 1_001, other.read_payload(START + 1_001, payload), mode)
    other.apply(decision.change)
    assert decision.result == {"imported": len(store), "skipped": 0, "removed": 0, "reasons": []}
    assert exported(other, START + 1_001, reveal=True) == payload
    assert by_identity(other) == by_identity(store)
