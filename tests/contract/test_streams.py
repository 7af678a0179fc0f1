"""Commands and servers with standard streams as a shell or a client may leave them: closed, full, not read, not
blocking. Real processes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nudge.core import streams
from tests.harness import NUDGE, TIMEOUT, Machine, Stdio, eventually, free_port

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


@pytest.mark.parametrize("is_proxy", [False, True], ids=["PRIMARY", "PROXY"])
def test_pipes_that_do_not_block(machine: Machine, is_proxy: bool) -> None:
    """A wrapper in Node shares such a stdout with its child. Answers that do not fit into the pipe wait until they are
    read; a request that comes late is answered too."""
    if is_proxy:
        machine.http_only()
    for_server, to_server = os.pipe()
    from_server, for_client = os.pipe()
    os.set_blocking(for_server, False)
    os.set_blocking(for_client, False)
    process = subprocess.Popen(
        [*NUDGE, "serve"], stdin=for_server, stdout=for_client, stderr=subprocess.DEVNULL, env=machine.environ
    )
    machine.processes.append(process)
    os.close(for_server)
    process.stdin, process.stdout = os.fdopen(to_server, "wb"), os.fdopen(from_server, "rb")
    client = Stdio(process)
    client.initialize()
    machine.ready()
    client.call("nudge_set_hint", component="c", key="k", value="v" * 4_000, meta={"scope": {}})
    params = {"name": "nudge_get_hint", "arguments": {"component": "c", "key": "k"}}
    for number in range(100, 160):
        client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    eventually(lambda: streams.wait_ready([], [for_client], timeout=0.0) == ([], []), "the pipe is full")
    os.close(for_client)
    assert sorted(client.receive()["id"] for _ in range(60)) == list(range(100, 160))
    assert client.quit() == 0


# A thousand files that a careless client leaves to its children, then the server.
LEAKING = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for _ in range(1_100):
    os.set_inheritable(os.dup(2), True)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("is_proxy", [False, True], ids=["PRIMARY", "PROXY"])
def test_descriptors_with_high_numbers(machine: Machine, is_proxy: bool) -> None:
    """`select` would take none above 1023."""
    if is_proxy:
        machine.http_only()
    process = subprocess.Popen(
        [sys.executable, "-c", LEAKING, *NUDGE, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=machine.environ,
    )
    machine.processes.append(process)
    client = Stdio(process)
    client.initialize()
    client.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    assert client.quit() == 0
