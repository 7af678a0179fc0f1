"""Changes to Nudge's own files while no server runs: deleting them all, and restoring a backup of the database. Both
hold the server's lock, so that no server starts meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from nudge.core import limits, locks, paths
from nudge.core.clock import poll_until
from nudge.core.errors import Invalid, NudgeError, StorageFailed, Unavailable
from nudge.process.backup_rows import LeftOut, remove_bad_rows
from nudge.settings import config
from nudge.storage import database_files
from nudge.storage.database_files import backup_folder, files_beside, list_backups

_OUR_NAME = "nudge"
_POLL = 0.01  # seconds between two attempts to take a lock


@dataclass(frozen=True, slots=True)
class OwnedFile:
    path: str
    size: int  # bytes


def find() -> list[OwnedFile]:
    """The files and directories of Nudge that exist. A directory stands for everything in it."""
    candidates = dict.fromkeys(path for path in _candidates() if os.path.lexists(path))
    outermost = [path for path in candidates if not any(path.startswith(other + os.sep) for other in candidates)]
    return [OwnedFile(path, _size(path)) for path in outermost]


def is_server_running() -> bool:
    return not locks.is_free(paths.lock_file())


def delete(owned: Sequence[OwnedFile]) -> None:
    """Delete the files. Raises StorageFailed when a server runs, or when a file cannot be deleted."""
    held = locks.OwnerLock(paths.lock_file())
    if os.path.isdir(os.path.dirname(held.path)) and not held.acquire():
        raise StorageFailed(
            "a client has started the server again; end your agents, then run: nudge disconnect --all --delete-data"
        )
    try:
        for file in owned:
            _delete(file.path)
    except OSError as error:
        raise StorageFailed(f"cannot delete {error.filename}: {error.strerror}") from None
    finally:
        held.release()


def _candidates() -> Iterator[str]:
    """Whole directories where their name is ours; single files where the user keeps them among others."""
    yield paths.runtime_dir()
    yield paths.log_dir()
    database, settings = config.database_file(), paths.config_file()
    is_moved = database != paths.default_database_file()
    yield from _database_files(database) if is_moved else [_directory_if_ours(database)]
    yield settings if os.environ.get("NUDGE_CONFIG") else _directory_if_ours(settings)


def _directory_if_ours(path: str) -> str:
    directory = os.path.dirname(path)
    return directory if os.path.basename(directory) == _OUR_NAME else path


def _database_files(database: str) -> Iterator[str]:
    """The database with its journal and lock beside it, under longer names, and its backups in their folder."""
    yield from files_beside(database)
    folder, backups = backup_folder(database), list_backups(database)
    yield from [folder] if backups and len(backups) == len(os.listdir(folder)) else backups


def _size(path: str) -> int:
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def _delete(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    else:
        shutil.rmtree(path)
    parent = os.path.dirname(path)
    if os.path.basename(parent) == _OUR_NAME and not os.listdir(parent):
        os.rmdir(parent)


# Restoring


def check_backup(path: str) -> dict[str, int]:
    """Count the observations, sessions and notes in a backup, before anything is changed."""
    database = config.database_file()
    if os.path.exists(database) and os.path.exists(path) and os.path.samefile(path, database):
        raise Invalid(f"{path} is the database itself")
    return database_files.examine_backup(path)


def restore_backup(path: str) -> Restored:
    """Restore the backup at `path`, without the rows that are not valid."""
    directory, database = paths.runtime_dir(), config.database_file()
    paths.ensure_private_dir(directory)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    with (
        _wait_for_lock(
            paths.lock_file(),
            Unavailable("a server is running; end your agents, then run: nudge restore"),
        ),
        _wait_for_lock(f"{database}.lock", StorageFailed("another server holds the database")),
    ):
        try:
            kept, left_out = database_files.replace_database(path, database, remove_bad_rows)
            return Restored(kept, left_out, database_files.examine_backup(database))
        except OSError as error:
            raise StorageFailed(f"cannot be restored: {error.strerror}") from None


class Restored(NamedTuple):
    kept: str | None
    """Where the database before it is, if there was one."""
    left_out: LeftOut
    contents: dict[str, int]
    """The numbers of observations, sessions and notes that are there now."""


@contextmanager
def _wait_for_lock(path: str, error: NudgeError) -> Iterator[None]:
    """Hold the lock, or raise `error` after the time that a stopping server needs to finish its calls."""
    held = locks.OwnerLock(path)
    if not poll_until(held.acquire, limits.CALL_TIMEOUT, _POLL):
        raise error
    try:
        yield
    finally:
        held.release()
