"""Parsers for the fields of a hint. Each raises Invalid with the field's name, and never repeats the value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from nudge import limits
from nudge.errors import Invalid
from nudge.text import has_control, mask

Item = TypeVar("Item")


def parse_text(raw: object, field: str, most: int, *, least: int = 0, lines: bool = False) -> str:
    """Return a string without control characters or broken Unicode; `lines` allows newline and tab."""
    if not isinstance(raw, str):
        raise Invalid("must be a string", field=field)
    if len(raw) < least:
        raise Invalid("must not be empty", field=field)
    if len(raw) > most:
        raise Invalid(f"must be at most {most} characters", field=field)
    if has_control(raw, allowed="\n\t" if lines else ""):
        raise Invalid("must not contain control characters or broken Unicode", field=field)
    return raw


def parse_name(raw: object, field: str) -> str:
    """Parse the name of a component or a key."""
    # The common case first, for speed: printable text has no control characters and no whitespace but " ".
    if isinstance(raw, str) and 0 < len(raw) <= limits.MAX_NAME_CHARS and raw.isprintable() and " " not in raw:
        return raw
    name = parse_text(raw, field, limits.MAX_NAME_CHARS, least=1)
    if name != name.strip():
        raise Invalid("must not start or end with a space", field=field)
    return name


def parse_choice(raw: object, field: str, choices: Collection[str]) -> str:
    if not isinstance(raw, str) or raw not in choices:
        raise Invalid(f"must be {either(choices)}", field=field)
    return raw


def parse_whole(raw: object, field: str, low: int, high: int) -> int:
    """Parse a whole number. `true` and `false`, which are integers in Python, are refused."""
    if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
        raise Invalid(f"must be a whole number from {low} to {high}", field=field)
    return raw


def parse_number(raw: object, field: str, low: float, high: float) -> float:
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not low <= raw <= high:
        raise Invalid(f"must be a number from {low} to {high}", field=field)
    return raw


def parse_list(raw: object, field: str, most: int, parse: Callable[[object, str], Item]) -> list[Item]:
    """Parse each item under its own path; drop duplicates, keep the order."""
    if not isinstance(raw, list):
        raise Invalid("must be a list", field=field)
    if len(raw) > most:
        raise Invalid(f"must have at most {most} items", field=field)
    return list(dict.fromkeys(parse(item, f"{field}[{index}]") for index, item in enumerate(raw)))


def parse_object(raw: object, field: str, names: Collection[str]) -> Mapping[str, Any]:
    """Parse an object. Unknown fields are refused, so that a misspelled one is not silently lost."""
    if not isinstance(raw, dict):
        raise Invalid("must be an object", field=field)
    for name in raw:
        if name not in names:
            raise Invalid(f"is not a known field; known: {', '.join(names)}", field=f"{field}.{printable(name)}")
    return raw


def require(fields: Mapping[str, Any], name: str, field: str) -> Any:
    if name not in fields:
        raise Invalid("is missing", field=f"{field}.{name}")
    return fields[name]


def printable(name: object) -> str:
    """Return an untrusted name in a form that is safe in an error message."""
    return mask(str(name)[: limits.MAX_TAG_CHARS])


def either(names: Collection[str]) -> str:
    """Join names as `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
