"""The README as data: its blocks, its transcripts, its links, what it says in code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.harness import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(\.\d{6}Z)?")


@dataclass(frozen=True)
class Step:
    """One command of a transcript and what is shown below it."""

    command: str
    output: str


def blocks(language: str) -> list[str]:
    return [text for name, text in _BLOCK.findall(TEXT) if name == language]


def steps(transcript: str) -> Iterator[Step]:
    """`$ ` starts a command, a backslash at its end continues it, everything else is output."""
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", "\0").partition("\n")
        yield Step(command.replace("\0", "\\\n"), comparable(output.replace("\0", "\\\n")))


def comparable(output: str) -> str:
    """Without what differs from run to run."""
    return _MOMENT.sub("MOMENT", output).rstrip()


def code() -> list[str]:
    """Everything that is set as code, in blocks and in sentences."""
    return [text for _, text in _BLOCK.findall(TEXT)] + _SPAN.findall(prose())


def prose() -> str:
    return _BLOCK.sub("", TEXT)


def links() -> list[str]:
    return [link or source for link, source in _LINK.findall(TEXT)]


def rows(header: str) -> list[list[str]]:
    """The cells below the table header that starts so."""
    lines = prose().splitlines()
    found = []
    for line in lines[lines.index(next(line for line in lines if line.startswith(header))) + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found
