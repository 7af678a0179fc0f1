"""The spool: events that no PRIMARY could take, one file each, renamed into place so that a reader never sees a part.

Names sort by age. Nothing here opens a server or a database: a hook that finds no PRIMARY has only milliseconds.
"""

from __future__ import annotations

import os
import time

from nudge.core import files, limits, thin_json
from nudge.core.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = "spool"
DROPPED = "dropped"
REDACTED_BY = "redacted_by"
"""A field that hooks add to a record: the version of Nudge that removed credentials from it."""

_SUFFIX = ".json"
_UNFINISHED = ".part"
_ABANDONED_AFTER = 60.0  # seconds; no writer takes that long between its two system calls
_CREATE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def folder(directory: str) -> str:
    """The spool of the runtime directory `directory`."""
    return os.path.join(directory, FOLDER)


def write(directory: str, event: Mapping[str, Any]) -> None:
    """Keep an event until a PRIMARY takes it. A full spool refuses it and counts it as dropped."""
    body = thin_json.dumps(event).encode()
    folder_path = folder(directory)
    try:
        os.makedirs(folder_path, mode=0o700, exist_ok=True)
        _check_room(directory, len(body))
        name = f"{time.time_ns():020d}-{event['event_id']}{_SUFFIX}"
        with files.Replacement(os.path.join(folder_path, name), suffix=_UNFINISHED) as file:
            file.write(body)
    except OSError as error:
        raise StorageFailed(f"cannot write to the spool: {error.strerror}") from None


def claim(directory: str, event_id: str) -> bool:
    """True for the first caller with this id, and when the mark cannot be written. A client that is wired twice runs
    two hooks at the same time, with or without a server: creating the file decides. `sweep` removes old marks."""
    folder_path = folder(directory)
    mark = os.path.join(folder_path, event_id + _UNFINISHED)
    try:
        os.makedirs(folder_path, mode=0o700, exist_ok=True)
        os.close(os.open(mark, _CREATE | os.O_EXCL, 0o600))
    except OSError:
        return not os.path.lexists(mark)
    return True


def pending(directory: str) -> list[str]:
    """The paths of waiting events, oldest first."""
    folder_path = folder(directory)
    return [os.path.join(folder_path, name) for name in sorted(_waiting(folder_path))]


def read(path: str) -> dict[str, Any] | None:
    """The event in a file; None when the file is gone or holds none (a power failure can leave it empty)."""
    try:
        with open(path, "rb") as file:
            event = thin_json.loads(file.read(limits.MAX_EVENT_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def drop(directory: str, path: str) -> None:
    """Remove a file that can never be stored, and count it."""
    count_dropped(directory)
    remove(path)


def count_dropped(directory: str) -> None:
    """Append one byte to the counter: appending is atomic, so concurrent hooks need no lock."""
    try:
        os.makedirs(folder(directory), mode=0o700, exist_ok=True)
        with open(os.open(_counter(directory), _CREATE | os.O_APPEND, 0o600), "ab", buffering=0) as file:
            file.write(b".")
    except OSError as error:
        raise StorageFailed(f"cannot write to the spool: {error.strerror}") from None


def forget_dropped(directory: str) -> None:
    """Reset the counter, after the user has seen it."""
    remove(_counter(directory))


def counts(directory: str) -> dict[str, int]:
    folder_path = folder(directory)
    sizes = _sizes(folder_path, _waiting(folder_path))
    return {"files": len(sizes), "bytes": sum(sizes), "dropped": _size(_counter(directory)) or 0}


def sweep(directory: str, now: float) -> None:
    """Remove the temporary files of writers that were killed."""
    folder_path = folder(directory)
    for name in _names(folder_path):
        path = os.path.join(folder_path, name)
        if name.endswith(_UNFINISHED) and now - _modified(path, now) > _ABANDONED_AFTER:
            remove(path)


def _check_room(directory: str, size: int) -> None:
    """Raise StorageFailed when the spool is full. File sizes are read only when their sum could exceed the limit."""
    folder_path = folder(directory)
    names = _waiting(folder_path)
    full = len(names) >= limits.MAX_SPOOL_FILES or size > limits.MAX_EVENT_BYTES
    if not full and (len(names) + 1) * limits.MAX_EVENT_BYTES > limits.MAX_SPOOL_BYTES:
        full = sum(_sizes(folder_path, names)) + size > limits.MAX_SPOOL_BYTES
    if full:
        count_dropped(directory)
        raise StorageFailed(
            f"the spool is full ({len(names)} events wait); a server empties it, and starts with: nudge ls"
        )


def _counter(directory: str) -> str:
    return os.path.join(folder(directory), DROPPED)


def _waiting(folder_path: str) -> list[str]:
    return [name for name in _names(folder_path) if name.endswith(_SUFFIX)]


def _names(folder_path: str) -> list[str]:
    """The regular files. A FIFO would block its reader, and a directory cannot be removed like an event."""
    try:
        with os.scandir(folder_path) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _sizes(folder_path: str, names: list[str]) -> list[int]:
    """The sizes of the files that still exist: a PRIMARY may be emptying the spool meanwhile."""
    sizes = (_size(os.path.join(folder_path, name)) for name in names)
    return [size for size in sizes if size is not None]


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _modified(path: str, default: float) -> float:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return default
