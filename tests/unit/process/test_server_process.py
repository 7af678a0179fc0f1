from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nudge.core import paths
from nudge.core.clock import iso
from nudge.core.errors import Conflict
from nudge.process import server_process
from nudge.process.endpoint import Endpoint
from tests.harness import eventually
from tests.processes import is_alive

WAIT = "import sys; print('there', flush=True); sys.stdin.read()"
OPEN = "import fcntl, os, sys; fd = os.open(sys.argv[-1], os.O_RDWR | os.O_CREAT); "
HOLD = OPEN + "fcntl.flock(fd, fcntl.LOCK_EX); " + WAIT

Start = Callable[..., int]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The most likely name of a checkout: that a path contains the word says nothing about a process."""
    return str(tmp_path_factory.mktemp("nudge"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a child and return its pid once it has said that it is ready; as `python -m nudge serve`, or `another`."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(code: str, *words: str, another: bool = False) -> int:
        program = tmp_path / ("other" if another else "nudge") / "__main__.py"
        program.parent.mkdir(exist_ok=True)
        (program.parent / "__init__.py").touch()  # a regular package comes before the installed one
        program.write_text(code)
        child = subprocess.Popen(
            [sys.executable, "-m", program.parent.name, "serve", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=tmp_path,
        )
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
    """A process of this user that holds the lock and was started as `nudge serve` is the server: it is killed."""
    pid = start(HOLD, lock_of(place))
    assert server_process.find_mismatch(place, naming(pid)) is None
    server_process.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")


def test_a_stopped_holder_is_ended_too(place: str, start: Start) -> None:
    """A server that hangs is what this is for."""
    pid = start(HOLD, lock_of(place))
    assert not server_process.is_suspended(pid)
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: server_process.is_suspended(pid), "it is stopped")
    server_process.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")


def test_a_recycled_pid_is_never_killed(place: str, start: Start) -> None:
    """The pid belongs to another program by now, while somebody else holds the lock: refused in a sentence, and it
    lives."""
    start(HOLD, lock_of(place))
    innocent = start(WAIT)
    with pytest.raises(Conflict, match=f"pid {innocent} does not hold the server's lock; nothing was killed"):
        server_process.kill(place, naming(innocent))
    assert is_alive(innocent)


def test_nobody_is_killed_for_a_free_lock(place: str, start: Start) -> None:
    """Having the file open is not holding it."""
    pid = start(OPEN + WAIT, lock_of(place))
    assert server_process.find_mismatch(place, naming(pid)) == f"pid {pid} does not hold the server's lock"


def test_a_holder_of_another_name_is_left_alone(place: str, start: Start) -> None:
    """Something else that locked the file is not our server, whatever words its command line has."""
    pid = start(HOLD, "nudge", lock_of(place), another=True)
    with pytest.raises(Conflict, match="runs another program"):
        server_process.kill(place, naming(pid))
    assert is_alive(pid)


def test_a_program_that_shares_the_lock_file_is_left_alone(place: str, start: Start) -> None:
    """Another process holds the lock; this one, which is a server elsewhere, only has the file open."""
    start(HOLD, lock_of(place))
    pid = start(OPEN + WAIT, lock_of(place))
    assert server_process.find_mismatch(place, naming(pid)) == f"pid {pid} does not hold the server's lock"


@pytest.mark.parametrize(
    "line",
    [
        "/home/ada/my project/.venv/bin/python -P -m nudge serve --detach",
        "/usr/bin/python3 -X dev -W ignore -m nudge -p 9000 serve",
        "/home/ada/.local/bin/nudge serve",
        "/usr/bin/python3 /home/ada/.local/bin/nudge-mcp serve",
        "nudge -p 9000 serve",
    ],
)
def test_commands_that_are_the_server(line: str) -> None:
    """The script, or the package run as a module, with the verb `serve`; also as `ps` prints it."""
    assert server_process.is_server_command(
        line.split() if " project/" not in line else server_process._split_command(line)
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python",
        "/code/nudge/.venv/bin/python -m pytest nudge serve",
        "/code/nudge/.venv/bin/python -c -m nudge serve",
        "python -m nudge status",
        "vi /code/nudge/serve",
        "python /code/nudge/tool.py serve",
        "nudge get a serve-less",
    ],
)
def test_commands_that_are_not(line: str) -> None:
    """A checkout called nudge, an editor in it, another verb."""
    assert not server_process.is_server_command(line.split())


def test_another_users_process_is_left_alone(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could kill it; root should not."""
    monkeypatch.setattr(
        server_process, "find_process", lambda _pid: server_process.Process(os.getuid() + 1, ["nudge", "serve"])
    )
    assert server_process.find_mismatch(place, naming(4242)) == "pid 4242 belongs to another user"


