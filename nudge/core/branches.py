"""Where what was made on one branch holds."""

from __future__ import annotations

SHARED = frozenset(("main", "master", "trunk", "develop"))
"""Branches that the others are merged into: what was made there holds everywhere."""


def holds_on(made_on: object, branch: str | None) -> bool:
    """Whether what was made on a branch holds on another one: not where it was made on a branch of its own. A branch
    that is not known excludes nothing."""
    return not made_on or made_on in SHARED or branch is None or made_on == branch
