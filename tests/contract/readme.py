"""The documents as data, README.md first, then the pages in docs/ by name: blocks, transcripts, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.harness import ROOT

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(\.\d{6}Z)?|\d{4}-\d\d-\d\d( \d\d:\d\d)?")


@dataclass(frozen=True)
class Step:
    """One command of a transcript and the output shown below it."""

    command: str
    output: str


@dataclass(frozen=True)
class Page:
    """One Markdown document; `path` is relative to the root of the repository."""

    path: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Page:
        return cls(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))

    def blocks(self, language: str) -> list[str]:
        return [text for name, text in _BLOCK.findall(self.text) if name == language]

    def prose(self) -> str:
        """The text without its blocks."""
        return _BLOCK.sub("", self.text)

    def code(self) -> list[str]:
        """Everything that is set as code, in blocks and in sentences."""
        return [text for _, text in _BLOCK.findall(self.text)] + _SPAN.findall(self.prose())

    def anchors(self) -> set[str]:
        """The fragments that GitHub gives the headings."""
        headings = _HEADING.findall(self.prose())
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def links(self) -> list[str]:
        """The targets of all links and pictures, as paths from the root, with their fragments."""
        return [self._from_root(link or source) for link, source in _LINK.findall(self.text)]

    def _from_root(self, target: str) -> str:
        path, hash_sign, fragment = target.partition("#")
        parts: list[str] = []
        for part in (PurePosixPath(self.path).parent / path).parts if path else (self.path,):
            if part == ".." and parts:
                parts.pop()
            else:
                parts.append(part)
        return "/".join(parts) + hash_sign + fragment

    def tables(self, header: str) -> list[list[list[str]]]:
        """The cells below each table header that starts so."""
        lines = self.prose().splitlines()
        return [_cells(lines[number + 2 :]) for number, line in enumerate(lines) if line.startswith(header)]


def _cells(lines: list[str]) -> list[list[str]]:
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


README = Page.read(ROOT / "README.md")
PAGES = [README, *(Page.read(path) for path in sorted((ROOT / "docs").glob("*.md")))]
SECURITY = Page.read(ROOT / "SECURITY.md")
PLUGIN = Page.read(ROOT / "plugin" / "plugins" / "nudge" / "README.md")
TEXT = "\n".join(page.text for page in PAGES)


def blocks(language: str) -> list[str]:
    return [text for page in PAGES for text in page.blocks(language)]


def code() -> list[str]:
    """Everything that is set as code on any page."""
    return [text for page in PAGES for text in page.code()]


def rows(header: str) -> list[list[str]]:
    """The cells of the one table, on whichever page, whose header starts so."""
    (table,) = (table for page in PAGES for table in page.tables(header))
    return table


def steps(transcript: str) -> Iterator[Step]:
    """`$ ` starts a command, a backslash at its end continues it, everything else is output."""
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", "\0").partition("\n")
        yield Step(command.replace("\0", "\\\n"), comparable(output.replace("\0", "\\\n")))


def comparable(output: str) -> str:
    """Without what differs from run to run."""
    return _MOMENT.sub("MOMENT", output).rstrip()
