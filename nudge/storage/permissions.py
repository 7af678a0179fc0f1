"""Access modes of the database, of the files beside it and of their directory: the history is for its owner only."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator

from nudge.storage.backup import backup_folder, list_backups

OTHERS, OTHERS_WRITE = 0o077, 0o022

_log = logging.getLogger(__name__)
# O_NONBLOCK: opening a named pipe would wait for a writer.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_CHECK = "fix: nudge recent and nudge memory list show what it holds; nudge restore FILE puts a backup in its place"


def files_beside(database: str) -> Iterator[str]:
    """The database with its journals, its lock and the copies beside it, whose names begin with its own."""
    directory, name = os.path.split(database)
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    yield from (
        os.path.join(directory, other) for other in names if other == name or other.startswith((f"{name}-", f"{name}."))
    )


def database_paths(database: str, *, is_moved: bool) -> Iterator[str]:
    """Everything that must be closed to others, directories before their files. The directories of a database that the
    user has moved are left out: they may hold other things."""
    if not is_moved:
        yield from filter(os.path.isdir, (os.path.dirname(database), backup_folder(database)))
    yield from files_beside(database)
    yield from list_backups(database)


def close_to_others(database: str, *, is_moved: bool) -> str | None:
    """Remove the access of others from the database and what belongs to it. Return a warning when others could have
    changed it. Called before the database is opened: closing a second descriptor would release SQLite's locks."""
    if sys.platform == "win32":
        return None
    suspect = None
    for path in database_paths(database, is_moved=is_moved):
        try:
            found, left = _narrow(path)
        except OSError as error:
            _log.warning("the access mode of %s cannot be checked: %s", path, error.strerror)
            continue
        if found & OTHERS:
            _log.warning("%s was open to others (%04o), is now %04o", path, found, left)
        if found & OTHERS_WRITE and suspect is None:
            state = "they still can (see nudge doctor)" if left & OTHERS_WRITE else "they no longer can"
            suspect = f"other users could change {path} ({found:04o}) before this start; {state}. {_CHECK}"
    return suspect


def _narrow(path: str) -> tuple[int, int]:
    """Remove the bits of others where the file is ours; return the mode before and after. A link in a file's place is
    refused with OSError, a link to the data directory is followed."""
    descriptor = os.open(os.path.realpath(path) if os.path.isdir(path) else path, _OPEN)
    try:
        status = os.fstat(descriptor)
        mode = stat.S_IMODE(status.st_mode)
        if mode & OTHERS and status.st_uid == os.getuid():
            os.fchmod(descriptor, mode & ~OTHERS)
        return mode, stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
