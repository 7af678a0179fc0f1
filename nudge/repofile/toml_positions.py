"""Where the keys and values of a TOML document stand in its text. `tomllib`, which reads the values, does not say.

The text must be valid TOML, with `\\n` for line ends: `tomllib` decides that before.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Names of tables and keys, and numbers of items: `("hint", 0, "value")`."""

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")
_STRINGS = {
    '"""': re.compile(r'"""(?:\\.|[^\\])*?"{3,5}', re.DOTALL),
    "'''": re.compile(r"'''.*?'{3,5}", re.DOTALL),
    '"': re.compile(r'"(?:\\.|[^"\\\n])*"'),
    "'": re.compile(r"'[^'\n]*'"),
}
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[ \t]*\n[ \t\n]*|.)")
_LETTERS = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


class Span(NamedTuple):
    """Where something starts and ends in the text."""

    start: int
    end: int


class Positions:
    """The places of everything in a document. `keys` has the key of each entry, `values` the value of each entry and
    item, `tables` the header of each table."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys: dict[Path, Span] = {}
        self.values: dict[Path, Span] = {}
        self.tables: dict[Path, Span] = {}
        self._arrays: dict[Path, int] = {}
        self._scan()

    def start_of(self, path: Path) -> int:
        """The place of a key, else of the table or item with this path, else of what is around it."""
        for length in range(len(path), 0, -1):
            for places in (self.keys, self.values, self.tables):
                if path[:length] in places:
                    return places[path[:length]].start
        return 0

    def value_start(self, path: Path) -> int:
        return self.values[path].start if path in self.values else self.start_of(path)

    def character(self, path: Path, index: int) -> int:
        """The place of a character of a string value: of the escape sequence, where it is written as one."""
        span = self.values.get(path)
        if span is None:
            return self.start_of(path)
        places = [place for place, _ in characters(self.text, span)]
        return places[index] if index < len(places) else span.start

    def line_and_column(self, place: int) -> tuple[int, int]:
        """Both from 1; a column is a character."""
        return self.text.count("\n", 0, place) + 1, place - self.text.rfind("\n", 0, place)

    # The scan

    def _scan(self) -> None:
        text, at = self.text, _skip(_BETWEEN, self.text, 0)
        table: Path = ()
        while at < len(text):
            if text.startswith("[[", at):
                parts, end = self._read_key(at + 2)
                table = self._new_item(parts)
                self.tables[table] = Span(at, end + 2)
                at = end + 2
            elif text[at] == "[":
                parts, end = self._read_key(at + 1)
                table = self._resolved(parts)
                self.tables[table] = Span(at, end + 1)
                at = end + 1
            else:
                at = self._read_entry(table, at)
            at = _skip(_BETWEEN, text, at)

    def _resolved(self, parts: Path) -> Path:
        """The path of a header: below an array of tables it means the last one."""
        path: Path = ()
        for part in parts:
            path = (*path, part)
            if path in self._arrays:
                path = (*path, self._arrays[path])
        return path

    def _new_item(self, parts: Path) -> Path:
        path = (*self._resolved(parts[:-1]), parts[-1])
        self._arrays[path] = self._arrays.get(path, -1) + 1
        return (*path, self._arrays[path])

    def _read_entry(self, table: Path, at: int) -> int:
        parts, end = self._read_key(at)
        path = (*table, *parts)
        self.keys[path] = Span(at, end)
        return self._read_value(path, _skip(_BLANK, self.text, end + 1))  # behind the equals sign

    def _read_key(self, at: int) -> tuple[Path, int]:
        """Return the parts of a dotted key, and the place of the bracket or equals sign behind it."""
        text, parts = self.text, list[str]()
        while True:
            at = _skip(_BLANK, text, at)
            end = _string_end(text, at) or _skip(_BARE_KEY, text, at)
            quoted = text[at] in "\"'"
            parts.append(decoded(text, Span(at, end)) if quoted else text[at:end])
            at = _skip(_BLANK, text, end)
            if text[at : at + 1] != ".":
                return tuple(parts), at
            at += 1

    def _read_value(self, path: Path, at: int) -> int:
        text = self.text
        if text[at] == "[":
            end = self._read_items(path, at)
        elif text[at] == "{":
            end = self._read_inline_table(path, at)
        else:
            end = _string_end(text, at) or at + len(_match(_SCALAR, text, at).rstrip())
        self.values[path] = Span(at, end)
        return end

    def _read_items(self, path: Path, at: int) -> int:
        at, number = _skip(_BETWEEN, self.text, at + 1), 0
        while self.text[at] != "]":
            at = _skip(_BETWEEN, self.text, self._read_value((*path, number), at))
            at = _skip(_BETWEEN, self.text, at + (self.text[at] == ","))
            number += 1
        return at + 1

    def _read_inline_table(self, path: Path, at: int) -> int:
        at = _skip(_BETWEEN, self.text, at + 1)
        while self.text[at] != "}":
            at = _skip(_BETWEEN, self.text, self._read_entry(path, at))
            at = _skip(_BETWEEN, self.text, at + (self.text[at] == ","))
        return at + 1


def _match(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = pattern.match(text, at)
    return found[0] if found else ""


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    return at + len(_match(pattern, text, at))


def _string_end(text: str, at: int) -> int:
    """The place behind the string that starts here; 0 when none does."""
    for quotes, pattern in _STRINGS.items():
        if text.startswith(quotes, at) and (found := pattern.match(text, at)):
            return found.end()
    return 0


# Strings


def decoded(text: str, span: Span) -> str:
    return "".join(char for _, char in characters(text, span))


def characters(text: str, span: Span) -> list[tuple[int, str]]:
    """The characters of a string, each with its place; nothing for a value that is no string."""
    quotes = next((marks for marks in _STRINGS if text.startswith(marks, span.start)), None)
    if quotes is None:
        return []
    at, end = span.start + len(quotes), span.end - len(quotes)
    if len(quotes) == 3 and text[at : at + 1] == "\n":
        at += 1
    if quotes[0] == "'":
        return [(place, text[place]) for place in range(at, end)]
    found = []
    while at < end:
        escape = _match(_ESCAPE, text, at)
        if not escape:
            found.append((at, text[at]))
        elif char := _unescaped(escape):
            found.append((at, char))
        at += len(escape) or 1
    return found


def _unescaped(escape: str) -> str:
    """The character that an escape sequence stands for; empty for a line end, which it takes away."""
    mark = escape[1]
    if mark in "uUx":
        return chr(int(f"0x{escape[2:]}", 0))
    return "" if mark in " \t\n" else _LETTERS.get(mark, mark)
