"""Checks of our directories and files: they exist, belong to the user, are closed to others, and the disk has space."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from shlex import quote

from nudge.core import limits, paths
from nudge.core.text import format_size
from nudge.doctor.model import Finding, Repair, Snapshot, fail, ok, warn
from nudge.process import endpoint
from nudge.settings import config
from nudge.storage import database_files

_OTHERS, _OTHERS_WRITE = database_files.OTHERS, database_files.OTHERS_WRITE
# The endpoint and the token have checks of their own.
_PLAIN_FILES = (
    paths.LOCK,
    paths.START_LOCK,
    paths.MEMBERS,
    paths.CHANGE_LOG,
    paths.PREVIOUS,
    paths.SETTINGS,
    paths.START_REPORT,
    paths.TRUST,
)


def check_directories(snapshot: Snapshot) -> Iterator[Finding]:
    yield _directory("directory", snapshot.directory, "set NUDGE_RUNTIME_DIR to a directory of yours")
    yield _directory("log directory", snapshot.log_directory, f"chmod 700 {quote(snapshot.log_directory)}")


def _directory(check: str, path: str, alternative: str) -> Finding:
    try:
        status = os.lstat(path)
    except OSError:
        return _missing_directory(check, path, alternative)
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a directory"
        return fail(check, f"{path} is {kind}; Nudge refuses it", f"rm {quote(path)}")
    if not _is_ours(status):
        return fail(check, f"{path} belongs to another user; Nudge refuses it", alternative)
    mode = stat.S_IMODE(status.st_mode)
    command, repair = f"chmod 700 {quote(path)}", chmod(path, 0o700)
    if mode & _OTHERS_WRITE:
        return fail(check, f"{path} is writable by others ({mode:04o}); Nudge refuses it", command, repair)
    if mode & 0o700 != 0o700:
        return fail(check, f"{path} cannot be used by its owner ({mode:04o})", command, repair)
    if mode & _OTHERS:
        return warn(check, f"{path} can be read by others ({mode:04o})", command, repair)
    return ok(check, f"{path} is accessible to you only")


def _missing_directory(check: str, path: str, alternative: str) -> Finding:
    parent = _nearest(path)
    if os.access(parent, os.W_OK | os.X_OK):
        return ok(check, f"{path} does not exist yet; the first server creates it")
    return fail(check, f"{path} does not exist, and cannot be created in {parent}", alternative)


def _nearest(path: str) -> str:
    """The path itself, or the first directory above it that exists."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def check_files(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding when all is well; otherwise one for each file that is not."""
    if not os.path.isdir(snapshot.directory):
        return
    results = (_file("files", snapshot.path(name)) for name in _PLAIN_FILES)
    problems = [finding for finding in results if finding is not None]
    yield from problems or [ok("files", "all files in the directory are accessible to you only")]


def _file(check: str, path: str) -> Finding | None:
    """The problem with a file; None when there is none, or no such file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
        kind = "belongs to another user" if stat.S_ISREG(status.st_mode) else "is not a regular file"
        return fail(check, f"{path} {kind}", remove_command(path))
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OTHERS:
        return None
    return warn(check, f"{path} can be read by others ({mode:04o})", f"chmod 600 {quote(path)}", chmod(path, 0o600))


def remove_command(path: str) -> str:
    """The command that removes a file; a directory is renamed instead, because it may hold something of the user's."""
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    return f"mv {quote(path)} {quote(path + '.moved')}" if is_directory else f"rm {quote(path)}"


def check_data_files(snapshot: Snapshot) -> Iterator[Finding]:
    """The database with what belongs to it, the settings and the log: one finding when all is well, otherwise one for
    each that is not."""
    database = config.database_file(snapshot.environ)
    is_moved = database != paths.default_database_file(snapshot.environ)
    checked = [
        path for path in database_files.database_paths(database, is_moved=is_moved) if path != snapshot.directory
    ]
    results = [*(_access(path, _OTHERS) for path in checked), *map(_log_file, _log_files(snapshot.log_directory))]
    if is_moved:
        results.append(_shared_parent(database))
    settings = paths.config_file(snapshot.environ)
    results += [_access(path, _OTHERS_WRITE) for path in (os.path.dirname(settings), settings)]
    problems = [finding for finding in results if finding is not None]
    yield from problems or [ok("data", f"{database}, its backups and the log are accessible to you only")]


def _log_files(directory: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(directory), "nudge.log*")))


