"""Whether the pid in the endpoint file is the server, checked before it is killed: the kernel reuses pids.

It is the server if it belongs to this user, holds the server's lock, and was started as `nudge serve`.
"""

from __future__ import annotations

import os
import sys

from nudge.core import locks, paths
from nudge.core.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.process.endpoint import Endpoint

_STARTED_BEFORE, _STARTED_AFTER = 60.0, 2.0  # seconds from a process's start to its announcement, at most
_PROGRAMS = ("nudge", "nudge-mcp", "nudge.exe", "nudge-mcp.exe")
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # of Python


class Process:
    """A process as the system describes it; `argv` is its command line, `started` Unix seconds."""

    __slots__ = ("argv", "started", "uid")

    def __init__(self, uid: int, argv: list[str], started: float | None = None) -> None:
        self.uid, self.argv, self.started = uid, argv, started


def kill(directory: str, published: Endpoint) -> None:
    """Kill the server that the endpoint names. Raises Conflict, and kills nothing, when that process is not the
    server."""
    target = _open_pid(published.pid)
    try:
        doubt = find_mismatch(directory, published)
        if doubt is not None:
            raise Conflict(f"{doubt}; nothing was killed; see: nudge doctor", pid=published.pid)
        _send_kill(published.pid, target)
    finally:
        if target is not None:
            os.close(target)


def find_mismatch(directory: str, published: Endpoint) -> str | None:
    """Return why the process that the endpoint names may not be the server; None when it is."""
    pid = published.pid
    if pid <= 1 or pid == os.getpid():
        return f"the endpoint file names pid {pid}, which cannot be a server"
    process = find_process(pid)
    if process is None:
        return f"no process with pid {pid} is alive"
    if process.uid != os.getuid():
        return f"pid {pid} belongs to another user"
    if not _is_holder(os.path.join(directory, paths.LOCK), published, process):
        return f"pid {pid} does not hold the server's lock"
    return None if is_server_command(process.argv) else f"pid {pid} runs another program"


def is_server_command(argv: list[str]) -> bool:
    """Whether a command line is `nudge serve`, through the script or as `python -m nudge serve`; another program whose
    path or arguments contain the word is not."""
    if not argv:
        return False
    if _is_script(argv[0]):
        return "serve" in argv[1:]
    arguments = iter(argv[1:])
    for word in arguments:
        if word == "-m":
            return next(arguments, None) == "nudge" and "serve" in arguments
        if word in _OPTIONS_WITH_VALUE:
            next(arguments, None)
        elif not word.startswith("-") or word == "-c":
            return word != "-c" and _is_script(word) and "serve" in arguments
    return False


def _is_script(path: str) -> bool:
    return os.path.basename(path) in _PROGRAMS


def find_process(pid: int) -> Process | None:
    """Return the living process with that pid; None when there is none or it is not visible to this user."""
    return _from_proc(pid) if _has_proc() else _from_ps(pid)


def is_suspended(pid: int) -> bool:
    """Whether the process is stopped (SIGSTOP, Ctrl-Z, a debugger); it goes on after SIGCONT. False where the system
    does not say."""
    return _has_proc() and _state(pid) in ("T", "t")


def _has_proc() -> bool:
    return sys.platform == "linux"


def _is_holder(path: str, published: Endpoint, process: Process) -> bool:
    if locks.is_free(path):
        return False
    return _holds(published.pid, path) if _has_proc() else _started_together(published, process)


# Linux


def _from_proc(pid: int) -> Process | None:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = file.read().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return None
    return None if _state(pid) in ("Z", "X", None) else Process(uid, argv)


def _state(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


def _holds(pid: int, path: str) -> bool:
    """Whether the process has the file open with an exclusive lock on it, or the kernel lists it as the lock's
    holder."""
    try:
        wanted = os.stat(path)
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        names = []
    for name in names:
        try:
            if os.path.samestat(wanted, os.stat(f"/proc/{pid}/fd/{name}")) and _is_locked(pid, name):
                return True
        except OSError:  # closed meanwhile
            continue
    return os.path.exists(path) and _is_listed(pid, os.stat(path).st_ino)


def _is_locked(pid: int, descriptor: str) -> bool:
    """The kernel lists the locks of an open file: `lock:\t1: FLOCK  ADVISORY  WRITE 4242 fe:00:2146340 0 EOF`."""
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as file:
        return any(line.startswith("lock:") and "FLOCK" in line and "WRITE" in line for line in file)


def _is_listed(pid: int, inode: int) -> bool:
    """A line is `1: FLOCK  ADVISORY  WRITE 4242 fe:00:2146340 0 EOF`."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return False
    held = ((line[4], line[5].rpartition(":")[2]) for line in lines if len(line) > 5 and line[1] == "FLOCK")
    return (str(pid), str(inode)) in held


# Other systems do not tell who holds a lock, but a pid that was reused belongs to a younger process.


def _from_ps(pid: int) -> Process | None:
    import subprocess
    import time

    command = ["ps", "-o", "uid=,lstart=,command=", "-p", str(pid)]
    try:
        listing = subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=False, env={"LC_ALL": "C", "PATH": os.defpath}
        )
        uid, *when, line = listing.stdout.split(None, 6)
        started = time.mktime(time.strptime(" ".join(when), "%a %b %d %H:%M:%S %Y"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Process(int(uid), _split_command(line.strip()), started)


def _split_command(line: str) -> list[str]:
    """Split a line of `ps`, which separates words by blanks and quotes nothing: the path of Python may contain
    blanks."""
    words = line.split()
    first = next((number for number, word in enumerate(words) if word.startswith("-") or _is_script(word)), len(words))
    if first and first < len(words):
        words[:first] = [" ".join(words[:first])]
    return words


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
    """Return a descriptor for the process (Linux), or None. It still means this process when the pid is reused between
    the check and the kill."""
    if not hasattr(os, "pidfd_open") or pid <= 0:
        return None
    try:
        return os.pidfd_open(pid)
    except (OSError, OverflowError):  # a damaged endpoint file may have any number
        return None


def _send_kill(pid: int, target: int | None) -> None:
    import signal  # late: it turns its numbers into enums, which costs every command 4 ms

    try:
        if target is not None:
            signal.pidfd_send_signal(target, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
