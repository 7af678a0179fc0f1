"""Groups of notes that say nearly the same."""

from __future__ import annotations

from collections.abc import Iterable


def connected(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the groups that pairs of ids make, each with the ids in order, the groups by their first one."""
    group_of: dict[int, list[int]] = {}
    for one, other in pairs:
        first, second = group_of.setdefault(one, [one]), group_of.setdefault(other, [other])
        if first is not second:
            first += second
            group_of.update(dict.fromkeys(second, first))
    groups = {id(group): group for group in group_of.values()}
    return sorted(sorted(group) for group in groups.values())
