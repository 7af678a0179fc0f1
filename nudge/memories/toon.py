"""TOON (Token-Oriented Object Notation): field names once in a header, then one row for each object.

    count:3|mode:keyword
    memories[id|title|tier]:
    12|PostgreSQL config|long

In a value `\\` is written `\\\\`, `|` is `\\|`, a line feed is `\\n` and a carriage return `\\r`. Text can be
read back. Other values cannot: null and the empty text are both written as nothing; true and 1, false and 0, numbers
and their text are written alike; an array is joined with commas, also where a tag has one; an object is written as
[object].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FULL = (
    *("id", "title", "tier", "namespace", "priority", "confidence", "score", "access_count", "tags", "source"),
    *("created_at", "updated_at"),
)
COMPACT = ("id", "title", "tier", "namespace", "priority", "score", "tags")

_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}
_SPECIAL = re.compile(r"[\\|\n\r]")


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
