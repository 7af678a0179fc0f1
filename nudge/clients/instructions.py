"""What a client reads by itself when a session starts: the instruction files of the repo (CLAUDE.md, AGENTS.md,
GEMINI.md, the rules of Cursor). A start says nothing of what stands in them.

Hooks load this module: standard library only.
"""

from __future__ import annotations

import os
import re

from nudge.clients import registry
from nudge.core import limits, paths
from nudge.core.files import read_regular
from nudge.core.repos import read_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w./-]+)")
_RULES = ".mdc"  # of Cursor: one that does not say `alwaysApply` is read for some files only
_ALWAYS = re.compile(r"^alwaysApply:\s*true\s*$", re.MULTILINE)


def read_instructions(client: str | None, cwd: str | None) -> str:
    """The text of the instruction files that a client reads by itself in a directory, up to the top of its repo; empty
    for a client that is not known, and outside of a repo."""
    groups = registry.get(client).instructions if client in registry.names() else ()
    top = read_repo(cwd)[2] if groups and cwd is not None and os.path.isdir(cwd) else None
    if top is None or cwd is None:
        return ""
    reader = _Reader(top)
    for folder in paths.upward(cwd):
        for names in groups:
            reader.read_first(folder, names)
        if folder == top:
            break
    return "\n".join(reader.texts)


class _Reader:
    """Reads files below the top of a repo, each once, with those that they import."""

    __slots__ = ("_seen", "_top", "texts")

    def __init__(self, top: str) -> None:
        self._top, self._seen = os.path.realpath(top), set[str]()
        self.texts: list[str] = []

    def read_first(self, folder: str, names: Sequence[str]) -> None:
        """Read the first of these files that exists. A name that ends in `/*` means all rules in that directory."""
        for name in names:
            found = list(_expand(os.path.join(folder, name)))
            for path in found:
                self._read(path)
            if found:
                return

    def _read(self, path: str) -> None:
        real = os.path.realpath(path)
        is_inside = real.startswith(f"{self._top}{os.sep}")
        if not is_inside or real in self._seen or len(self._seen) >= limits.MAX_INSTRUCTION_FILES:
            return
        self._seen.add(real)
        try:
            text = read_regular(real, limits.MAX_INSTRUCTION_BYTES).decode("utf-8", "replace")
        except OSError:
            return
        if path.endswith(_RULES) and not _ALWAYS.search(text):
            return
        self.texts.append(text)
        for named in _IMPORT.findall(text):
            self._read(os.path.join(os.path.dirname(real), named))


def _expand(path: str) -> Iterator[str]:
    if not path.endswith("/*"):
        if os.path.isfile(path):
            yield path
        return
    try:
        names = sorted(os.listdir(path[:-2]))
    except OSError:
        return
    yield from (os.path.join(path[:-2], name) for name in names if name.endswith(_RULES))
