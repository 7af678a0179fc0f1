"""What git's own files say about a clone: who committed what, whoever it was, and which files differ from the index.
Starting `git` would run what the configuration of a clone names."""

from __future__ import annotations

import os
import re
import struct

from nudge.core.files import read_regular
from nudge.core.repos import common_dir, find_git_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_READ = 64 * 1024  # bytes from the end
# What makes a commit. A rebase also logs where it starts and finishes.
_ACTION = r"commit[^:\n]*|rebase(?: -i)?(?: \((?:pick|reword|edit|squash|fixup|continue)\))?|cherry-pick|revert|am"
_ENTRY = re.compile(rf"[0-9a-f]{{4,64}} ([0-9a-f]{{4,64}}) [^\n\t]* (\d{{1,12}}) [+-]\d{{4}}\t(?:{_ACTION}): ([^\n]*)")
_LARGEST_INDEX = 32 * 1024 * 1024  # bytes
_LARGEST_IGNORE = 64 * 1024
# An entry of the index: ctime, mtime, dev, inode, mode, uid, gid, size, object id, flags; then the path.
_STAT = struct.Struct(">10I20sH")
_PLAIN_VERSIONS = (2, 3)  # version 4 cuts the beginning off paths
_NAME_LENGTH, _EXTENDED = 0xFFF, 0x4000
_CHECKSUM = _OBJECT_ID = 20  # bytes; with SHA-256 nothing here is found, and nothing is said
_TREE_NODE = re.compile(rb"([^\0]*)\0(-?\d{1,10}) (\d{1,10})\n")


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
        index = self._read_index()
        if index[:4] != b"DIRC" or int.from_bytes(index[4:8], "big") not in _PLAIN_VERSIONS:
            return None
        entry = _find_entry(index, os.path.relpath(path, self._clone))
        try:
            status = os.lstat(path)
        except OSError:
            return entry is not None
        if entry is None:
            return not self._is_ignored(path)
        return entry != (int(status.st_mtime), status.st_size & 0xFFFFFFFF)

    def has_nothing_staged(self, path: str) -> bool:
        """Whether git's index has nothing to commit in the directory of a file: the tree of that directory is written,
        which `git add` undoes. A checkout, a stash or a reset that takes a change back leaves it so."""
        folder = os.path.relpath(os.path.dirname(path), self._clone)
        names = [] if folder == os.curdir else os.fsencode(folder).split(b"/")
        return _is_written(_tree_nodes(self._read_index()), names)

    def _is_ignored(self, path: str) -> bool:
        """Whether one of the clone's own `.gitignore` files names a file, so that nobody will commit it."""
        from nudge.security.ignore_globs import is_ignored

        parts = os.path.relpath(path, self._clone).split(os.sep)
        folders = [os.path.join(self._clone, *parts[:depth]) for depth in range(len(parts))]
        sources = [(self._clone, os.path.join(self._git_dir or "", "info", "exclude"))]
        sources += [(folder, os.path.join(folder, ".gitignore")) for folder in folders]
        ignored = False
        for folder, source in sources:
            for line in _patterns(source):
                glob = line.removeprefix("!").rstrip("/")
                glob = f"/{glob.lstrip('/')}" if "/" in glob else glob  # with a slash, it is about this directory
                if is_ignored(f"/{os.path.relpath(path, folder)}", (glob,)):
                    ignored = not line.startswith("!")
        return ignored

    def _read_index(self) -> bytes:
        if self._index is None:
            self._index = self._read("index") if self._git_dir is not None else b""
        return self._index

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
            commit, timestamp, subject = entry.groups()
            yield Commit(commit, int(timestamp), subject)


def _patterns(path: str) -> list[str]:
    """The patterns of a `.gitignore` file; none where there is no such file."""
    try:
        text = read_regular(path, _LARGEST_IGNORE).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


class _TreeNode:
    """A directory in the extension `TREE` of an index; it is written when git has an object for what is in it."""

    __slots__ = ("children", "is_written")

    def __init__(self, is_written: bool) -> None:
        self.is_written = is_written
        self.children: dict[bytes, _TreeNode] = {}


def _tree_nodes(index: bytes) -> _TreeNode | None:
    """The root of the extension `TREE`; None where there is none. Extensions stand behind the entries."""
    at = index.rfind(b"TREE")
    size = int.from_bytes(index[at + 4 : at + 8], "big")
    text = index[at + 8 : at + 8 + size]
    if at < 0 or at + 8 + size > len(index) - _CHECKSUM:
        return None
    top = _TreeNode(is_written=False)
    path, left = [top], [1]  # the directories above, and how many are to come in each
    position = 0
    while left:
        if left[-1] == 0:
            path.pop()
            left.pop()
            continue
        left[-1] -= 1
        if (match := _TREE_NODE.match(text, position)) is None:
            return None
        node = _TreeNode(is_written=not match[2].startswith(b"-"))
        path[-1].children[match[1]] = node
        position = match.end() + (_OBJECT_ID if node.is_written else 0)
        path.append(node)
        left.append(int(match[3]))
    return top.children.get(b"") if position == len(text) else None


def _is_written(node: _TreeNode | None, names: list[bytes]) -> bool:
    """Whether a directory, or one above it, is written: that one then holds all that is below."""
    while node is not None:
        if node.is_written or not names:
            return node.is_written
        node, names = node.children.get(names[0]), names[1:]
    return False


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
