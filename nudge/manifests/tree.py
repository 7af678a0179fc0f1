"""The directories of a repo and the text of their files, read within limits. Only this module reads the disk."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nudge.core import limits
from nudge.core.text import mask

_GENERATED = (
    *("node_modules", "bower_components", "vendor", "third_party", "venv"),
    *("target", "build", "dist", "__pycache__"),
)
# Packages below these show or test something: nobody works on them for their own sake.
_SAMPLES = (
    *("example", "examples", "sample", "samples", "demo", "demos", "playground", "playgrounds"),
    *("fixture", "fixtures", "__fixtures__", "testdata", "test", "tests", "__tests__", "e2e"),
    *("template", "templates", "boilerplate", "benchmark", "benchmarks", "benches"),
)
_SAMPLE_PREFIXES = ("template-", "example-", "examples-", "playground-")
_SKIPPED = frozenset((*_GENERATED, *_SAMPLES))

Clock = Callable[[], float]


class Directory:
    """One directory of the repo. `rel` is its path below the root, empty for the root itself."""

    __slots__ = ("files", "rel", "subdirectories", "tree")

    def __init__(self, tree: Tree, rel: str, files: frozenset[str], subdirectories: frozenset[str]) -> None:
        self.tree, self.rel, self.files, self.subdirectories = tree, rel, files, subdirectories

    def path(self, name: str) -> str:
        """Return the path of `name` from the root."""
        return f"{self.rel}/{name}" if self.rel else name

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None when it is missing or unreadable (which is then a problem of the scan)."""
        return self.tree.read(self.path(name)) if name in self.files else None

    def parse(self, name: str, parser: Callable[[str], Any]) -> Any:
        """Return the parsed file, or None when it is missing or malformed (which is then a problem of the scan)."""
        return self.tree.parse(self.path(name), parser) if name in self.files else None

    def first_file(self, *names: str) -> str | None:
        """Return the first of `names` that is a file here."""
        return next((name for name in names if name in self.files), None)

    def has_file(self, relative: str) -> bool:
        """Whether a file exists at a path below this directory. It is not opened."""
        return os.path.isfile(self.tree.root / self.path(relative))

    def is_executable(self, name: str) -> bool:
        """Whether a file of this directory may be run as a program."""
        return os.access(self.tree.root / self.path(name), os.X_OK)

    def with_parents(self) -> Iterator[Directory]:
        """Yield this directory, its parent, and so on up to the root."""
        parts = self.rel.split("/") if self.rel else []
        for count in range(len(parts), -1, -1):
            yield self.tree.directories["/".join(parts[:count])]

    def below(self, ancestor: Directory) -> str:
        """Return this directory's path below `ancestor`, which is one of `with_parents()`."""
        return self.rel[len(ancestor.rel) :].lstrip("/")


class Tree:
    """Every directory that may hold a manifest, shallow ones first.

    `problems` has a line for each path that could not be read and each limit that was reached; `unread` has the paths
    of those files and directories.
    """

    def __init__(self, root: Path, clock: Clock = time.monotonic, depth: int = limits.MAX_MANIFEST_DEPTH) -> None:
        self.root = Path(os.path.realpath(root))
        self.problems: list[str] = []
        self.unread: list[str] = []
        self.directories: dict[str, Directory] = {}
        self._clock, self._deadline = clock, clock() + limits.MAX_SCAN_SECONDS
        self._entries, self._depth = 0, depth
        self._texts: dict[str, str | None] = {}
        self._parsed: dict[tuple[str, Callable[[str], Any]], Any] = {}
        self._walk()

    def read(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._read_within_limits(path)
        return self._texts[path]

    def parse(self, path: str, parser: Callable[[str], Any]) -> Any:
        text = self.read(path)
        if text is None:
            return None
        if (path, parser) not in self._parsed:
            self._parsed[path, parser] = self._parse(path, parser, text)
        return self._parsed[path, parser]

    def _parse(self, path: str, parser: Callable[[str], Any], text: str) -> Any:
        try:
            return parser(text)
        except (ValueError, SyntaxError) as error:
            self._add_problem(path, f"cannot be parsed ({str(error)[: limits.MAX_MANIFEST_ERROR_CHARS]})")
        except (RecursionError, MemoryError):
            self._add_problem(path, "cannot be parsed (nested too deep)")
        return None

    def _read_within_limits(self, path: str) -> str | None:
        if limit := self._limit_reached((len(self._texts), limits.MAX_MANIFESTS, "manifests")):
            self._skip([path], f"{limit}: the deeper ones were not read")
            return None
        try:
            return _decode(_read_bytes(self.root / path))
        except OSError as error:
            self._add_problem(path, error.strerror or "cannot be read")
        except ValueError as error:
            self._add_problem(path, str(error))
        return None

    def _limit_reached(self, *counts: tuple[int, int, str]) -> str | None:
        for count, most, what in counts:
            if count >= most:
                return f"more than {most} {what}"
        return f"stopped after {limits.MAX_SCAN_SECONDS} s" if self._clock() >= self._deadline else None

    def _walk_limit_reached(self) -> str | None:
        return self._limit_reached(
            (len(self.directories), limits.MAX_MANIFEST_DIRECTORIES, "directories"),
            (self._entries, limits.MAX_SCAN_ENTRIES, "files"),
        )

    def _skip(self, paths: list[str], problem: str) -> None:
        self.unread += paths
        if problem not in self.problems:
            self.problems.append(problem)

    def _add_problem(self, path: str, problem: str) -> None:
        self.unread.append(path)
        self.problems.append(mask(f"{path}: {problem}"))  # file names and parser messages are untrusted

    def _walk(self) -> None:
        queue = deque([""])
        while queue:
            if limit := self._walk_limit_reached():
                self._skip([rel or "." for rel in queue], f"{limit}: the deeper ones were skipped")
                return
            rel = queue.popleft()
            directory = self.directories[rel] = self._list(rel)
            if rel.count("/") + bool(rel) < self._depth:
                queue.extend(directory.path(name) for name in sorted(directory.subdirectories) if _is_walked(name))

    def _list(self, rel: str) -> Directory:
        files, subdirectories = set(), set()
        try:
            with os.scandir(self.root / rel) as entries:
                for entry in entries:
                    if limit := self._walk_limit_reached():
                        self._skip([rel or "."], f"{limit}: the deeper ones were skipped")
                        break
                    self._entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        subdirectories.add(entry.name)
                    elif entry.is_file() and self._is_inside(entry):
                        files.add(entry.name)
        except OSError as error:
            self._add_problem(rel or ".", error.strerror or "cannot be listed")
        return Directory(self, rel, frozenset(files), frozenset(subdirectories))

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        return not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(self.root)


def _is_walked(name: str) -> bool:
    # Braces: the unfilled directory of a project template.
    is_left_out = name in _SKIPPED or name.startswith((".", *_SAMPLE_PREFIXES)) or "{" in name
    return name == ".github" or not is_left_out


def _read_bytes(path: Path) -> bytes:
    # Non-blocking: a pipe that replaced the file since it was listed must not hang the scan.
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
