"""TOON (Token-Oriented Object Notation): field names once in a header, then one row for each object.

    count:3|mode:keyword
    memories[id|title|tier]:
    12|PostgreSQL config|long

In a value `\\` is written `\\\\`, `|` is `\\|`, a line feed is `\\n` and a carriage return `\\r`. Text round-trips
through `parse`. Other values do not: null and the empty text are both written as nothing; true and 1, false and 0,
numbers and their text are written alike; an array is joined with commas, also where a tag has one; an object is written
as [object].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nudge.errors import Invalid

FULL = (
    *("id", "title", "tier", "namespace", "priority", "confidence", "score", "access_count", "tags", "source"),
    *("created_at", "updated_at"),
)
COMPACT = ("id", "title", "tier", "namespace", "priority", "score", "tags")

_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {"n": "\n", "r": "\r"}
_SPECIAL = re.compile(r"[\\|\n\r]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_HEADER = re.compile(r"(\w+)\[(.*)\]:")


def dump(response: Mapping[str, Any], fields: Sequence[str] = COMPACT) -> str:
    """Return a recall, search or list response as TOON. A `results` array is written as `memories`."""
    rows = response.get("memories", response.get("results", ()))
    scalars = {
        name: value
        for name, value in response.items()
        if not isinstance(value, list | tuple | dict) and value is not None
    }
    lines = ["|".join(f"{_escape(name)}:{_value(value)}" for name, value in scalars.items())] if scalars else []
    lines.append(f"memories[{'|'.join(fields)}]:")
    lines += ["|".join(_value(row.get(name)) for name in fields) for row in rows]
    return "\n".join(lines)


def parse(text: str) -> dict[str, Any]:
    """Return what `dump` wrote: scalars and rows as text, an empty value as null."""
    lines = text.split("\n")
    response: dict[str, Any] = {}
    if not _HEADER.fullmatch(lines[0]):
        for pair in _split(lines.pop(0)):
            name, separator, value = pair.partition(":")
            if not separator:
                raise Invalid("must be name:value pairs separated by |", field="metadata line")
            response[_unescape(name)] = _unescape(value)
    header = _HEADER.fullmatch(lines.pop(0)) if lines else None
    if header is None:
        raise Invalid("must be a name and fields in brackets, as memories[id|title]:", field="header line")
    names = [_unescape(name) for name in _split(header[2])]
    response[header[1]] = [_row(names, line, number) for number, line in enumerate(lines, 1) if line]
    return response


def _row(names: Sequence[str], line: str, number: int) -> dict[str, str | None]:
    values = _split(line)
    if len(values) != len(names):
        raise Invalid(f"has {len(values)} values, the header {len(names)} fields", field=f"row {number}")
    return {name: _unescape(value) or None for name, value in zip(names, values, strict=True)}


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping):
        return "[object]"
    if isinstance(value, str):
        return _escape(value)
    if isinstance(value, Iterable):
        return _escape(",".join(str(item) for item in value))
    return str(value)


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPES.get(match[1], match[1]), text)


def _split(line: str) -> list[str]:
    """Split at the pipes that are not escaped."""
    parts, start, at = [], 0, 0
    while at < len(line):
        if line[at] == "\\":
            at += 1
        elif line[at] == "|":
            parts.append(line[start:at])
            start = at + 1
        at += 1
    return [*parts, line[start:]]
