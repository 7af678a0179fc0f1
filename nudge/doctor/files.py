"""Directories and files: that they are there, ours, and nobody else's."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from shlex import quote

from nudge import paths
from nudge.doctor import mending
from nudge.doctor.finding import Finding, Patient, fail, ok, warn
from nudge.ipc import endpoint, lock

_OTHERS = 0o077
_OTHERS_WRITE = 0o022
# The endpoint and the token are looked at where they are understood.
_PLAIN_FILES = (paths.LOCK, paths.MEMBERS, paths.CHANGE_LOG, paths.PREVIOUS, paths.START_REPORT)


def check_directories(patient: Patient) -> Iterator[Finding]:
    yield _directory("directory", patient.directory, "set NUDGE_RUNTIME_DIR to a directory of yours")
    yield _directory("log directory", patient.log_directory, f"chmod 700 {quote(patient.log_directory)}")


def _directory(check: str, path: str, elsewhere: str) -> Finding:
    try:
        status = os.lstat(path)
    except OSError:
        return _missing_directory(check, path, elsewhere)
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a directory"
        return fail(check, f"{path} is {kind}; it is refused", f"rm {quote(path)}")
    if not _is_ours(status):
        return fail(check, f"{path} belongs to another user; it is refused", elsewhere)
    return _mode_of_directory(check, path, stat.S_IMODE(status.st_mode))


def _mode_of_directory(check: str, path: str, mode: int) -> Finding:
    command, fix = f"chmod 700 {quote(path)}", mending.chmod(path, 0o700)
    if mode & _OTHERS_WRITE:
        return fail(check, f"{path} is writable by others ({mode:04o}); it is refused", command, fix)
    if mode & 0o700 != 0o700:
        return fail(check, f"{path} cannot be used by its owner ({mode:04o})", command, fix)
    if mode & _OTHERS:
        return warn(check, f"{path} is open to others ({mode:04o})", command, fix)
    return ok(check, f"{path} is yours alone")


def _missing_directory(check: str, path: str, elsewhere: str) -> Finding:
    """Whoever needs it makes it, if the nearest directory above lets us."""
    above = nearest(path)
    if os.access(above, os.W_OK | os.X_OK):
        return ok(check, f"{path} is not there yet; the first server makes it")
    return fail(check, f"{path} is not there, and cannot be made in {above}", elsewhere)


def nearest(path: str) -> str:
    """The path itself, or the first directory above it that exists."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def check_files(patient: Patient) -> Iterator[Finding]:
    """One line when all is well; otherwise one for each file that is not."""
    if not os.path.isdir(patient.directory):
        return
    wrong = [
        finding
        for name in _PLAIN_FILES
        if (finding := _file("files", os.path.join(patient.directory, name))) is not None
    ]
    yield from wrong or [ok("files", "what is in the directory is yours alone")]


def _file(check: str, path: str) -> Finding | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
        kind = "belongs to another user" if stat.S_ISREG(status.st_mode) else "is not a regular file"
        return fail(check, f"{path} {kind}", f"rm {quote(path)}")
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OTHERS:
        return None
    return warn(check, f"{path} is open to others ({mode:04o})", f"chmod 600 {quote(path)}", mending.chmod(path, 0o600))


def check_token(patient: Patient) -> Iterator[Finding]:
    path = os.path.join(patient.directory, paths.TOKEN)
    wrong = _file("token", path)
    if wrong is None and os.path.lexists(path):
        yield ok("token", f"{path} is yours alone")
    elif wrong is None and patient.status is not None:
        yield fail(
            "token", "the file is gone, and scripts cannot learn the token of the running server", "nudge stop --force"
        )
    elif wrong is None:
        yield ok("token", "none yet; the first server makes one")
    else:
        yield _open_token(patient, path, wrong)


def _open_token(patient: Patient, path: str, wrong: Finding) -> Finding:
    """One that others could write may be somebody else's word: it is not trusted, and made anew rather than
    repaired."""
    if wrong.fix is None or not os.lstat(path).st_mode & _OTHERS_WRITE:
        return fail("token", wrong.message, wrong.mend or "", wrong.fix)
    fix = mending.remove(path) if lock.is_free(os.path.join(patient.directory, paths.LOCK)) else None
    return fail(
        "token", f"{path} is writable by others; it is not trusted", f"nudge stop --force; rm {quote(path)}", fix
    )


def check_leftovers(patient: Patient) -> Iterator[Finding]:
    """While a server holds the lock, what lies there is its own."""
    if not lock.is_free(os.path.join(patient.directory, paths.LOCK)):
        return
    left = endpoint.leftovers(patient.directory)
    if left:
        message = f"a server that was killed left {', '.join(left)}"
        yield warn("leftovers", message, "nudge doctor --fix", mending.clear(patient.directory))


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.getuid()
