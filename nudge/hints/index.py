"""The hints of a store, found by identity, component, key, tag and word, and in the order of their scores."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Set
from heapq import heapify, heappop
from math import log
from operator import attrgetter

from nudge import limits
from nudge.hints import ranking
from nudge.hints.model import Change, Hint, Identity
from nudge.hints.text_query import TextQuery
from nudge.scoring import half_life
from nudge.words import split_words, stem

Shelf = dict[Identity, Hint]


class HintIndex:
    """`apply` is the only method that changes which hints there are."""

    def __init__(self, hints: Iterable[Hint] = ()) -> None:
        self._all: Shelf = {}
        self._variants: dict[str, dict[str, Shelf]] = {}
        self._sizes: dict[str, int] = {}
        self._by_key: dict[str, Shelf] = {}
        self._by_tag: dict[str, Shelf] = {}
        self._env_names: dict[str, int] = {}  # how many scopes ask for a variable of the environment
        self._order = _Order()
        self._words = _Words()
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
            self._remove(hint.identity)
            self._put(hint)

    def with_change(self, change: Change) -> HintIndex:
        """Another index that has the change, while this one stays as it is."""
        replaced = {*change.removals, *(hint.identity for hint in change.puts)}
        return HintIndex((*(hint for hint in self if hint.identity not in replaced), *change.puts))

    def dismantle(self) -> None:
        """Free an index that nobody reads any more, piece by piece, on a worker thread: freed at once, thousands of
        hints would hold the interpreter lock for 15 ms."""
        self._order, self._words = _Order(), _Words()
        hints = list(self)
        for shelves in (self._by_key, self._by_tag, self._variants, self._all):
            shelves.clear()
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
        return (hint for shelf in self._variants.get(component, {}).values() for hint in shelf.values())

    def keyed(self, keys: Iterable[str]) -> list[Shelf]:
        return [self._by_key[key] for key in keys if key in self._by_key]

    def tagged(self, tags: Iterable[str]) -> list[Shelf]:
        return [self._by_tag[tag] for tag in tags if tag in self._by_tag]

    def index_words(self) -> Generator[None, None, None]:
        """Make `worded` usable: for the first search by words this takes a while."""
        yield from self._words.build(self)

    def worded(self, query: TextQuery) -> list[Set[Identity]]:
        """For each word of a query the hints that have it, fewest first; and with them those that have more words than
        are indexed."""
        return self._words.find(query)

    def with_some_words(self, words: Iterable[str], now: float) -> Generator[None, None, list[Hint]]:
        """The hints that have any of the words: the more of them and the rarer those, the earlier; then best first.
        Those with more words than are indexed count as if they had each."""
        weights = yield from self._words.weigh(words)
        return self._order.heaviest_first(self, weights, now)

    def is_indexed(self, hint: Hint) -> bool:
        """Whether `worded` knows all words of a hint."""
        return self._words.is_indexed(hint)

    def get(self, identity: Identity) -> Hint:
        return self._all[identity]

    def ranked(self, now: float) -> Iterator[Hint]:
        """All hints, best first. The index must not change during the walk."""
        return self._order.walk(self, now)

    def best_first(self, hints: Iterable[Hint], now: float) -> Iterator[Hint]:
        """Some hints of this index, best first; sorted no further than they are asked for."""
        return self._order.best_first(self, hints, now)

    def env_names(self) -> Set[str]:
        return self._env_names.keys()

    # Counting

    def size(self, component: str) -> int:
        return self._sizes.get(component, 0)

    def component_count(self) -> int:
        return len(self._sizes)

    def expired(self, now: float) -> list[Hint]:
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
        """A log may repeat a removal, so what is gone already is no error."""
        hint = self._all.pop(identity, None)
        if hint is None:
            return
        _take_off(self._by_key, hint.key, identity)
        _take_off(self._variants[hint.component], hint.key, identity)
        for tag in hint.meta.get("tags", ()):
            _take_off(self._by_tag, tag, identity)
        for name in hint.scope.env_names:
            self._env_names[name] -= 1
            if not self._env_names[name]:
                del self._env_names[name]
        self._sizes[hint.component] -= 1
        if not self._sizes[hint.component]:
            del self._sizes[hint.component], self._variants[hint.component]
        self._order.discard(hint)
        self._words.discard(hint)


def _take_off(shelves: dict[str, Shelf], name: str, identity: Identity) -> None:
    """An empty shelf goes too: names come and go, and must not pile up."""
    shelf = shelves[name]
    del shelf[identity]
    if not shelf:
        del shelves[name]


class _Words:
    """Which hints have a word. Built by the first search for words, then kept up to date."""

    def __init__(self) -> None:
        self._is_used = False
        self._is_built = False
        self._hints: dict[str, set[Identity]] = {}  # by word, as it is written
        self._by_stem: dict[str, set[str]] = {}
        self._words: dict[Identity, list[str]] = {}
        self._long: set[Identity] = set()  # have more words than are kept here

    def build(self, index: HintIndex) -> Generator[None, None, None]:
        """Hints that are put while this pauses are added as they come."""
        self._is_used = True
        slices = Slices()
        for hint in [] if self._is_built else list(index):
            if hint.identity in index and hint.identity not in self._words:
                self.add(index.get(hint.identity))
            if slices.due(len(hint.blob)):
                yield
        self._is_built = True

    def find(self, query: TextQuery) -> list[Set[Identity]]:
        groups = [
            self._with_any(self._spellings(word, is_prefix=term.is_prefix and word is term.words[-1]))
            for term in query.terms
            for word in term.words
        ]
        return sorted(groups, key=len)

    def weigh(self, words: Iterable[str]) -> Generator[None, None, dict[Identity, float]]:
        """Hints that go while this pauses may be among them."""
        weights: dict[Identity, float] = {}
        groups = (self._with_any(self._spellings(word, is_prefix=False)) for word in words)
        for group in sorted(filter(None, groups), key=len):
            weight = log(1 + len(self._words) / len(group))
            is_full = len(weights) >= limits.RANKED_HINTS
            for identity in weights.keys() & group if is_full else group:
                weights[identity] = weights.get(identity, 0.0) + weight
            yield
        return weights

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
                self._by_stem.setdefault(stem(word), set()).add(word)
            self._hints[word].add(hint.identity)

    def discard(self, hint: Hint) -> None:
        for word in self._words.pop(hint.identity, ()):
            self._hints[word].discard(hint.identity)
            if not self._hints[word]:
                del self._hints[word]
                self._by_stem[stem(word)].discard(word)
                if not self._by_stem[stem(word)]:
                    del self._by_stem[stem(word)]
        self._long.discard(hint.identity)

    def _spellings(self, word: str, *, is_prefix: bool) -> Iterable[str]:
        if is_prefix:
            return [spelling for spelling in self._hints if spelling.startswith(word)]
        return self._by_stem.get(stem(word), ())

    def _with_any(self, words: Iterable[str]) -> Set[Identity]:
        groups = [self._hints[word] for word in words]
        return groups[0] if len(groups) == 1 and not self._long else self._long.union(*groups)


class _Order:
    """The hints sorted by score, as of one minute. Made when a query first needs it, then kept up to date.

    A new minute costs little: the part of each score that fades is multiplied.
    """

    def __init__(self) -> None:
        self._minute: float | None = None
        self._sorted: list[_Entry] = []
        self._entries: dict[Identity, _Entry] = {}

    def walk(self, index: Iterable[Hint], now: float) -> Iterator[Hint]:
        self._refresh(index, now)
        return (entry.hint for entry in self._sorted)

    def best_first(self, index: Iterable[Hint], hints: Iterable[Hint], now: float) -> Iterator[Hint]:
        self._refresh(index, now)
        heap = [(self._entries[hint.identity].key, hint) for hint in hints]  # no two keys are equal
        heapify(heap)
        while heap:
            yield heappop(heap)[1]

    def heaviest_first(self, index: Iterable[Hint], weights: Mapping[Identity, float], now: float) -> list[Hint]:
        self._refresh(index, now)
        entries = [entry for identity in weights if (entry := self._entries.get(identity)) is not None]
        return [entry.hint for entry in sorted(entries, key=lambda entry: (-weights[entry.hint.identity], entry.key))]

    def add(self, hint: Hint) -> None:
        if self._minute is not None:
            entry = self._entries[hint.identity] = _Entry(hint, self._minute)
            insort(self._sorted, entry, key=_KEY)

    def discard(self, hint: Hint) -> None:
        if self._minute is not None:
            del self._sorted[bisect_left(self._sorted, self._entries.pop(hint.identity).key, key=_KEY)]

    def _refresh(self, index: Iterable[Hint], now: float) -> None:
        minute = now - now % ranking.MINUTE
        if minute == self._minute:
            return
        if self._minute is None or minute < self._minute:
            self._entries = {hint.identity: _Entry(hint, minute) for hint in index}
            self._sorted = list(self._entries.values())
        else:
            for entry in self._sorted:
                entry.move(minute)
        self._minute = minute
        self._sorted.sort(key=_KEY)  # linear when it was sorted a minute before


class _Entry:
    __slots__ = ("_fading", "_since", "_steady", "hint", "key")

    def __init__(self, hint: Hint, minute: float) -> None:
        self.hint = hint
        self._since = max(minute, hint.updated_at, hint.last_used_at or 0.0)
        self._steady, self._fading = ranking.score_parts(hint, self._since)
        score = self._steady + self._fading if self._since == minute else ranking.score(hint, minute)
        self.key: ranking.OrderKey = (-score, -hint.updated_at, hint.identity)

    def move(self, minute: float) -> None:
        """To a later minute, with less work than a score takes."""
        if minute >= self._since:
            score = self._steady + self._fading * half_life(minute - self._since)
            self.key = (-score, self.key[1], self.key[2])


_KEY = attrgetter("key")


class Slices:
    """Counts work in hints and in characters: a hundred hints may be eight kilobytes or eight hundred."""

    __slots__ = ("_chars", "_hints")

    def __init__(self) -> None:
        self._hints = self._chars = 0

    def due(self, chars: int) -> bool:
        """Whether a slice is full, now that one more hint with so many characters was handled."""
        self._hints += 1
        self._chars += chars
        if self._hints < limits.HINTS_PER_SLICE and self._chars < limits.CHARS_PER_SLICE:
            return False
        self._hints = self._chars = 0
        return True
