"""The ready hint packs in `seeds/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, strict_json
from nudge.hints.model import Decision
from nudge.hints.store import HintStore

NOW = 1_800_000_000.0
ROOT = Path(__file__).parents[2]
PACKS = sorted((ROOT / "seeds").glob("*.json"))

each_pack = pytest.mark.parametrize("path", PACKS, ids=lambda path: path.stem)


def payload_of(path: Path) -> dict[str, Any]:
    payload = strict_json.decode(path.read_bytes())
    assert isinstance(payload, dict)
    return payload


def hints_of(path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    components = payload_of(path)["components"]
    return [
        (component, key, hint) for component, content in components.items() for key, hint in content["hints"].items()
    ]


def decide(store: HintStore, payload: dict[str, Any]) -> Decision:
    return store.decide_import(NOW, store.read_payload(NOW, payload), "merge")


def test_every_promised_pack_is_there() -> None:
    """`nudge import seeds/python.json` and its four sisters work from a checkout."""
    assert {path.stem for path in PACKS} >= {"docker", "go", "node", "python", "rust"}


@each_pack
def test_a_pack_is_imported_whole(path: Path) -> None:
    """An import takes every hint of a pack: the same rules as `set`, the secret guard on, nothing skipped."""
    store = HintStore("session", NOW)
    decision = decide(store, payload_of(path))
    store.apply(decision.change)
    assert decision.result == {"imported": len(hints_of(path)), "skipped": 0, "removed": 0, "reasons": []}
    assert len(store) == len(hints_of(path))


@each_pack
def test_a_pack_has_a_readable_size(path: Path) -> None:
    """Eight to twenty hints: worth an import, and short enough to read first."""
    assert 8 <= len(hints_of(path)) <= 20


@each_pack
def test_every_hint_of_a_pack_says_where_it_comes_from(path: Path) -> None:
    """Each has a reason, tags and its source, applies everywhere, and is no surer of itself than what somebody sets
    here."""
    for component, key, hint in hints_of(path):
        meta = hint["meta"]
        assert set(meta) == {"reason", "tags", "confidence", "source"}, (component, key)
        assert meta["source"] == "file-import" and meta["reason"] and meta["tags"], (component, key)
        assert meta["confidence"] <= limits.DEFAULT_CONFIDENCE, (component, key)


def test_all_packs_fit_together() -> None:
    """No two packs claim the same component and key, so that their order does not matter."""
    names = [(component, key) for path in PACKS for component, key, _ in hints_of(path)]
    assert len(names) == len(set(names))


@each_pack
def test_templates_have_a_default_for_every_name(path: Path) -> None:
    """A template shows by its defaults what to put in."""
    templates = [hint["value"] for _, _, hint in hints_of(path) if hint["value"]["type"] == "template"]
    for template in templates:
        assert set(re.findall(r"\$\{(\w+)\}", template["body"])) == set(template["defaults"])
