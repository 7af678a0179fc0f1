"""The hints of a store in memory: looked up by identity, component, key, tag and word, and in the order of scores.

`TextQuery` is what a user writes to look hints up by words: terms, phrases and prefixes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from math import log
from operator import add
from typing import Self

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.words import content_words, has_word, split_words, stem
from nudge.hints.fields import parse_text
from nudge.hints.model import Change, Hint, Identity
from nudge.hints.ranking import ScoreOrder
from nudge.hints.versions import inherit

HintsById = dict[Identity, Hint]
WeightedWord = tuple[set[Identity], float]  # the hints that have it, and its weight

_AFTER_ANY_WORD = chr(0x10FFFF)  # not in a word, and greater than any character that is
_CHUNK = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')


class HintIndex:
    """`apply` is the only method that changes which hints there are."""

    def __init__(self, hints: Iterable[Hint] = ()) -> None:
        self._all: HintsById = {}
        self._variants: dict[str, dict[str, HintsById]] = {}
        self._sizes: dict[str, int] = {}
        self._by_key: dict[str, HintsById] = {}
        self._by_tag: dict[str, HintsById] = {}
        self._env_names: dict[str, int] = {}  # environment variables in scopes, and in how many
        self._order = ScoreOrder()
        self._words = TextIndex()
        for hint in hints:
            self._put(hint)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Hint]:
        return iter(self._all.values())

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._all

    def apply(self, change: Change) -> None:
        for identity in change.removals:
            self._remove(identity)
        for hint in change.puts:
            current = self._all.get(hint.identity)
            self._remove(hint.identity)
            self._put(hint if current is None else inherit(current, hint))

    def with_change(self, change: Change) -> HintIndex:
        """Return another index that has the change; this one is not changed."""
        removed = set(change.removals)
        replaced = removed.union(hint.identity for hint in change.puts)
        continued = {identity: self._all[identity] for identity in replaced - removed if identity in self._all}
        puts = (inherit(continued[hint.identity], hint) if hint.identity in continued else hint for hint in change.puts)
        return HintIndex((*(hint for hint in self if hint.identity not in replaced), *puts))

    def free(self) -> None:
        """Free an index that is no longer read, hint by hint, on a worker thread: freed at once, thousands of hints
        would hold the interpreter lock for 15 ms."""
        self._order, self._words = ScoreOrder(), TextIndex()
        hints = list(self)
        for groups in (self._by_key, self._by_tag, self._variants, self._all):
            groups.clear()
        while hints:
            hints.pop()

    # Looking up

    def live(self, identity: Identity, now: float) -> Hint | None:
        hint = self._all.get(identity)
        return hint if hint is not None and hint.live_at(now) else None

    def variants(self, component: str, key: str) -> Collection[Hint]:
        return self._variants.get(component, {}).get(key, {}).values()

    def components(self) -> Set[str]:
        return self._variants.keys()

    def component(self, component: str) -> Iterator[Hint]:
        return (hint for group in self._variants.get(component, {}).values() for hint in group.values())

    def find_by_key(self, keys: Iterable[str]) -> list[HintsById]:
        return [self._by_key[key] for key in keys if key in self._by_key]

    def find_by_tag(self, tags: Iterable[str]) -> list[HintsById]:
        return [self._by_tag[tag] for tag in tags if tag in self._by_tag]

    def index_words(self) -> Generator[None, None, None]:
        """Build the index of words, in slices. Must be done before `find_by_word` is called."""
        yield from self._words.build(self)

    def find_by_word(self, query: TextQuery) -> list[Set[Identity]]:
        """Return the hints that have it for each word of a query, fewest first. Hints with more words than are indexed
        are in each group."""
        return self._words.find(query)

    def with_some_words(self, words: Iterable[str], now: float) -> Iterator[Hint]:
        """Yield the hints that have any of the words, those with more and rarer words first, then by score. Hints with
        more words than are indexed count as if they had all. Lazy: the index must not change meanwhile.

        Hints with a rare word are weighed at once. The others are taken in the order of all hints: those with all of
        the common words as they come, so that mostly a few are looked at, and the rest by weight at the end. Of the
        common words only the MAX_COMMON_WORDS rarest count.
        """
        weights, common = self._words.compute_weights(words)
        most = _add_up(weight for _, weight in common)
        heavy = [self.get(identity) for identity, weight in weights.items() if weight > most]
        yield from sorted(self.best_first(heavy, now), key=lambda hint: -weights[hint.identity])
        lighter: dict[float, list[Hint]] = {}
        for hint in self.ranked(now) if common else ():
            identity = hint.identity
            weight = weights.get(identity, -1.0)
            if weight < 0:
                weight = _add_up([weight for group, weight in common if identity in group])
            if weight == most:
                yield hint
            elif 0 < weight < most:
                lighter.setdefault(weight, []).append(hint)
        for weight in sorted(lighter, reverse=True):
            yield from lighter[weight]

    def words_of(self, hint: Hint, words: Iterable[str]) -> list[str]:
        """Return those of the words that a hint is indexed under, in any form that has the same stem."""
        return [word for word in words if self._words.has(hint, word)]

    def is_indexed(self, hint: Hint) -> bool:
        """Whether `find_by_word` knows all words of a hint."""
        return self._words.is_indexed(hint)

    def get(self, identity: Identity) -> Hint:
        return self._all[identity]

    def ranked(self, now: float) -> Iterator[Hint]:
        """All hints, best first. The index must not change during the walk."""
        return self._order.walk(self, now)

    def best_first(self, hints: Iterable[Hint], now: float) -> Iterator[Hint]:
        """Yield some hints of this index, best first; the sort is lazy."""
        return self._order.best_first(self, hints, now)

    def env_names(self) -> Set[str]:
        return self._env_names.keys()

    # Counting

    def size(self, component: str) -> int:
        return self._sizes.get(component, 0)

    def component_count(self) -> int:
        return len(self._sizes)

    def find_expired(self, now: float) -> list[Hint]:
        return [hint for hint in self._all.values() if not hint.live_at(now)]

    # Changing

    def _put(self, hint: Hint) -> None:
        identity = hint.identity
        self._all[identity] = hint
        self._sizes[hint.component] = self.size(hint.component) + 1
        self._variants.setdefault(hint.component, {}).setdefault(hint.key, {})[identity] = hint
        self._by_key.setdefault(hint.key, {})[identity] = hint
        for tag in hint.meta.get("tags", ()):
            self._by_tag.setdefault(tag, {})[identity] = hint
        for name in hint.scope.env_names:
            self._env_names[name] = self._env_names.get(name, 0) + 1
        self._order.add(hint)
        self._words.add(hint)

    def _remove(self, identity: Identity) -> None:
        """Remove a hint, if it exists: a log may repeat a removal."""
        hint = self._all.pop(identity, None)
        if hint is None:
            return
        _remove_from_group(self._by_key, hint.key, identity)
        _remove_from_group(self._variants[hint.component], hint.key, identity)
        for tag in hint.meta.get("tags", ()):
            _remove_from_group(self._by_tag, tag, identity)
        for name in hint.scope.env_names:
            self._env_names[name] -= 1
            if not self._env_names[name]:
                del self._env_names[name]
        self._sizes[hint.component] -= 1
        if not self._sizes[hint.component]:
            del self._sizes[hint.component], self._variants[hint.component]
        self._order.discard(hint)
        self._words.discard(hint)


def _remove_from_group(groups: dict[str, HintsById], name: str, identity: Identity) -> None:
    """Remove a hint from a group, and the group when it is empty, so that unused names do not pile up."""
    group = groups[name]
    del group[identity]
    if not group:
        del groups[name]


# Words


class TextIndex:
    """Which hints have a word. Built by the first search by words, then kept up to date."""

    def __init__(self) -> None:
        self._is_used = False
        self._is_built = False
        self._hints: dict[str, set[Identity]] = {}  # by word, as it is written
        self._by_stem: dict[str, set[str]] = {}
        self._words: dict[Identity, list[str]] = {}
        self._long: set[Identity] = set()  # hints with more than INDEXED_WORDS words
        self._sorted_words: list[str] = []  # for prefixes; sorted again by the first that follows a change
        self._is_sorted = False

    def build(self, index: HintIndex) -> Generator[None, None, None]:
        """Index all hints, in slices. A hint that is put while this pauses is added by `add`."""
        self._is_used = True
        slices = Slices()
        for hint in [] if self._is_built else list(index):
            if hint.identity in index and hint.identity not in self._words:
                self.add(index.get(hint.identity))
            if slices.due(len(hint.blob)):
                yield
        self._is_built = True

    def find(self, query: TextQuery) -> list[Set[Identity]]:
        """Return the hints that have it for each word of the query, fewest first. Hints with more words than are
        indexed are in each group."""
        groups = [
            self._with_any(self._spellings(word, is_prefix=term.is_prefix and word is term.words[-1]))
            for term in query.terms
            for word in term.words
        ]
        return sorted(groups, key=len)

    def compute_weights(self, words: Iterable[str]) -> tuple[dict[Identity, float], list[WeightedWord]]:
        """Return the weights of the hints with a rare word, and the common words, rarest first. Each word that a hint
        has adds to its weight: the rarer the word, the more."""
        groups = sorted((self._with_any(self._spellings(word, is_prefix=False)) for word in words), key=len)
        weighted = [(group, log(1 + len(self._words) / len(group))) for group in groups if group]
        rare = [word for word in weighted if len(word[0]) <= limits.RANKED_HINTS]
        common = weighted[len(rare) :][: limits.MAX_COMMON_WORDS]
        weights: dict[Identity, float] = {}
        for group, weight in rare:
            for identity in group:
                weights[identity] = weights.get(identity, 0.0) + weight
        for group, weight in common:
            for identity in weights.keys() & group:
                weights[identity] += weight
        return weights, common

    def has(self, hint: Hint, word: str) -> bool:
        return any(hint.identity in self._hints[spelling] for spelling in self._spellings(word, is_prefix=False))

    def is_indexed(self, hint: Hint) -> bool:
        return hint.identity not in self._long

    def add(self, hint: Hint) -> None:
        if not self._is_used:
            return
        words = list(dict.fromkeys(word for _, text in hint.texts for word in split_words(text)))
        if len(words) > limits.INDEXED_WORDS:
            self._long.add(hint.identity)
            words = words[: limits.INDEXED_WORDS]
        self._words[hint.identity] = words
        for word in words:
            if word not in self._hints:
                self._hints[word] = set()
                self._is_sorted = False
                self._by_stem.setdefault(stem(word), set()).add(word)
            self._hints[word].add(hint.identity)

    def discard(self, hint: Hint) -> None:
        for word in self._words.pop(hint.identity, ()):
            self._hints[word].discard(hint.identity)
            if not self._hints[word]:
                del self._hints[word]
                self._is_sorted = False
                self._by_stem[stem(word)].discard(word)
                if not self._by_stem[stem(word)]:
                    del self._by_stem[stem(word)]
        self._long.discard(hint.identity)

    def _spellings(self, word: str, *, is_prefix: bool) -> Iterable[str]:
        return self._with_prefix(word) if is_prefix else self._by_stem.get(stem(word), ())

    def _with_prefix(self, prefix: str) -> Sequence[str]:
        if not self._is_sorted:
            words = dict.fromkeys(filter(self._hints.__contains__, self._sorted_words))
            words.update(dict.fromkeys(self._hints))
            self._sorted_words = sorted(words)  # linear when most of them were sorted before
            self._is_sorted = True
        first = bisect_left(self._sorted_words, prefix)
        return self._sorted_words[first : bisect_left(self._sorted_words, prefix + _AFTER_ANY_WORD, first)]

    def _with_any(self, words: Iterable[str]) -> set[Identity]:
        groups = list(map(self._hints.__getitem__, words))
        return groups[0] if len(groups) == 1 and not self._long else self._long.union(*groups)


def _add_up(weights: Iterable[float]) -> float:
    """Add one by one, as the weights of hints with rare words are; `sum` rounds in another way from Python 3.12 on."""
    return reduce(add, weights, 0.0)


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or several adjacent words; the last one may be a prefix."""

    words: tuple[str, ...]
    is_prefix: bool

    def is_in(self, words: Sequence[str]) -> bool:
        *first, last = self.words
        if not first:
            return any(self._ends_with(last, word) for word in words)
        stems, expected, many = list(map(stem, words)), list(map(stem, first)), len(first)
        return any(
            stems[at] == expected[0] and stems[at : at + many] == expected and self._ends_with(last, words[at + many])
            for at in range(len(words) - many)
        )

    def is_in_text(self, text: str) -> bool:
        """`is_in` for a text, which is split into words only if a look at it does not tell."""
        if not text.isascii():
            return self.is_in(split_words(text))
        lowered, last = text.lower(), self.words[-1]
        if len(self.words) == 1 and not self.is_prefix and last.isascii():
            return has_word(lowered, last)
        if (last if self.is_prefix else stem(last)[:-1]) not in lowered:  # the last letter of a stem may differ
            return False
        phrase = " ".join(self.words)
        at = lowered.find(phrase)
        end = at + len(phrase)
        if at >= 0 and not lowered[at - 1 : at].isalnum() and (self.is_prefix or not lowered[end : end + 1].isalnum()):
            return True
        return self.is_in(split_words(text))

    def _ends_with(self, last: str, word: str) -> bool:
        return word.startswith(last) if self.is_prefix else stem(last) == stem(word)


