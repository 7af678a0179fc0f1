"""The row of a note in the table `notes`.

A damaged file, or one that was edited by other hands, may hold any value in any column. Such a row is read as a note
with its `damage`, so that it can be listed and deleted like the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes.fields import LONG, STORED, Draft, Field, Form, check_choice
from nudge.notes.note import Note

STORED_NAMES = tuple(one.name for one in STORED)
_TIMES = ("created_at", "updated_at", "last_accessed_at", "expires_at")
NAMES = ("id", "uid", *STORED_NAMES, "access_count", *_TIMES)
COLUMNS = ", ".join(f"n.{name}" for name in NAMES)
JSON_FORMS = (Form.TAGS, Form.OBJECT)
"""Stored as JSON."""
_IF_DAMAGED = {"tier": LONG, "priority": 1, "confidence": 0.0}
"""What stands for a field that cannot be read, where it is not its default: such a note is kept, and ranks last."""

Values = Mapping[str, Any]


def values_of(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(NAMES, row, strict=True))


def read_note(row: Sequence[Any]) -> Note:
    values = values_of(row)
    try:
        return _parse(values)
    except Invalid as problem:
        return _damaged(values, problem.message)


def stored_values(draft: Draft) -> tuple[Any, ...]:
    """The values of a draft, in the order of `STORED_NAMES`."""
    return tuple(_stored(one, getattr(draft, one.name)) for one in STORED)


def _stored(one: Field, value: Any) -> Any:
    if one.form not in JSON_FORMS:
        return value
    return json.dumps(dict(value) if one.form is Form.OBJECT else value, ensure_ascii=False)


def all_fields(note: Note) -> dict[str, Any]:
    """Everything about a note, with times as numbers."""
    return {
        **note.to_json(),
        "uid": note.uid,
        **{one.name: dict(getattr(note.draft, one.name)) for one in STORED if one.form is Form.OBJECT},
        **{name: getattr(note, name) for name in _TIMES},
    }


def _parse(values: Values) -> Note:
    draft = Draft(**{name: read(values) for name, read in _READERS.items()})
    return Note(
        values["id"],
        _text(values, "uid", limits.MAX_TITLE_BYTES),
        draft,
        _whole(values, "access_count"),
        _number(values, "created_at"),
        _number(values, "updated_at"),
        _optional_number(values, "last_accessed_at"),
        _optional_number(values, "expires_at"),
    )


def _damaged(values: Values, damage: str) -> Note:
    """What can be read of the row, with defaults for the rest."""

    def readable(read: Callable[..., Any], default: Any, *arguments: Any) -> Any:
        try:
            return read(values, *arguments)
        except Invalid:
            return default

    unreadable = object()
    fields = {name: readable(read, _IF_DAMAGED.get(name, unreadable)) for name, read in _READERS.items()}
    fields = {name: value for name, value in fields.items() if value is not unreadable}
    title = f"(damaged: {damage}) {fields.get('title', '')}".rstrip()
    draft = Draft(**{"content": "", **fields, "title": title})
    return Note(
        values["id"],
        readable(_text, "", "uid", limits.MAX_TITLE_BYTES),
        draft,
        access_count=0,
        created_at=readable(_number, 0.0, "created_at"),
        updated_at=readable(_number, 0.0, "updated_at"),
        last_accessed_at=None,
        expires_at=None,
        damage=damage,
    )


# Values. The limits are those of `note`, in characters: what was stored was measured in bytes.


def _text(values: Values, name: str, most: int) -> str:
    value = values[name]
    if not isinstance(value, str):
        raise Invalid("must be text", field=name)
    if len(value) > most:
        raise Invalid(f"must be at most {most} bytes", field=name)
    return value


def _whole(values: Values, name: str) -> int:
    value = values[name]
    if not isinstance(value, int):
        raise Invalid("must be a whole number", field=name)
    return value


def _number(values: Values, name: str) -> float:
    value = values[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid("must be a number", field=name)
    return value


def _optional_number(values: Values, name: str) -> float | None:
    return None if values[name] is None else _number(values, name)


def _choice(values: Values, name: str, accepted: tuple[str, ...]) -> str:
    return check_choice(values[name], accepted, name)


def _tags(values: Values) -> tuple[str, ...]:
    tags = parse_json(values, "tags")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise Invalid("must be a list of strings", field="tags")
    return tuple(tags)


def _object(values: Values, name: str) -> dict[str, Any]:
    value = parse_json(values, name)
    if not isinstance(value, dict):
        raise Invalid("must be an object", field=name)
    return value


def parse_json(values: Values, name: str) -> Any:
    try:
        return json.loads(values[name])
    except (TypeError, ValueError, RecursionError):
        raise Invalid("must be JSON", field=name) from None


def _reader(one: Field) -> Callable[[Values], Any]:
    """Return the function that reads a field from the values of a row."""
    match one.form:
        case Form.CHOICE if one.name != "source":  # other versions may have other sources
            return partial(_choice, name=one.name, accepted=one.accepted)
        case Form.WHOLE:
            return partial(_whole, name=one.name)
        case Form.FRACTION:
            return partial(_number, name=one.name)
        case Form.TAGS:
            return _tags
        case Form.OBJECT:
            return partial(_object, name=one.name)
        case _:
            return partial(_text, name=one.name, most=one.most or limits.MAX_TITLE_BYTES)


# Chosen once: an answer reads a dozen fields of each of its notes.
_READERS = {one.name: _reader(one) for one in STORED}
