"""What `--fix` may do unasked: close our own files to others, and clear away what no living server needs."""

from __future__ import annotations

import os
import stat
from functools import partial

from nudge.doctor.finding import Fix
from nudge.ipc import endpoint


def chmod(path: str, mode: int) -> Fix:
    return partial(_chmod, path, mode)


def _chmod(path: str, mode: int) -> str:
    """Ours, and no link: looked at again, since the finding may be a while old."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(path)
    os.chmod(path, mode)
    return f"chmod {mode:o} {path}"


def remove(path: str) -> Fix:
    return partial(_remove, path)


def _remove(path: str) -> str:
    os.unlink(path)
    return f"removed {path}"


def clear(directory: str) -> Fix:
    return partial(_clear, directory)


def _clear(directory: str) -> str:
    """Endpoint, sockets and half-written files in one go, under the lock: the second finding that asks for it finds
    nothing."""
    cleared = endpoint.clear_leftovers(directory)
    return f"cleared {', '.join(cleared)}" if cleared else ""
