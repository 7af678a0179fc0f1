"""TOON (Token-Oriented Object Notation): lists of notes as text that costs a model few tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TOON_FIELDS = (
    *("id", "title", "tier", "namespace", "priority", "confidence", "score", "access_count", "tags", "source"),
    *("created_at", "updated_at"),
)
COMPACT_TOON_FIELDS = ("id", "title", "tier", "namespace", "priority", "score", "tags")
_TOON_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}
_TOON_SPECIAL = re.compile(r"[\\|\n\r]")


def dump_toon(response: Mapping[str, Any], fields: Sequence[str] = COMPACT_TOON_FIELDS) -> str:
    """Return a recall, search or list response as TOON (Token-Oriented Object Notation): field names once in a header,
    then one row for each object. A `results` array is written as `memories`.

        count:3|mode:keyword
        memories[id|title|tier]:
        12|PostgreSQL config|long

    In a value `\\` is written `\\\\`, `|` is `\\|`, a line feed is `\\n` and a carriage return `\\r`. Text can be
    read back. Other values cannot: null and the empty text are both written as nothing; true and 1, false and 0,
    numbers and their text are written alike; an array is joined with commas, also where a tag has one; an object is
    written as [object].
    """
    rows = response.get("memories", response.get("results", ()))
    scalars = {
        name: value
        for name, value in response.items()
        if not isinstance(value, list | tuple | dict) and value is not None
    }
    lines = (
        ["|".join(f"{_toon_escape(name)}:{_toon_value(value)}" for name, value in scalars.items())] if scalars else []
    )
    lines.append(f"memories[{'|'.join(fields)}]:")
    lines += ["|".join(_toon_value(row.get(name)) for name in fields) for row in rows]
    return "\n".join(lines)


def _toon_value(value: Any) -> str:
    if isinstance(value, str):
        return _toon_escape(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "[object]"
    if isinstance(value, Iterable):
        return _toon_escape(",".join(map(str, value)))
    return str(value)


def _toon_escape(text: str) -> str:
    return _TOON_SPECIAL.sub(lambda match: _TOON_ESCAPES[match[0]], text)
