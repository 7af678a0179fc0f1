"""Advisory file locks. The kernel releases them when their holder dies, also when it is killed.

`Flock` is the standard library's `flock`: the thin path probes, starts servers and joins the session with it; as a
context manager it guards a short read-change-write.
`OwnerLock` is `filelock` on the same kernel lock, for what one process owns for life: PRIMARY's role and the database.
A lock file is never unlinked, and its descriptor is never inherited (PEP 446).
"""

from __future__ import annotations

import os
import sys

from nudge.core.clock import poll_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    import filelock

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
# Seconds; a probe holds a shared lock for an instant, longer only when its process gets no processor time.
_PROBE_TIMEOUT = 0.5
_POLL = 0.001  # seconds
_CLAIM = ".claim"

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


class Flock:
    """A lock at `path` through `flock`, exclusive or shared."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd: int | None = None

    def acquire(self, *, shared: bool = False, wait: bool = False) -> bool:
        """Take the lock, and return whether that succeeded; a file that was replaced between open and lock does not
        count. With `wait` it blocks until the lock is free."""
        fd = os.open(self.path, _OPEN_FLAGS, 0o600)
        if not _try_lock(fd, shared, wait) or not _is_same_file(fd, self.path):
            os.close(fd)
            return False
        self.fd = fd
        return True

    def acquire_past_probes(self) -> bool:
        """Take the lock exclusively, waiting a moment for the shared locks of processes that only probe it. Return
        False when another process holds it exclusively."""
        poll_until(lambda: self.acquire() or not _has_no_owner(self.path), _PROBE_TIMEOUT, _POLL)
        return self.fd is not None

    def release(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def __enter__(self) -> Flock:
        """Take the lock exclusively, and wait for its holder."""
        while not self.acquire(wait=True):
            pass  # the file was replaced while this process waited
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class OwnerLock:
    """An exclusive lock at `path` through `filelock`, held until `release` or the end of the process."""

    __slots__ = ("_claim", "_fd", "_lock", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._claim: Flock | None = None
        self._lock: filelock.BaseFileLock | None = None  # filelock releases a lock that nothing refers to any more
        self._fd: int | None = None

    def claim(self) -> bool:
        """Claim the lock, and return whether that succeeded: then no other process can take it before `acquire`, unless
        this one dies.

        Of many candidates one claims it, with a `flock` on a file beside it, and only that one imports `filelock` (25
        ms and 3 MB): the others stay thin. `is_free` counts a claim as held, so that there is no gap between claim and
        lock.
        """
        if not is_free(self.path):
            return False
        claim = Flock(self.path + _CLAIM)
        if not claim.acquire_past_probes():
            return False
        self._claim = claim
        return True

    def acquire(self) -> bool:
        """Take the lock, and return whether that succeeded. A process that has loaded `filelock` need not claim it."""
        if self._claim is None and not (is_free(self.path) if "filelock" in sys.modules else self.claim()):
            return False
        try:
            return self._acquire_native()
        finally:
            if self._claim is not None:
                self._claim.release()
                self._claim = None

    def _acquire_native(self) -> bool:
        import filelock

        lock = filelock.FileLock(
            self.path,
            timeout=_PROBE_TIMEOUT,
            mode=0o600,
            thread_local=False,  # taken at the start, released by whichever thread closes
            poll_interval=_POLL,
            fallback_to_soft=False,  # a marker file would outlive a killed process
            preserve_lock_file=True,  # filelock unlinks it on Windows otherwise
            on_acquired=self._keep_descriptor,
        )
        try:
            lock.acquire(cancel_check=lambda: not _has_no_owner(self.path))
        except filelock.Timeout:
            return False
        self._lock = lock
        if self.holds_path():
            return True
        self.release()
        return False

    def _keep_descriptor(self, fd: int) -> None:
        self._fd = fd

    def holds_path(self) -> bool:
        """Whether `path` still names the locked file. If it was removed, another process may lock a new file there."""
        return self._lock is not None and self._fd is not None and _is_same_file(self._fd, self.path)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = self._fd = None


def _is_same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def is_free(path: str, *, shared: bool = True) -> bool:
    """Whether no process holds or claims the lock exclusively; with `shared=False`, whether none holds it at all.

    Probed with a shared lock, so that many may probe at once. The claim is checked first: its holder takes the lock
    before it releases the claim.
    """
    if os.path.exists(path + _CLAIM) and not _has_no_owner(path + _CLAIM):
        return False
    return _has_no_owner(path) if shared else _probe(path, shared=False)


def _has_no_owner(path: str) -> bool:
    return _probe(path, shared=True)


def _probe(path: str, *, shared: bool) -> bool:
    probe = Flock(path)
    try:
        free = probe.acquire(shared=shared)
    except OSError:
        return True
    probe.release()
    return free
