"""Queries: filters that all must hold, over the smallest index that covers them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Self

from nudge import limits
from nudge.context import Context
from nudge.errors import Invalid
from nudge.hints.fields import parse_list, parse_name, parse_text
from nudge.hints.index import HintIndex
from nudge.hints.misses import Refused, nearest, nothing_here
from nudge.hints.model import Hint
from nudge.hints.pace import Pace
from nudge.hints.ranking import Ranked, judge, rank
from nudge.security.regex import Regex, compile_regex


@dataclass(frozen=True, slots=True)
class Filters:
    """None filters nothing. A hint needs one of the keys and one of the tags."""

    component: str | None
    keys: list[str] | None
    tags: list[str] | None
    regex: Regex | None

    @classmethod
    def parse(cls, component: object, keys: object, tags: object, regex: object) -> Self:
        return cls(
            component=None if component is None else parse_name(component, "component"),
            keys=None if keys is None else _parse_names(keys, "keys", limits.MAX_NAME_CHARS),
            tags=None if tags is None else _parse_names(tags, "tags", limits.MAX_TAG_CHARS),
            regex=None if regex is None else _parse_regex(regex),
        )

    def candidates(self, index: HintIndex) -> Iterator[Hint]:
        if self.component is not None:
            return index.component(self.component)
        if self.keys is not None:
            return index.keyed(self.keys)
        return iter(index) if self.tags is None else index.tagged(self.tags)

    def reasons(self, hint: Hint) -> list[str] | None:
        """Why the hint passes; None when it does not."""
        if self.keys is not None and hint.key not in self.keys:
            return None
        found = [] if self.tags is None else [f"tag {tag}" for tag in self.tags if tag in hint.meta.get("tags", ())]
        if self.tags is not None and not found:
            return None
        if self.regex is None:
            return found
        place = next((label for label, text in hint.texts if self.regex.search(text)), None)
        return None if place is None else [*found, f"regex found in {place}"]


def _parse_names(raw: object, field: str, most: int) -> list[str]:
    names = parse_list(raw, field, limits.MAX_QUERY_ITEMS, lambda name, at: parse_text(name, at, most, least=1))
    if not names:
        raise Invalid("must not be empty; leave it out to filter nothing", field=field)
    return names


def _parse_regex(raw: object) -> Regex:
    if not isinstance(raw, str) or not raw:
        raise Invalid("must be a regular expression", field="regex")
    return compile_regex(raw, "regex")


def search(
    index: HintIndex, now: float, filters: Filters, context: Context, limit: int
) -> Generator[None, None, dict[str, Any]]:
    """Works on the hints of the moment it starts: what is written during a pause changes nothing. After its first step
    it reads
    nothing else, so that the rest may run on another thread."""
    candidates = list(filters.candidates(index))
    yield
    found, refused = yield from _sift(candidates, now, filters, context, limit)
    entries = []
    pace = Pace()
    for ranked in rank(found, limit):
        entries.append(_entry(ranked, now))
        if pace.due(ranked.hint):
            yield
    return {"hints": entries, **({"why_not": nothing_here(refused)} if refused and not found else {})}


def _sift(
    candidates: list[Hint], now: float, filters: Filters, context: Context, limit: int
) -> Generator[None, None, tuple[list[Ranked], list[Refused]]]:
    """The best that apply here, and the nearest of those that do not: both lists stay short, as a sort of thousands at
    the end
    would be one long step."""
    found: list[Ranked] = []
    refused: list[Refused] = []
    pace = Pace()
    for hint in candidates:
        passed = filters.reasons(hint) if hint.live_at(now) else None
        verdict = None if passed is None else hint.scope.check(context)
        if passed is not None and verdict is not None and verdict.eligible:
            found.append(judge(hint, [*passed, *verdict.reasons], now))
        elif verdict is not None and not found:
            refused.append((hint, verdict))
        if len(found) >= 2 * limit:
            found = rank(found, limit)
        if len(refused) >= 2 * limits.MAX_QUERY_WHY_NOT:
            refused = nearest(refused, limits.MAX_QUERY_WHY_NOT)
        if pace.due(hint):
            yield
    return found, refused


def _entry(ranked: Ranked, now: float) -> dict[str, Any]:
    explanation = ranked.explain(now)
    return {
        "component": ranked.hint.component,
        "key": ranked.hint.key,
        "hint": ranked.hint.to_wire(),
        "score": explanation["score"],
        "match_explain": explanation,
    }
