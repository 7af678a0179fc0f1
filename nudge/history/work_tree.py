"""What git's own files say about a clone: who committed what, whoever it was, and which files differ from the index.
Starting `git` would run what the configuration of a clone names."""

from __future__ import annotations

import os
import re
import struct

from nudge.files import read_regular
from nudge.repos import common_dir, find_git_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_READ = 64 * 1024  # bytes from the end
_ENTRY = re.compile(r"[0-9a-f]{4,64} ([0-9a-f]{4,64}) [^\n\t]* (\d{1,12}) [+-]\d{4}\t(commit[^:\n]*): ([^\n]*)")
_LARGEST_INDEX = 32 * 1024 * 1024  # bytes
# An entry of the index: ctime, mtime, dev, inode, mode, uid, gid, size, object id, flags; then the path.
_STAT = struct.Struct(">10I20sH")
_PLAIN_VERSIONS = (2, 3)  # version 4 cuts the beginning off paths
_NAME_LENGTH, _EXTENDED = 0xFFF, 0x4000


class Commit:
    """A commit that was made in a clone. `timestamp` is the committer's, as git wrote it."""

    __slots__ = ("hash", "subject", "timestamp")

    def __init__(self, hash: str, timestamp: int, subject: str) -> None:
        self.hash, self.timestamp, self.subject = hash, timestamp, subject


class WorkTree:
    """A clone as it is now. Without one at this place any more, it knows of no commits and of no file."""

    def __init__(self, clone: str | None) -> None:
        self._clone = clone or ""
        is_there = os.path.lexists(os.path.join(self._clone, ".git"))  # else it is one of a directory above
        self._git_dir = find_git_dir(self._clone) if os.path.isabs(self._clone) and is_there else None
        self._index: bytes | None = None

    def read_commits(self) -> list[Commit]:
        """Return the latest commits, oldest first."""
        return list(_commits(self._read("logs/HEAD", from_end=_LOG_READ).decode("utf-8", "replace")))

    def has_branch(self, name: str) -> bool | None:
        """Whether the clone has a branch, or is on one of this name that has no commit yet; None where git's files do
        not tell."""
        shared = common_dir(self._git_dir) if self._git_dir is not None else ""
        folder = os.path.join(shared, "refs", "heads")
        if not shared or not os.path.isdir(folder):  # a file where refs are in tables
            return None
        ref = f"refs/heads/{name}"
        if os.path.isfile(os.path.join(folder, name)) or self._read("HEAD") == f"ref: {ref}\n".encode():
            return True
        try:
            return f" {ref}\n".encode() in read_regular(os.path.join(shared, "packed-refs"), _LARGEST_INDEX)
        except OSError:
            return False

    def is_modified(self, path: str) -> bool | None:
        """Whether a file differs from what git last took of it; None where git's index does not tell. A file that
        neither is there nor was is not modified."""
        if self._git_dir is None:
            return None
        if self._index is None:
            self._index = self._read("index")
        if self._index[:4] != b"DIRC" or int.from_bytes(self._index[4:8], "big") not in _PLAIN_VERSIONS:
            return None
        entry = _find_entry(self._index, os.path.relpath(path, self._clone))
        try:
            status = os.lstat(path)
        except OSError:
            return entry is not None
        return entry != (int(status.st_mtime), status.st_size & 0xFFFFFFFF)

    def _read(self, name: str, *, from_end: int = _LARGEST_INDEX) -> bytes:
        """A file of the git directory, or its end; empty when there is none."""
        try:
            with open(os.path.join(self._git_dir or "", name), "rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - from_end, 0))
                return file.read(from_end)
        except OSError:
            return b""


def _commits(text: str) -> Iterator[Commit]:
    for line in text.splitlines():
        if entry := _ENTRY.fullmatch(line):
            commit, timestamp, _, subject = entry.groups()
            yield Commit(commit, int(timestamp), subject)


def _find_entry(index: bytes, path: str) -> tuple[int, int] | None:
    """The time and size of a path in an index. It is looked for as bytes: to read all entries of a large repository
    would take 0.1 s."""
    name = os.fsencode(path)
    at = index.find(name + b"\0")
    while at >= 0:
        for extra in (0, 2):  # the flags of version 3
            start = at - _STAT.size - extra
            if start >= 12:
                _, _, seconds, _, *_, size, _, flags = _STAT.unpack_from(index, start)
                if flags & _NAME_LENGTH == min(len(name), _NAME_LENGTH) and bool(flags & _EXTENDED) == bool(extra):
                    return seconds, size
        at = index.find(name + b"\0", at + 1)
    return None
