"""Reading and replacing small files: one atomic write, one trusted read."""

from __future__ import annotations

import os
import stat
import sys

from nudge.core.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedWriter

# O_NONBLOCK: opening a named pipe would wait for a writer.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read_owned(path: str, limit: int = 65_536) -> bytes | None:
    """Return up to `limit` bytes of a regular file that only this user can write; None for anything else (a link,
    another owner, a named pipe)."""
    try:
        fd = os.open(path, _READ | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    status = os.fstat(fd)
    ours = sys.platform == "win32" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    if not ours or not stat.S_ISREG(status.st_mode):  # `open` raises for a directory
        os.close(fd)
        return None
    with open(fd, "rb") as file:
        return file.read(limit)


def read_unlinked(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return up to `limit` bytes of a regular file that is no link, and what it is; raises OSError."""
    fd = os.open(path, _READ | getattr(os, "O_NOFOLLOW", 0))
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise NotRegular("it is not a regular file")
    with open(fd, "rb") as file:
        return file.read(limit), status


class NotRegular(OSError):
    """The path names a directory, a pipe or a device."""


def read_regular(path: str, limit: int) -> bytes:
    """Return up to `limit` bytes of a regular file, or of the one behind a link; raises OSError."""
    fd = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular("it is not a regular file")
    with open(fd, "rb") as file:
        return file.read(limit)


class Replacement:
    """A new version of the file at `path`: a temporary file beside it, open for writing bytes. At the end of `with` it
    is renamed over `path`; after an exception, also Ctrl-C, it is removed. Raises OSError.

    `suffix` ends the name of the temporary file. With `preserve` the mode and owner of the old file stay, and the
    content is on the disk before the rename."""

    __slots__ = ("_file", "_mode", "_path", "_preserve", "_temporary")

    def __init__(self, path: str, *, mode: int = 0o600, preserve: bool = False, suffix: str = "") -> None:
        self._path, self._mode, self._preserve = path, mode, preserve
        self._temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}{suffix}"

    def __enter__(self) -> BufferedWriter:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._file = open(os.open(self._temporary, flags, self._mode), "wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with self._file as file:
                if kind is None and self._preserve:
                    _copy_attributes(self._path, file.fileno())
                    file.flush()
                    os.fsync(file.fileno())
            if kind is None:
                os.replace(self._temporary, self._path)
        except OSError:
            if kind is None:  # otherwise the first exception is the one to report
                raise
        finally:
            _discard(self._temporary)


def replace(path: str, content: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` atomically (temporary file and rename). Raises StorageFailed."""
    try:
        with Replacement(path, mode=mode) as file:
            file.write(content)
    except OSError as error:
        raise StorageFailed(f"cannot write {os.path.basename(path)}: {error.strerror}") from None


def replace_in_place(path: str, content: bytes) -> None:
    """Replace a file that another program owns, atomically; raises OSError.

    A symbolic link is kept and the file behind it replaced, mode and owner stay, and the content is on the disk before
    the rename, so that a power cut leaves the old file or the new one.
    """
    with Replacement(os.path.realpath(path), preserve=True) as file:
        file.write(content)


def _copy_attributes(path: str, fd: int) -> None:
    """Give the open file the mode and owner of `path`. Without permission to change the owner it belongs to this user,
    as after any editor."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return
    if (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
