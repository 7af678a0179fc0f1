"""Which of two versions counts."""

from __future__ import annotations

import pytest

from nudge.team.versions import Known, StoreTime, Version, clock_at, clock_problem, has_lost, latest_of, seconds_of


def test_a_clock_is_the_time_of_the_change() -> None:
    assert seconds_of(clock_at(1_000.5)) == 1_000.5
    assert clock_at(1_000.5) < clock_at(1_000.501)
    assert seconds_of(clock_at(1_000.0009)) <= 1_000.0009 <= latest_of(clock_at(1_000.0009))


def test_a_version_is_never_below_one_that_its_author_has_seen() -> None:
    """Whatever the author's own clock says."""
    seen = clock_at(2_000.0)
    assert clock_at(1_000.0, seen) == seen + 1
    assert clock_at(3_000.0, seen) == clock_at(3_000.0)


def test_the_greater_origin_wins_a_tie() -> None:
    assert Version(5, "a") < Version(5, "b") < Version(6, "a")


@pytest.mark.parametrize(
    ("after", "digest", "expected"),
    [
        (3, "that", True),
        (5, "that", False),  # made from it
        (7, "that", True),  # made from a later one, whose author may not have seen it either
        (3, "this", False),  # the same content
    ],
)
def test_a_version_that_the_winner_was_not_made_from_has_lost(after: int, digest: str, expected: bool) -> None:
    winner = Known(Version(9, "a"), after, is_live=True, digest="this")
    assert has_lost(Version(5, "b"), digest, winner) is expected


def test_a_clock_far_ahead_is_refused_in_a_sentence() -> None:
    assert clock_problem(300.0) is None
    assert clock_problem(-86_400.0) is None
    assert clock_problem(301.0) == (
        "the clock of this machine is 5 min ahead of the server's: set it, then run: nudge stop"
    )
    assert "24 h 0 min ahead" in (clock_problem(86_400.0) or "")


def test_times_of_a_clock_that_was_set_since_are_corrected() -> None:
    """A machine keeps its clock while it runs: what it dated a day ahead is dated right, and never later than now."""
    was_ahead = StoreTime(now=100_000.0, shift=-86_400.0)
    assert was_ahead.wall(99_000.0) == 12_600.0
    assert was_ahead.wall(200_000.0) == 13_600.0
    drifted = StoreTime(now=100_000.0, shift=0.5)
    assert drifted.wall(99_000.0) == 99_000.0


def test_a_time_of_the_wall_clock_is_bounded_by_now() -> None:
    """What is not known, or was taken from a clock that was ahead, is now."""
    time = StoreTime(now=100_000.0, shift=-86_400.0)
    assert (time.bound(9_000.0), time.bound(99_000.0), time.bound(None)) == (9_000.0, 13_600.0, 13_600.0)
