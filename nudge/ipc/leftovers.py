"""What a server that was killed leaves in the runtime directory. Only whoever holds the lock may call it a leftover."""

from __future__ import annotations

import os
import re

from nudge import paths
from nudge.errors import StorageFailed
from nudge.ipc import endpoint, lock

_SOCKET = re.compile(r"s-[0-9a-f]+\.sock")
_TEMPORARY = re.compile(
    rf"(?:{re.escape(paths.ENDPOINT)}|{re.escape(paths.TOKEN)}|{re.escape(paths.PREVIOUS)})\.\d+\.[0-9a-f]{{8}}"
    rf"|{re.escape(paths.CHANGE_LOG)}\.[0-9a-f]{{16}}\.tmp"
)


def names(directory: str) -> list[str]:
    """Sockets and half-written files; theirs is the directory of a living server only while it holds the lock."""
    try:
        present = sorted(os.listdir(directory))
    except OSError:
        return []
    return [name for name in present if _SOCKET.fullmatch(name) or _TEMPORARY.fullmatch(name)]


def clear(directory: str) -> list[str]:
    """Remove them and withdraw a stale endpoint, holding the lock meanwhile; the names. Refused while a server holds
    it."""
    held = lock.FileLock(os.path.join(directory, paths.LOCK))
    if not held.acquire():
        raise StorageFailed("a server holds the lock; its files are not touched")
    try:
        cleared = names(directory)
        for name in cleared:
            os.unlink(os.path.join(directory, name))
        return cleared + _withdraw(directory)
    finally:
        held.release()


def _withdraw(directory: str) -> list[str]:
    published = endpoint.read(directory)
    if published is None or published.state == endpoint.STOPPED:
        return []
    endpoint.withdraw(directory, published)
    return [paths.ENDPOINT]
