"""The hints that are held, found by component, key and tag. `apply` is the one place where anything changes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Set

from nudge import limits
from nudge.hints.change import Change
from nudge.hints.model import Hint, Identity

Shelf = dict[Identity, Hint]


class HintIndex:
    def __init__(self) -> None:
        self._all: Shelf = {}
        self._variants: dict[str, dict[str, Shelf]] = {}
        self._sizes: dict[str, int] = {}
        self._by_key: dict[str, Shelf] = {}
        self._by_tag: dict[str, Shelf] = {}
        self._asking: dict[str, int] = {}  # how many scopes look at a variable of the environment

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

    def with_change(self, change: Change) -> Generator[None, None, HintIndex]:
        """Another index that has the change, made step by step, while this one is as it was."""
        gone = {*change.removals, *(hint.identity for hint in change.puts)}
        changed = HintIndex()
        for number, hint in enumerate((*(hint for hint in self if hint.identity not in gone), *change.puts)):
            changed._put(hint)
            if number % limits.HINTS_PER_BREATH == 0:
                yield
        return changed

    def dismantle(self) -> Generator[None, None, None]:
        """Free what nobody will look at any more, step by step: all at once would be one long step."""
        self._by_tag.clear()
        self._by_key.clear()
        self._variants.clear()
        while self._all:
            self._all.popitem()
            if len(self._all) % limits.HINTS_PER_BREATH == 0:
                yield

    # Looking up

    def live(self, identity: Identity, now: float) -> Hint | None:
        hint = self._all.get(identity)
        return hint if hint is not None and hint.live_at(now) else None

    def shelf(self, component: str, key: str) -> Iterable[Hint]:
        return self._variants.get(component, {}).get(key, {}).values()

    def variants(self, component: str, key: str, now: float) -> list[Hint]:
        return [hint for hint in self.shelf(component, key) if hint.live_at(now)]

    def component(self, component: str) -> Iterator[Hint]:
        return (hint for shelf in self._variants.get(component, {}).values() for hint in shelf.values())

    def keyed(self, keys: Iterable[str]) -> Iterator[Hint]:
        return (hint for key in dict.fromkeys(keys) for hint in self._by_key.get(key, {}).values())

    def tagged(self, tags: Iterable[str]) -> Iterator[Hint]:
        """Each once, however many of the tags it has."""
        found: Shelf = {}
        for tag in tags:
            found.update(self._by_tag.get(tag, {}))
        return iter(found.values())

    def env_names(self) -> Set[str]:
        return self._asking.keys()

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
            self._asking[name] = self._asking.get(name, 0) + 1

    def _remove(self, identity: Identity) -> None:
        """A log may repeat a removal, so what is gone already is no error."""
        hint = self._all.pop(identity, None)
        if hint is None:
            return
        self._take_off(self._by_key, hint.key, identity)
        self._take_off(self._variants[hint.component], hint.key, identity)
        for tag in hint.meta.get("tags", ()):
            self._take_off(self._by_tag, tag, identity)
        for name in hint.scope.env_names:
            self._asking[name] -= 1
            if not self._asking[name]:
                del self._asking[name]
        self._sizes[hint.component] -= 1
        if not self._sizes[hint.component]:
            del self._sizes[hint.component], self._variants[hint.component]

    @staticmethod
    def _take_off(shelves: dict[str, Shelf], name: str, identity: Identity) -> None:
        """An empty shelf goes too: names come and go, and memory must not remember them."""
        shelf = shelves[name]
        del shelf[identity]
        if not shelf:
            del shelves[name]
