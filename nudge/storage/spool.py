"""Events that no PRIMARY could take: one file each, written beside and renamed, so that a reader sees a whole one or
none.

The name sorts by age. Nothing here opens a server or a database: a hook that finds no PRIMARY has milliseconds.
"""

from __future__ import annotations

import json
import os
import time

from nudge import limits
from nudge.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = "spool"
DROPPED = "dropped"

_SUFFIX = ".json"
_UNFINISHED = ".part"
_ABANDONED_AFTER = 60.0  # seconds; no writer takes that long between its two system calls
_CREATE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def folder(directory: str) -> str:
    """The spool of the runtime directory `directory`."""
    return os.path.join(directory, FOLDER)


def write(directory: str, event: Mapping[str, Any]) -> None:
    """Keep an event until a PRIMARY takes it. Full, it refuses the event, and counts what it refused."""
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    place = folder(directory)
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        _check_room(directory, len(body))
        _place(os.path.join(place, f"{time.time_ns():020d}-{event['event_id']}{_SUFFIX}"), body)
    except OSError as error:
        raise StorageFailed(f"cannot write to the spool: {error.strerror}") from None


def claim(directory: str, event_id: str) -> bool:
    """True for the first who asks; a disk that takes no mark keeps nobody from his work. A client runs two hooks at the
    same moment, with
    a server or without: the directory decides between them. Marks are swept with what was left unfinished."""
    place = folder(directory)
    mark = os.path.join(place, event_id + _UNFINISHED)
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        os.close(os.open(mark, _CREATE | os.O_EXCL, 0o600))
    except OSError:
        return not os.path.lexists(mark)
    return True


def pending(directory: str) -> list[str]:
    """The paths of what waits, oldest first."""
    place = folder(directory)
    return [os.path.join(place, name) for name in sorted(_waiting(place))]


def read(path: str) -> dict[str, Any] | None:
    """The event in a file; None when it is gone, or is no event (a power cut can leave an empty file)."""
    try:
        with open(path, "rb") as file:
            event = json.loads(file.read(limits.MAX_EVENT_BYTES + 1))
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
    """One byte for each: appending is atomic, so that hooks which run at once need no lock to count."""
    try:
        os.makedirs(folder(directory), mode=0o700, exist_ok=True)
        with open(os.open(_counter(directory), _CREATE | os.O_APPEND, 0o600), "ab", buffering=0) as file:
            file.write(b".")
    except OSError as error:
        raise StorageFailed(f"cannot write to the spool: {error.strerror}") from None


def forget_dropped(directory: str) -> None:
    """Somebody has read it: counting begins anew."""
    remove(_counter(directory))


def counts(directory: str) -> dict[str, int]:
    place = folder(directory)
    sizes = _sizes(place, _waiting(place))
    return {"files": len(sizes), "bytes": sum(sizes), "dropped": _size(_counter(directory)) or 0}


def sweep(directory: str, now: float) -> None:
    """Remove what a writer that was killed half-way left behind."""
    place = folder(directory)
    for name in _names(place):
        path = os.path.join(place, name)
        if name.endswith(_UNFINISHED) and now - _modified(path, now) > _ABANDONED_AFTER:
            remove(path)


def _check_room(directory: str, size: int) -> None:
    """Sizes are looked at only when so many files wait that they could matter."""
    place = folder(directory)
    names = _waiting(place)
    full = len(names) >= limits.MAX_SPOOL_FILES or size > limits.MAX_EVENT_BYTES
    if not full and (len(names) + 1) * limits.MAX_EVENT_BYTES > limits.MAX_SPOOL_BYTES:
        full = sum(_sizes(place, names)) + size > limits.MAX_SPOOL_BYTES
    if full:
        count_dropped(directory)
        raise StorageFailed(
            f"the spool is full ({len(names)} events wait); a server empties it, and starts with: nudge ls"
        )


def _counter(directory: str) -> str:
    return os.path.join(folder(directory), DROPPED)


def _place(path: str, body: bytes) -> None:
    temporary = f"{path}.{os.getpid()}{_UNFINISHED}"
    try:
        with open(os.open(temporary, _CREATE | os.O_EXCL, 0o600), "wb", buffering=0) as file:
            file.write(body)
        os.replace(temporary, path)
    except OSError:
        remove(temporary)
        raise


def _waiting(place: str) -> list[str]:
    return [name for name in _names(place) if name.endswith(_SUFFIX)]


def _names(place: str) -> list[str]:
    try:
        return os.listdir(place)
    except FileNotFoundError:
        return []


def _sizes(place: str, names: list[str]) -> list[int]:
    """Of the files that are still there: a PRIMARY may be emptying the spool meanwhile."""
    found = (_size(os.path.join(place, name)) for name in names)
    return [size for size in found if size is not None]


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
