"""Failures that several sessions met, whatever helped each: one variable, one option and one directory may all help."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import replace

from nudge.learning.cure import MISSING, PATH, STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nudge.learning.cure import Cure
    from nudge.learning.fact import Fact


def with_shared_failures(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts, and of those about one failure only the one of most sessions, the latest of several. It rests
    on the sessions of all: each met the failure."""
    groups: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
    for fact in facts:
        for key in _failure_keys(fact.cure):
            groups[key].append(fact)
    foremost = {key: max(group, key=_worth) for key, group in groups.items()}
    kept: list[Fact] = []
    for fact in facts:
        keys = list(_failure_keys(fact.cure))
        if not fact.is_confirmed:
            kept.append(fact)  # by its own sessions, not by those that another answer helped
        elif all(foremost[key] is fact for key in keys):
            support = {name: evidence for key in keys for one in groups[key] for name, evidence in one.support.items()}
            kept.append(replace(fact, support={**support, **fact.support}))
    return kept


def _worth(fact: Fact) -> tuple[bool, int, float]:
    return fact.is_confirmed, len(fact.support), fact.timestamp


def _failure_keys(cure: Cure) -> Iterator[tuple[str, ...]]:
    """What the failures of two cures have in common if they are one failure."""
    if cure.kind == MISSING:
        yield cure.kind, cure.subject
    elif cure.kind == PATH:
        yield cure.kind, posixpath.normpath(cure.subject), posixpath.normpath(cure.answer)
    else:
        yield cure.tool, cure.family, cure.detail, *cure.causes[:1]
        if cure.kind == STEP:
            yield STEP, cure.family, *cure.added
