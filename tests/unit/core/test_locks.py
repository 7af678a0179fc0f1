from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge.core.locks import Flock, OwnerLock, is_free

HOLD = """
import sys
from nudge.core import locks
held = getattr(locks, sys.argv[1])(sys.argv[2])
print(held.acquire(), "filelock" in sys.modules, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "server.lock")


@pytest.fixture
def other() -> Iterator[list[subprocess.Popen[str]]]:
    """Other processes that were started with `start`; they end with the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(processes: list[subprocess.Popen[str]], kind: str, path: str) -> tuple[bool, bool]:
    """Whether a process got the lock, and whether it has loaded filelock for that."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, kind, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    processes.append(process)
    assert process.stdout is not None
    got, loaded = process.stdout.readline().split()
    return got == "True", loaded == "True"


def test_an_owner_keeps_its_lock_to_itself(path: str, other: list[subprocess.Popen[str]]) -> None:
    """Exclusive, owner-only, not inherited; the file stays when it is released, so that everybody locks the same
    one."""
    owner = OwnerLock(path)
    assert owner.acquire() and owner.holds_path() and not is_free(path)
    assert owner._fd is not None and not os.get_inheritable(owner._fd)
    inode = os.stat(path).st_ino
    assert start(other, "OwnerLock", path) == (False, False)
    assert start(other, "Flock", path) == (False, False)
    owner.release()
    assert is_free(path) and not owner.holds_path()
    assert (os.stat(path).st_ino, stat.S_IMODE(os.stat(path).st_mode)) == (inode, 0o600)


def test_a_killed_owner_lets_go(path: str, other: list[subprocess.Popen[str]]) -> None:
    """The kernel releases the lock with the process."""
    assert start(other, "OwnerLock", path) == (True, True)
    assert not is_free(path) and not OwnerLock(path).acquire()
    other[0].kill()
    other[0].wait()
    assert is_free(path) and OwnerLock(path).acquire()


def test_a_loser_stays_thin(path: str, other: list[subprocess.Popen[str]]) -> None:
    """Who finds the lock taken, or claimed by a candidate that is still importing filelock, does not import it."""
    assert start(other, "Flock", path + ".claim") == (True, False)
    assert not is_free(path)
    assert start(other, "OwnerLock", path) == (False, False)


def test_probes_do_not_cost_the_lock(path: str) -> None:
    """A probe holds a shared lock for an instant; `acquire` retries until it is gone."""
    share = Flock(path)
    assert share.acquire(shared=True)
    timer = threading.Timer(0.05, share.release)
    timer.start()
    owner = OwnerLock(path)
    assert owner.acquire()
    timer.join()


def test_a_file_that_was_removed_is_noticed(path: str) -> None:
    """After the file was removed another process may lock a new one: the old descriptor no longer counts."""
    owner = OwnerLock(path)
    assert owner.acquire()
    os.unlink(path)
    assert not owner.holds_path()
    again = OwnerLock(path)
    assert again.acquire() and again.holds_path() and not owner.holds_path()


def test_shares(path: str) -> None:
    """Many processes of a session hold a share; the session lives as long as one of them does."""
    first, second = Flock(path), Flock(path)
    assert first.acquire(shared=True) and second.acquire(shared=True)
    assert is_free(path) and not is_free(path, shared=False)
    first.release()
    assert not is_free(path, shared=False)
    second.release()
    assert is_free(path, shared=False)


def test_a_change_waits_for_the_holder(path: str) -> None:
    """`with` takes the lock when its holder lets go, also when the file was replaced in between."""
    held, released = Flock(path), threading.Event()
    assert held.acquire()

    def replace_and_release() -> None:
        released.set()
        os.unlink(path)
        held.release()

    timer = threading.Timer(0.05, replace_and_release)
    timer.start()
    with Flock(path):
        assert released.is_set() and not is_free(path)
    timer.join()
    assert is_free(path)


def test_a_directory_that_is_gone_has_no_owner(tmp_path: Path) -> None:
    """A lock file that cannot be opened counts as free."""
    assert is_free(str(tmp_path / "gone" / "server.lock"))
