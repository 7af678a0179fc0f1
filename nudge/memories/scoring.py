"""How notes are ranked. What is recalled is ordered by the text; everything else decides between near equals.

The text score of the best match is `BASE`, that of the others in proportion. The other factors have the weights of the
six-factor formula in relation to each other, scaled so that together they move a note by less than a tenth of `BASE`:
with random priorities and tiers on every note, the answer to a question must still come first. Two weigh more: a note
of the caller's own repo comes before one of another repo whose text matches up to a tenth better, and a note that was
resolved in favor of another, which leaves it a confidence of 0.1, must not come before that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from nudge import limits
from nudge.memories.note import LONG, MID, Note

BASE = 10.0
_SCALE = 0.05
_PRIORITY, _ACCESS, _CONFIDENCE, _RECENCY = 0.5 * _SCALE, 0.1 * _SCALE, 2.0 * _SCALE, 1.0 * _SCALE
_MOST_ACCESSES = 50
_TIER = {LONG: 3.0 * _SCALE, MID: 1.0 * _SCALE}
_NAMESPACE = 0.1 * BASE  # for a note of the caller's own namespace
_KIND = {"decision": 1.0 * _SCALE, "lesson": 1.0 * _SCALE, "bugfix": 0.5 * _SCALE, "discovery": 0.5 * _SCALE}
_DOUBT = BASE  # what each point of confidence below that takes away
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of one note's score for one query; `semantic_boost` stays null until there is a second retriever."""

    components: Mapping[str, float | None]

    @property
    def total(self) -> float:
        return sum(part for part in self.components.values() if part is not None)


class Factors(NamedTuple):
    """What of a note, beside its text, its score depends on."""

    updated_at: float
    kind: str
    priority: int
    access_count: int
    confidence: float
    tier: str
    namespace: str

    @classmethod
    def of(cls, note: Note) -> Self:
        draft = note.draft
        return cls(
            note.updated_at,
            draft.kind,
            draft.priority,
            note.access_count,
            draft.confidence,
            draft.tier,
            draft.namespace,
        )


def score(
    factors: Factors, now: float, *, text: float | None, with_tier: bool = True, here: str | None = None
) -> Score:
    """Score a note. `text`: its text score in relation to the best of the query's matches, 0 to 1; None without a
    query. `here`: the caller's namespace, None where it is not known."""
    base, recency, kind, priority, access, confidence, tier, namespace = _parts(
        factors, now, text or 0.0, with_tier, here
    )
    return Score(
        {
            "base": None if text is None else base,
            "recency": recency,
            "kind_bonus": kind,
            "semantic_boost": None,
            "priority": priority,
            "access": access,
            "confidence": confidence,
            "tier": tier,
            "namespace": namespace,
        }
    )


def total(factors: Factors, now: float, *, text: float, with_tier: bool, here: str | None = None) -> float:
    """`score(...).total`, in a third of the time: most of what is ranked is not returned."""
    return sum(_parts(factors, now, text, with_tier, here))


def _parts(factors: Factors, now: float, text: float, with_tier: bool, here: str | None) -> tuple[float, ...]:
    """In the order of the components: their sum depends on it, in the last bit."""
    updated_at, kind, priority, access_count, confidence, tier, namespace = factors
    age = max(now - updated_at, 0.0) / _DAY
    doubt = _DOUBT * (limits.DOUBTFUL_CONFIDENCE - confidence) if confidence < limits.DOUBTFUL_CONFIDENCE else 0.0
    return (
        BASE * text,
        _RECENCY / (1.0 + 0.1 * age),
        _KIND.get(kind, 0.0),
        _PRIORITY * priority,
        _ACCESS * min(access_count, _MOST_ACCESSES),
        _CONFIDENCE * confidence - doubt,
        _TIER.get(tier, 0.0) if with_tier else 0.0,
        _NAMESPACE if namespace == here else 0.0,
    )
