"""Who is PRIMARY, who is PROXY, and what happens when they come and go. Real processes."""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nudge.core.limits import LEAVE_TIMEOUT
from nudge.settings import config
from tests.harness import TIMEOUT, Machine, Stdio, eventually, free_port
from tests.processes import is_alive


def test_ten_at_once_make_one_primary_and_nine_proxies(machine: Machine) -> None:
    """Ten `nudge serve` started together: one PRIMARY; a hint set through any is read through every other and by the
    CLI."""
    clients = [machine.serve() for _ in range(10)]
    for number, client in enumerate(clients):
        client.initialize()
        client.call("nudge_set_hint", component="c", key=f"k{number}", value=str(number), meta={"scope": {}})
    for client in clients:
        seen = [client.call("nudge_get_hint", component="c", key=f"k{number}")["hint"]["value"] for number in range(10)]
        assert seen == [str(number) for number in range(10)]
    status = machine.json("status")
    assert status["pid"] in [client.pid for client in clients]
    assert len(status["members"]) == 9
    assert machine.json("get", "c", "k7")["hint"]["value"] == "7"
    assert sorted(machine.pids()) == sorted(client.pid for client in clients)


def _load(client: Stdio, key: str, stop: threading.Event, versions: list[int], failures: list[Any]) -> None:
    while not stop.is_set():
        result = client.tool("nudge_set_hint", component="load", key=key, value="x", meta={"scope": {}})
        if result.get("isError"):
            failures.append(result)
        else:
            versions.append(result["structuredContent"]["hint"]["version"])


