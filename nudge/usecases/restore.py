"""`nudge restore`: put a backup in the database's place, with the server's lock held so that none starts meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nudge import config, limits, paths
from nudge.errors import Invalid, NudgeError, StorageFailed, Unavailable
from nudge.ipc.lock import OwnerLock
from nudge.storage import backup

_POLL = 0.01


def examine(path: str) -> dict[str, int]:
    """Count the observations and sessions in a backup, before anything is changed."""
    database = config.database_file()
    if os.path.exists(database) and os.path.exists(path) and os.path.samefile(path, database):
        raise Invalid(f"{path} is the database itself")
    return backup.examine(path)


def restore(path: str) -> str | None:
    """Restore the backup at `path`; return where the history before it is kept, if there was one."""
    directory, database = paths.runtime_dir(), config.database_file()
    paths.ensure_private_dir(directory)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    with (
        _lock(
            os.path.join(directory, paths.LOCK),
            Unavailable("a server is running; end your agents, then run: nudge restore"),
        ),
        _lock(f"{database}.lock", StorageFailed("another server holds the database")),
    ):
        try:
            return backup.replace(path, database)
        except OSError as error:
            raise StorageFailed(f"cannot be restored: {error.strerror}") from None


@contextmanager
def _lock(path: str, error: NudgeError) -> Iterator[None]:
    """Hold the lock, or raise `error` after the time that a stopping server needs to finish its calls."""
    lock, deadline = OwnerLock(path), time.monotonic() + limits.CALL_TIMEOUT
    while not lock.acquire():
        if time.monotonic() > deadline:
            raise error
        time.sleep(_POLL)
    try:
        yield
    finally:
        lock.release()
