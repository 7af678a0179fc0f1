"""Hints that mean what was asked for, where none has its words."""

from __future__ import annotations

from typing import Any

from nudge.core import limits
from nudge.core.app import App
from nudge.core.context import Context
from nudge.core.visibility import Visibility
from nudge.core.words import split_words
from nudge.hints.fields import search_text
from nudge.meaning.fusion import HINT

_MOST = 3


async def hints_that_mean(app: App, text: str, context: Context, visible: Visibility, **filters: Any) -> list[Any]:
    """Return the few hints that apply in a context, pass the filters and mean nearly the same as a text, the closest
    first; none without a model."""
    if not await app.meaning.has_model():
        return []
    store = app.lifetime.store
    steps = store.query(app.now(), context=context, limit=limits.MAX_QUERY_LIMIT, visible=visible, **filters)
    hits = (await app.in_slices(steps))["hints"]
    close = await app.meaning.closest(text, [_text_of(hit) for hit in hits], HINT)
    for place, cosine in close[:_MOST]:
        hits[place]["match_explain"]["reasons"].insert(0, f"means nearly the same (cosine {cosine:.2f})")
        hits[place]["by_meaning"] = True
    return [hits[place] for place, _ in close[:_MOST]]


def _text_of(hit: dict[str, Any]) -> str:
    """What of a hint says what it is for. A secret's value is not embedded."""
    meta = hit["hint"]["meta"]
    value = "" if meta.get("sensitivity") == "secret" else search_text(hit["hint"]["value"])
    name = " ".join(split_words(f"{hit['component']} {hit['key']}"))
    return f"{name}: {meta.get('reason') or value}"