def test_killing_primary_fails_no_call_and_loses_no_hint(machine: Machine) -> None:
    """`kill -9` of PRIMARY while PROXYs' clients call in a loop: no failed call, no acknowledged hint lost, versions
    unbroken."""
    primary = machine.serve()
    primary.initialize()
    machine.ready()
    clients = [machine.serve() for _ in range(3)]
    ledgers: list[list[int]] = [[] for _ in clients]
    failures: list[Any] = []
    stop = threading.Event()
    threads = [
        threading.Thread(target=_load, args=(client, f"k{number}", stop, ledgers[number], failures))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    victim = primary.pid
    for _ in range(3):
        _wait_for_calls(ledgers, 20)
        os.kill(victim, signal.SIGKILL)
        victim = eventually(partial(_new_primary, machine, victim), "another PRIMARY")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    for number, ledger in enumerate(ledgers):
        assert ledger == list(range(1, len(ledger) + 1))
        assert machine.json("get", "load", f"k{number}")["hint"]["version"] == len(ledger)


def _wait_for_calls(ledgers: list[list[int]], more: int) -> None:
    targets = [len(ledger) + more for ledger in ledgers]
    eventually(
        lambda: all(len(ledger) >= target for ledger, target in zip(ledgers, targets, strict=True)), "calls go on"
    )


def _new_primary(machine: Machine, old: int) -> int | None:
    current = machine.endpoint()
    return current.pid if current is not None and current.state == "ready" and current.pid != old else None


def test_a_restarted_client_finds_its_hints(machine: Machine) -> None:
    """PRIMARY's client quits and is started again inside the grace: the hints are there."""
    client = machine.serve()
    client.initialize()
    client.call("nudge_set_hint", component="api", key="test", value="pytest -q", meta={"scope": {}})
    assert client.quit() == 0
    assert machine.pids() == []
    again = machine.serve()
    again.initialize()
    assert again.call("nudge_get_hint", component="api", key="test")["hint"]["value"] == "pytest -q"


def test_without_grace_the_session_ends_with_its_last_process(make_machine: Callable[..., Machine]) -> None:
    """NUDGE_SESSION_GRACE=0: hints go with the last process, except those with a duration; the old session can be
    imported."""
    machine = make_machine(NUDGE_SESSION_GRACE="0")
    client = machine.serve()
    client.initialize()
    client.call("nudge_set_hint", component="api", key="test", value="pytest -q", meta={"scope": {}})
    client.call("nudge_set_hint", component="api", key="flag", value="1", meta={"scope": {}, "ttl": "PT2H"})
    client.quit()
    again = machine.serve()
    again.initialize()
    assert again.tool("nudge_get_hint", component="api", key="test")["isError"]
    assert again.call("nudge_get_hint", component="api", key="flag")["hint"]["value"] == "1"
    assert machine.json("import", "--previous")["imported"] == 1
    assert again.call("nudge_get_hint", component="api", key="test")["hint"]["value"] == "pytest -q"


def test_after_stop_forget_every_miss_names_the_previous_session(machine: Machine) -> None:
    """`get`, `query`, `ls` and an agent's E_NOT_FOUND say how many hints there were and the command for them; once they
    are back, nobody says it any more."""
    for key in ("test", "build"):
        assert machine.cli("set", "shop", key, "make", "--global").returncode == 0
    assert machine.cli("stop", "--forget").returncode == 0
    advice = "2 hints of the previous session are kept; bring back with: nudge import --previous"
    assert advice in machine.cli("get", "shop", "test").stderr
    assert advice in machine.cli("bump", "shop", "test").stderr
    assert advice in machine.cli("ls").stderr
    assert advice in machine.cli("query", "make").stderr
    client = machine.serve()
    client.initialize()
    failed = client.tool("nudge_get_hint", component="shop", key="test")
    assert failed["isError"] and advice in failed["structuredContent"]["error"]["message"]
    assert machine.json("import", "--previous")["imported"] == 2
    assert "previous" not in machine.cli("ls").stderr
    assert "previous" not in machine.cli("get", "shop", "deploy").stderr


def test_a_previous_session_that_was_imported_is_not_offered_again(machine: Machine) -> None:
    """Not after one of its hints is deleted, nor by the next server; an import of some of them does not end the offer,
    and the file can be imported again."""
    for key in ("test", "build"):
        assert machine.cli("set", "shop", key, "make", "--global").returncode == 0
    assert machine.cli("stop", "--forget").returncode == 0
    some = {"components": {"shop": {"hints": {"test": "make"}}}}
    assert machine.cli("import", "-", stdin=json.dumps(some)).returncode == 0
    assert "1 hint of the previous session is kept" in machine.cli("ls").stderr
    assert machine.json("import", "--previous")["imported"] == 1
    assert machine.cli("delete", "shop", "test").returncode == 0
    assert "previous" not in machine.cli("ls").stderr
    assert "previous" not in machine.cli("get", "shop", "test").stderr
    machine.cli("stop", "--force")
    eventually(machine.lock_is_free, "the server ends")
    assert "previous" not in machine.cli("ls").stderr
    assert machine.json("import", "--previous")["imported"] == 1
    assert machine.cli("stop", "--forget").returncode == 0
    assert "2 hints of the previous session are kept" in machine.cli("ls").stderr


def test_a_hint_that_does_not_apply_here_is_explained_without_the_previous_session(machine: Machine) -> None:
    """The advice is to list its variants, also when there are hints to bring back."""
    assert machine.cli("set", "shop", "old", "make", "--global").returncode == 0
    assert machine.cli("stop", "--forget").returncode == 0
    assert machine.cli("set", "shop", "test", "make", "--global", "--scope-branch", "none").returncode == 0
    error = machine.cli("get", "shop", "test").stderr
    assert "list its variants with: nudge ls shop" in error and "previous session" not in error


def test_values_kept_with_allow_secret_end_with_the_process(machine: Machine) -> None:
    """No byte of such a value is in the runtime directory, `set` says so, and the next server does not have it, nor
    what it replaced."""
    token = "ghp_" + "Zx81kQ0mV4tB7nLs2RcY9dHuJ3eWfA6gPo5T"
    assert machine.cli("set", "api", "token", "none yet", "--global").returncode == 0
    outcome = machine.cli("set", "api", "token", token, "--global", "--allow-secret")
    assert "kept: in memory only, until the server process ends" in outcome.stdout
    assert machine.cli("bump", "api", "token").returncode == 0
    assert machine.json("get", "api", "token")["hint"]["value"] == token
    endpoint = machine.ready()
    os.kill(endpoint.pid, signal.SIGKILL)
    eventually(lambda: not is_alive(endpoint.pid), "the server is gone")
    files = [path for path in Path(machine.runtime).rglob("*") if path.is_file()]
    assert files and not [path.name for path in files if token.encode() in path.read_bytes()]
    assert machine.cli("get", "api", "token").returncode == 1


def test_without_grace_a_living_proxy_keeps_the_session(make_machine: Callable[..., Machine]) -> None:
    """The last process, not PRIMARY, ends a session: a PROXY that is still there carries it over PRIMARY's death."""
    machine = make_machine(NUDGE_SESSION_GRACE="0")
    primary = machine.serve()
    primary.initialize()
    machine.ready()
    proxy = machine.serve()
    proxy.initialize()
    proxy.call("nudge_set_hint", component="api", key="test", value="pytest -q", meta={"scope": {}})
    os.kill(primary.pid, signal.SIGKILL)
    primary.process.wait()
    assert machine.json("get", "api", "test")["hint"]["value"] == "pytest -q"
    assert proxy.call("nudge_get_hint", component="api", key="test")["hint"]["value"] == "pytest -q"


def test_the_role_moves_when_primarys_client_leaves(machine: Machine) -> None:
    """PRIMARY's client closes stdin while PROXYs live: the role moves, the old process is gone within 1.5 s, no call
    fails."""
    primary = machine.serve()
    primary.initialize()
    machine.ready()
    proxies = [machine.serve() for _ in range(3)]
    for proxy in proxies:
        proxy.initialize()
        proxy.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    token = machine.cli("token").stdout
    port = machine.ready().port
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LEAVE_TIMEOUT})"]) as idler:
        leaving = _seconds_to_exit(primary.process)
        waiting = _seconds_to_exit(idler)
        primary.close_stdin()
        while primary.process.poll() is None:
            assert proxies[0].call("nudge_get_hint", component="c", key="k")["hint"]["version"] == 3
    assert leaving.get(timeout=5) <= waiting.get(timeout=5), (
        "a process that only waits for 1.5 s was gone before PRIMARY"
    )
    for proxy in proxies:
        assert proxy.call("nudge_get_hint", component="c", key="k")["hint"]["version"] == 3
    status = machine.json("status")
    assert (status["owner"], status["port"]) == ("detached", port)
    assert machine.cli("token").stdout == token


