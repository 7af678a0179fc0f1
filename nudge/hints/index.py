"""The hints of a store in memory: looked up by identity, component, key, tag and word, and in the order of scores."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Set
from heapq import heapify, heappop
from operator import attrgetter

from nudge.hints import ranking
from nudge.hints.model import Change, Hint, Identity
from nudge.hints.text_index import TextIndex, TextQuery
from nudge.scoring import half_life

Shelf = dict[Identity, Hint]


class HintIndex:
    """`apply` is the only method that changes which hints there are."""

    def __init__(self, hints: Iterable[Hint] = ()) -> None:
        self._all: Shelf = {}
        self._variants: dict[str, dict[str, Shelf]] = {}
        self._sizes: dict[str, int] = {}
        self._by_key: dict[str, Shelf] = {}
        self._by_tag: dict[str, Shelf] = {}
        self._env_names: dict[str, int] = {}  # environment variables in scopes, and in how many
        self._order = _Order()
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
            self._remove(hint.identity)
            self._put(hint)

    def with_change(self, change: Change) -> HintIndex:
        """Return another index that has the change; this one is not changed."""
        replaced = {*change.removals, *(hint.identity for hint in change.puts)}
        return HintIndex((*(hint for hint in self if hint.identity not in replaced), *change.puts))

    def dismantle(self) -> None:
        """Free an index that is no longer read, hint by hint, on a worker thread: freed at once, thousands of hints
        would hold the interpreter lock for 15 ms."""
        self._order, self._words = _Order(), TextIndex()
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
        """Build the index of words, in slices. Must be done before `worded` is called."""
        yield from self._words.build(self)

    def worded(self, query: TextQuery) -> list[Set[Identity]]:
        """Return the hints that have it for each word of a query, fewest first. Hints with more words than are indexed
        are in each group."""
        return self._words.find(query)

    def with_some_words(self, words: Iterable[str], now: float) -> Generator[None, None, list[Hint]]:
        """Return the hints that have any of the words, those with more and rarer words first, then by score. Hints with
        more words than are indexed count as if they had all."""
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
    """Remove a hint from a shelf, and the shelf when it is empty, so that unused names do not pile up."""
    shelf = shelves[name]
    del shelf[identity]
    if not shelf:
        del shelves[name]


class _Order:
    """The hints sorted by score, as of one minute. Built when a query first needs it, then kept up to date.

    To move to a new minute is cheap: only the part of each score that decays is multiplied.
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
        """Move to a later minute, with less work than computing the score again."""
        if minute >= self._since:
            score = self._steady + self._fading * half_life(minute - self._since)
            self.key = (-score, self.key[1], self.key[2])


_KEY = attrgetter("key")
