"""The reverse of `nudge.notes.note.dump_toon`."""

from __future__ import annotations

import re
from typing import Any

_UNESCAPES = {"n": "\n", "r": "\r"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_HEADER = re.compile(r"(\w+)\[(.*)\]:")


def parse(text: str) -> dict[str, Any]:
    """Return what `dump_toon` wrote: scalars and rows as text, an empty value as null."""
    lines = text.split("\n")
    response: dict[str, Any] = {}
    if not _HEADER.fullmatch(lines[0]):
        for pair in _split(lines.pop(0)):
            name, _, value = pair.partition(":")
            response[_unescape(name)] = _unescape(value)
    header = _HEADER.fullmatch(lines.pop(0))
    assert header is not None
    names = [_unescape(name) for name in _split(header[2])]
    rows = [[_unescape(value) or None for value in _split(line)] for line in lines if line]
    response[header[1]] = [dict(zip(names, values, strict=True)) for values in rows]
    return response


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