def _seconds_to_exit(process: subprocess.Popen[bytes]) -> queue.SimpleQueue[float]:
    """How long a process lives from now on, measured beside what goes on meanwhile."""
    answer: queue.SimpleQueue[float] = queue.SimpleQueue()
    began = time.monotonic()

    def measure() -> None:
        process.wait()
        answer.put(time.monotonic() - began)

    threading.Thread(target=measure).start()
    return answer


@pytest.mark.parametrize("running", [False, True])
def test_who_leaves_at_once_is_answered_first(machine: Machine, running: bool) -> None:
    """Requests in a pipe whose other end is closed already: each is answered and applied, by a server that has yet to
    start too."""
    if running:
        machine.http_only()
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    wanted = {"name": "nudge_set_hint", "arguments": {"component": "c", "key": "k", "value": "v"}}
    asked = [{"id": 1, "method": "initialize", "params": params}, {"id": 2, "method": "tools/call", "params": wanted}]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    done = machine.cli("serve", stdin=lines)
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [1, 2]
    assert machine.json("get", "c", "k")["hint"]["value"] == "v"


def test_primary_alone_just_exits(machine: Machine) -> None:
    """Nobody connected: PRIMARY ends with its client and leaves no process and no socket."""
    client = machine.serve()
    client.initialize()
    machine.ready()
    assert client.quit() == 0
    assert machine.pids() == []
    assert [name for name in os.listdir(machine.runtime) if name.endswith(".sock")] == []


