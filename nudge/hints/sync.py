"""Hints that a tool found, kept in step with what it finds now. It owns what it set and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nudge.hints.admission import Admission
from nudge.hints.change import Change, Decision
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint, Identity, microseconds, parse_meta, parse_name, parse_value
from nudge.hints.scope import Scope

SOURCE = "tool-output"

Found = tuple[object, object, object, object]  # component, key, value, meta


@dataclass(slots=True)
class _Report:
    added: list[dict[str, Any]] = field(default_factory=list)
    updated: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)
    unchanged: int = 0

    def to_wire(self) -> dict[str, Any]:
        lists = {"added": self.added, "updated": self.updated, "removed": self.removed, "kept": self.kept}
        return {**lists, "unchanged": self.unchanged, **({"skipped": self.skipped} if self.skipped else {})}
