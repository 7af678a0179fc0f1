"""What a write does to the store, as a value: decided first, logged, then applied; a log replayed is the store
again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from nudge.hints.model import Hint, Identity

_STATED = ("component", "key", "value", "meta", "version", "created_at", "updated_at", "last_used_at", "use_count")


@dataclass(frozen=True, slots=True)
class Change:
    """Removals come first, so that a variant may be taken out and put in at once."""

    puts: tuple[Hint, ...] = ()
    removals: tuple[Identity, ...] = ()

    def __len__(self) -> int:
        return len(self.puts) + len(self.removals)

    def to_record(self) -> dict[str, Any]:
        """For `json.dumps`; times stay numbers, since a float survives JSON to the last bit."""
        return {
            "puts": [{name: getattr(hint, name) for name in _STATED} for hint in self.puts],
            "removals": [list(identity) for identity in self.removals],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Taken at its word: it was checked when it was decided, and the log has a checksum."""
        puts = tuple(Hint.of(**{name: put[name] for name in _STATED}) for put in record["puts"])
        return cls(puts, tuple((component, key, scope_key) for component, key, scope_key in record["removals"]))


@dataclass(frozen=True, slots=True)
class Decision:
    """A write that is allowed: what it will change, and what its caller is told once it has."""

    change: Change
    result: dict[str, Any]
