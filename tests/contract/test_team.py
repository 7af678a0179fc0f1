"""What a team costs those who have none, and what is said where its library is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Machine

_LOADED = """
import sys
sys.argv[:] = ["nudge", *{arguments}]
import {modules}
from nudge.__main__ import main
try:
    main()
finally:
    print(sorted(name for name in sys.modules if name.startswith(("nudge.team", "asyncpg"))), file=sys.stderr)
"""


@pytest.fixture
def machine() -> Iterator[Machine]:
    one = Machine()
    yield one
    one.close()


def _mapped(pid: int) -> list[str]:
    """The compiled modules that a process has loaded."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if line.endswith(".so")})


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has mapped is read from /proc")
def test_a_server_that_joined_no_team_has_nothing_of_one(machine: Machine) -> None:
    """Not at its start, nor when it is asked for the status of a team."""
    pid = machine.http_only().pid
    status = machine.cli("team", "status")
    assert status.returncode != 0 and "no team is joined" in status.stdout
    modules = _mapped(pid)
    assert [one for one in modules if "sqlite" in one] and not [one for one in modules if "asyncpg" in one]


@pytest.mark.parametrize(
    ("modules", "arguments"),
    [("nudge.hook", ["record", "--client", "claude-code"]), ("nudge.cli.plain", ["get", "api", "test"])],
)
def test_a_hook_and_a_plain_get_load_nothing_of_a_team(machine: Machine, modules: str, arguments: list[str]) -> None:
    machine.http_only()
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LOADED.format(arguments=arguments, modules=modules)],
        input="{}",
        capture_output=True,
        text=True,
        env=machine.environ,
        cwd=machine.base,
        timeout=60,
        check=False,
    )
    assert done.stderr.strip().splitlines()[-1] == "[]", done.stderr


def test_a_password_is_only_asked_for_at_a_terminal(machine: Machine) -> None:
    done = machine.cli("team", "join", "postgresql://alice@localhost/team", "--ask-password", stdin="hunter2\n")
    assert done.returncode != 0
    assert "stdin is not a terminal" in done.stderr and "PGPASSWORD" in done.stderr and "hunter2" not in done.stderr


def test_a_server_elsewhere_is_not_reached_without_tls(machine: Machine) -> None:
    machine.http_only()
    done = machine.cli("team", "join", "postgresql://alice@db.example.com/team?sslmode=disable", PGPASSWORD="hunter2")
    assert done.returncode != 0 and "TLS is required" in done.stderr and "hunter2" not in done.stderr
