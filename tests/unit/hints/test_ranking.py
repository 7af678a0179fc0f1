from __future__ import annotations

from math import exp
from typing import Any

import pytest

from nudge.hints.model import Hint
from nudge.hints.ranking import WEIGHTS, order_key, rank, score, score_components, usage_reasons
from tests.unit.hints.builders import DAY, NOW


def hint(
    name: str = "api",
    *,
    updated_at: float = NOW,
    last_used_at: float | None = None,
    use_count: int = 0,
    failure_count: int = 0,
    **meta: Any,
) -> Hint:
    return Hint.of(
        name,
        "build",
        "make",
        meta,
        created_at=NOW,
        updated_at=updated_at,
        last_used_at=last_used_at,
        use_count=use_count,
        failure_count=failure_count,
    )


def order(*hints: Hint) -> list[Hint]:
    return sorted(hints, key=lambda each: order_key(each, NOW))


def test_weights_are_a_share_of_one() -> None:
    """A score lies between 0 and 1."""
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_score_of_a_plain_hint() -> None:
    """Defaults count as priority 5 and confidence 0.5; a hint never used has no frecency."""
    assert score_components(hint(), NOW) == {
        "frecency": 0.0,
        "priority": 0.5,
        "confidence": 0.5,
        "specificity": 0.0,
        "recency": 1.0,
    }
    assert score(hint(), NOW) == pytest.approx(0.3)


def test_score_of_a_rich_hint() -> None:
    """Every part of the formula, by hand."""
    rich = hint(
        updated_at=NOW - 14 * DAY,
        last_used_at=NOW - 7 * DAY,
        use_count=10,
        priority=8,
        confidence=0,
        scope={"os": ["linux"], "branch": ["x"]},
    )
    frecency = (1 - exp(-1)) * 0.5
    assert score_components(rich, NOW) == pytest.approx(
        {"frecency": frecency, "priority": 0.8, "confidence": 0, "specificity": 0.4, "recency": 0.25}
    )
    assert rank(rich, [], NOW).score == pytest.approx(0.3 * frecency + 0.2 * 0.8 + 0.2 * 0.4 + 0.1 * 0.25)


def test_specificity_is_capped() -> None:
    """Six conditions are as specific as five."""
    scope = {
        "cwd_glob": ["/x"],
        "repo": "git:o/r",
        "branch": ["x"],
        "os": ["linux"],
        "env_required": ["A"],
        "env_match": {"B": "1"},
    }
    assert score_components(hint(scope=scope), NOW)["specificity"] == 1.0


def test_future_counts_as_now() -> None:
    """A time ahead of the clock, from another machine's export, gives no bonus."""
    assert score_components(hint(updated_at=NOW + DAY), NOW)["recency"] == 1.0


def test_better_score_first() -> None:
    """The order is the order of the scores."""
    low, high = hint("a", priority=1), hint("b", priority=10)
    assert order(low, high) == [high, low]


def test_tie_goes_to_the_newer_then_to_the_name() -> None:
    """Equal scores are ordered by update, then by component, key and scope."""
    newer = hint("z", updated_at=NOW + 1)
    assert order(hint("b"), newer, hint("a")) == [newer, hint("a"), hint("b")]


def test_scores_stay_the_same_for_a_minute() -> None:
    """Ages count in whole minutes, so that the order of all hints need not be made for each query."""
    used = hint(updated_at=NOW - DAY, last_used_at=NOW - DAY, use_count=3)
    assert score(used, NOW) == score(used, NOW + 59) > score(used, NOW + 60)


@pytest.mark.parametrize(
    ("hint", "reasons"),
    [
        (hint(), []),
        (
            hint(last_used_at=NOW - 180, use_count=4, priority=7),
            ["recently used (3m ago)", "worked 4 times, last 3m ago", "priority 7"],
        ),
        (hint(last_used_at=NOW - 9 * DAY, use_count=1), ["last used 9d ago", "worked 1 time, last 9d ago"]),
        (
            hint(last_used_at=NOW, use_count=2, scope={"repo": "git:org/api"}),
            ["recently used (now)", "worked 2 times here, last now"],
        ),
        (
            hint(last_used_at=NOW, use_count=2, scope={"os": ["linux"]}),
            ["recently used (now)", "worked 2 times, last now"],
        ),
        (hint(last_used_at=NOW, use_count=0), []),
        (
            hint(last_used_at=NOW - 180, use_count=4, failure_count=1, scope={"repo": "git:org/api"}),
            ["recently used (3m ago)", "worked 4 times here, last 3m ago", "failed 1 time here"],
        ),
        (hint(last_used_at=NOW, use_count=2, failure_count=3), ["worked 2 times, last now", "failed 3 times"]),
        (hint(failure_count=2), ["failed 2 times"]),
    ],
)
def test_reasons(hint: Hint, reasons: list[str]) -> None:
    """Use and priority are told when there is something to tell; `here` of a hint that is not for everywhere."""
    assert usage_reasons(hint, NOW) == reasons


def test_explanation_shape() -> None:
    """Score, its five parts and the reasons, scope first."""
    explanation = rank(hint(priority=7), ["os=linux allowed"], NOW).explain(NOW)
    assert explanation["matched"] is True
    assert explanation["score"] == 0.34
    assert list(explanation["components"]) == list(WEIGHTS)
    assert explanation["reasons"] == ["os=linux allowed", "priority 7"]
