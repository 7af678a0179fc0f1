"""The row of a note in the table `notes`.

A damaged file, or one that was edited by other hands, may hold any value in any column. Such a row is read as a note
with its `damage`, so that it can be listed and deleted like the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes.note import GLOBAL, KINDS, LONG, NOTE, TIERS, Draft, Note, check_choice

_NAMES = (
    *("id", "uid", "tier", "namespace", "kind", "title", "content", "tags", "priority", "confidence", "source"),
    *("access_count", "created_at", "updated_at", "last_accessed_at", "expires_at", "metadata", "origin"),
)
COLUMNS = ", ".join(f"n.{name}" for name in _NAMES)

Values = Mapping[str, Any]


def values_of(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(_NAMES, row, strict=True))


def read_note(row: Sequence[Any]) -> Note:
    values = values_of(row)
    try:
        return _parse(values)
    except Invalid as problem:
        return _damaged(values, problem.message)


def stored_values(draft: Draft) -> tuple[Any, ...]:
    """The values of a draft, in the order of `store.insert`."""
    return (
        draft.tier,
        draft.namespace,
        draft.kind,
        draft.title,
        draft.content,
        json.dumps(draft.tags, ensure_ascii=False),
        draft.priority,
        draft.confidence,
        draft.source,
        json.dumps(dict(draft.metadata), ensure_ascii=False),
        json.dumps(dict(draft.origin), ensure_ascii=False),
    )


def all_fields(note: Note) -> dict[str, Any]:
    """Everything about a note, with times as numbers."""
    return {
        **note.to_wire(),
        "uid": note.uid,
        "metadata": dict(note.draft.metadata),
        "origin": dict(note.draft.origin),
        "created_at": note.created_at,
        "updated_at": note.updated_at,
        "last_accessed_at": note.last_accessed_at,
        "expires_at": note.expires_at,
    }


def _parse(values: Values) -> Note:
    draft = Draft(
        title=_text(values, "title", limits.MAX_TITLE_BYTES),
        content=_text(values, "content", limits.MAX_NOTE_BYTES),
        namespace=_text(values, "namespace", limits.MAX_NAMESPACE_BYTES),
        tier=check_choice(values["tier"], TIERS, "tier"),
        kind=check_choice(values["kind"], KINDS, "kind"),
        tags=_tags(values),
        priority=_whole(values, "priority"),
        confidence=_number(values, "confidence"),
        source=_text(values, "source", limits.MAX_TITLE_BYTES),
        metadata=_object(values, "metadata"),
        origin=_object(values, "origin"),
    )
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

    tier, kind = values["tier"], values["kind"]
    draft = Draft(
        title=f"(damaged: {damage}) {readable(_text, '', 'title', limits.MAX_TITLE_BYTES)}".rstrip(),
        content=readable(_text, "", "content", limits.MAX_NOTE_BYTES),
        namespace=readable(_text, GLOBAL, "namespace", limits.MAX_NAMESPACE_BYTES),
        tier=tier if tier in TIERS else LONG,
        kind=kind if kind in KINDS else NOTE,
        tags=readable(_tags, ()),
        priority=readable(_whole, 1, "priority"),
        confidence=readable(_number, 0.0, "confidence"),
    )
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
