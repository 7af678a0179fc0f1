"""The errors and explanations for a hint that is not found: what exists, and which gate excluded it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from nudge import limits
from nudge.errors import NotFound
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint
from nudge.hints.scope import Verdict
from nudge.hints.value import fresh

Checked = tuple[Hint, Verdict]


def nearest(refused: Iterable[Checked], most: int) -> list[Checked]:
    """Those that fail the fewest conditions, best first."""
    return heapq.nsmallest(most, refused, key=lambda pair: (len(pair[1].reasons), pair[0].identity))


def explain_refused(refused: list[Checked]) -> list[dict[str, Any]]:
    """The `why_not` of a query: what it would have found elsewhere."""
    return [
        {"component": hint.component, "key": hint.key, "reasons": verdict.reasons}
        for hint, verdict in nearest(refused, limits.MAX_QUERY_WHY_NOT)
    ]


def no_variant_here(component: str, key: str, refused: list[Checked]) -> NotFound:
    rows = nearest(refused, limits.MAX_WHY_NOT)
    why_not = [{"scope": fresh(hint.scope.wire), "reasons": verdict.reasons} for hint, verdict in rows]
    outcome = "does not apply here" if len(refused) == 1 else f"none of its {len(refused)} variants applies here"
    return _not_found(f"{component}/{key} exists, but {outcome}", component, key, why_not)


def no_such_hint(index: HintIndex, now: float, component: str, key: str) -> NotFound:
    keys = sorted({hint.key for hint in index.component(component) if hint.live_at(now)})
    if not keys:
        return _not_found(f"component {component} is not known", component, key, [])
    return _not_found(f"{component} has no key {key}", component, key, [], known_keys=keys[: limits.MAX_KNOWN_KEYS])


def no_such_variant(component: str, key: str, held: list[Hint]) -> NotFound:
    scopes = [fresh(hint.scope.wire) for hint in held[: limits.MAX_WHY_NOT]]
    return _not_found(f"{component}/{key} has no variant with that scope", component, key, [], scopes=scopes)


def _not_found(message: str, component: str, key: str, why_not: list[dict[str, Any]], **more: Any) -> NotFound:
    return NotFound(message, component=component, key=key, why_not=why_not, **more)
