from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nudge import paths
from nudge.clock import iso
from nudge.errors import Conflict
from nudge.ipc import holder
from nudge.ipc.endpoint import Endpoint
from tests.harness import eventually, is_alive

WAIT = "import sys; print('there', flush=True); sys.stdin.read()"
HOLD = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX); " + WAIT

Start = Callable[..., int]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory whose name says nothing about who uses it: command lines are looked at."""
    return str(tmp_path_factory.mktemp("place"))


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a child and return its pid once it has said that it is ready."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(code: str, *words: str) -> int:
        child = subprocess.Popen([sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout is not None and child.stdout.readline()
        return child.pid

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def lock_of(place: str) -> str:
    return os.path.join(place, paths.LOCK)


def naming(pid: int, started: str | None = None) -> Endpoint:
    return Endpoint(pid, None, None, started or iso(time.time()), "g1", "0.1.0", "ready")


def test_the_holder_is_ended(place: str, start: Start) -> None:
    """A process of ours that holds the lock and is called nudge is the server: it is ended."""
    pid = start(HOLD, lock_of(place), "nudge")
    assert holder.doubt_about(place, naming(pid)) is None
    holder.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")


def test_a_stopped_holder_is_ended_too(place: str, start: Start) -> None:
    """A server that hangs is what this is for."""
    pid = start(HOLD, lock_of(place), "nudge")
    assert not holder.is_suspended(pid)
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: holder.is_suspended(pid), "it is stopped")
    holder.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")


def test_a_recycled_pid_is_never_killed(place: str, start: Start) -> None:
    """The pid belongs to another program by now, while somebody else holds the lock: refused in a sentence, and it
    lives."""
    start(HOLD, lock_of(place), "nudge")
    innocent = start(WAIT, "nudge")
    with pytest.raises(Conflict, match=f"pid {innocent} does not hold the server's lock; nothing was killed"):
        holder.kill(place, naming(innocent))
    assert is_alive(innocent)


def test_nobody_is_killed_for_a_free_lock(place: str, start: Start) -> None:
    """Having the file open is not holding it."""
    code = "import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); " + WAIT
    pid = start(code, lock_of(place), "nudge")
    assert holder.doubt_about(place, naming(pid)) == f"pid {pid} does not hold the server's lock"


def test_a_holder_of_another_name_is_left_alone(place: str, start: Start) -> None:
    """Something else that locked the file is not our server."""
    pid = start(HOLD, lock_of(place))
    with pytest.raises(Conflict, match="runs another program"):
        holder.kill(place, naming(pid))
    assert is_alive(pid)


def test_another_users_process_is_left_alone(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could kill it; root should not."""
    monkeypatch.setattr(holder, "look_at", lambda _pid: holder.Process(os.getuid() + 1, "nudge serve"))
    assert holder.doubt_about(place, naming(4242)) == "pid 4242 belongs to another user"


@pytest.mark.parametrize("pid", [-1, 0, 1, pytest.param(os.getpid(), id="own")])
def test_numbers_that_mean_more_than_one_process(place: str, pid: int) -> None:
    """0 and -1 would be everybody; 1 and ourselves are no server."""
    with pytest.raises(Conflict, match="cannot be a server"):
        holder.kill(place, naming(pid))


def test_the_dead_are_not_alive(place: str) -> None:
    """A process that is gone, or that only waits to be reaped, is nobody."""
    child = subprocess.Popen([sys.executable, "-c", "pass", "nudge"])
    eventually(lambda: not is_alive(child.pid), "it ends")
    assert holder.look_at(child.pid) is None
    child.wait()
    assert holder.doubt_about(place, naming(child.pid)) == f"no process with pid {child.pid} is alive"


def test_the_kernels_list_of_locks(place: str, start: Start) -> None:
    """Where a process's descriptors cannot be read, the list of locks still names the holder."""
    pid = start(HOLD, lock_of(place), "nudge")
    inode = os.stat(lock_of(place)).st_ino
    assert holder._is_listed(pid, inode)
    assert not holder._is_listed(os.getpid(), inode)


def test_a_lock_that_is_gone_is_held_by_nobody(place: str, start: Start) -> None:
    """Somebody removed the file: who held it can no longer be told."""
    pid = start(HOLD, lock_of(place), "nudge")
    Path(lock_of(place)).unlink()
    assert holder.doubt_about(place, naming(pid)) == f"pid {pid} does not hold the server's lock"


@pytest.mark.parametrize(("seconds", "doubted"), [(0, False), (-30, True), (20, False), (3_600, True)])
def test_without_proc_the_start_time_decides(
    place: str, start: Start, monkeypatch: pytest.MonkeyPatch, seconds: int, doubted: bool
) -> None:
    """Where the system does not tell who holds a lock, a process that started at another time than the server is a
    stranger."""
    monkeypatch.setattr(holder, "_has_proc", lambda: False)
    pid = start(HOLD, lock_of(place), "nudge")
    process = holder.look_at(pid)
    assert process is not None and process.uid == os.getuid() and "nudge" in process.command
    published = naming(pid, iso(time.time() + seconds))
    assert (holder.doubt_about(place, published) is not None) == doubted


@pytest.mark.parametrize("started", ["", "yesterday"])
def test_without_proc_a_damaged_time_is_a_doubt(
    place: str, start: Start, monkeypatch: pytest.MonkeyPatch, started: str
) -> None:
    """What cannot be compared proves nothing."""
    monkeypatch.setattr(holder, "_has_proc", lambda: False)
    pid = start(HOLD, lock_of(place), "nudge")
    published = naming(pid)
    published.started = started
    assert holder.doubt_about(place, published) is not None


def test_without_proc_the_dead_are_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ps` knows nothing about them."""
    monkeypatch.setattr(holder, "_has_proc", lambda: False)
    assert holder.look_at(2**22 + 1) is None


def test_without_a_process_descriptor(place: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older kernel: the number itself is used, right after the look."""
    monkeypatch.delattr(os, "pidfd_open")
    pid = start(HOLD, lock_of(place), "nudge")
    holder.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")
