"""The token of the HTTP port, when its file is removed under a live server."""

from __future__ import annotations

import os
import socket

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
    with Raw(socket.create_connection(("127.0.0.1", port), 60)) as door:
        statuses = [door.ask(post("/", rpc("nudge.list_components", {}), token=token)).status for token in (new, old)]
    assert statuses == [200, 401]


def test_a_token_that_cannot_be_read_is_not_called_a_missing_server(machine: Machine) -> None:
    """A server runs: the sentence says what is wrong."""
    machine.prepared_server()
    path = os.path.join(machine.runtime, "token")
    os.unlink(path)
    os.mkdir(path)
    done = machine.cli("token")
    assert done.returncode == 4 and "the server is running, but its token cannot be read" in done.stderr
