"""The files of imports and exports above 1 MiB, in a folder of the runtime directory. The CLI or the HTTP server writes
one and names it in the call of an import; PRIMARY writes one for an export, and whoever asked for it reads it. Each is
readable by its owner only, and whoever chose its name removes it. Standard library only."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time

from nudge.core import limits, paths
from nudge.core.errors import Invalid, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_NAME = re.compile(r"[0-9a-f]{24}")
_GUARDED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def reserved(directory: str | None) -> Iterator[str]:
    """Give a name for a file; at the end the file is removed, if there is one. None: no file can be written."""
    name = os.urandom(12).hex()
    try:
        yield name
    finally:
        if directory is not None:
            with contextlib.suppress(OSError):
                os.unlink(_path(directory, name))


@contextlib.contextmanager
def created(directory: str, name: str) -> Iterator[BinaryIO]:
    """Open a new file for writing, in place of one that an interrupted call left. Raises StorageFailed, also at the end
    of `with`, and leaves no file then."""
    path = _path(directory, name)
    paths.ensure_private_dir(os.path.dirname(path))
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _GUARDED, 0o600), "wb") as file:
            yield file
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise failed(error) from None
        raise


def open_written(directory: str, name: str) -> BinaryIO:
    """Open a file that `create` made. Raises Invalid for anything else there."""
    try:
        descriptor = os.open(_path(directory, name), os.O_RDONLY | _GUARDED)
    except OSError as error:
        raise Invalid(f"cannot be read: {error.strerror}", field="file") from None
    status = os.fstat(descriptor)
    is_owned = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    if not stat.S_ISREG(status.st_mode) or not is_owned:
        os.close(descriptor)
        raise Invalid("is not a file that only you can read", field="file")
    return open(descriptor, "rb")


def refuse_page(following: object, command: str) -> None:
    """Raise Invalid for a file that says in `next` that it is one page of an export; `command` exports everything."""
    if following is not None:
        raise Invalid(
            "says that this is one page of an export, which has more; export everything with the command "
            f"{command}, and import that",
            field="next",
        )


def failed(error: OSError) -> StorageFailed:
    return StorageFailed(
        f"the file of a large import or export cannot be written ({error.strerror}); nothing was changed. "
        "Make room, or see: nudge doctor"
    )


def sweep(directory: str) -> None:
    """Remove the files that a process left when it was killed."""
    oldest = time.time() - limits.TRANSFER_FILE_KEPT
    with contextlib.suppress(OSError), os.scandir(os.path.join(directory, paths.TRANSFERS)) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)


def _path(directory: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Invalid("must be the name of a file in the folder for imports and exports", field="file")
    return os.path.join(directory, paths.TRANSFERS, name)