def test_primary_whose_directory_is_removed_just_exits(machine: Machine) -> None:
    """Its client leaves before the directory is made again: that is no error."""
    client = machine.serve()
    client.initialize()
    machine.ready()
    os.rename(machine.runtime, f"{machine.runtime}-removed")  # at once, unlike `rmtree`: the server writes into it
    client.close_stdin()
    assert client.process.wait(TIMEOUT) == 0
    assert client.process.stderr is not None
    assert client.process.stderr.read() == b""


def test_primary_watches_on_when_its_socket_cannot_be_made_again(machine: Machine) -> None:
    """A link to nowhere is in its place for a while; the reason is in the status, and the socket is made afterwards."""
    published = machine.http_only()
    assert published.socket is not None
    os.unlink(published.socket)
    os.symlink("nowhere", published.socket)
    eventually(lambda: _last_error(machine, published.port), "the failure is seen")
    os.unlink(published.socket)
    eventually(lambda: os.path.exists(str(published.socket)), "the socket is made again")
    assert machine.json("status")["pid"] == published.pid


def _last_error(machine: Machine, port: int | None) -> str | None:
    """Ask over HTTP: there is no socket."""
    token = Path(machine.runtime, "token").read_text()
    connection = http.client.HTTPConnection("127.0.0.1", port or 0, timeout=TIMEOUT)
    connection.request("GET", "/api/v1/status", headers={"Authorization": f"Bearer {token}"})
    error: str | None = json.loads(connection.getresponse().read())["last_error"]
    connection.close()
    return error


HANDSHAKE = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
)


def test_a_client_that_leaves_during_the_start_is_not_kept_waiting(machine: Machine) -> None:
    """Its handshake is answered; nothing is opened for it any more, and nothing of the start is left behind."""
    done = machine.cli("serve", stdin=HANDSHAKE)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2] and done.returncode == 0
    published = machine.endpoint()
    assert published is not None and published.state == "stopped" and machine.lock_is_free()
    assert not {"token", "changes.log", "nudge.db"} & set(os.listdir(machine.runtime))
    machine.cli("set", "--global", "shop", "test", "make test")
    machine.cli("stop")
    eventually(lambda: not machine.pids(), "the server is gone")
    before, port = (Path(machine.runtime) / "changes.log").read_bytes(), getattr(machine.endpoint(), "port", None)
    machine.cli("serve", stdin=HANDSHAKE)
    assert (Path(machine.runtime) / "changes.log").read_bytes() == before
    published = machine.endpoint()
    assert published is not None and (published.state, published.port) == ("stopped", port)
    assert machine.json("get", "shop", "test")["hint"]["value"] == "make test"