def _log_file(path: str) -> Finding | None:
    return _file("data", path)


def _access(path: str, forbidden: int) -> Finding | None:
    """The problem with a directory, or with a file that may be a link of the user's: others have a forbidden bit."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    if sys.platform == "win32" or not mode & forbidden:
        return None
    target = os.path.realpath(path)
    verb, finding = ("changed", fail) if mode & _OTHERS_WRITE else ("read", warn)
    if not _is_ours(status):
        message = f"{path} belongs to another user, and can be {verb} by others"
        return finding("data", message, look=f"ls -ld {quote(path)}")
    new_mode = mode & ~(_OTHERS if forbidden == _OTHERS else _OTHERS_WRITE)
    message = f"{path} can be {verb} by others ({mode:04o})"
    return finding("data", message, f"chmod {new_mode:o} {quote(target)}", chmod(target, new_mode))


def _shared_parent(database: str) -> Finding | None:
    """The directory of a database that the user has moved: others could replace the file there. It may be shared on
    purpose, so it has no repair."""
    folder = os.path.dirname(database)
    try:
        mode = stat.S_IMODE(os.stat(folder).st_mode)
    except OSError:
        return None
    if sys.platform == "win32" or not mode & _OTHERS_WRITE or mode & stat.S_ISVTX:
        return None
    message = f"others can replace {database}: its directory is writable by them ({mode:04o})"
    return warn("data", message, f"chmod go-w {quote(folder)}")


def check_token(snapshot: Snapshot) -> Iterator[Finding]:
    path = snapshot.path(paths.TOKEN)
    problem = _file("token", path)
    if problem is not None:
        yield _bad_token(snapshot, path, problem)
    elif endpoint.read_token(snapshot.directory) is not None:
        yield ok("token", f"{path} is accessible to you only")
    elif snapshot.status is not None:
        state = "holds no token" if os.path.lexists(path) else "is gone"
        yield warn("token", f"the file {state}; the server makes a new token within a second", "nudge token")
    else:
        yield ok("token", "none yet; the first server creates one")


def _bad_token(snapshot: Snapshot, path: str, problem: Finding) -> Finding:
    """A token that others could write may be somebody else's: it is removed rather than repaired."""
    if problem.repair is None or not os.lstat(path).st_mode & _OTHERS_WRITE:
        return fail("token", problem.message, problem.fix, problem.repair, look=problem.look)
    repair = remove(path) if snapshot.has_no_server else None
    message = f"{path} is writable by others; it is not trusted"
    return fail("token", message, f"nudge stop --force; rm {quote(path)}", repair)


def check_leftovers(snapshot: Snapshot) -> Iterator[Finding]:
    """Files of a server that was killed; while a server holds the lock, they are its own."""
    names = endpoint.leftovers(snapshot.directory) if snapshot.has_no_server else []
    if names:
        message = f"a server that was killed left {', '.join(names)}"
        yield warn("leftovers", message, "nudge doctor --fix", remove_leftovers(snapshot.directory))


def check_disk(snapshot: Snapshot) -> Iterator[Finding]:
    path = _nearest(snapshot.directory)
    free = shutil.disk_usage(path).free
    if free < limits.DISK_FULL_BYTES:
        yield fail("disk", f"{format_size(free)} free: changes will soon be refused", look=f"df -h {quote(path)}")
    elif free < limits.DISK_LOW_BYTES:
        yield warn("disk", f"{format_size(free)} free", look=f"df -h {quote(path)}")
    else:
        yield ok("disk", f"{format_size(free)} free")


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.getuid()


# Repairs that need no question: closing our own files to others, and removing what no living server needs


def chmod(path: str, mode: int) -> Repair:
    def repair() -> str:
        status = os.lstat(path)  # again: somebody may have put a link there since the check
        if stat.S_ISLNK(status.st_mode) or status.st_uid != os.getuid():
            raise PermissionError(path)
        os.chmod(path, mode)
        return f"chmod {mode:o} {path}"

    return repair


def remove(path: str) -> Repair:
    def repair() -> str:
        os.unlink(path)
        return f"removed {path}"

    return repair


def remove_leftovers(directory: str) -> Repair:
    def repair() -> str:
        """Endpoint, sockets and unfinished files at once; a second finding with this repair then does nothing."""
        names = endpoint.clear_leftovers(directory)
        return f"removed {', '.join(names)}" if names else ""

    return repair
