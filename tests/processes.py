"""Processes of this machine. As a script: waits until the test process at the other end of its stdin is gone, however
it ended, and ends what it left behind."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys

_HAS_PROC = os.path.isdir("/proc/self")


def started_in(home: str) -> list[int]:
    """Every living process whose `HOME` begins so, detached ones too."""
    return _started_by_proc(home) if _HAS_PROC else _started_by_ps(home)


def is_alive(pid: int) -> bool:
    """Running, not a zombie."""
    if not _HAS_PROC:
        return _ps("-o", "stat=", "-p", str(pid)).strip()[:1] not in ("", "Z")
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def _started_by_proc(home: str) -> list[int]:
    mark = b"\0HOME=" + os.fsencode(home)
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and mark in b"\0" + _environment(name)]


def _environment(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:  # of another user, or ended meanwhile
        return b""


def _started_by_ps(home: str) -> list[int]:
    """`ps` of macOS shows the environment behind the command line."""
    lines = _ps("-axww", "-E", "-o", "pid=,command=").splitlines()
    return [int(line.split(None, 1)[0]) for line in lines if f" HOME={home}" in line]


def _ps(*arguments: str) -> str:
    done = subprocess.run(["ps", *arguments], capture_output=True, encoding="utf-8", errors="replace", check=False)
    return done.stdout


def clean_after_end(prefix: str) -> None:
    sys.stdin.buffer.read()
    for _ in range(50):
        left = started_in(prefix)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    for directory in glob.glob(glob.escape(prefix) + "*"):
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    clean_after_end(sys.argv[1])
