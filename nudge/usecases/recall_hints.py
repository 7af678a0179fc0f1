"""Hints for the words in which notes are recalled: those with any of them, however few words there are. `nudge.query`
does that for questions only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nudge.stop_words import content_words

_MOST_WORDS = 8  # each is a query of its own

Call = Callable[[str, Mapping[str, Any]], Any]


def recall_hints(call: Call, text: str, context: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return the hits of `nudge.query`, those with the most of the words first."""
    hits: dict[tuple[str, str], dict[str, Any]] = {}
    counts: dict[tuple[str, str], int] = {}
    for word in content_words(text)[:_MOST_WORDS]:
        for hit in call("nudge.query", {"text": word, "limit": limit, "context": context})["hints"]:
            name = hit["component"], hit["key"]
            hits.setdefault(name, hit)
            counts[name] = counts.get(name, 0) + 1
    return sorted(hits.values(), key=lambda hit: (-counts[hit["component"], hit["key"]], -hit["score"]))[:limit]
