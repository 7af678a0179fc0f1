"""Many at once, and many one after another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nudge.core import paths
from nudge.core.limits import MAX_ANSWERS
from tests.crash.writers import Figures
from tests.harness import Machine, Stdio, eventually
from tests.processes import is_alive


def fifty_at_once(rounds: int = 20, each: int = 25) -> Figures:
    """Servers with a client and detached ones, all at once: one lock holder, one listener; who lost a detached start is
    gone."""
    for _ in range(rounds):
        machine = Machine()
        try:
            clients = [machine.serve() for _ in range(each)]
            detached = [machine.spawn("serve", "--detach", stdin=subprocess.DEVNULL, environ={}) for _ in range(each)]
            for client in clients:
                client.initialize()
            holder = machine.ready().pid
            eventually(lambda: sum(p.poll() is None for p in detached) <= 1, "lost detached starts are gone")  # noqa: B023
            _assert_one_server(machine, holder)
            expected = {client.pid for client in clients} | {holder}
            assert set(machine.pids()) == expected, "a process was left behind"
        finally:
            machine.close()
    return {"rounds": rounds, "processes": rounds * each * 2, "lock_holders": 1, "listeners": 1}


def _assert_one_server(machine: Machine, holder: int) -> None:
    inode = os.stat(os.path.join(machine.runtime, paths.LOCK)).st_ino
    holders = [
        line.split()[4]
        for line in Path("/proc/locks").read_text().splitlines()
        if f":{inode} " in line and "WRITE" in line
    ]
    assert holders == [str(holder)], f"lock holders: {holders}, published: {holder}"
    sockets = [name for name in os.listdir(machine.runtime) if name.endswith(".sock")]
    assert len(sockets) == 1


def open_and_close(cycles: int = 500) -> Figures:
    """Clients come and go: afterwards no process, no socket, no growing file."""
    machine = Machine()
    try:
        keeper = machine.serve()
        keeper.initialize()
        machine.ready()
        before = _size(machine.runtime)
        for start in range(0, cycles, 10):
            batch = [machine.serve() for _ in range(min(10, cycles - start))]
            for client in batch:
                client.initialize()
            for client in batch:
                client.quit()
            machine.processes = [process for process in machine.processes if process.poll() is None]
        assert machine.pids() == [keeper.pid]
        grown = _size(machine.runtime) - before
        assert grown < 20_000, f"the runtime directory grew by {grown} bytes"
        keeper.quit()
        assert machine.pids() == []
        assert not [name for name in os.listdir(machine.runtime) if name.endswith(".sock")]
        return {"cycles": cycles, "left_processes": 0, "left_sockets": 0, "grown_bytes": grown}
    finally:
        machine.close()


def many_calls(calls: int = 100_000) -> Figures:
    """RSS, descriptors and threads of PRIMARY and PROXY stay flat over very many calls."""
    machine = Machine()
    try:
        primary = machine.serve()
        primary.initialize()
        machine.ready()
        proxy = machine.serve()
        proxy.initialize()
        _calls(
            proxy, min(MAX_ANSWERS, calls), writes=1
        )  # the answers that are kept for repeated requests fill up first
        before = [_vitals(client.pid) for client in (primary, proxy)]
        _calls(proxy, calls)
        after = [_vitals(client.pid) for client in (primary, proxy)]
        for (rss0, fds0, threads0), (rss1, fds1, threads1) in zip(before, after, strict=True):
            assert rss1 - rss0 < 6_000 and fds1 - fds0 <= 2 and threads1 - threads0 <= 2, (before, after)
        return {
            "calls": calls,
            "primary_rss_grown_kb": after[0][0] - before[0][0],
            "proxy_rss_grown_kb": after[1][0] - before[1][0],
        }
    finally:
        machine.close()


def _calls(client: Stdio, count: int, ahead: int = 50, writes: int = 10) -> None:
    """Sent ahead of their answers, since a round trip each would take all day; every so-manieth writes."""
    get = {"name": "nudge_get_hint", "arguments": {"component": "c", "key": "k"}}
    put = {"name": "nudge_set_hint", "arguments": {"component": "c", "key": "k", "value": "v", "meta": {"scope": {}}}}
    for first in range(0, count, ahead):
        batch = range(first, min(first + ahead, count))
        for number in batch:
            client.send(
                {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": put if number % writes == 0 else get}
            )
        assert sorted(client.receive()["id"] for _ in batch) == list(batch)


def _vitals(pid: int) -> tuple[int, int, int]:
    """RSS in kB, open descriptors, threads."""
    assert is_alive(pid)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


def _size(directory: str) -> int:
    return sum(
        path.stat().st_size for path in Path(directory).rglob("*") if path.is_file() and path.name != "nudge.log"
    )
