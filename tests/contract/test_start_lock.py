"""Any number of processes that wait for a server start exactly one."""

from __future__ import annotations

import pytest

from tests.crash import starters


@pytest.mark.parametrize("count", [10, 40])
def test_waiting_proxies_start_one_server(count: int) -> None:
    """PRIMARY died, and each PROXY has a call to answer."""
    assert starters.waiting_proxies(count)["starts"] == 1


@pytest.mark.parametrize("count", [10, 40])
def test_waiting_commands_start_one_server(count: int) -> None:
    """The first commands on a machine, all at once."""
    assert starters.waiting_commands(count)["starts"] == 1


def test_a_stopped_starter_is_waited_for_in_vain() -> None:
    """A starter that hangs costs 2 s, not the service; of those who have waited, one starts."""
    assert starters.stopped_starter()["starts"] == 1
