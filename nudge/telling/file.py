"""Which notes are told when a file is read or edited: mostly none.

A note is about the files that were given for it. Beside these, it is about a file that its text names, with its whole
path or its end: `money.ts` stands for `src/money.ts`. The name alone says nothing where every directory has such a
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TOLD_KINDS = ("decision", "lesson", "bugfix", "discovery")
_COMMON_NAMES = frozenset(
    (
        *("index", "main", "mod", "lib", "app", "init", "setup", "conftest", "test", "tests", "utils", "util", "types"),
        *("__init__", "__main__", "base", "readme", "changelog", "config", "default", "package", "license"),
    )
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A note about a file that was touched. `is_given`: the file was given for it."""

    note_id: int
    is_given: bool
    updated_at: float


def possible_names(path: str) -> list[str]:
    """How a text may name a file of a repo: its whole path, or an end of it that says enough."""
    parts = path.split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    stem = parts[-1].lstrip(".").partition(".")[0].lower()
    return ends[:-1] if len(ends) > 1 and stem in _COMMON_NAMES else ends


def choose(candidates: Iterable[Candidate], most: int) -> list[int]:
    """Return the notes to tell, the newest first: those for which the file was given, then those that name it."""
    best: dict[int, Candidate] = {}
    for one in candidates:
        known = best.get(one.note_id)
        if known is None or (one.is_given and not known.is_given):
            best[one.note_id] = one
    ordered: Sequence[Candidate] = sorted(
        best.values(), key=lambda one: (not one.is_given, -one.updated_at, -one.note_id)
    )
    return [one.note_id for one in ordered[:most]]
