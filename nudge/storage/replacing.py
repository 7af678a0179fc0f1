"""A whole database in the place of another. Nobody may have either open for writing: that is the caller's to see to."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import time
from itertools import count

from nudge.errors import Invalid
from nudge.storage import migrations
from nudge.storage.connections import open_backup
from nudge.storage.database import check, copy_to

_JOURNALS = ("-wal", "-shm", "-journal")


def backup_folder(database: str) -> str:
    return os.path.join(os.path.dirname(database), "backups")


def new_backup(database: str) -> str:
    """A name that is free, in the folder of backups, which is there then."""
    os.makedirs(backup_folder(database), mode=0o700, exist_ok=True)
    named = os.path.join(backup_folder(database), time.strftime("nudge-%Y%m%d-%H%M%S", time.gmtime()))
    return next(path for number in count(1) if not os.path.lexists(path := f"{named}{f'-{number}' * (number > 1)}.db"))


def copies(database: str) -> list[str]:
    """Backups, and histories that a restore put aside, with their journals."""
    return sorted(glob.glob(os.path.join(glob.escape(backup_folder(database)), "nudge-*.db*")))


def examine(path: str) -> dict[str, int]:
    """How much of a history a file holds; Invalid when it holds none that can be used here."""
    if not os.path.isfile(path):
        raise Invalid(f"there is no such file: {path}")
    try:
        with contextlib.closing(open_backup(path)) as connection:
            version = migrations.version(connection)
            if version > migrations.LATEST:
                raise Invalid(f"{path} was written by a newer Nudge; upgrade this one first")
            if version < 1:
                raise Invalid(f"{path} is no history of Nudge: it has no format")
            observations, sessions = connection.execute(
                "SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM sessions)"
            ).fetchone()
    except sqlite3.Error:
        raise Invalid(f"{path} is no history of Nudge, or is damaged") from None
    return {"observations": observations, "sessions": sessions}


def replace(path: str, database: str) -> str | None:
    """Copy the backup at `path` into the place of the database, if all of it is whole; where the one before is kept, if
    there was one."""
    copy = f"{database}.restoring"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    if problems := _copied(path, copy):
        raise Invalid(f"{path} is damaged: {problems[0]}")
    kept = _put_aside(database)
    os.replace(copy, database)
    return kept


def _copied(path: str, copy: str) -> list[str]:
    """What is wrong with it; then there is no copy."""
    try:
        with contextlib.closing(open_backup(path)) as connection:
            copy_to(connection, copy)
    except sqlite3.Error as error:
        return [str(error)]
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        problems = check(connection)
    if problems:
        os.unlink(copy)
    return problems


def _put_aside(database: str) -> str | None:
    """With its journal, which holds what was committed last, and would be taken for the new one's if it stayed."""
    kept = new_backup(database) if os.path.exists(database) else None
    if kept is not None:
        os.rename(database, kept)
    for suffix in _JOURNALS:
        if not os.path.exists(database + suffix):
            continue
        if kept is None:
            os.unlink(database + suffix)
        else:
            os.rename(database + suffix, kept + suffix)
    return kept
