"""Queries: filters that must all hold, over the smallest index that covers them, best hints first; and the explanation
when nothing is found: what exists, and which condition of its scope excluded it.

A text of several words is a question: after the hints that have all of them come those with some, marked `partial` and
ranked by their words.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Self

from nudge.core import limits
from nudge.core.context import Context
from nudge.core.errors import Invalid, NotFound
from nudge.core.visibility import EVERYTHING, Visibility
from nudge.hints.fields import copy_json, parse_list, parse_name, parse_text
from nudge.hints.index import HintIndex, Slices, TextQuery
from nudge.hints.model import Hint, Identity
from nudge.hints.ranking import RankedHint, rank
from nudge.hints.scope import Verdict
from nudge.security.patterns import Regex, compile_regex

Checked = tuple[Hint, Verdict]


@dataclass(frozen=True, slots=True)
class HintFilter:
    """None filters nothing. A hint needs one of the keys and one of the tags."""

    component: str | None
    keys: frozenset[str] | None
    tags: list[str] | None
    text: TextQuery | None
    regex: Regex | None

    @classmethod
    def parse(cls, component: object, keys: object, tags: object, text: object, regex: object) -> Self:
        return cls(
            component=None if component is None else parse_name(component, "component"),
            keys=None if keys is None else frozenset(_parse_names(keys, "keys", limits.MAX_NAME_CHARS)),
            tags=None if tags is None else _parse_names(tags, "tags", limits.MAX_TAG_CHARS),
            text=None if text is None else TextQuery.parse(text),
            regex=None if regex is None else _parse_regex(regex),
        )

    def candidates(self, index: HintIndex, now: float) -> Iterator[Hint]:
        """Live hints that pass every filter that an index can answer, best first; `narrow` applies the others. Lazy:
        the index must not change meanwhile.

        A small group is sorted as far as it is needed; a large one is picked from the order of all hints.
        """
        by_word = [] if self.text is None else index.find_by_word(self.text)
        group = self._smallest_group(index, by_word)
        hints = index.ranked(now) if group is None else index.best_first(group, now)
        if group is None and by_word:
            hints = (hint for hint in hints if hint.identity in by_word[0])  # the cheapest test first
        live = (hint for hint in hints if hint.expires_at is None or now < hint.expires_at)
        if self.keys is None and self.tags is None and self.text is None:
            return live
        return (hint for hint in live if self._accepts(hint, by_word))

    def partial_candidates(self, text: TextQuery, index: HintIndex, now: float, skip: Set[Identity]) -> Iterator[Hint]:
        """Live hints that have some of the words of a question, are not in `skip` and pass the other filters;
        those with the most and rarest words first. Lazy: the index must not change meanwhile."""
        return (
            hint
            for hint in index.with_some_words(text.any_of, now)
            if hint.identity not in skip
            and hint.live_at(now)
            and self._accepts_names(hint)
            and (index.is_indexed(hint) or text.words_in(hint.texts))
        )

    @property
    def question(self) -> TextQuery | None:
        """The text, if hints with only some of its words are wanted, too; not beside a regex."""
        return self.text if self.text is not None and self.text.any_of and self.regex is None else None

    def _accepts_names(self, hint: Hint) -> bool:
        if self.component is not None and hint.component != self.component:
            return False
        if self.keys is not None and hint.key not in self.keys:
            return False
        return self.tags is None or any(tag in self.tags for tag in hint.meta.get("tags", ()))

    def _accepts(self, hint: Hint, by_word: list[Set[Identity]]) -> bool:
        if not self._accepts_names(hint):
            return False
        return all(hint.identity in group for group in by_word)

    def narrow(self, hints: Iterator[Hint], index: HintIndex) -> Iterator[Hint | int]:
        """Yield those of the candidates whose texts match: the regex, phrases, and words that are not indexed. Reading
        texts takes time, so the number of characters that were read is yielded in between."""
        found = hints if self.regex is None else _matching(hints, self.regex)
        text = self.text
        if text is None:
            return found
        return (one if isinstance(one, int) or _has_text(text, index, one) else len(one.blob) for one in found)

    def _smallest_group(self, index: HintIndex, by_word: list[Set[Identity]]) -> Iterable[Hint] | None:
        """Return the hints of the component, else the fewest of those with the keys, the tags or the rarest word; None
        if even those are many, or there is no filter."""
        if self.component is not None:
            return index.component(self.component)
        groups = [] if self.keys is None else [index.find_by_key(self.keys)]
        groups += [] if self.tags is None else [index.find_by_tag(self.tags)]
        fewest = min(groups, key=lambda group: sum(map(len, group)), default=None)
        size = limits.SORTED_GROUP + 1 if fewest is None else sum(map(len, fewest))
        if by_word and len(by_word[0]) <= min(size, limits.SORTED_GROUP):
            return map(index.get, by_word[0])
        if fewest is None or size > limits.SORTED_GROUP:
            return None
        if len(fewest) == 1:
            return fewest[0].values()
        return {identity: hint for group in fewest for identity, hint in group.items()}.values()

    def reasons(self, hint: Hint, some_words: list[str] | None = None) -> list[str]:
        """Why a hint that passed was found; `some_words` are those that it has, if it was found by only some."""
        reasons = [f"tag {tag}" for tag in self.tags or () if tag in hint.meta.get("tags", ())]
        if self.text is not None:
            if some_words is not None:
                reasons.append(f"some of the words found: {', '.join(some_words)}")
            else:
                reasons.append(f"text found in {self.text.first_field(hint.texts)}")
        return reasons if self.regex is None else [*reasons, f"regex found in {_field_matched(self.regex, hint)}"]


def _has_text(text: TextQuery, index: HintIndex, hint: Hint) -> bool:
    return (not text.has_phrases and index.is_indexed(hint)) or text.matches(hint.texts)


def _field_matched(regex: Regex, hint: Hint) -> str | None:
    return next((name for name, text in hint.texts if regex.search(text)), None)


def _parse_names(raw: object, field: str, most: int) -> list[str]:
    names = parse_list(raw, field, limits.MAX_QUERY_ITEMS, lambda name, at: parse_text(name, at, most, least=1))
    if not names:
        raise Invalid("must not be empty; leave it out to filter nothing", field=field)
    return names


def _parse_regex(raw: object) -> Regex:
    if not isinstance(raw, str) or not raw:
        raise Invalid("must be a regular expression", field="regex")
    return compile_regex(raw, "regex")


def shown_hints(hints: Iterable[Hint], visible: Visibility) -> list[Hint]:
    """Return the hints that the caller may see."""
    if not visible.private:
        return list(hints)
    shown: dict[str, bool] = {}  # by scope: thousands of hints have the scope of one repo
    found = []
    for hint in hints:
        if hint.scope.key not in shown:
            shown[hint.scope.key] = visible.shows_scope(hint.scope.fields)
        if shown[hint.scope.key]:
            found.append(hint)
    return found


def _entries(
    filters: HintFilter, matches: list[Checked], words: Mapping[Identity, list[str]], now: float
) -> Generator[None, None, list[dict[str, Any]]]:
    """Return the entries of the matches that fit into an answer, at least one."""
    entries: list[dict[str, Any]] = []
    slices = Slices()
    room = limits.PAGE_BYTES
    for hint, verdict in matches:
        room -= hint.weight
        if room < 0 and entries:
            break
        some_words = words.get(hint.identity)
        reasons = [*filters.reasons(hint, some_words), *verdict.reasons]
        entry = _entry(rank(hint, reasons, now), now)
        if some_words is not None:
            entry["partial"] = True
        entries.append(entry)
        if slices.due(hint.weight):
            yield
    return entries


def search(
    index: HintIndex,
    now: float,
    filters: HintFilter,
    context: Context,
    limit: int,
    visible: Visibility = EVERYTHING,
) -> Generator[None, None, dict[str, Any]]:
    """Answer a query from the hints that exist when it starts. Of those that do not apply here, only hints that the
    caller may see are named.

    After the first look at the index it reads nothing that can change, except for a question, which reads the index
    again. With a regex it pauses before it reads any text: the rest may run on another thread."""
    if filters.text is not None:
        yield from index.index_words()
    candidates = filters.candidates(index, now)
    if filters.regex is not None:
        candidates = iter(list(candidates))
        yield
    narrow = partial(filters.narrow, index=index)
    is_lazy = filters.regex is None
    matches, refused = yield from _select(candidates, narrow, context, limit + 1, is_lazy=is_lazy, visible=visible)
    words: dict[Identity, list[str]] = {}
    if len(matches) <= limit and (question := filters.question) is not None:
        identities = {hint.identity for hint, _ in matches}
        some = filters.partial_candidates(question, index, now, identities)
        others, _ = yield from _select(some, iter, context, limit + 1 - len(matches), is_lazy=True, visible=visible)
        words = {hint.identity: _words_found(question, index, hint) for hint, _ in others}
        matches += others
    entries = yield from _entries(filters, matches[:limit], words, now)
    has_more = len(entries) < len(matches)
    why_not = {"why_not": _explain_refused(refused)} if refused and not matches else {}
    return {"hints": entries, **why_not, **({"more": True} if has_more else {})}


def _words_found(question: TextQuery, index: HintIndex, hint: Hint) -> list[str]:
    """Return the words of a question that a hint has. Its texts are read only if it is not in the index: it has more
    words than are indexed, or was changed meanwhile."""
    words = index.words_of(hint, question.any_of) if index.is_indexed(hint) else []
    return words or question.words_in(hint.texts)


def _select(
    candidates: Iterator[Hint],
    narrow: Callable[[Iterator[Hint]], Iterator[Hint | int]],
    context: Context,
    limit: int,
    *,
    is_lazy: bool,
    visible: Visibility,
) -> Generator[None, None, tuple[list[Checked], list[Checked]]]:
    """Return the first of the candidates that `narrow` leaves and that apply here, and, as long as there is none, the
    nearest of those that do not. `is_lazy`: the candidates come from the index, which may change in a pause."""
    matches: list[Checked] = []
    refused: list[Checked] = []
    verdicts: dict[str, Verdict] = {}
    hidden: set[str] = set()  # scopes that neither apply here nor may be seen
    slices = Slices()
    matching = narrow(candidates)
    while len(matches) < limit:
        hint = next(matching, None)
        if hint is None:
            break
        chars = 0
        if isinstance(hint, int):
            chars = hint
        else:
            verdict = verdicts.get(hint.scope.key)
            if verdict is None:
                verdict = verdicts[hint.scope.key] = hint.scope.check(context)
                chars = hint.scope.weight
                if not verdict.eligible and not visible.shows_scope(hint.scope.fields):
                    hidden.add(hint.scope.key)
            if verdict.eligible:
                matches.append((hint, verdict))
            elif not matches and hint.scope.key not in hidden:
                refused.append((hint, verdict))
        if slices.due(chars):
            if is_lazy:
                matching, is_lazy = narrow(iter(list(candidates))), False
            refused = _nearest(refused, limits.MAX_QUERY_WHY_NOT)
            yield
    return matches, refused


def _matching(candidates: Iterator[Hint], regex: Regex) -> Iterator[Hint | int]:
    """Yield the hints with a text that the regex matches and, after each block, its number of characters."""
    size = limits.FIRST_REGEX_BLOCK
    while block := list(islice(candidates, size)):
        blobs = [hint.blob for hint in block]
        for number in regex.candidates(blobs):
            if _field_matched(regex, block[number]) is not None:
                yield block[number]
        yield sum(map(len, blobs))
        size = limits.REGEX_BLOCK


def _entry(ranked: RankedHint, now: float) -> dict[str, Any]:
    """The entry has the hint's `basis`, if any, and `due`, its identity, if its return is to be stored
    (`mark_returned`). Neither must be sent to the caller."""
    explanation = ranked.explain(now)
    return {
        **({"basis": ranked.hint.basis} if ranked.hint.basis else {}),
        **({"due": ranked.hint.identity} if ranked.hint.is_due(now) else {}),
        "component": ranked.hint.component,
        "key": ranked.hint.key,
        "hint": ranked.hint.to_json(),
        "score": explanation["score"],
        "match_explain": explanation,
    }


def _explain_refused(refused: list[Checked]) -> list[dict[str, Any]]:
    """Return the `why_not` of a query: the hints that match but do not apply in the caller's context."""
    return [
        {"component": hint.component, "key": hint.key, "reasons": verdict.reasons}
        for hint, verdict in _nearest(refused, limits.MAX_QUERY_WHY_NOT)
    ]