def test_a_client_that_leaves_during_the_start_hides_no_crash(machine: Machine) -> None:
    """The server before it was killed: the next one still goes by what that session was told."""
    killed = machine.http_only("--max-hints", "77")
    os.kill(killed.pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the lock is free")
    machine.cli("serve", stdin=HANDSHAKE)
    published = machine.endpoint()
    assert published is not None and (published.generation, published.state) == (killed.generation, "ready")


def test_a_client_that_leaves_during_the_start_is_gone_soon(machine: Machine) -> None:
    """Most of the imports of a start are not made for it. By processor time: a busy machine makes it no longer."""

    def start_and_leave(*, early: bool) -> float:
        client = machine.serve()
        client.initialize()
        if not early:
            machine.ready()
        client.close_stdin()
        _, status, usage = os.wait4(client.pid, 0)
        client.process.returncode = os.waitstatus_to_exitcode(status)
        assert client.process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    whole = start_and_leave(early=False)
    assert min(start_and_leave(early=True) for _ in range(3)) < 0.6 * whole


def bare_start() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - start


@pytest.mark.parametrize("end", ["EOF", "SIGTERM", "SIGINT"])
def test_primary_told_to_end_alone_is_gone_soon(machine: Machine, end: str) -> None:
    """With nobody else connected it is gone in well under 0.3 s, in which Python starts twenty times on a quiet
    machine: Claude Code escalates to SIGKILL. What it acknowledged is there for the next one."""

    def ending(number: int) -> float:
        client = machine.serve()
        client.initialize()
        machine.ready()
        client.call("nudge_set_hint", component="c", key=str(number), value="v", meta={"scope": {}})
        start = time.perf_counter()
        if end == "EOF":
            client.close_stdin()
        else:
            os.kill(client.pid, getattr(signal, end))
        client.process.wait(TIMEOUT)
        return time.perf_counter() - start

    endings: list[float] = []
    starts: list[float] = []
    while not endings or min(endings) >= 10 * min(starts):
        assert len(endings) < 10, (endings, starts)  # a busy machine needs some attempts, a slow end fails them all
        starts.append(bare_start())
        endings.append(ending(len(endings)))
    assert all(machine.json("get", "c", str(number))["hint"]["value"] == "v" for number in range(len(endings)))


def test_a_detached_server_ends_when_idle(make_machine: Callable[..., Machine]) -> None:
    """A detached PRIMARY without members and requests ends by itself."""
    machine = make_machine(NUDGE_IDLE_EXIT="0.5")
    machine.json("set", "a", "b", "c", "--global")
    published = machine.endpoint()  # of a server that may be gone already
    assert published is not None
    pid = published.pid
    eventually(lambda: not is_alive(pid), "the idle server ends")
    assert machine.lock_is_free()


def test_stop_ends_a_detached_server_and_hints_stay(machine: Machine) -> None:
    """`nudge stop` ends a detached server; the next command starts one that continues the session; --forget ends the
    session."""
    machine.json("set", "a", "b", "c", "--global")
    pid = machine.ready().pid
    assert machine.cli("stop").returncode == 0
    eventually(lambda: not is_alive(pid), "the server ends")
    assert machine.json("get", "a", "b")["hint"]["value"] == "c"
    assert machine.cli("stop", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server ends")
    assert machine.cli("get", "a", "b").returncode == 1


def test_forget_spares_what_has_a_duration_of_its_own(machine: Machine) -> None:
    """`nudge stop --forget` ends the session as silence does: its hints go, those with a duration stay until they
    expire."""
    machine.json("set", "ses", "session", "v", "--global")
    machine.json("set", "ses", "hour", "v", "--global", "--ttl", "PT1H")
    assert machine.cli("stop", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server ends")
    assert machine.json("get", "ses", "hour")["hint"]["value"] == "v"
    assert machine.cli("get", "ses", "session").returncode == 1
    brought = machine.json("import", "--previous")
    assert (brought["imported"], brought["reasons"][0]["key"]) == (1, "hour")


def test_stop_leaves_a_clients_server_alone(machine: Machine) -> None:
    """A PRIMARY inside a client is named and left alone without --force."""
    client = machine.serve()
    client.initialize()
    machine.ready()
    refused = machine.cli("stop")
    assert refused.returncode != 0 and str(client.pid) in refused.stderr
    assert client.process.poll() is None
    assert machine.cli("stop", "--force").returncode == 0
    assert client.process.wait(5) == 0


def test_autostart_can_be_turned_off(make_machine: Callable[..., Machine]) -> None:
    """NUDGE_AUTOSTART=0: a clear error and exit code 4 instead of a server."""
    machine = make_machine(NUDGE_AUTOSTART="0")
    refused = machine.cli("get", "a", "b")
    assert refused.returncode == 4 and "nudge serve" in refused.stderr
    assert machine.pids() == []


def test_status_never_starts_a_server(machine: Machine) -> None:
    """`status` and `stop` look; they never start, and where none runs there is nothing left to stop."""
    assert [machine.cli(verb).returncode for verb in ("status", "stop")] == [4, 0]
    assert machine.pids() == []


def test_http_only_says_where_it_is_and_a_second_one_leaves(machine: Machine) -> None:
    """At a terminal the second `serve` prints where PRIMARY is and exits 0."""
    first = machine.http_only()
    second = machine.cli("serve", "--http-only")
    assert second.returncode == 0
    assert str(first.pid) in second.stderr and str(first.port) in second.stderr


def test_a_daemon_serves_in_the_background(machine: Machine) -> None:
    """`serve --daemon` returns when a detached server answers, which goes by the flags and variables of its starter; a
    second one says where that is."""
    first = machine.cli("serve", "--daemon", "--http", "--max-hints", "7", NUDGE_DEFAULT_TTL="PT2H")
    assert first.returncode == 0 and first.stderr.startswith("Nudge serves in the background (pid ")
    status = machine.json("status")
    assert (status["owner"], machine.ready().port) == ("detached", int(machine.environ["NUDGE_PORT"]))
    stored = config.read_stored(machine.runtime)
    assert stored is not None and (stored.values["max_hints"], stored.values["default_ttl"]) == ("7", "PT2H")
    second = machine.cli("serve", "--daemon")
    assert (second.returncode, machine.ready().pid) == (0, status["pid"]) and "already running" in second.stderr
    assert machine.cli("stop").returncode == 0


def test_a_daemon_without_authentication_says_so(machine: Machine) -> None:
    """`serve --daemon --no-auth`: its caller reads that no token is needed, and the warning; so does the next one."""
    for headline in ("Nudge serves in the background", "A Nudge server is already running"):
        shown = machine.cli("serve", "--daemon", "--no-auth").stderr
        assert headline in shown and "(no token needed: --no-auth)" in shown and "token: " not in shown
        assert "every program on this machine can read and write hints over TCP" in shown
    assert "(no token needed: --no-auth)" in machine.cli("serve", "--http-only").stderr
    machine.cli("stop")
    assert "nudge open)" in machine.cli("serve", "--daemon").stderr
    machine.cli("stop")


def test_without_a_unix_socket_the_port_of_the_private_wire_is_printed(machine: Machine) -> None:
    """In a runtime directory whose path is too long for a socket, `serve` names the loopback port instead."""
    machine.runtime = machine.environ["NUDGE_RUNTIME_DIR"] = str(machine.base / ("long-" * 24))
    started = machine.cli("serve", "--daemon")
    published = machine.ready()
    assert published.socket is None and f"  socket: none, 127.0.0.1:{published.wire_port} instead\n" in started.stderr
    machine.cli("stop")


# Ports and flags


@pytest.fixture
def unasked(machine: Machine) -> Machine:
    """Nothing in the environment says which port."""
    del machine.environ["NUDGE_PORT"]
    return machine


def test_a_port_that_is_asked_for_comes_first(unasked: Machine) -> None:
    """`--port`, then `NUDGE_PORT`, then the port of the server before; a command's own variable starts nothing
    there."""
    first, second, third = free_port(), free_port(), free_port()
    assert unasked.http_only("--port", str(first)).port == first
    unasked.cli("stop", "--force")
    assert unasked.cli("ls").returncode == 0 and unasked.ready().port == first
    unasked.cli("stop", "--force")
    assert unasked.cli("ls", NUDGE_PORT=str(second)).returncode == 0 and unasked.ready().port == first
    unasked.cli("stop", "--force")
    assert unasked.http_only(NUDGE_PORT=str(second)).port == second
    unasked.cli("stop", "--force")
    assert unasked.http_only("--port", str(third), NUDGE_PORT=str(first)).port == third


def test_a_command_starts_the_server_on_the_port_it_names(unasked: Machine) -> None:
    """`nudge -p PORT ls` with no server talks to the one it starts, whatever port was in use before."""
    before, wanted = free_port(), free_port()
    unasked.http_only("--port", str(before))
    unasked.cli("stop", "--force")
    done = unasked.cli("-p", str(wanted), "ls")
    assert (done.returncode, unasked.ready().port) == (0, wanted)


def test_a_port_that_is_taken_is_said_before_anything_starts(unasked: Machine) -> None:
    """A server on another port would refuse the very command that started it."""
    with socket.socket() as other_program:
        other_program.bind(("127.0.0.1", 0))
        other_program.listen()
        port = other_program.getsockname()[1]
        refused = unasked.cli("-p", str(port), "ls")
    assert refused.returncode == 4 and f"port {port} is held by another program" in refused.stderr
    assert unasked.pids() == []


def test_a_server_that_cannot_have_its_port_says_so(unasked: Machine) -> None:
    """`nudge serve --port` takes the next free one, so that agents have a server; `nudge status` shows it."""
    with socket.socket() as other_program:
        other_program.bind(("127.0.0.1", 0))
        other_program.listen()
        port = other_program.getsockname()[1]
        taken = unasked.http_only("--port", str(port)).port
        warnings = unasked.json("status")["warnings"]
    assert taken != port and warnings == [f"the server listens on {taken}, not on {port}, which was in use"]


def test_port_and_flags_survive_a_hand_over(unasked: Machine) -> None:
    """The successor listens where scripts look for it, and goes by the flags of the one before: two hints, no token, no
    guard."""
    port = free_port()
    flags = ("--port", str(port), "--no-auth", "--no-secret-guard", "--max-hints", "2")
    primary = unasked.serve(*flags)
    primary.initialize()
    unasked.ready()
    proxy = unasked.serve()
    proxy.initialize()
    proxy.call("nudge_status")  # a member by now; the handshake needs no server
    primary.quit()
    assert (
        proxy.call("nudge_set_hint", component="c", key="k", value="AKIAIOSFODNN7EXAMPLE", meta={"scope": {}})["hint"][
            "version"
        ]
        == 1
    )
    assert (unasked.ready().port, unasked.json("status")["owner"]) == (port, "detached")
    assert unasked.cli("set", "c", "k2", "v", "--global").returncode == 0
    assert "E_QUOTA" in unasked.cli("set", "c", "k3", "v", "--global").stderr
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components"}
    link.request("POST", "/", json.dumps(asked), {"Content-Type": "application/json"})
    assert link.getresponse().status == 200
    link.close()


def test_flags_that_come_too_late_are_named(machine: Machine) -> None:
    """A server goes by what it was started with; a second `serve` says so, on stderr, in one line, and serves its
    client."""
    running = machine.http_only()
    flags = ("--port", "9", "--no-auth", "--no-secret-guard", "--tools", "all")
    late = machine.serve(*flags)
    late.initialize()
    late.close_stdin()
    assert late.process.stderr is not None
    lines = late.process.stderr.read().decode().splitlines()
    assert (
        lines
        == machine.cli("serve", "--http-only", *flags).stderr.splitlines()[:1]
        == [
            f"nudge: the running server (pid {running.pid}) has other settings: --port=9 (the server has "
            f"{running.port}), --no-auth (the server has 1), --no-secret-guard (the server has 1). To apply yours: "
            "nudge stop, then start again"
        ]
    )
    same = machine.cli("serve", "--http-only", "--port", str(running.port), "--tools", "all")
    assert "other settings" not in same.stderr


def test_a_relative_directory_makes_none(machine: Machine) -> None:
    """It is refused by name, by every verb and by a server, and nothing appears where one stands."""
    for words in (["ls"], ["status"], ["serve"], ["set", "a", "b", "c"]):
        done = machine.cli(*words, NUDGE_RUNTIME_DIR="run2")
        assert (done.returncode, done.stderr.count("\n")) == (3, 1) and "NUDGE_RUNTIME_DIR" in done.stderr
    assert sorted(os.listdir(machine.base)) == ["home"]


def test_a_tilde_in_the_directory_is_the_home(machine: Machine) -> None:
    """Everybody meets there: the command, the server that it starts and the next command."""
    machine.json("set", "a", "b", "c", "--global", NUDGE_RUNTIME_DIR="~/run")
    assert machine.json("get", "a", "b", NUDGE_RUNTIME_DIR=str(machine.home / "run"))["hint"]["value"] == "c"
    assert sorted(os.listdir(machine.base)) == ["home"]


def test_the_told_environment_does_not_move_the_client(machine: Machine) -> None:
    """`--env` is what a scope is told; which server is asked, and where it lives, is not the hint's affair."""
    machine.json("set", "a", "b", "c", "--scope-env", "NUDGE_RUNTIME_DIR")
    elsewhere = str(machine.base / "elsewhere")
    assert machine.json("get", "a", "b", "--env", f"NUDGE_RUNTIME_DIR={elsewhere}")["hint"]["value"] == "c"
    assert not os.path.exists(elsewhere)


def test_a_directory_behind_a_link_has_its_shells_name(machine: Machine) -> None:
    """A hint for `$PWD/**` is found where it was set, by a command and through a server, also when `$PWD` is a link."""
    (machine.base / "real").mkdir()
    (machine.base / "link").symlink_to(machine.base / "real")
    here = {"cwd": str(machine.base / "link"), "PWD": str(machine.base / "link")}
    machine.json("set", "a", "b", "c", "--scope-cwd-glob", f"{machine.base}/link/**", **here)
    assert machine.json("get", "a", "b", **here)["hint"]["value"] == "c"
    assert machine.json("get", "a", "b", "--cwd", "sub", **here)["hint"]["value"] == "c"
    client = machine.serve(**here)
    client.initialize()
    assert client.call("nudge_get_hint", component="a", key="b")["hint"]["value"] == "c"
    assert machine.cli("get", "a", "b", cwd=str(machine.base / "real")).returncode == 1


def test_a_deep_message_fails_no_other_call(machine: Machine) -> None:
    """A client's message has at most 64 levels; the envelope of the private wire adds one."""
    machine.json("set", "a", "b", "c", "--global")
    proxy = machine.serve()
    proxy.initialize()
    nested: dict[str, Any] = {}
    for _ in range(62):
        nested = {"x": nested}
    bump = {"name": "nudge_bump", "arguments": {"component": "a", "key": "b"}}
    messages = [
        {"jsonrpc": "2.0", "id": "deep", "method": "no/such", "params": nested},
        {"jsonrpc": "2.0", "id": "bump", "method": "tools/call", "params": bump},
    ]
    proxy.send(b"\n".join(json.dumps(message).encode() for message in messages))
    answers = {answer["id"]: answer for answer in (proxy.receive(), proxy.receive())}
    assert answers["deep"]["error"]["code"] == -32601  # the method is unknown; it was read
    assert not answers["bump"]["result"].get("isError")
    assert machine.json("get", "a", "b")["hint"]["use_count"] == 1


def test_a_health_check_leaves_no_session_behind(machine: Machine) -> None:
    """`claude mcp list` starts the server, shakes hands, perhaps lists the tools, and leaves: no session, no settings
    and no server are left, and a session that is there is not prolonged."""
    log, settings = Path(machine.runtime) / "changes.log", Path(machine.runtime) / "settings.json"
    for _ in range(2):
        check_health(machine)
        assert not log.exists() and not settings.exists()
    machine.cli("set", "--global", "shop", "test", "make test")
    machine.cli("stop")
    eventually(lambda: not machine.pids(), "the server is gone")
    before = log.read_bytes()
    check_health(machine)
    assert log.read_bytes() == before


def check_health(machine: Machine) -> None:
    client = machine.serve()
    client.initialize()
    machine.ready()
    assert client.request("tools/list")["result"]["tools"] and client.quit() == 0
    assert not machine.pids()


def test_ctrl_c_on_serve_says_goodbye(machine: Machine) -> None:
    """At a terminal; and what becomes of the hints."""
    process = machine.spawn("serve", "--http-only", environ={})
    machine.ready()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert errors.endswith(b"\nGoodbye. Hints and history are kept; the next nudge command starts a server again.\n")
