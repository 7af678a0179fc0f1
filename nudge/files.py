"""Reading and replacing small owner-only files: one atomic write, one trusted read."""

from __future__ import annotations

import os
import stat
import sys

from nudge.errors import StorageFailed


def read_owned(path: str) -> bytes | None:
    """Return the content of a regular file that only this user can write; None for anything else (a link, another
    owner)."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        ours = sys.platform == "win32" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
        return file.read(65_536) if ours and stat.S_ISREG(status.st_mode) else None


def replace(path: str, content: bytes) -> None:
    """Replace `path` atomically (temporary file and rename), with mode 0600."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        with open(fd, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        _discard(temporary)
        raise StorageFailed(f"cannot write {os.path.basename(path)}: {error.strerror}") from None


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
