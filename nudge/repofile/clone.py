"""The clone that a directory is in, and the file at its top.

Only the clone's own root counts: not the file of a submodule, nor of a dependency that was cloned into the work tree,
nor one in a folder below. Of its file, only a regular one with exactly this name: no link, and no second file that a
system without case takes for the same.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from dataclasses import dataclass

from nudge.core import files, limits, paths
from nudge.core.context import is_below
from nudge.core.repos import find_work_tree, read_repo
from nudge.core.text import mask
from nudge.repofile import FILE
from nudge.repofile.document import Document, Problem, parse

_SUBMODULES = "/.git/modules/"

_Signature = tuple[int, ...]
_documents: dict[str, tuple[_Signature, Document]] = {}
"""Cache by path. What is trusted goes by the content that was parsed, so an old entry can never be told as new."""


@dataclass(frozen=True, slots=True)
class Clone:
    """`repo` is the identity, `git_dir` what its work trees share; trust belongs to the two. `root` is the top of this
    work tree, spelled as the caller's directory is."""

    repo: str
    branch: str | None
    root: str
    git_dir: str

    @property
    def file(self) -> str:
        return os.path.join(self.root, FILE)


def find_clone(cwd: str | None) -> Clone | None:
    """The clone of a directory on this machine; None where there is none, and in a submodule or a clone inside another
    clone."""
    if cwd is None or (found := find_work_tree(cwd)) is None:
        return None
    top, git_dir = found
    if _SUBMODULES in f"{git_dir}/" or outer_clone(top, git_dir) is not None:
        return None
    repo, branch, root = read_repo(cwd)
    return None if repo is None or root is None else Clone(repo, branch, root, git_dir)


def outer_clone(top: str, git_dir: str) -> str | None:
    """The top of the clone that a clone lies in; None for a linked work tree inside its own clone, and below a home
    directory that is a clone itself."""
    parent = os.path.dirname(top)
    outer = find_work_tree(parent) if parent != top else None
    if outer is None or outer[1] == git_dir or is_below(os.path.realpath(paths.home()), outer[0]):
        return None
    return outer[0]


def read_document(clone: Clone) -> Document | None:
    """The file of a clone, read when it changed; None without one."""
    try:
        status = os.lstat(clone.file)
        folder = os.stat(clone.root)
    except OSError:
        return None
    signature = (*_signature(status), folder.st_mtime_ns)
    known = _documents.get(clone.file)
    if known is not None and known[0] == signature:
        return known[1]
    document, read = read_now(clone)
    if document is not None and read is not None and _signature(read) == signature[:-1]:
        if len(_documents) >= limits.REPO_FILES_CACHED:
            _documents.clear()
        _documents[clone.file] = (signature, document)
    return document


def _signature(status: os.stat_result) -> _Signature:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_now(clone: Clone) -> tuple[Document | None, os.stat_result | None]:
    """Read the file without the cache. A file that may not be read has one problem, which says why."""
    try:
        content, status = files.read_unlinked(clone.file, limits.MAX_REPO_FILE_BYTES + 1)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return _refused(_why_unreadable(error)), None
    if twin := find_twin(os.listdir(clone.root)):
        return _refused(twin), status
    return parse(content), status


def _why_unreadable(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "is a symbolic link; it must be a file of the repository itself"
    return "is not a regular file" if isinstance(error, files.NotRegular) else f"cannot be read: {error.strerror}"


def _refused(rule: str) -> Document:
    return Document(problems=(Problem(0, 0, rule),))


def find_twin(names: list[str]) -> str | None:
    """Why the names in a directory make it unsure which file is meant, or None: on a system without case, or one that
    ignores characters that nobody sees, two names are one file, and the last one checked out wins."""
    twins = [name for name in names if name != FILE and _folded(name) == FILE]
    if twins:
        return f"has a twin, {mask(twins[0])}, which some systems take for the same file; rename it"
    return None if FILE in names else "is not the name of a file here"


def _folded(name: str) -> str:
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ")
