"""Adding one table to a TOML text, last and between two marks, and removing it again.

The marks are for people. What counts is the table: Codex rewrites the file and drops one mark, or puts a table of its
own between them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from nudge.clients.text_edit import EditBuffer, Malformed

OPENING, CLOSING = "# >>> nudge", "# <<< nudge"

_LINE_OF_ERROR = re.compile(r"\(at line (\d+)")
_HEADER = re.compile(r"[ \t]*\[")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise Malformed("nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        line = _LINE_OF_ERROR.search(str(error))
        raise Malformed(str(error).partition(" (at ")[0].lower(), int(line[1]) if line else None) from None


def table(document: dict[str, Any], parent: str, name: str) -> dict[str, Any] | None:
    tables = document.get(parent)
    entry = tables.get(name) if isinstance(tables, dict) else None
    return entry if isinstance(entry, dict) else None


def add(buffer: EditBuffer, parent: str, name: str, lines: list[str]) -> None:
    """Append the table as a block of its own; `Malformed` when `parent` is written so that no table can follow."""
    text = buffer.text
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = "" if not text else newline if text.endswith("\n") else newline * 2
    buffer.insert(len(text), lead + newline.join([OPENING, f"[{parent}.{name}]", *lines, CLOSING]) + newline)
    if not _reads_as_table(buffer.text, parent, name):
        raise Malformed(f"{parent} cannot be extended with [{parent}.{name}]; write its entries as tables")


def _reads_as_table(text: str, parent: str, name: str) -> bool:
    try:
        return table(parse(text), parent, name) is not None
    except Malformed:
        return False


def remove(text: str, parent: str, name: str) -> str:
    """The text without the table, its subtables and the marks; `Malformed` when it is not written as a table."""
    before = parse(text)
    lines = _LINE.findall(text)
    ours = set(_ours(lines, parent, name))
    kept = "".join(line for number, line in enumerate(lines) if number not in ours)
    if (
        _without(parse(kept), parent, name) != _without(before, parent, name)
        or table(parse(kept), parent, name) is not None
    ):
        raise Malformed(f"{parent}.{name} is not written as a table; remove it by hand")
    return kept


def _ours(lines: list[str], parent: str, name: str) -> Iterator[int]:
    """Numbers of the lines to remove."""
    header = re.compile(rf"[ \t]*\[[ \t]*{_key(parent)}[ \t]*\.[ \t]*{_key(name)}[ \t]*[\].]")
    for begin, line in enumerate(lines):
        if header.match(line) and _begins_statement(lines, begin):
            yield from range(begin, _last_of_table(lines, begin, _end_of_table(lines, begin)) + 1)
    marks = [
        number
        for number, line in enumerate(lines)
        if line.strip() in (OPENING, CLOSING) and _begins_statement(lines, number)
    ]
    yield from marks
    if marks and marks[0] and lines[marks[0]].strip() == OPENING and not lines[marks[0] - 1].strip():
        yield marks[0] - 1


def _begins_statement(lines: list[str], number: int) -> bool:
    """False inside a string or an array of several lines, which may hold whatever looks like a header or a comment."""
    try:
        parse("".join(lines[:number]))
    except Malformed:
        return False
    return True


def _end_of_table(lines: list[str], begin: int) -> int:
    """The number of the next header's line, or of the end."""
    headers = (number for number in range(begin + 1, len(lines)) if _HEADER.match(lines[number]))
    return next((number for number in headers if _begins_statement(lines, number)), len(lines))


def _key(name: str) -> str:
    return rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"


def _last_of_table(lines: list[str], begin: int, end: int) -> int:
    """Comments and empty lines at its end belong to what follows."""
    return max(
        (number for number in range(begin, end) if (line := lines[number].strip()) and not line.startswith("#")),
        default=begin,
    )


def _without(document: dict[str, Any], parent: str, name: str) -> dict[str, Any]:
    """The document without the table, and without a parent that existed only through it."""
    tables = document.get(parent)
    if not isinstance(tables, dict):
        return document
    rest = {key: value for key, value in tables.items() if key != name}
    others = {key: value for key, value in document.items() if key != parent}
    return {**others, parent: rest} if rest else others


def render_entries(entries: Mapping[str, Any]) -> list[str]:
    """Return a TOML line for each string or list of strings. JSON writes them the same way, except for DEL, which TOML
    wants escaped."""
    return [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f") for key, value in entries.items()
    ]