# A hint that is not found


def no_such_hint(
    index: HintIndex,
    now: float,
    component: str,
    key: str,
    context: Context | None = None,
    *,
    visible: Visibility = EVERYTHING,
) -> NotFound:
    """The error for a hint that does not exist. It suggests the same key elsewhere and similar names."""
    live = (hint for hint in index.component(component) if hint.live_at(now))
    keys = sorted({hint.key for hint in shown_hints(live, visible)})
    message = f"{component} has no key {key}" if keys else f"component {component} is not known"
    suggestions = _suggest(index, now, (component, key), keys, context, visible)
    near = list(islice(suggestions, limits.MAX_NEAR))
    message += f" (did you mean {' or '.join(near)}?)" if near else ""
    more = {"known_keys": keys[: limits.MAX_KNOWN_KEYS]} if keys else {}
    return _not_found(message, component, key, [], **more, **({"near": near} if near else {}))


def no_such_variant(component: str, key: str, variants: list[Hint]) -> NotFound:
    """The error for a scope that none of the variants has."""
    scopes = [copy_json(hint.scope.fields) for hint in variants[: limits.MAX_WHY_NOT]]
    return _not_found(f"{component}/{key} has no variant with that scope", component, key, [], scopes=scopes)


def no_variant_here(component: str, key: str, refused: list[Checked]) -> NotFound:
    """The error for a hint none of whose variants applies in the caller's context."""
    rows = _nearest(refused, limits.MAX_WHY_NOT)
    why_not = [{"scope": copy_json(hint.scope.fields), "reasons": verdict.reasons} for hint, verdict in rows]
    outcome = "does not apply here" if len(refused) == 1 else f"none of its {len(refused)} variants applies here"
    return _not_found(f"{component}/{key} exists, but {outcome}", component, key, why_not)


