from __future__ import annotations

from nudge import limits
from nudge.usecases.activity import SessionActivity


def test_each_session_has_its_own_count() -> None:
    """Seeing a session keeps its count, a reset ends it; one that ended was never seen."""
    activity = SessionActivity()
    assert [activity.increment("a", 1.0), activity.increment("b", 2.0), activity.increment("a", 3.0)] == [1, 1, 2]
    activity.see("a", 9.0)
    assert (activity.count("a"), activity.last_seen("a"), activity.last_seen("c")) == (2, 9.0, None)
    activity.reset("a", 10.0)
    assert (activity.count("a"), activity.last_seen("a")) == (0, 10.0)
    activity.forget("a")
    activity.forget("never seen")
    assert (activity.count("a"), activity.last_seen("a")) == (0, None)


def test_the_sessions_not_seen_for_longest_are_dropped() -> None:
    """Memory is bounded whatever clients call themselves."""
    activity = SessionActivity()
    activity.increment("first", 0.0)
    for number in range(limits.WATCHED_SESSIONS):
        activity.increment(f"s{number}", 1.0)
        activity.see("first", 2.0)
    assert activity.count("first") == 1 and activity.count("s0") == 0
    assert activity.count(f"s{limits.WATCHED_SESSIONS - 1}") == 1
