"""The directories of a repo, and the text of the files in them, within limits. The only module here that touches the
disk."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nudge import limits

_MADE_OR_FETCHED = (
    "node_modules",
    "bower_components",
    "vendor",
    "third_party",
    "venv",
    "target",
    "build",
    "dist",
    "__pycache__",
)
_SHOWN_OR_TESTED_WITH = ("example", "examples", "fixtures", "__fixtures__", "testdata")
_SKIPPED = frozenset((*_MADE_OR_FETCHED, *_SHOWN_OR_TESTED_WITH))
_PARSE_FAILURES = (ValueError, SyntaxError, RecursionError, MemoryError)


class Place:
    """One directory: `rel` is its path below the root (empty for the root itself)."""

    __slots__ = ("directories", "files", "rel", "tree")

    def __init__(self, tree: Tree, rel: str, files: frozenset[str], directories: frozenset[str]) -> None:
        self.tree, self.rel, self.files, self.directories = tree, rel, files, directories

    def path(self, name: str) -> str:
        return f"{self.rel}/{name}" if self.rel else name

    def text(self, name: str) -> str | None:
        """None when there is no such file, or none that can be read."""
        return self.tree.text(self.path(name)) if name in self.files else None

    def parsed(self, name: str, parse: Callable[[str], Any]) -> Any:
        """The parsed file; None when there is none, or it is broken (which is noted)."""
        return self.tree.parsed(self.path(name), parse) if name in self.files else None

    def first(self, *names: str) -> str | None:
        return next((name for name in names if name in self.files), None)

    def holds(self, relative: str) -> bool:
        """Whether a file is there, below this directory too; it is not opened."""
        return os.path.isfile(self.tree.root / self.path(relative))

    def upwards(self) -> Iterator[Place]:
        """This directory, its parent, and so on to the root."""
        parts = self.rel.split("/") if self.rel else []
        for count in range(len(parts), -1, -1):
            yield self.tree.places["/".join(parts[:count])]


class Tree:
    """Every directory that may hold a manifest, the shallow ones first; `problems` says what could not be read."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.problems: list[str] = []
        self.unread: list[str] = []  # files and directories that are there, and of which nothing is known
        self.places: dict[str, Place] = {}
        self._texts: dict[str, str | None] = {}
        self._parsed: dict[tuple[str, Callable[[str], Any]], Any] = {}
        self._walk()

    def text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._read_next(path)
        return self._texts[path]

    def parsed(self, path: str, parse: Callable[[str], Any]) -> Any:
        text = self.text(path)
        if text is None:
            return None
        if (path, parse) not in self._parsed:
            self._parsed[path, parse] = self._parse(path, parse, text)
        return self._parsed[path, parse]

    def _parse(self, path: str, parse: Callable[[str], Any], text: str) -> Any:
        try:
            return parse(text)
        except _PARSE_FAILURES as error:
            self._note(path, f"cannot be parsed ({type(error).__name__})")
            return None

    def _read_next(self, path: str) -> str | None:
        if len(self._texts) == limits.MAX_MANIFESTS:
            self.problems.append(f"more than {limits.MAX_MANIFESTS} manifests: the deeper ones were not read")
        if len(self._texts) >= limits.MAX_MANIFESTS:
            return None
        try:
            return _decode(_read(self.root / path))
        except (OSError, ValueError) as error:
            self._note(path, error.strerror or "cannot be read" if isinstance(error, OSError) else str(error))
            return None

    def _note(self, path: str, why: str) -> None:
        self.unread.append(path)
        self.problems.append(f"{printable(path)}: {why}")

    def _walk(self) -> None:
        queue = deque([""])
        while queue:
            rel = queue.popleft()
            if len(self.places) >= limits.MAX_MANIFEST_DIRECTORIES:
                self.problems.append(
                    f"more than {limits.MAX_MANIFEST_DIRECTORIES} directories: the deeper ones were skipped"
                )
                return
            place = self.places[rel] = self._list(rel)
            if _depth(rel) < limits.MAX_MANIFEST_DEPTH:
                queue.extend(place.path(name) for name in sorted(place.directories) if _is_walked(name))

    def _list(self, rel: str) -> Place:
        files, directories = set(), set()
        try:
            with os.scandir(self.root / rel) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directories.add(entry.name)
                    elif entry.is_file() and self._is_inside(entry):
                        files.add(entry.name)
        except OSError as error:
            self._note(rel or ".", error.strerror or "cannot be listed")
        return Place(self, rel, frozenset(files), frozenset(directories))

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        return not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(self.root)


def _depth(rel: str) -> int:
    return rel.count("/") + 1 if rel else 0


def _is_walked(name: str) -> bool:
    # Braces: the unfilled directory of a project template.
    return name == ".github" or not (name in _SKIPPED or name.startswith(".") or "{" in name)


def _read(path: Path) -> bytes:
    # Non-blocking: a pipe that took the file's place since it was listed must not hang the scan.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        return file.read(limits.MAX_MANIFEST_BYTES + 1)


def _decode(raw: bytes) -> str:
    if len(raw) > limits.MAX_MANIFEST_BYTES:
        raise ValueError(f"larger than {limits.MAX_MANIFEST_BYTES // limits.KIB} KiB")
    if b"\0" in raw:
        raise ValueError("not a text file")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def printable(text: str) -> str:
    """A file name is anybody's text: what would move a terminal's cursor is shown as `?`."""
    return "".join(char if char.isprintable() else "?" for char in text)


def line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def line_of(text: str, pattern: str) -> int:
    """The line where `pattern` starts (`^` is the start of any line); the first line when it is nowhere."""
    match = re.search(pattern, text, re.MULTILINE)
    return line_at(text, match.start()) if match else 1