@pytest.mark.parametrize("pid", [-1, 0, 1, pytest.param(os.getpid(), id="own")])
def test_numbers_that_mean_more_than_one_process(place: str, pid: int) -> None:
    """0 and -1 would kill every process; 1 and this process itself are not a server."""
    with pytest.raises(Conflict, match="cannot be a server"):
        server_process.kill(place, naming(pid))


def test_a_number_that_is_no_pid(place: str) -> None:
    """The endpoint file may be damaged."""
    with pytest.raises(Conflict, match="is alive; nothing was killed"):
        server_process.kill(place, naming(10**20))


def test_the_dead_are_not_alive(place: str) -> None:
    """A process that has ended, or is a zombie, is not found."""
    child = subprocess.Popen([sys.executable, "-c", "pass", "nudge"])
    eventually(lambda: not is_alive(child.pid), "it ends")
    assert server_process.find_process(child.pid) is None
    child.wait()
    assert server_process.find_mismatch(place, naming(child.pid)) == f"no process with pid {child.pid} is alive"


def test_the_kernels_list_of_locks(place: str, start: Start) -> None:
    """Where a process's descriptors cannot be read, the list of locks still names the holder."""
    pid = start(HOLD, lock_of(place))
    inode = os.stat(lock_of(place)).st_ino
    assert server_process._is_listed(pid, inode)
    assert not server_process._is_listed(os.getpid(), inode)


def test_a_lock_that_is_gone_is_held_by_nobody(place: str, start: Start) -> None:
    """When the lock file was removed, no process counts as its holder."""
    pid = start(HOLD, lock_of(place))
    Path(lock_of(place)).unlink()
    assert server_process.find_mismatch(place, naming(pid)) == f"pid {pid} does not hold the server's lock"


@pytest.mark.parametrize(("seconds", "doubted"), [(0, False), (-30, True), (20, False), (3_600, True)])
def test_without_proc_the_start_time_decides(
    place: str, start: Start, monkeypatch: pytest.MonkeyPatch, seconds: int, doubted: bool
) -> None:
    """Where the system does not tell who holds a lock, a process that started at another time than the server is a
    stranger."""
    monkeypatch.setattr(server_process, "_has_proc", lambda: False)
    pid = start(HOLD, lock_of(place))
    process = server_process.find_process(pid)
    assert process is not None and process.uid == os.getuid() and "serve" in process.argv
    published = naming(pid, iso(time.time() + seconds))
    assert (server_process.find_mismatch(place, published) is not None) == doubted


@pytest.mark.parametrize("started", ["", "yesterday"])
def test_without_proc_a_damaged_time_is_a_doubt(
    place: str, start: Start, monkeypatch: pytest.MonkeyPatch, started: str
) -> None:
    """What cannot be compared proves nothing."""
    monkeypatch.setattr(server_process, "_has_proc", lambda: False)
    pid = start(HOLD, lock_of(place))
    published = naming(pid)
    published.started = started
    assert server_process.find_mismatch(place, published) is not None


def test_without_proc_the_dead_are_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ps` knows nothing about them."""
    monkeypatch.setattr(server_process, "_has_proc", lambda: False)
    assert server_process.find_process(2**22 + 1) is None


def test_without_a_process_descriptor(place: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older kernel: the number itself is used, right after the look."""
    monkeypatch.delattr(os, "pidfd_open")
    pid = start(HOLD, lock_of(place))
    server_process.kill(place, naming(pid))
    assert eventually(lambda: not is_alive(pid), "the server is gone")
