"""Which session a call belongs to, and what PRIMARY counts for each session."""

from __future__ import annotations

import pytest

from nudge.clients.claude_code import CLIENT as CLAUDE
from nudge.core import limits
from nudge.core.call import ANONYMOUS, Call, ClientProcesses, EnvNeeded, SessionActivity, agent_session, session_of

FULL = Call(session="meta", env={CLAUDE.session_variable: "environment"}, connection="connection")


@pytest.mark.parametrize(
    ("call", "given", "expected"),
    [
        (FULL, "argument", "argument"),
        (FULL, None, "meta"),
        (Call(env={CLAUDE.session_variable: "environment"}, connection="connection"), None, "environment"),
        (Call(env={CLAUDE.session_variable: None}, connection="connection"), None, "connection"),
        (Call(connection="header"), None, "header"),
        (Call(), None, ANONYMOUS),
    ],
)
def test_precedence(call: Call, given: str | None, expected: str) -> None:
    """The argument comes first, then the call's metadata, the environment, the connection, and the anonymous
    session."""
    assert session_of(ClientProcesses(), call, given) == expected


def test_a_caller_that_can_be_asked_is_asked() -> None:
    """The environment is the client's, which PRIMARY does not have; metadata of the call make the question needless."""
    with pytest.raises(EnvNeeded):
        session_of(ClientProcesses(), Call(env={}, connection="connection"))
    assert session_of(ClientProcesses(), Call(env={}, session="meta")) == "meta"


def test_hooks_replace_a_session_that_was_cleared() -> None:
    """The environment of a server is that of the client's start; by the session there, or by its process, it is found
    which session the client is in by now."""
    clients = ClientProcesses()
    cleared = Call(env={CLAUDE.session_variable: "old"}, client_process=41)
    clients.observe(41, "new")
    assert session_of(clients, cleared) == "new"  # a server that came after the clear, and saw the new one only
    clients.observe(40, "old")
    clients.observe(40, "newer")
    assert session_of(clients, cleared) == "newer"  # started through another program, whose process nobody reports
    assert session_of(clients, Call(env={CLAUDE.session_variable: "other"}, client_process=43)) == "other"
    assert agent_session(clients, Call(env={CLAUDE.session_variable: None}, client_process=41)) is None


def test_what_a_server_remembers_of_clients_is_bounded() -> None:
    """The processes that have not reported for the longest time are dropped."""
    clients = ClientProcesses()
    for number in range(1, 2 * limits.WATCHED_SESSIONS):
        clients.observe(number, f"old-{number}")
        clients.observe(number, f"new-{number}")
    last = 2 * limits.WATCHED_SESSIONS - 1
    assert clients.current("old-1", None) == "old-1" and clients.current(f"old-{last}", None) == f"new-{last}"


# Activity


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
    assert (activity.count("a"), activity.last_seen("a")) == (None, None)


def test_a_count_begins_with_the_earlier_actions_once() -> None:
    """A session that was only seen is not counted yet; the last reminder that its earlier actions made due was told."""
    activity = SessionActivity()
    activity.see("a", 1.0)
    assert activity.count("a") is None and activity.due_count("a") is None
    for earlier in (12, 99):
        activity.begin("a", earlier, 2.0)
    assert activity.count("a") == 12 and activity.due_count("a") is None
    for _ in range(8):
        activity.increment("a", 3.0)
    assert activity.due_count("a") == 20


def test_the_sessions_not_seen_for_longest_are_dropped() -> None:
    """The number of sessions in memory is bounded."""
    activity = SessionActivity()
    activity.increment("first", 0.0)
    for number in range(limits.WATCHED_SESSIONS):
        activity.increment(f"s{number}", 1.0)
        activity.see("first", 2.0)
    assert activity.count("first") == 1 and activity.count("s0") is None
    assert activity.count(f"s{limits.WATCHED_SESSIONS - 1}") == 1
