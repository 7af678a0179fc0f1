"""Whom a pid in the endpoint file really names, asked before anybody is killed for it: the kernel gives numbers out
again."""

from __future__ import annotations

import os
import signal
import sys

from nudge import paths
from nudge.errors import Conflict
from nudge.ipc import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nudge.ipc.endpoint import Endpoint

_STARTED_BEFORE, _STARTED_AFTER = (
    60.0,
    2.0,
)  # seconds between a process's start and the moment it announces itself, at most
_NAME = "nudge"


class Process:
    """What the system says about one process."""

    __slots__ = ("command", "started", "uid")

    def __init__(self, uid: int, command: str, started: float | None = None) -> None:
        self.uid, self.command, self.started = uid, command, started


def kill(directory: str, published: Endpoint) -> None:
    """End the server that the endpoint names, or raise why the process of that number is not the one; then nobody is
    killed."""
    target = _open_pid(published.pid)
    try:
        doubt = doubt_about(directory, published)
        if doubt is not None:
            raise Conflict(f"{doubt}; nothing was killed; see: nudge doctor", pid=published.pid)
        _send_kill(published.pid, target)
    finally:
        if target is not None:
            os.close(target)


def doubt_about(directory: str, published: Endpoint) -> str | None:
    """Why the process that the endpoint names may not be the server; None when it is."""
    pid = published.pid
    if pid <= 1 or pid == os.getpid():
        return f"the endpoint file names pid {pid}, which cannot be a server"
    process = look_at(pid)
    if process is None:
        return f"no process with pid {pid} is alive"
    if process.uid != os.getuid():
        return f"pid {pid} belongs to another user"
    if not _is_holder(os.path.join(directory, paths.LOCK), published, process):
        return f"pid {pid} does not hold the server's lock"
    return None if _NAME in process.command else f"pid {pid} runs another program"


def look_at(pid: int) -> Process | None:
    """The living process of that number, if there is one that we may see."""
    return _from_proc(pid) if _has_proc() else _from_ps(pid)


def is_suspended(pid: int) -> bool:
    """Whether somebody stopped it (SIGSTOP, Ctrl-Z, a debugger): it will answer again when it is woken."""
    return _has_proc() and _state(pid) in ("T", "t")


def _has_proc() -> bool:
    return sys.platform == "linux"


def _is_holder(path: str, published: Endpoint, process: Process) -> bool:
    if lock.is_free(path):
        return False
    return _has_open(published.pid, path) if _has_proc() else _started_together(published, process)


# Linux


def _from_proc(pid: int) -> Process | None:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return None
    return None if _state(pid) in ("Z", "X", None) else Process(uid, command)


def _state(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


def _has_open(pid: int, path: str) -> bool:
    """The lock is held, and this process has its file open or is named by the kernel's own list of locks."""
    try:
        wanted = os.stat(path)
    except OSError:
        return False
    return any(os.path.samestat(wanted, status) for status in _open_files(pid)) or _is_listed(pid, wanted.st_ino)


def _open_files(pid: int) -> Iterator[os.stat_result]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(f"{folder}/{name}")
        except OSError:
            continue


def _is_listed(pid: int, inode: int) -> bool:
    """A line is `1: FLOCK  ADVISORY  WRITE 4242 fe:00:2146340 0 EOF`."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return False
    held = ((line[4], line[5].rpartition(":")[2]) for line in lines if len(line) > 5 and line[1] == "FLOCK")
    return (str(pid), str(inode)) in held


# Elsewhere: the system does not tell who holds a lock, but a number that was given out again belongs to a younger
# process


def _from_ps(pid: int) -> Process | None:
    import subprocess
    import time

    command = ["ps", "-o", "uid=,lstart=,command=", "-p", str(pid)]
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=False, env={"LC_ALL": "C", "PATH": os.defpath}
        )
        uid, *when, words = told.stdout.split(None, 6)
        started = time.mktime(time.strptime(" ".join(when), "%a %b %d %H:%M:%S %Y"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Process(int(uid), words.strip(), started)


def _started_together(published: Endpoint, process: Process) -> bool:
    import calendar
    import time

    try:
        announced = calendar.timegm(time.strptime(str(published.started)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return False
    return process.started is not None and -_STARTED_AFTER <= announced - process.started <= _STARTED_BEFORE


# The kill itself


def _open_pid(pid: int) -> int | None:
    """A descriptor that goes on naming this very process, whatever becomes of its number between the look and the
    kill."""
    if not hasattr(os, "pidfd_open") or pid <= 0:
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send_kill(pid: int, target: int | None) -> None:
    try:
        if target is not None:
            signal.pidfd_send_signal(target, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
