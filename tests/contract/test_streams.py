"""Commands and servers whose stderr is closed, full, or a pipe that nobody reads. Real processes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.harness import NUDGE, TIMEOUT, Machine, Stdio, free_port

BAD_STDERR = [
    pytest.param("2>&-", id="closed"),
    pytest.param(
        "2>/dev/full",
        id="full",
        marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full"),
    ),
    pytest.param("", id="no-reader"),
]


def start(machine: Machine, line: str, **environ: str) -> subprocess.Popen[bytes]:
    """Start `nudge LINE` in a shell. Without a redirection, its stderr is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        ["sh", "-c", f"exec {shlex.join(NUDGE)} {line}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writer,
        env={**machine.environ, **environ},
        cwd=machine.base,
        start_new_session=True,
    )
    os.close(writer)
    machine.processes.append(process)
    return process


def run(machine: Machine, line: str, **environ: str) -> tuple[int, str]:
    """Return exit code and stdout."""
    process = start(machine, line, **environ)
    output, _ = process.communicate(timeout=TIMEOUT)
    return process.returncode, output.decode()


@pytest.mark.parametrize("redirect", BAD_STDERR)
def test_a_command_that_starts_a_server(machine: Machine, redirect: str) -> None:
    """It cannot say which settings the server does not take, and is done all the same."""
    config_file = machine.base / "config.toml"
    config_file.write_text(f"port = {free_port()}\n")
    machine.environ["NUDGE_CONFIG"] = str(config_file)
    del machine.environ["NUDGE_PORT"]
    code, output = run(machine, f"set c k v --global --json {redirect}", NUDGE_MAX_HINTS="77")
    assert (code, json.loads(output)["hint"]["value"]) == (0, "v")


@pytest.mark.parametrize("redirect", BAD_STDERR)
def test_a_server_in_the_background(machine: Machine, redirect: str) -> None:
    """It cannot say where the server is, and the server runs."""
    assert run(machine, f"serve --daemon --no-auth {redirect}") == (0, "")
    assert run(machine, f"serve --daemon {redirect}", NUDGE_MAX_HINTS="77") == (0, "")
    assert machine.json("status")["pid"] == machine.ready().pid


@pytest.mark.parametrize("redirect", BAD_STDERR)
def test_servers_of_clients(machine: Machine, redirect: str) -> None:
    """PRIMARY and PROXY serve although neither can say that its settings are unusual."""
    machine.store_settings({})
    primary, proxy = (
        Stdio(start(machine, f"serve --no-auth {redirect}")),
        Stdio(start(machine, f"serve --max-hints 5 {redirect}")),
    )
    primary.initialize()
    machine.ready()
    proxy.initialize()
    primary.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    assert proxy.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
    assert (proxy.quit(), primary.quit()) == (0, 0)


def test_no_file_becomes_the_stderr_of_a_server(machine: Machine) -> None:
    """The first file that is opened gets the number of a closed descriptor: a stray message would be written to a lock
    or to the client."""
    primary = Stdio(start(machine, "serve 2>&-"))
    primary.initialize()
    machine.ready()
    names = [Path(f"/proc/{primary.pid}/fd/{number}") for number in (0, 1, 2)]
    if names[0].exists():
        assert [os.readlink(name) for name in names] == [os.devnull] * 3


def test_a_server_without_stdout(machine: Machine) -> None:
    """Nobody gets an answer, but what was asked for is done, and the server ends with its stdin."""
    machine.store_settings({})
    process = start(machine, "serve >&-")
    arguments = {"component": "c", "key": "k", "value": "v", "meta": {"scope": {}}}
    call = {"method": "tools/call", "params": {"name": "nudge_set_hint", "arguments": arguments}}
    process.communicate(json.dumps({"jsonrpc": "2.0", "id": 1, **call}).encode() + b"\n", timeout=TIMEOUT)
    assert process.returncode == 0
    assert machine.json("get", "c", "k")["hint"]["value"] == "v"
