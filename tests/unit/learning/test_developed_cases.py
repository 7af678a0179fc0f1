"""The cases that the rules were compared with while they were written stay as they were found."""

from __future__ import annotations

import pytest

from tests.bench.failure_pairs import DEVELOPED, RIGHT, measure

_OF_HARDER = {"dev7_failure_pairs.jsonl": 0.75, "dev8_failure_pairs.jsonl": 0.7}


@pytest.mark.parametrize("name", DEVELOPED)
def test_they_are_answered_and_nothing_harmful_is_told(name: str) -> None:
    """At least nine of ten are answered (of the harder sets fewer), at most one of a hundred is wrong
    or told where silence was due, and nothing is told that must never be."""
    figures = measure(name)
    assert figures.never == 0
    assert figures.harmful <= max(1, len(figures.verdicts) // 100), figures.harmful_by_kind()
    assert figures.count(RIGHT) >= _OF_HARDER.get(name, 0.9) * figures.answerable
