"""What the tests of the hints build with: a store at a fixed moment, and writes that are decided and applied in one
go."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, TypeVar

from nudge.hints.model import Change, Decision
from nudge.hints.store import HintStore
from nudge.hints.transfer import Form, export_components

NOW = 1_800_000_000.0
DAY = 86_400.0
AWS_KEY = "AKIA" + "QWERTYUIOP234567"

Result = TypeVar("Result")


def new_store(**settings: Any) -> HintStore:
    return HintStore("session-1", NOW, **settings)


def finish(generator: Generator[None, None, Result]) -> Result:
    """Run a stepwise call to its end."""
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            result: Result = stop.value
            return result


def commit(store: HintStore, decision: Decision) -> dict[str, Any]:
    """Through JSON, as the change log does it."""
    store.apply(Change.from_record(json.loads(json.dumps(decision.change.to_record()))))
    return decision.result


def put(
    store: HintStore, component: str, key: str, value: Any, meta: Any = None, now: float = NOW, **more: Any
) -> dict[str, Any]:
    hint: dict[str, Any] = commit(store, store.decide_set(now, component, key, value, meta, **more))["hint"]
    return hint


def exported(
    store: HintStore, now: float = NOW, *, component: str | None = None, reveal: bool = False, versions: bool = False
) -> dict[str, Any]:
    hints, form = store.live_hints(now, component), Form(reveal, versions)
    return {**store.export_header(hints, form), "components": export_components(hints, form)}


def payload_with(hints: dict[str, Any], component: str = "api") -> dict[str, Any]:
    return {"schema_version": "1.0", "components": {component: {"hints": hints}}}


def load(store: HintStore, payload: Any, mode: str = "merge", now: float = NOW) -> dict[str, Any]:
    return commit(store, decide_import(store, now, payload, mode))


def decide_import(store: HintStore, now: float, payload: Any, mode: str = "merge") -> Decision:
    return store.decide_import(now, store.read_payload(now, payload), mode)


def found_by(store: HintStore, now: float = NOW, **query: Any) -> list[str]:
    """The names a query returns, best first."""
    return [f"{entry['component']}/{entry['key']}" for entry in finish(store.query(now, **query))["hints"]]
