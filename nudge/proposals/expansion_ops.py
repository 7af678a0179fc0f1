"""More words for a recall that found little, from the language model. The recall waits a second for them at most; an
answer that comes later is kept for the next recall with the same query."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from nudge.core import limits
from nudge.core.app import App
from nudge.core.visibility import Visibility
from nudge.core.words import content_words
from nudge.notes.ranking import BASE, Match, matched_words
from nudge.proposals.answers import words_in_answer
from nudge.proposals.disclosure import why_query_is_withheld
from nudge.proposals.questions import ask_for_words

_LOOKED_AT = 3  # of the best matches
_ENOUGH = 0.5  # of the words of a query, in one of them
_NEAR = 0.5 * BASE  # what the meaning of a note adds to its score, if it may have other words

Find = Callable[[sqlite3.Connection, str], list[Match]]


async def recall_more(
    app: App, query: str, matches: list[Match], find: Find, *, visible: Visibility, namespace: str | None
) -> tuple[list[Match], list[str]]:
    """Return what `find` finds for the query with more words, and these words; the matches of the query itself where
    they are good enough, and where the model may not be asked or says nothing in time."""
    model = app.model
    is_kept = query in model.expansions
    if not (model.is_wanted and (is_kept or model.is_ready)) or len(query) > limits.MODEL_TEXT_CHARS:
        return matches, []
    if why_query_is_withheld(query, visible, namespace) is not None or not await app.read(
        partial(_is_weak, query=query, matches=matches)
    ):
        return matches, []
    if not is_kept:
        await asyncio.wait([app.in_background(_keep_expansion(app, query))], timeout=limits.EXPANSION_WAIT)
    words = model.expansions.get(query, [])
    if not words:
        return matches, []
    return await app.read(lambda connection: find(connection, f"{query} {' '.join(words)}")), words


def _is_weak(connection: sqlite3.Connection, query: str, matches: Sequence[Match]) -> bool:
    """Whether none of the best matches has half of the words of the query, or means nearly the same."""
    best = matches[:_LOOKED_AT]
    if any((match.score.components["semantic_boost"] or 0.0) >= _NEAR for match in best):
        return False
    wanted = _ENOUGH * len(content_words(query))
    found = matched_words(connection, query, [match.note for match in best])
    return all(len(words) < wanted for words in found.values())


async def _keep_expansion(app: App, query: str) -> None:
    await expand(app, query)


async def expand(app: App, query: str) -> list[str]:
    """Ask the model for words, unless it said some for this query. Raises Unavailable where it does not answer."""
    kept = app.model.expansions
    if query not in kept:
        kept[query] = await app.model.ask(ask_for_words(query), lambda content: words_in_answer(content, query))
    kept.move_to_end(query)
    if len(kept) > limits.KEPT_EXPANSIONS:
        kept.popitem(last=False)
    return kept[query]
