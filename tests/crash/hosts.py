"""What client programs do to a server they host."""

from __future__ import annotations

import os

from tests.crash.writers import Figures, start
from tests.harness import Machine, eventually


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


def _whole(machine: Machine) -> bool:
    names = os.listdir(machine.runtime)
    return {"server.lock", "server.pid", "changes.log"} <= set(names) and any(name.endswith(".sock") for name in names)
