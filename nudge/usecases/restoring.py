"""A backup in the place of the history: done here and now, with the server's lock in hand, so that none starts
meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nudge import config, limits, paths
from nudge.errors import Invalid, StorageFailed, Unavailable
from nudge.ipc.lock import OwnerLock
from nudge.storage import backup

_PAUSE = 0.01


def copies(database: str) -> list[str]:
    """The folder of backups where there is nothing else in it, or each that is ours."""
    folder, ours = backup.backup_folder(database), backup.list_backups(database)
    alone = ours and len(ours) == len(os.listdir(folder))
    return [folder] if alone else ours


def examine(path: str) -> dict[str, int]:
    """How many observations and sessions a backup holds, before anything is touched for it."""
    if (
        os.path.exists(config.database_file())
        and os.path.exists(path)
        and os.path.samefile(path, config.database_file())
    ):
        raise Invalid(f"{path} is the history itself")
    return backup.examine(path)


def restore(path: str) -> str | None:
    """Where the history before is kept, if there was one."""
    directory, database = paths.runtime_dir(), config.database_file()
    paths.ensure_private_dir(directory)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    server = Unavailable("a server runs, or has started again; end your agents, then run: nudge restore")
    with (
        _held(os.path.join(directory, paths.LOCK), server),
        _held(f"{database}.lock", StorageFailed("another server holds the history")),
    ):
        try:
            return backup.replace(path, database)
        except OSError as error:
            raise StorageFailed(f"cannot be restored: {error.strerror}") from None


@contextmanager
def _held(path: str, otherwise: Exception) -> Iterator[None]:
    """A server that was stopped a moment ago may still be finishing its calls."""
    lock, give_up = OwnerLock(path), time.monotonic() + limits.CALL_TIMEOUT
    while not lock.acquire():
        if time.monotonic() > give_up:
            raise otherwise
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()