def _suggest(
    index: HintIndex,
    now: float,
    name: tuple[str, str],
    keys: list[str],
    context: Context | None,
    visible: Visibility,
) -> Iterator[str]:
    """Yield hints that apply here, as `component/key`: close keys, then the key in close components, then in any
    other component."""
    component, key = name
    close = _close_names(component, index.components())
    groups = [
        (hint for close_key in _close_names(key, keys) for hint in index.variants(component, close_key)),
        (hint for other in close for hint in index.variants(other, key)),
        (hint for group in index.find_by_key([key]) for hint in sorted(group.values(), key=lambda hint: hint.identity)),
        (
            hint
            for other in close
            for close_key in _close_names(key, _keys_of(index, other))
            for hint in index.variants(other, close_key)
        ),
    ]
    names: set[str] = set()
    for hint in islice(chain.from_iterable(groups), limits.MAX_NEAR_CHECKED):
        text = f"{hint.component}/{hint.key}"
        if text in names or not hint.live_at(now) or not visible.shows_scope(hint.scope.fields):
            continue
        if context is None or hint.scope.check(context).eligible:
            names.add(text)
            yield text


def _keys_of(index: HintIndex, component: str) -> set[str]:
    return {hint.key for hint in index.component(component)}


def _close_names(name: str, names: Iterable[str]) -> list[str]:
    """Return names with a similar spelling. Only short names of about the same length are compared: it is slow."""
    if len(name) > limits.MAX_TAG_CHARS:
        return []
    alike = [other for other in names if other != name and abs(len(other) - len(name)) <= 2]
    from difflib import get_close_matches  # late: 4 ms

    return get_close_matches(name, alike, n=limits.MAX_NEAR, cutoff=0.7)


def _nearest(refused: Iterable[Checked], most: int) -> list[Checked]:
    """Return up to `most` hints that fail the fewest conditions, the best first."""
    return heapq.nsmallest(most, refused, key=lambda pair: (len(pair[1].reasons), pair[0].identity))


def _not_found(message: str, component: str, key: str, why_not: list[dict[str, Any]], **more: Any) -> NotFound:
    return NotFound(message, component=component, key=key, why_not=why_not, **more)
