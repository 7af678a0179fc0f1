"""What client programs do to a server they host."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable

from nudge.settings import config
from tests.crash.writers import Figures, start
from tests.harness import Machine, eventually
from tests.processes import is_alive


def started_twice_and_for_a_moment(moments: int = 5) -> Figures:
    """A host starts the server twice, or for a moment only (a health check): the others notice nothing, nothing
    stays."""
    machine = Machine()
    try:
        twice = [machine.serve(), machine.serve()]
        for client in twice:
            client.initialize()
        twice[0].call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
        for _ in range(moments):
            moment = machine.serve()
            moment.initialize()
            moment.quit()
        assert twice[1].call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
        assert sorted(machine.pids()) == sorted(client.pid for client in twice)
        return {"moments": moments, "left": 0}
    finally:
        machine.close()


def does_not_read_its_stdout(calls: int = 400) -> Figures:
    """PRIMARY's client asks for much and reads nothing: nobody else waits for it."""
    machine = Machine()
    try:
        primary, [proxy] = start(machine, 1)
        proxy.call("nudge_set_hint", component="c", key="k", value="x" * 4_000, meta={"scope": {}})
        os.set_blocking(primary.process.stdin.fileno(), False)  # type: ignore[union-attr]
        sent = _stuff(primary.process.stdin.fileno(), calls)  # type: ignore[union-attr]
        for _ in range(50):
            assert proxy.call("nudge_get_hint", component="c", key="k")["hint"]["version"] == 1
        return {"unread_requests": sent, "served_meanwhile": 50}
    finally:
        machine.close()


def _stuff(descriptor: int, calls: int) -> int:
    """Write requests until the pipe takes no more."""
    arguments = b'{"name":"nudge_get_hint","arguments":{"component":"c","key":"k"}}'
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + arguments + b"}\n"
    for number in range(calls):
        try:
            os.write(descriptor, request)
        except BlockingIOError:
            return number
    return calls


def somebody_removes_the_files() -> Figures:
    """Lock, endpoint, socket or log removed under a live PRIMARY: no second PRIMARY, no acknowledged write lost, all
    made anew."""
    machine = Machine()
    try:
        primary, [proxy] = start(machine, 1)
        version = 0
        for name in ("server.lock", "server.pid", ".sock", "changes.log", "token", "*"):
            for path in [
                path for path in os.listdir(machine.runtime) if path.endswith(name) or (name == "*" and path != "log")
            ]:
                os.unlink(os.path.join(machine.runtime, path))
            version += 1
            hint = proxy.call("nudge_set_hint", component="c", key="k", value=name, meta={"scope": {}})["hint"]
            assert hint["version"] == version, f"after {name} was removed"
            eventually(lambda: _whole(machine), f"what was removed ({name}) is there again")
            assert machine.json("get", "c", "k")["hint"]["version"] == version
            assert machine.json("status")["pid"] == primary.pid and sorted(machine.pids()) == sorted(
                [primary.pid, proxy.pid]
            )
        primary.process.kill()
        assert proxy.call("nudge_get_hint", component="c", key="k")["hint"]["version"] == version
        return {"removals": version, "second_primaries": 0, "lost": 0}
    finally:
        machine.close()


def somebody_moves_the_directory() -> Figures:
    """The runtime directory is moved away, or removed, under a live PRIMARY: it is made again from memory, with the
    same token, before long; nothing is lost, also by a kill -9 behind it."""
    _recreated_after(_remove)
    _recreated_after(lambda path: os.rename(path, f"{path}.moved"))
    return {"recreated": 2, "lost": 0}


def _remove(path: str) -> None:
    """Gone at once: a removal file by file meets those that PRIMARY makes again meanwhile."""
    os.rename(path, f"{path}.removed")
    shutil.rmtree(f"{path}.removed")


def _recreated_after(leave: Callable[[str], None]) -> None:
    machine = Machine()
    try:
        pid = machine.http_only("--max-hints", "77").pid
        machine.json("set", "c", "k", "v", "--global")
        token = machine.cli("token").stdout
        leave(machine.runtime)
        eventually(lambda: os.path.isdir(machine.runtime) and _whole(machine), "the directory is there again")
        assert machine.json("get", "c", "k")["hint"]["value"] == "v"
        assert machine.json("status")["pid"] == pid and machine.pids() == [pid]
        assert machine.cli("token").stdout == token
        machine.json("set", "c", "k2", "v2", "--global")
        os.kill(pid, signal.SIGKILL)
        assert [machine.json("get", "c", key)["hint"]["value"] for key in ("k", "k2")] == ["v", "v2"]
        stored = config.read_stored(machine.runtime)
        assert stored is not None and stored.values["max_hints"] == "77"
    finally:
        machine.close()


def another_server_at_the_directory() -> Figures:
    """The same, and another server is there before PRIMARY has noticed: it steps down, and one server is left."""
    machine = Machine()
    try:
        first = machine.http_only()
        os.kill(first.pid, signal.SIGSTOP)
        os.rename(machine.runtime, f"{machine.runtime}.moved")
        second = machine.http_only()
        os.kill(first.pid, signal.SIGCONT)
        eventually(lambda: not is_alive(first.pid), "the first server has stepped down")
        assert machine.ready().generation == second.generation and machine.json("status")["pid"] == second.pid
        return {"servers": 1}
    finally:
        machine.close()


def _whole(machine: Machine) -> bool:
    names = os.listdir(machine.runtime)
    return {"server.lock", "server.pid", "changes.log"} <= set(names) and any(name.endswith(".sock") for name in names)
