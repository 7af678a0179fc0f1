"""The trusted hints of a repository's file, for the operations on hints.

They come behind one's own: where one is set, they do not answer. A guess of scan's gives way to them, and they give way
to another form of their command that worked here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nudge.core.app import App
from nudge.core.context import Context
from nudge.core.errors import NotFound
from nudge.hints.reconcile import is_guess
from nudge.hints.search import HintFilter
from nudge.repofile.trust import TrustStore

if TYPE_CHECKING:
    from nudge.learning.hints_ops import LearnedHints
    from nudge.repofile.told import TrustedHints

Hit = dict[str, Any]

_stores: dict[str, TrustStore] = {}
"""By runtime directory; a server has one, a test may have several."""


def trust_store(app: App) -> TrustStore | None:
    directory = app.directory
    if directory is None:
        return None
    if directory not in _stores:
        _stores[directory] = TrustStore(directory)
    return _stores[directory]


async def trusted_hints(app: App, context: Context) -> TrustedHints | None:
    """The trusted hints of the clone that a context is in. Where nobody trusts a hint of its repo, that costs one look
    at a file of the runtime directory, and nothing is imported."""
    store = trust_store(app)
    if store is None or not store.may_trust(context.repo):
        return None
    from nudge.repofile.told import trusted_here  # late: it loads tomllib and reads files

    return await asyncio.to_thread(trusted_here, store, context)


def best_not_set(
    in_file: TrustedHints | None, learned: LearnedHints | None, component: str, key: str
) -> dict[str, Any] | None:
    """The answer where nobody set a hint: that of the repo's file, or what was learned, in the form of `get_hint`."""
    written = in_file.get(component, key) if in_file is not None else None
    if written is not None and not (learned is not None and learned.corrects(component, key, written)):
        return written
    return learned.get(component, key) if learned is not None else None


def not_here_error(error: NotFound, in_file: TrustedHints | None, component: str, key: str) -> NotFound:
    """The error for a hint that was not found, with the variants of the repo's file that do not apply here."""
    rows = in_file.why_not(component, key) if in_file is not None else []
    if not rows:
        return error
    why_not = [*error.data.get("why_not", ()), *rows]
    return NotFound(f"{component}/{key} exists, but does not apply here", **{**error.data, "why_not": why_not})


def not_own_error(error: NotFound, in_file: TrustedHints | None, component: str, key: str) -> NotFound:
    """The error for a change of what is no hint of one's own but one of the repo's file."""
    if in_file is None or not in_file.answers(component, key):
        return error
    advice = "set your own with: nudge set, or have it told no more with: nudge trust --revoke"
    return NotFound(f"{component}/{key} is a hint of the repo's file; {advice}", **error.data)


def order(hit: Hit) -> tuple[bool, bool, float]:
    """The sort key of a query's hits: those that match as a whole first; of them, those of the repo's file last."""
    is_partial = "partial" in hit
    return is_partial, is_from_file(hit), 0.0 if is_partial else -hit["score"]


def is_from_file(hit: Hit) -> bool:
    return "file" in hit["hint"]


def add_hits(
    in_file: TrustedHints,
    result: dict[str, Any],
    filters: HintFilter,
    limit: int,
    is_set: Callable[[tuple[str, str]], bool],
) -> None:
    """Add to the result of a query those that match. `is_set` says of a name whether one's own applies here."""
    hits: list[Hit] = result["hints"]
    guesses = {(hit["component"], hit["key"]): hit for hit in hits if is_guess(hit["hint"]["meta"])}
    for hit in in_file.search(filters, limit):
        hit.pop("stale", None)  # match_explain has it among its reasons
        name = (hit["component"], hit["key"])
        if name in guesses:
            hits.remove(guesses[name])
            hits.append(hit)
        elif not is_set(name):
            hits.append(hit)
    hits.sort(key=order)
    result.update({"more": True} if len(hits) > limit else {})
    del hits[limit:]
    if hits:
        result.pop("why_not", None)
