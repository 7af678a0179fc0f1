"""The token of the HTTP port, when its file is removed under a live server."""

from __future__ import annotations

import os
import socket

import pytest

from tests.harness import Machine
from tests.security.served import Raw, post, rpc


def test_a_removed_token_file_is_made_again(machine: Machine) -> None:
    """The token in force is the one on disk: a new one, which `nudge token` prints and HTTP accepts; the old one is
    refused."""
    port = machine.prepared_server().port or 0
    old = machine.cli("token").stdout.strip()
    path = os.path.join(machine.runtime, "token")
    os.unlink(path)
    machine.json("set", "c", "k", "v", "--global")
    assert os.path.exists(path)
    os.unlink(path)
    done = machine.cli("token")
    new = done.stdout.strip()
    assert done.returncode == 0 and new not in ("", old)
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as connection:
        statuses = [
            connection.ask(post("/", rpc("nudge.list_components", {}), token=token)).status for token in (new, old)
        ]
    assert statuses == [200, 401]


@pytest.mark.parametrize("kept", [0, 10], ids=["empty", "truncated"])
def test_a_token_file_without_a_token_counts_as_removed(machine: Machine, kept: int) -> None:
    """Under a running server and before one starts, a file that holds no whole token gets a new one, which HTTP
    accepts."""
    port = machine.prepared_server().port or 0
    path = os.path.join(machine.runtime, "token")
    os.truncate(path, kept)
    done = machine.cli("token")
    assert done.returncode == 0 and len(done.stdout.strip()) == 64
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as connection:
        assert connection.ask(post("/", rpc("nudge.list_components", {}), token=done.stdout.strip())).status == 200
    machine.cli("stop", "--force")
    os.truncate(path, kept)
    machine.prepared_server()
    assert len(machine.cli("token").stdout.strip()) == 64


def test_a_token_that_cannot_be_read_is_not_called_a_missing_server(machine: Machine) -> None:
    """A server runs: the sentence says what is wrong."""
    machine.prepared_server()
    path = os.path.join(machine.runtime, "token")
    os.unlink(path)
    os.mkdir(path)
    done = machine.cli("token")
    assert done.returncode == 4 and "the server is running, but its token cannot be read" in done.stderr


def test_the_token_starts_a_server(machine: Machine) -> None:
    """Which accepts it over HTTP; with autostart off the error says what to type."""
    off = machine.cli("token", NUDGE_AUTOSTART="0")
    assert off.returncode == 4 and "nudge serve" in off.stderr and machine.endpoint() is None
    done = machine.cli("token")
    assert done.returncode == 0 and len(done.stdout.strip()) == 64
    port = machine.ready().port or 0
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as connection:
        assert connection.ask(post("/", rpc("nudge.list_components", {}), token=done.stdout.strip())).status == 200
