"""The files of the database: which they are, their access modes (the history is for its owner only), and backups:
writing one, examining one, and putting one in the database's place."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from shlex import quote
from typing import TypeVar

from nudge.core import limits
from nudge.core.errors import Invalid, NudgeError
from nudge.storage import migrations
from nudge.storage.deadline import Deadline
from nudge.storage.schema import refuse_foreign
from nudge.storage.sqlite import (
    JOURNALS,
    STATEMENT_ERRORS,
    DatabaseDamaged,
    check,
    copy_to,
    damaged,
    describe_damage,
    open_backup,
    to_nudge_error,
)

T = TypeVar("T")

OTHERS, OTHERS_WRITE = 0o077, 0o022

_log = logging.getLogger(__name__)
# O_NONBLOCK: opening a named pipe would wait for a writer.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_CHECK = "fix: nudge recent and nudge note list show what it holds; nudge restore FILE puts a backup in its place"


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


def backup_folder(database: str) -> str:
    return os.path.join(os.path.dirname(database), "backups")


def list_backups(database: str) -> list[str]:
    """Backups, and databases that a restore replaced, with their journals."""
    return sorted(glob.glob(os.path.join(glob.escape(backup_folder(database)), "nudge-*.db*")))


# Access modes


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


# Backups


def new_backup(database: str) -> str:
    """A free name in the folder of backups, which is created."""
    os.makedirs(backup_folder(database), mode=0o700, exist_ok=True)
    base = os.path.join(backup_folder(database), time.strftime("nudge-%Y%m%d-%H%M%S", time.gmtime()))
    return next(path for number in count(1) if not os.path.lexists(path := f"{base}{f'-{number}' * (number > 1)}.db"))


def write_backup(connection: sqlite3.Connection, target: str) -> None:
    """Copy the database into a new file. Raises DatabaseDamaged, and leaves no file, when it is damaged."""
    problems = _copy_sound(connection, target)
    if problems:
        raise damaged(problems[0])


def damage_fix(database: str) -> str:
    """The command that helps a damaged database: it restores the newest usable backup, or makes room for a new one."""
    latest = latest_backup(database)
    if latest is None:
        return (
            f"nudge stop; mv {quote(database)} {quote(database + '.damaged')}  # there is no backup for nudge restore"
        )
    return f"nudge restore {quote(latest[0])}"


def latest_backup(database: str) -> tuple[str, int] | None:
    """The newest backup that can be used, and its number of observations."""
    backups = [path for path in list_backups(database) if path.endswith(".db")]
    for candidate in sorted(backups, key=os.path.getmtime, reverse=True):
        try:
            return candidate, examine_backup(candidate)["observations"]
        except NudgeError:
            continue
    return None


def examine_backup(path: str) -> dict[str, int]:
    """Count the observations, sessions and notes in a backup. Raises Invalid when it is none that this version can
    use."""
    if not os.path.isfile(path):
        raise Invalid(f"there is no such file: {path}")
    try:
        with contextlib.closing(open_backup(path)) as connection:
            Deadline(connection, limits.RESTORE_READ_TIMEOUT)
            version = migrations.read_version(connection)
            if version > migrations.LATEST:
                raise Invalid(f"{path} was written by a newer Nudge; upgrade this one first")
            if version < 1:
                raise Invalid(f"{path} is not a history of Nudge: it has no format")
            refuse_foreign(connection)
            observations, sessions = connection.execute(
                "SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM sessions)"
            ).fetchone()
            # An old backup has no notes.
            has_notes = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone()
            notes = connection.execute("SELECT count(*) FROM notes").fetchone()[0] if has_notes else 0
    except STATEMENT_ERRORS:
        raise Invalid(f"{path} is not a history of Nudge, or is damaged") from None
    return {"observations": observations, "sessions": sessions, "notes": notes}


def replace_database(path: str, database: str, clean: Callable[[sqlite3.Connection], T]) -> tuple[str | None, T]:
    """Put a copy of the backup at `path` in the database's place, after `clean` and a check of the copy. Return where
    the database before it is kept, if there was one, and what `clean` returned. The caller makes sure that no process
    has either open for writing."""
    copy = f"{database}.restoring"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    examine_backup(path)
    try:
        with contextlib.closing(open_backup(path)) as connection:
            copy_to(connection, copy)
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            deadline = Deadline(connection, limits.RESTORE_READ_TIMEOUT)
            left_out = clean(connection)
            deadline.renew()
            problems = check(connection)
    except STATEMENT_ERRORS as error:
        problems = [describe_damage(error)]
    if problems:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)
        raise Invalid(f"{path} is damaged: {problems[0]}")
    kept = _set_aside(database)
    os.replace(copy, database)
    return kept, left_out


def _copy_sound(connection: sqlite3.Connection, target: str) -> list[str]:
    """Copy, then check the copy; when something is wrong, return what, and leave no copy."""
    try:
        copy_to(connection, target)
    except STATEMENT_ERRORS as error:
        if not isinstance(to_nudge_error(error), DatabaseDamaged):
            raise
        return [describe_damage(error)]
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
        problems = check(copy)
    if problems:
        os.unlink(target)
    return problems


def _set_aside(database: str) -> str | None:
    """Move the database and its journals, which hold what was committed last, to the folder of backups. Left in place,
    SQLite would take them for the new database's."""
    kept = new_backup(database) if os.path.exists(database) else None
    for suffix in ("", *JOURNALS):
        if not os.path.exists(database + suffix):
            continue
        if kept is None:
            os.unlink(database + suffix)
        else:
            os.rename(database + suffix, kept + suffix)
    return kept
