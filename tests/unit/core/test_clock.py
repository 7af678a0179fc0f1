"""Waiting for a condition."""

from __future__ import annotations

from nudge.core.clock import poll_until


def test_the_first_true_value_ends_the_wait() -> None:
    """And is what the caller gets."""
    values = iter([None, "", "ready", "later"])
    assert poll_until(lambda: next(values), 60.0, 0.0) == "ready"


def test_the_condition_is_checked_once_at_least() -> None:
    """Also without any time; a condition that stays false ends the wait with its last value."""
    assert poll_until(lambda: "ready", -1.0, 60.0) == "ready"
    assert poll_until(lambda: None, -1.0, 60.0) is None
