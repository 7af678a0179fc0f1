"""Any number of processes that wait for a server start exactly one."""

from __future__ import annotations

from tests.crash import starters


def test_waiting_proxies_start_one_server() -> None:
    """PRIMARY died, and each PROXY has a call to answer."""
    assert starters.waiting_proxies(40)["starts"] == 1


def test_waiting_commands_start_one_server() -> None:
    """The first commands on a machine, all at once."""
    assert starters.waiting_commands(20)["starts"] == 1


def test_a_stopped_starter_is_waited_for_in_vain() -> None:
    """A starter that hangs costs 2 s, not the service; of those who have waited, one starts."""
    assert starters.stopped_starter()["starts"] == 1
