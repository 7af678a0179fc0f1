"""Whose session a call belongs to: which of what is known of the caller counts."""

from __future__ import annotations

import pytest

from nudge import limits
from nudge.usecases.call import Call, EnvNeeded
from nudge.usecases.caller_session import ANONYMOUS, SESSION_VARIABLE, ClientProcesses, agent_session, session_of

FULL = Call(session="meta", env={SESSION_VARIABLE: "environment"}, connection="connection")


@pytest.mark.parametrize(
    ("call", "given", "expected"),
    [
        (FULL, "argument", "argument"),
        (FULL, None, "meta"),
        (Call(env={SESSION_VARIABLE: "environment"}, connection="connection"), None, "environment"),
        (Call(env={SESSION_VARIABLE: None}, connection="connection"), None, "connection"),
        (Call(connection="header"), None, "header"),
        (Call(), None, ANONYMOUS),
    ],
)
def test_precedence(call: Call, given: str | None, expected: str) -> None:
    """The argument, then what the call says, the environment, the connection, and nobody."""
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
    cleared = Call(env={SESSION_VARIABLE: "old"}, client_process=41)
    clients.observe(41, "new")
    assert session_of(clients, cleared) == "new"  # a server that came after the clear, and saw the new one only
    clients.observe(40, "old")
    clients.observe(40, "newer")
    assert session_of(clients, cleared) == "newer"  # started through another program, whose process nobody reports
    assert session_of(clients, Call(env={SESSION_VARIABLE: "other"}, client_process=43)) == "other"
    assert agent_session(clients, Call(env={SESSION_VARIABLE: None}, client_process=41)) is None


def test_what_a_server_remembers_of_clients_is_bounded() -> None:
    """The processes that reported nothing for the longest time are forgotten."""
    clients = ClientProcesses()
    for number in range(1, 2 * limits.WATCHED_SESSIONS):
        clients.observe(number, f"old-{number}")
        clients.observe(number, f"new-{number}")
    last = 2 * limits.WATCHED_SESSIONS - 1
    assert clients.current("old-1", None) == "old-1" and clients.current(f"old-{last}", None) == f"new-{last}"
