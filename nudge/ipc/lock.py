"""File locks that the kernel keeps: whoever dies, however it dies, lets go.

`flock` directly rather than through a library: the thin path must be able to ask "is it free?" with the standard
library, and the
question must be put to the very same lock that PRIMARY holds. A lock file is never unlinked, and its descriptor is
never inherited.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

_OPEN_FLAGS = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NOINHERIT", 0)
)

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int, shared: bool, wait: bool) -> bool:
        if shared:  # Windows has no shared lock here; membership is then known from connections alone
            return True
        try:
            msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(fd: int, shared: bool, wait: bool) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except (BlockingIOError, PermissionError):
            return False
        return True


class FileLock:
    """One hold on the lock at `path`."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd: int | None = None

    def acquire(self, *, shared: bool = False, wait: bool = False) -> bool:
        """Take it; without `wait`, now or not at all. A file that was replaced between open and lock does not count."""
        fd = os.open(self.path, _OPEN_FLAGS, 0o600)
        if not _try_lock(fd, shared, wait) or not _same_file(fd, self.path):
            os.close(fd)
            return False
        self.fd = fd
        return True

    def holds_path(self) -> bool:
        """Whether the path still names the file we hold: if not, somebody removed it and another process may lock a new
        one."""
        return self.fd is not None and _same_file(self.fd, self.path)

    def release(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def is_free(path: str, *, shared: bool = True) -> bool:
    """Whether nobody holds the lock. Asked with a shared lock, so that many may ask at once; a taker retries (see
    `role`).
    With `shared=False`, whether nobody holds even a share of it."""
    probe = FileLock(path)
    try:
        free = probe.acquire(shared=shared)
    except OSError:
        return True
    probe.release()
    return free
