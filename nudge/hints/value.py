"""The value of a hint: a string, or one of four typed objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nudge import limits
from nudge.context import OS_NAMES
from nudge.errors import Invalid, ScopeInvalid
from nudge.hints.fields import either, parse_choice, parse_list, parse_object, parse_text, printable, require
from nudge.security.absolute_paths import normalize_path

SHELLS = ("bash", "sh", "powershell", "cmd")
FORMATS = ("mustache", "handlebars", "jinja", "interpolate")

_TOO_LARGE = f"must be at most {limits.MAX_VALUE_BYTES} bytes as JSON; a hint is a fact, not a document"
_FIELDS = {
    "command": ("type", "cmd", "shell"),
    "path": ("type", "abs", "os"),
    "template": ("type", "format", "body", "defaults"),
    "json": ("type", "data"),
}


_MUTABLE = (dict, list)


def parse_value(raw: object, field: str = "value") -> Any:
    """Return the value in normal form, as a copy. Raises Invalid for one that is malformed or too large."""
    value = _text(raw, field) if isinstance(raw, str) else _typed(raw, field)
    if len(encode(value).encode()) > limits.MAX_VALUE_BYTES:
        raise Invalid(_TOO_LARGE, field=field)
    return value


encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def fresh(data: Any) -> Any:
    """Return a deep copy of a JSON value; `copy.deepcopy` takes ten times as long."""
    if isinstance(data, dict):
        return {name: fresh(item) if isinstance(item, _MUTABLE) else item for name, item in data.items()}
    return [fresh(item) if isinstance(item, _MUTABLE) else item for item in data] if isinstance(data, list) else data


def value_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every text in a value, with the name of its field."""
    if isinstance(value, str):
        yield "value", value
        return
    for name, content in value.items():
        if name not in ("type", "shell", "format", "os"):
            yield from ((f"value.{name}", text) for text in _leaves(content))


def search_text(value: Any) -> str:
    """Return the text of a value for searches."""
    if isinstance(value, str):
        return value
    text = value.get("cmd") or value.get("abs") or value.get("body")
    return text if text is not None else encode(value["data"])


def _leaves(content: Any) -> Iterator[str]:
    """Yield strings and the names of members; a member with a string as `name=value`, the form in which credentials are
    recognized."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in content:
            yield from _leaves(item)
    elif isinstance(content, dict):
        for name, item in content.items():
            yield f"{name}={item}" if isinstance(item, str) else name
            yield from _leaves(item)


def _text(raw: object, field: str) -> str:
    if isinstance(raw, str) and len(raw) > limits.MAX_VALUE_BYTES:  # at least as many bytes
        raise Invalid(_TOO_LARGE, field=field)
    return parse_text(raw, field, limits.MAX_VALUE_BYTES, least=1, lines=True)


def _typed(raw: object, field: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise Invalid(f"must be a string, or an object of type {either(tuple(_FIELDS))}", field=field)
    kind = parse_choice(require(raw, "type", field), f"{field}.type", _FIELDS)
    parse_object(raw, field, _FIELDS[kind])
    return {"type": kind, **_PARSERS[kind](raw, field)}


def _command(raw: dict[str, Any], field: str) -> dict[str, Any]:
    command = {"cmd": _text(require(raw, "cmd", field), f"{field}.cmd")}
    if "shell" in raw:
        command["shell"] = parse_choice(raw["shell"], f"{field}.shell", SHELLS)
    return command


def _path(raw: dict[str, Any], field: str) -> dict[str, Any]:
    text = parse_text(require(raw, "abs", field), f"{field}.abs", limits.MAX_PATH_CHARS, least=1)
    if ".." in (text.split("/") if text.startswith("/") else text.replace("\\", "/").split("/")):
        raise ScopeInvalid("must not contain a `..` segment", field=f"{field}.abs")
    path: dict[str, Any] = {"abs": normalize_path(text, f"{field}.abs")}
    if "os" in raw:
        path["os"] = parse_list(
            raw["os"], f"{field}.os", len(OS_NAMES), lambda name, at: parse_choice(name, at, OS_NAMES)
        )
    return path


def _template(raw: dict[str, Any], field: str) -> dict[str, Any]:
    template: dict[str, Any] = {
        "format": parse_choice(require(raw, "format", field), f"{field}.format", FORMATS),
        "body": _text(require(raw, "body", field), f"{field}.body"),
    }
    if "defaults" in raw:
        template["defaults"] = _defaults(raw["defaults"], f"{field}.defaults")
    return template


def _defaults(raw: object, field: str) -> dict[str, str]:
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


def _json(raw: dict[str, Any], field: str) -> dict[str, Any]:
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
        return self._text(raw) if isinstance(raw, str) else _scalar(raw, self._field)

    def _text(self, raw: object) -> str:
        text = parse_text(raw, self._field, limits.MAX_VALUE_BYTES, lines=True)
        self._spend(len(text))
        return text

    def _spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise Invalid(_TOO_LARGE, field=self._field)


def _scalar(raw: object, field: str) -> Any:
    if raw is None or isinstance(raw, bool):
        return raw
    if isinstance(raw, int) and abs(raw) < 10**limits.MAX_INTEGER_DIGITS:
        return raw
    if isinstance(raw, float) and abs(raw) < float("inf"):
        return raw
    raise Invalid("contains a number that JSON cannot represent", field=field)


_PARSERS = {"command": _command, "path": _path, "template": _template, "json": _json}
