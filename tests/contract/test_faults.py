"""Part of `make crash` with smaller numbers. Each scenario's own docstring is the rule it proves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.crash import foreign_servers, hosts, kills, recorders, versions
from tests.crash.writers import Figures

QUICK: dict[str, Callable[[], Figures]] = {
    "kill_under_load": partial(kills.kill_under_load, 3, 3),
    "port_is_taken": foreign_servers.port_is_taken,
    "impostor_never_sees_the_token": foreign_servers.impostor_never_sees_the_token,
    "recycled_pid": foreign_servers.recycled_pid,
    "started_twice_and_for_a_moment": partial(hosts.started_twice_and_for_a_moment, 2),
    "does_not_read_its_stdout": hosts.does_not_read_its_stdout,
    "somebody_moves_the_directory": hosts.somebody_moves_the_directory,
    "another_server_at_the_directory": hosts.another_server_at_the_directory,
    "eight_recorders": partial(recorders.eight_recorders, 8, 40),
    "newer_code_takes_over": versions.newer_code_takes_over,
    "log_of_a_newer_format": versions.log_of_a_newer_format,
}


@pytest.mark.parametrize("name", QUICK)
def test_fault(name: str) -> None:
    """What the scenario's docstring says holds, here in its quick form."""
    assert QUICK[name]()
