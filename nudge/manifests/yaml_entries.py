"""As much YAML as manifests are written in: block mappings, lists and scalars, as flat entries with their lines.

Flow collections stay text, anchors and tags are not followed: a command that hides there gives no hint, never a wrong
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nudge import limits

_BLOCK_SCALAR = re.compile(r"[|>][0-9+-]{0,2}(?:\s+#.*)?")
_QUOTED = re.compile(r"""(?:"(?P<double>(?:[^"\\]|\\.)*+)"|'(?P<single>(?:[^']|'')*+)')""")
_ESCAPE = re.compile(r"""\\(["\\/])""")
_ANCHOR_OR_TAG = re.compile(r"[&!]\S*\s*")


@dataclass(slots=True)
class Entry:
    """`path` is the keys from the top; an item of a list is `-` and its line there, so that each is distinct."""

    path: tuple[str, ...]
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class _Level:
    indent: int
    name: str

    @property
    def is_item(self) -> bool:
        return self.name.startswith("- ")


def entries(text: str) -> list[Entry]:
    """Every key and list item, in the order of the file."""
    return list(_Reader(text).read())


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._next = 0
        self._levels: list[_Level] = []
        self._last: Entry | None = None

    def read(self) -> Iterator[Entry]:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            content = line.strip()
            if not content or content.startswith(("#", "---", "...", "%")):
                continue
            yield from self._read_line(len(line) - len(line.lstrip(" ")), content)

    def _read_line(self, indent: int, content: str) -> Iterator[Entry]:
        if self._continues(indent):
            return
        while content.startswith("- ") or content == "-":
            self._enter_item(indent)
            rest = content[1:].lstrip()
            indent, content = indent + len(content) - len(rest), rest
        key, value = _split_key(content)
        if key is not None:
            self._enter_key(indent, key)
        elif not (self._levels and self._levels[-1].is_item):
            return
        self._last = Entry(tuple(level.name for level in self._levels), "", self._next)
        self._last.value = self._block(indent, value) if _BLOCK_SCALAR.fullmatch(value) else _scalar(value)
        yield self._last

    def _continues(self, indent: int) -> bool:
        """A deeper line after `key: text` goes on with that text."""
        if self._last is None or not self._last.value or not self._levels or indent <= self._levels[-1].indent:
            return False
        self._last.value += " " + _plain(self._lines[self._next - 1].strip())
        return True

    def _enter_item(self, indent: int) -> None:
        # A list may stand as deep as the key it belongs to.
        while self._levels and self._levels[-1].indent >= indent + (not self._levels[-1].is_item):
            self._levels.pop()
        self._push(_Level(indent, f"- {self._next}"))

    def _enter_key(self, indent: int, key: str) -> None:
        while self._levels and self._levels[-1].indent >= indent:
            self._levels.pop()
        self._push(_Level(indent, key))

    def _push(self, level: _Level) -> None:
        if len(self._levels) >= limits.MAX_YAML_DEPTH:
            raise ValueError("nested too deep")
        self._levels.append(level)

    def _block(self, indent: int, style: str) -> str:
        """The lines of a `|` or `>` scalar, without their common indentation."""
        taken: list[str] = []
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            taken.append(line.strip())
            self._next += 1
        return (" " if style.startswith(">") else "\n").join(taken).strip()


def _split_key(content: str) -> tuple[str | None, str]:
    if content.startswith(("'", '"')):
        return _split_quoted_key(content)
    if content.endswith(":") and ": " not in content:
        return content[:-1].rstrip(), ""
    key, colon, value = content.partition(": ")
    return (key.rstrip(), value.strip()) if colon else (None, content)


def _split_quoted_key(content: str) -> tuple[str | None, str]:
    end = content.find(content[0], 1)
    rest = content[end + 1 :].lstrip() if end > 0 else ""
    if rest == ":" or rest.startswith(": "):
        return content[1:end], rest[1:].strip()
    return None, content


def _scalar(value: str) -> str:
    value = _ANCHOR_OR_TAG.sub("", value, count=1) if value.startswith(("&", "!")) else value
    if value[:1] not in ("'", '"'):
        return _plain(value)
    match = _QUOTED.match(value)
    if match is None:  # it goes on over several lines: no command is better than half of one
        return ""
    if match["double"] is None:
        return match["single"].replace("''", "'")
    return _ESCAPE.sub(r"\1", match["double"])


def _plain(value: str) -> str:
    return "" if value.startswith("#") else value.partition(" #")[0].rstrip()