@dataclass(frozen=True, slots=True)
class TextQuery:
    """Terms that must all be in a hint, in any order and in any of its texts. For a question, which has several terms,
    hints with only some of the words in `any_of` follow those with all terms."""

    terms: tuple[Term, ...]
    any_of: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: object) -> Self:
        """Parse `docker build`, `"adjacent words"`, `dock*`; a name such as `http-proxy` means its parts as adjacent
        words. Raises Invalid for a text without a word."""
        terms = []
        text = parse_text(raw, "text", limits.MAX_QUERY_TEXT_CHARS, lines=True)
        for phrase, star, chunk in _CHUNK.findall(text):
            if words := split_words(phrase or chunk):
                terms.append(Term(tuple(words), bool(star) or chunk.endswith("*")))
        if not terms:
            raise Invalid("must contain a word", field="text")
        any_of = _words_of_question(text) if len(terms) >= limits.QUESTION_WORDS else ()
        return cls(tuple(dict.fromkeys(terms)), any_of)

    @property
    def has_phrases(self) -> bool:
        return any(len(term.words) > 1 for term in self.terms)

    def matches(self, texts: Iterable[tuple[str, str]]) -> bool:
        """Whether each term is in one of the texts, which come with the names of their fields."""
        fields = [text for _, text in texts]
        return all(any(term.is_in_text(text) for text in fields) for term in self.terms)

    def words_in(self, texts: Iterable[tuple[str, str]]) -> list[str]:
        """Those of `any_of` that are in the texts."""
        stems = set(map(stem, split_words("\n".join(text for _, text in texts))))
        return [word for word in self.any_of if stem(word) in stems]

    def first_field(self, texts: Iterable[tuple[str, str]]) -> str | None:
        """The first field with one of the terms."""
        for name, text in texts:
            if any(term.is_in_text(text) for term in self.terms):
                return name
        return None


def _words_of_question(text: str) -> tuple[str, ...]:
    """The words without stop words, each once; two spellings of one stem are one word."""
    words = {stem(word): word for part in content_words(text) for word in split_words(part)}
    return tuple(words.values())[: limits.MAX_QUESTION_WORDS]


class Slices:
    """Counts work in hints and in characters, since a hundred hints may have eight kilobytes or eight hundred."""

    __slots__ = ("_chars", "_hints")

    def __init__(self) -> None:
        self._hints = self._chars = 0

    def due(self, chars: int) -> bool:
        """Count one more hint with this many characters; return whether the slice is full, so that it is time to
        pause."""
        self._hints += 1
        self._chars += chars
        if self._hints < limits.HINTS_PER_SLICE and self._chars < limits.CHARS_PER_SLICE:
            return False
        self._hints = self._chars = 0
        return True
