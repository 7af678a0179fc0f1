"""Errors and explanations for a hint that is not found: what exists, and which condition of its scope excluded it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from nudge import limits
from nudge.context import Context
from nudge.errors import NotFound
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint
from nudge.hints.scope import Verdict
from nudge.hints.value import fresh

Checked = tuple[Hint, Verdict]


def nearest(refused: Iterable[Checked], most: int) -> list[Checked]:
    """Return up to `most` hints that fail the fewest conditions, the best first."""
    return heapq.nsmallest(most, refused, key=lambda pair: (len(pair[1].reasons), pair[0].identity))


def explain_refused(refused: list[Checked]) -> list[dict[str, Any]]:
    """Return the `why_not` of a query: the hints that match but do not apply in the caller's context."""
    return [
        {"component": hint.component, "key": hint.key, "reasons": verdict.reasons}
        for hint, verdict in nearest(refused, limits.MAX_QUERY_WHY_NOT)
    ]


def no_variant_here(component: str, key: str, refused: list[Checked]) -> NotFound:
    """The error for a hint none of whose variants applies in the caller's context."""
    rows = nearest(refused, limits.MAX_WHY_NOT)
    why_not = [{"scope": fresh(hint.scope.wire), "reasons": verdict.reasons} for hint, verdict in rows]
    outcome = "does not apply here" if len(refused) == 1 else f"none of its {len(refused)} variants applies here"
    return _not_found(f"{component}/{key} exists, but {outcome}", component, key, why_not)


def no_such_hint(index: HintIndex, now: float, component: str, key: str, context: Context | None = None) -> NotFound:
    """The error for a hint that does not exist. It suggests the same key elsewhere and similar names."""
    keys = sorted({hint.key for hint in index.component(component) if hint.live_at(now)})
    message = f"{component} has no key {key}" if keys else f"component {component} is not known"
    near = list(islice(_near(index, now, (component, key), keys, context), limits.MAX_NEAR))
    message += f" (did you mean {' or '.join(near)}?)" if near else ""
    more = {"known_keys": keys[: limits.MAX_KNOWN_KEYS]} if keys else {}
    return _not_found(message, component, key, [], **more, **({"near": near} if near else {}))


def _near(
    index: HintIndex, now: float, name: tuple[str, str], keys: list[str], context: Context | None
) -> Iterator[str]:
    """Yield hints that apply here, as `component/key`: close keys, then the key in close components, then in any
    other component."""
    component, key = name
    close = _close(component, index.components())
    groups = [
        (hint for close_key in _close(key, keys) for hint in index.variants(component, close_key)),
        (hint for other in close for hint in index.variants(other, key)),
        (hint for shelf in index.keyed([key]) for hint in sorted(shelf.values(), key=lambda hint: hint.identity)),
        (
            hint
            for other in close
            for close_key in _close(key, _keys(index, other))
            for hint in index.variants(other, close_key)
        ),
    ]
    names: set[str] = set()
    for hint in islice(chain.from_iterable(groups), limits.MAX_NEAR_CHECKED):
        text = f"{hint.component}/{hint.key}"
        if text not in names and hint.live_at(now) and (context is None or hint.scope.check(context).eligible):
            names.add(text)
            yield text


def _keys(index: HintIndex, component: str) -> set[str]:
    return {hint.key for hint in index.component(component)}


def _close(name: str, names: Iterable[str]) -> list[str]:
    """Return names with a similar spelling. Only short names of about the same length are compared: it is slow."""
    if len(name) > limits.MAX_TAG_CHARS:
        return []
    alike = [other for other in names if other != name and abs(len(other) - len(name)) <= 2]
    from difflib import get_close_matches  # late: 4 ms

    return get_close_matches(name, alike, n=limits.MAX_NEAR, cutoff=0.7)


def no_such_variant(component: str, key: str, variants: list[Hint]) -> NotFound:
    """The error for a scope that none of the variants has."""
    scopes = [fresh(hint.scope.wire) for hint in variants[: limits.MAX_WHY_NOT]]
    return _not_found(f"{component}/{key} has no variant with that scope", component, key, [], scopes=scopes)


def _not_found(message: str, component: str, key: str, why_not: list[dict[str, Any]], **more: Any) -> NotFound:
    return NotFound(message, component=component, key=key, why_not=why_not, **more)
