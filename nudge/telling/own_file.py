"""Whether a command or a sentence stands in what the client read by itself when the session started, such as CLAUDE.md:
then a start does not say it again."""

from __future__ import annotations

import re

from nudge.learning.command import CUT_OFF

_FENCED = re.compile(r"^\s*(?:```|~~~)[^\n]*\n(.*?)^\s*(?:```|~~~)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_INDENTED = re.compile(r"^(?: {4}|\t)(.+)$", re.MULTILINE)
_PROMPT = re.compile(r"^[$>%]\s+")
# A longer word is another command: `npm test` does not stand in `npm test:unit`.
_END = r"(?=$|[\s;&|)\"',`]|[.:](?:\s|$))"
_BEGIN_OF_COMMAND = r"(?:^|[;&|]\s*)"
_BEGIN_OF_WORD = r"(?<![\w./@-])"


class OwnFile:
    """The text that the client reads by itself; empty when there is none."""

    __slots__ = ("_code", "_prose")

    def __init__(self, text: str = "") -> None:
        self._prose = _plain(text)
        self._code = "\n".join(_code_lines(text))

    def has_command(self, command: str | None) -> bool:
        """Whether a command stands in it: as a piece of code or the beginning of one, or, if it has several words, in a
        sentence. `pytest` in a sentence is the name of a program."""
        plain = _plain((command or "").removesuffix(CUT_OFF))
        if not plain or not self._prose:
            return False
        escaped = re.escape(plain)
        if re.search(f"{_BEGIN_OF_COMMAND}{escaped}{_END}", self._code, re.MULTILINE):
            return True
        return " " in plain and re.search(f"{_BEGIN_OF_WORD}{escaped}{_END}", self._prose) is not None

    def has_sentence(self, sentence: str) -> bool:
        """Whether a title of several words stands in it."""
        plain = _plain(sentence).rstrip(".").casefold()
        return plain.count(" ") >= 2 and plain in self._prose.casefold()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _code_lines(text: str) -> list[str]:
    blocks = [line for block in _FENCED.findall(text) for line in block.splitlines()]
    pieces = [*blocks, *_INLINE.findall(text), *_INDENTED.findall(text)]
    return [_PROMPT.sub("", _plain(piece)) for piece in pieces]
