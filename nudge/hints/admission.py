"""The checks of a change before it may enter the store: the secret guard and the quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.core.errors import QuotaExceeded, SecretRejected
from nudge.hints.fields import value_texts
from nudge.hints.index import HintIndex
from nudge.hints.model import SECRET, Change, Hint, Identity
from nudge.hints.versions import EarlierVersion
from nudge.security.secrets import find_secret

_SHORTEST_SECRET = 8  # characters; no rule matches a shorter text, and a value may have thousands of them
_ASSIGNED_CHARS = 1_024  # characters of a value that are searched again after its key: 1 ms per kilobyte
_OVERRIDE = 'to keep it anyway, set meta.sensitivity to "secret"'
_NO_OVERRIDE = "only the value may hold one"


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """Where a text looks like a secret, and of which kind; without the text itself."""

    field: str
    kind: str

    def phrase(self) -> str:
        advice = _OVERRIDE if self.field.startswith("value") else _NO_OVERRIDE
        return f"looks like a secret ({self.kind}); {advice}"


def find_secret_in(component: str, key: str, value: Any, meta: dict[str, Any]) -> SecretFinding | None:
    """Return the first secret in a hint. A value marked `secret` is not searched; the other fields are, since they are
    listed, logged and exported unredacted."""
    is_marked = meta.get("sensitivity") == SECRET
    texts = [*_other_texts(component, key, meta), *(() if is_marked else _value_texts(key, value))]
    for field, text in texts:
        kind = find_secret(text) if len(text) >= _SHORTEST_SECRET else None
        if kind:
            return SecretFinding(field, kind)
    return None


def _value_texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """A string is also searched with its key: only a name such as `env.DB_PASSWORD` shows what the value is."""
    yield from value_texts(value)
    if isinstance(value, str):
        yield "value", f"{key}={value[:_ASSIGNED_CHARS]}"


def _other_texts(component: str, key: str, meta: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "component", component
    yield "key", key
    yield "meta.reason", meta.get("reason", "")
    yield "meta.added_by", meta.get("added_by", "")
    yield from ((f"meta.tags[{index}]", tag) for index, tag in enumerate(meta.get("tags", ())))
    for name, allowed in meta.get("scope", {}).get("env_match", {}).items():
        for text in [allowed] if isinstance(allowed, str) else allowed:
            yield f"meta.scope.env_match.{name}", text


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules of one store: whether secrets are refused, and how many hints there may be."""

    secret_guard: bool
    max_hints: int

    def secret_in(self, hint: Hint) -> SecretFinding | None:
        return find_secret_in(hint.component, hint.key, hint.value, hint.meta) if self.secret_guard else None

    def guard_earlier(self, hint: Hint, earlier: EarlierVersion) -> EarlierVersion:
        """Return an earlier version of the hint, without what it said when that looks like a secret."""
        if not self.secret_guard or earlier.is_redacted:
            return earlier
        found = find_secret_in(hint.component, hint.key, earlier.value, {"reason": earlier.reason or ""})
        return earlier.redacted() if found else earlier

    def refuse_secret(self, hint: Hint) -> None:
        finding = self.secret_in(hint)
        if finding:
            raise SecretRejected(finding.phrase(), field=finding.field, kind=finding.kind)

    def make_room(self, index: HintIndex, change: Change, now: float) -> Change:
        """Return the change; if it does not fit otherwise, with the removal of expired hints. Raises QuotaExceeded."""
        if self._overflow(index, change) is None:
            return change
        swept = replace(change, removals=(*change.removals, *(hint.identity for hint in index.find_expired(now))))
        refusal = self._overflow(index, swept)
        if refusal:
            raise refusal
        return swept

    def _overflow(self, index: HintIndex, change: Change) -> QuotaExceeded | None:
        """Only growth is refused: a store above a limit that was lowered can still be changed."""
        growth = _growth(index, change)
        for component, added in growth.items():
            if added > 0 and index.size(component) + added > limits.MAX_HINTS_PER_COMPONENT:
                return _quota(
                    "hints per component", limits.MAX_HINTS_PER_COMPONENT, f"delete some of {component}, or split it"
                )
        new = sum((index.size(name) + added > 0) - (index.size(name) > 0) for name, added in growth.items())
        if new > 0 and index.component_count() + new > limits.MAX_COMPONENTS:
            return _quota("components", limits.MAX_COMPONENTS, "delete the hints of one that is no longer needed")
        if growth.total() > 0 and len(index) + growth.total() > self.max_hints:
            if (count := len({hint.identity for hint in change.puts})) > self.max_hints:
                return _too_many_at_once(count, self.max_hints)
            return _quota("hints", self.max_hints, "delete some, or raise NUDGE_MAX_HINTS")
        if _asks_for_too_many(index, change):
            return _quota("environment variables in scopes", limits.MAX_ENV_NAMES, "delete hints that ask for others")
        return None


def _growth(index: HintIndex, change: Change) -> Counter[str]:
    """How many hints each component gains or loses."""
    growth: Counter[str] = Counter()
    removed = _removed(index, change)
    growth.subtract(component for component, _, _ in removed)
    put = {hint.identity for hint in change.puts}
    growth.update(identity[0] for identity in put if identity not in index or identity in removed)
    return growth


def _asks_for_too_many(index: HintIndex, change: Change) -> bool:
    """Whether the scopes would name more environment variables than before, and too many."""
    asked = frozenset().union(*(hint.scope.env_names for hint in change.puts))
    if len(asked - index.env_names()) <= max(limits.MAX_ENV_NAMES - len(index.env_names()), 0):
        return False
    removed = _removed(index, change)
    names = asked.union(*(hint.scope.env_names for hint in index if hint.identity not in removed))
    return len(names) > max(limits.MAX_ENV_NAMES, len(index.env_names()))


def _removed(index: HintIndex, change: Change) -> set[Identity]:
    return {identity for identity in change.removals if identity in index}


def _quota(what: str, most: int, advice: str) -> QuotaExceeded:
    return QuotaExceeded(f"the limit of {most} {what} is reached: {advice}", limit=what, max=most)


def _too_many_at_once(count: int, most: int) -> QuotaExceeded:
    """The refusal of an import that would not fit into an empty store either: deleting hints does not help."""
    advice = f"raise the limit with: nudge stop; NUDGE_MAX_HINTS={count} nudge serve --daemon"
    return QuotaExceeded(f"{count} hints at once are more than the limit of {most}: {advice}", limit="hints", max=most)
