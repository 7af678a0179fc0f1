"""Backups of the database: writing one, examining one, and putting one in the database's place."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import time
from itertools import count
from shlex import quote

from nudge.errors import Invalid, NudgeError, StorageFailed
from nudge.storage import migrations
from nudge.storage.sqlite import JOURNALS, check, copy_to, error_name, open_backup


def backup_folder(database: str) -> str:
    return os.path.join(os.path.dirname(database), "backups")


def new_backup(database: str) -> str:
    """A free name in the folder of backups, which is created."""
    os.makedirs(backup_folder(database), mode=0o700, exist_ok=True)
    base = os.path.join(backup_folder(database), time.strftime("nudge-%Y%m%d-%H%M%S", time.gmtime()))
    return next(path for number in count(1) if not os.path.lexists(path := f"{base}{f'-{number}' * (number > 1)}.db"))


class DatabaseDamaged(StorageFailed):
    """The database cannot be read completely."""


def write_backup(connection: sqlite3.Connection, target: str) -> None:
    """Copy the database into a new file. Raises DatabaseDamaged, and leaves no file, when it is damaged."""
    problems = _copy_sound(connection, target)
    if problems:
        raise DatabaseDamaged(f"the database is damaged ({problems[0]})")


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
            return candidate, examine(candidate)["observations"]
        except NudgeError:
            continue
    return None


def list_backups(database: str) -> list[str]:
    """Backups, and databases that a restore replaced, with their journals."""
    return sorted(glob.glob(os.path.join(glob.escape(backup_folder(database)), "nudge-*.db*")))


def examine(path: str) -> dict[str, int]:
    """Count the observations and sessions in a backup. Raises Invalid when it is none that this version can use."""
    if not os.path.isfile(path):
        raise Invalid(f"there is no such file: {path}")
    try:
        with contextlib.closing(open_backup(path)) as connection:
            version = migrations.version(connection)
            if version > migrations.LATEST:
                raise Invalid(f"{path} was written by a newer Nudge; upgrade this one first")
            if version < 1:
                raise Invalid(f"{path} is not a history of Nudge: it has no format")
            observations, sessions = connection.execute(
                "SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM sessions)"
            ).fetchone()
    except sqlite3.Error:
        raise Invalid(f"{path} is not a history of Nudge, or is damaged") from None
    return {"observations": observations, "sessions": sessions}


def replace(path: str, database: str) -> str | None:
    """Put a copy of the backup at `path` in the database's place, after checking it. Return where the database before
    it is kept, if there was one. The caller makes sure that no process has either open for writing."""
    copy = f"{database}.restoring"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    os.makedirs(os.path.dirname(database) or ".", mode=0o700, exist_ok=True)
    with contextlib.closing(open_backup(path)) as connection:
        problems = _copy_sound(connection, copy)
    if problems:
        raise Invalid(f"{path} is damaged: {problems[0]}")
    kept = _set_aside(database)
    os.replace(copy, database)
    return kept


def _copy_sound(connection: sqlite3.Connection, target: str) -> list[str]:
    """Copy, then check the copy; when something is wrong, return what, and leave no copy."""
    try:
        copy_to(connection, target)
    except sqlite3.DatabaseError as error:
        if not error_name(error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise
        return [str(error)]
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
