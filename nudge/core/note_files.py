"""The files that a note is about: paths below the top of its repo, with slashes, and an index of them.

A note has them in its metadata as `files`, so that exports, synchronization and the archive carry them; the table
`note_files` is an index of these and, as weaker ones, of the paths that the note's text names.
"""

from __future__ import annotations

import posixpath
import re

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.file_names import SUFFIXES
from nudge.core.repos import is_absolute, to_posix
from nudge.core.text import has_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any

FILES = "files"
"""The name in the metadata of a note."""

_PATH = re.compile(rf"(?<![\w:/.@~$-])(?:\./)?((?:[\w.@-]+/)+[\w.@-]*\w|\.?\w[\w.-]*\.(?:{SUFFIXES}))(?![\w/@]|\.\w)")
_LINE = re.compile(r":\d+(:\d+)?$")
_TOUCHED_BY_ALL = frozenset(("readme", "changelog", "changes", "history", "news", "license", "todo", "version"))
_MANIFESTS = frozenset(
    (
        *("package.json", "pnpm-workspace.yaml", "pyproject.toml", "setup.py", "setup.cfg", "cargo.toml", "go.mod"),
        *("go.sum", "gemfile", "composer.json", "mix.exs", "pom.xml", "build.gradle", "build.gradle.kts"),
        *("pubspec.yaml", "package.swift", "makefile", ".gitignore"),
    )
)
_LOCK_FILE = re.compile(r"(?:^|[.-])lock(?:\.|b?$)|\.lockb?$|^requirements[\w.-]*\.txt$")


def check_files(value: object, top: str | None = None) -> list[str]:
    """Return the paths relative to the repo, each once. An absolute one must be below `top`, the top of the caller's
    clone. Raises Invalid."""
    if not isinstance(value, list | tuple):
        raise Invalid("must be a list of paths", field=FILES)
    if len(value) > limits.MAX_NOTE_FILES:
        raise Invalid(f"must have at most {limits.MAX_NOTE_FILES} items", field=FILES)
    return list(dict.fromkeys(_check_file(path, f"{FILES}[{number}]", top) for number, path in enumerate(value)))


def _check_file(value: object, field: str, top: str | None) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid("must be a path", field=field)
    if has_control(value):
        raise Invalid("must not contain control characters", field=field)
    if ".." in re.split(r"[/\\]", value):
        raise Invalid("must not contain ..; give the path from the top of the repo", field=field)
    if is_absolute(value):
        path = relative_to(value, top)
        if path is None:
            raise Invalid("must be in your clone of the repo; give the path from its top", field=field)
    else:
        path = posixpath.normpath(value.replace("\\", "/"))
    if path == ".":
        raise Invalid("must be a file of the repo, not its top", field=field)
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise Invalid("is not text in UTF-8", field=field) from None
    if size > limits.MAX_NOTE_FILE_BYTES:
        raise Invalid(f"must be at most {limits.MAX_NOTE_FILE_BYTES} bytes", field=field)
    return path


def relative_to(path: str, top: str | None) -> str | None:
    """Return an absolute path as one below `top`; None when it is elsewhere."""
    if top is None:
        return None
    whole, above = to_posix(path), to_posix(top).rstrip("/")
    if whole == above:
        return "."
    return whole[len(above) + 1 :] if whole.startswith(f"{above}/") else None


def given_files(metadata: Mapping[str, Any]) -> list[str]:
    """The files that were given for a note. Other metadata that happen to have this name are none."""
    files = metadata.get(FILES)
    if not isinstance(files, list) or not all(isinstance(path, str) and path for path in files):
        return []
    return files[: limits.MAX_NOTE_FILES]


def with_files(metadata: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    """The metadata with these files; without the name where there are none."""
    others = {name: value for name, value in metadata.items() if name != FILES}
    return {**others, FILES: list(files)} if files else others


def find_named(text: str) -> list[str]:
    """Return the paths that a text names: with a slash, or with the suffix of a source file."""
    found = (_LINE.sub("", match[1]) for match in _PATH.finditer(text))
    named = (path for path in found if ".." not in path.split("/"))
    return list(dict.fromkeys(named))[: limits.MAX_NAMED_FILES]


def changed_files(changed: Sequence[str], text: str) -> list[str]:
    """Return which of the files that a session changed before it stored a note the note is about, the last changed
    first: those that its text names, else the last ones. What every change touches is in neither unless it is named."""
    ends = {f"/{path}" for path in find_named(text)}
    if named := [path for path in changed if any(f"/{path}".endswith(end) for end in ends)]:
        return named[: limits.CHANGED_FILES]
    return [path for path in changed if not _is_touched_by_all(path)][: limits.CHANGED_FILES]


def _is_touched_by_all(path: str) -> bool:
    """A manifest, a lock file, a readme or the like."""
    name = posixpath.basename(path).lower()
    return name in _MANIFESTS or name.partition(".")[0] in _TOUCHED_BY_ALL or _LOCK_FILE.search(name) is not None


def index_files(
    connection: sqlite3.Connection, note_id: int, metadata: Mapping[str, Any], title: str, content: str
) -> None:
    """Replace the files of a note in the index. A deleted note loses them by a trigger."""
    connection.execute("DELETE FROM note_files WHERE note_id = ?", (note_id,))
    given = given_files(metadata)
    named = [path for path in find_named(f"{title}\n{content}") if path not in given]
    rows = [*((note_id, path, 1) for path in given), *((note_id, path, 0) for path in named)]
    connection.executemany("INSERT OR IGNORE INTO note_files (note_id, path, is_given) VALUES (?, ?, ?)", rows)
