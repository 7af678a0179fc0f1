"""Parsers for the fields of a hint. The largest field is the value: a string, or one of four typed objects.

Each parser raises Invalid with the field's name, and never repeats what was given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from nudge.core import limits
from nudge.core.context import OS_NAMES
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.core.text import has_control, mask
from nudge.security.absolute_paths import normalize_path

Item = TypeVar("Item")

SHELLS = ("bash", "sh", "powershell", "cmd")
FORMATS = ("mustache", "handlebars", "jinja", "interpolate")

_TOO_LARGE = f"must be at most {limits.MAX_VALUE_BYTES} bytes as JSON; a hint is a fact, not a document"
_VALUE_FIELDS = {
    "command": ("type", "cmd", "shell"),
    "path": ("type", "abs", "os"),
    "template": ("type", "format", "body", "defaults"),
    "json": ("type", "data"),
}
_MUTABLE = (dict, list)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Any field


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


def parse_timestamp(raw: object, path: str) -> float:
    """Parse ISO-8601 with `Z` or an offset, without either as UTC; return Unix seconds."""
    text = parse_text(raw, path, limits.MAX_TAG_CHARS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid("must be a time such as 2026-11-16T08:30:00Z", field=path) from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    if not timedelta(0) <= seconds < timedelta(seconds=limits.MAX_TIMESTAMP):
        raise Invalid("must be between 1970 and 2200", field=path)
    return seconds // timedelta(microseconds=1) / 1_000_000


def parse_fraction(raw: object, field: str) -> float:
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not 0 <= raw <= 1:
        raise Invalid("must be a number from 0 to 1", field=field)
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


# The value


def parse_value(raw: object, field: str = "value") -> Any:
    """Return the value in normal form, as a copy. Raises Invalid for one that is malformed or too large."""
    value = _parse_value_text(raw, field) if isinstance(raw, str) else _parse_typed(raw, field)
    if len(encode(value).encode()) > limits.MAX_VALUE_BYTES:
        raise Invalid(_TOO_LARGE, field=field)
    return value


encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def copy_json(data: Any) -> Any:
    """Return a deep copy of a JSON value; `copy.deepcopy` takes ten times as long."""
    if isinstance(data, dict):
        return {name: copy_json(item) if isinstance(item, _MUTABLE) else item for name, item in data.items()}
    if isinstance(data, list):
        return [copy_json(item) if isinstance(item, _MUTABLE) else item for item in data]
    return data


def value_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every text in a value, with the name of its field."""
    if isinstance(value, str):
        yield "value", value
        return
    for name, content in value.items():
        if name not in ("type", "shell", "format", "os"):
            yield from ((f"value.{name}", text) for text in _texts_below(content))


def search_text(value: Any) -> str:
    """Return the text of a value for searches."""
    if isinstance(value, str):
        return value
    text = value.get("cmd") or value.get("abs") or value.get("body")
    return text if text is not None else encode(value["data"])


def _texts_below(content: Any) -> Iterator[str]:
    """Yield strings and the names of members; a member with a string as `name=value`, the form in which credentials are
    recognized."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in content:
            yield from _texts_below(item)
    elif isinstance(content, dict):
        for name, item in content.items():
            yield f"{name}={item}" if isinstance(item, str) else name
            yield from _texts_below(item)


def _parse_value_text(raw: object, field: str) -> str:
    if isinstance(raw, str) and len(raw) > limits.MAX_VALUE_BYTES:  # at least as many bytes
        raise Invalid(_TOO_LARGE, field=field)
    return parse_text(raw, field, limits.MAX_VALUE_BYTES, least=1, lines=True)


def _parse_typed(raw: object, field: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise Invalid(f"must be a string, or an object of type {either(tuple(_VALUE_FIELDS))}", field=field)
    kind = parse_choice(require(raw, "type", field), f"{field}.type", _VALUE_FIELDS)
    parse_object(raw, field, _VALUE_FIELDS[kind])
    return {"type": kind, **_VALUE_PARSERS[kind](raw, field)}


def _parse_command(raw: dict[str, Any], field: str) -> dict[str, Any]:
    command = {"cmd": _parse_value_text(require(raw, "cmd", field), f"{field}.cmd")}
    if "shell" in raw:
        command["shell"] = parse_choice(raw["shell"], f"{field}.shell", SHELLS)
    return command


def _parse_path(raw: dict[str, Any], field: str) -> dict[str, Any]:
    text = parse_text(require(raw, "abs", field), f"{field}.abs", limits.MAX_PATH_CHARS, least=1)
    if ".." in (text.split("/") if text.startswith("/") else text.replace("\\", "/").split("/")):
        raise ScopeInvalid("must not contain a `..` segment", field=f"{field}.abs")
    path: dict[str, Any] = {"abs": normalize_path(text, f"{field}.abs")}
    if "os" in raw:
        path["os"] = parse_list(
            raw["os"], f"{field}.os", len(OS_NAMES), lambda name, at: parse_choice(name, at, OS_NAMES)
        )
    return path


def _parse_template(raw: dict[str, Any], field: str) -> dict[str, Any]:
    template: dict[str, Any] = {
        "format": parse_choice(require(raw, "format", field), f"{field}.format", FORMATS),
        "body": _parse_value_text(require(raw, "body", field), f"{field}.body"),
    }
    if "defaults" in raw:
        template["defaults"] = _parse_defaults(raw["defaults"], f"{field}.defaults")
    return template


def _parse_defaults(raw: object, field: str) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise Invalid("must be an object of names and strings", field=field)
    if len(raw) > limits.MAX_TEMPLATE_DEFAULTS:
        raise Invalid(f"must have at most {limits.MAX_TEMPLATE_DEFAULTS} names", field=field)
    return {
        parse_text(name, f"{field}.{printable(name)}", limits.MAX_NAME_CHARS, least=1): parse_text(
            text, f"{field}.{printable(name)}", limits.MAX_VALUE_BYTES, lines=True
        )
        for name, text in raw.items()
    }


def _parse_json(raw: dict[str, Any], field: str) -> dict[str, Any]:
    return {"data": _DataReader(f"{field}.data").read(require(raw, "data", field), limits.MAX_JSON_DEPTH)}


class _DataReader:
    """Reads any JSON, and stops as soon as it is too large, so that an untrusted megabyte is not read to its end."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._bytes_left = limits.MAX_VALUE_BYTES

    def read(self, raw: object, depth: int) -> Any:
        if depth == 0:
            raise Invalid(f"must not nest deeper than {limits.MAX_JSON_DEPTH}", field=self._field)
        self._spend(1)
        if isinstance(raw, dict):
            return {self._text(name): self.read(item, depth - 1) for name, item in raw.items()}
        if isinstance(raw, list):
            return [self.read(item, depth - 1) for item in raw]
        return self._text(raw) if isinstance(raw, str) else _parse_scalar(raw, self._field)

    def _text(self, raw: object) -> str:
        text = parse_text(raw, self._field, limits.MAX_VALUE_BYTES, lines=True)
        self._spend(len(text))
        return text

    def _spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise Invalid(_TOO_LARGE, field=self._field)


def _parse_scalar(raw: object, field: str) -> Any:
    if raw is None or isinstance(raw, bool):
        return raw
    if isinstance(raw, int) and abs(raw) < 10**limits.MAX_INTEGER_DIGITS:
        return raw
    if isinstance(raw, float) and abs(raw) < float("inf"):
        return raw
    raise Invalid("contains a number that JSON cannot represent", field=field)


_VALUE_PARSERS = {"command": _parse_command, "path": _parse_path, "template": _parse_template, "json": _parse_json}
