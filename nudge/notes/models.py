"""Parameters and results of the operations on notes. Agents read the schemas in every session: limits in bytes, and
choices that an agent seldom makes, are left out of them and checked by `nudge.notes.fields`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import getitem
from typing import Annotated, Any, Literal, Optional, TypeVar, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from nudge.core import limits
from nudge.core.call import UNLISTED, InContext, Params, Result, UnlistedContext
from nudge.core.context import Context
from nudge.core.errors import Invalid
from nudge.notes.fields import FIELDS, Form
from nudge.notes.fields import Field as NoteField
from nudge.notes.note import parse_id
from nudge.notes.toon import COMPACT_TOON_FIELDS, TOON_FIELDS, dump_toon

# Notes


def _note_id(value: object) -> int:
    try:
        return parse_id(value)
    except Invalid as error:
        raise PydanticCustomError("note_id", "must be a note's number, such as 12 or m12") from error


def _any_note_id(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else _note_id(value)


_NUMBER = re.compile(r"m?(-?[0-9]{1,18})")
_ID_SCHEMA = WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})
NoteId = Annotated[int, BeforeValidator(_note_id), _ID_SCHEMA]
AnyNoteId = Annotated[int, BeforeValidator(_any_note_id), _ID_SCHEMA]
"""Also a number that no note has, such as 0: one of several ids that is not found."""
Tier = Literal["short", "mid", "long"]
Relation = Literal["related_to", "supersedes", "contradicts", "derived_from"]
Format = Literal["json", "toon", "toon_compact"]
"""Of the text block in an MCP answer."""
Priority = Annotated[int, Field(ge=limits.MIN_PRIORITY, le=limits.MAX_PRIORITY)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=limits.MAX_NOTES_LISTED)]
Offset = Annotated[int, Field(ge=0, le=limits.MAX_SEARCH_OFFSET)]
M = TypeVar("M", bound=Params)


def _model_type(one: NoteField, about: str) -> Any:
    """The type of a field in the models. The rest of its rules is left to the check of the field, and so are bounds
    that its description names."""
    match one.form:
        case Form.CHOICE if one.offered and not one.is_unlisted:
            return getitem(Literal, one.offered)
        case Form.WHOLE:
            return Annotated[int, Field(ge=limits.MIN_PRIORITY, le=one.most)]
        case Form.FRACTION:
            return float if about else Confidence
        case Form.PARTS:
            return Annotated[Any, WithJsonSchema(_parts_schema(one, about))]
        case _:
            return _TYPES.get(one.form, str)


def _parts_schema(one: NoteField, about: str) -> dict[str, Any]:
    """Of a text or an object, whose parts are left out where the description names them."""
    parts = {part.name: {"type": "string", **({"enum": part.offered} if part.offered else {})} for part in one.parts}
    return {"anyOf": [{"type": "string"}, {"type": "object", **({} if about else {"properties": parts})}]}


_TYPES: dict[Form, Any] = {
    Form.TAGS: list[str],
    Form.PATHS: list[str],
    Form.SECONDS: int,
    Form.OBJECT: dict[str, Any],
}


def _new_field(one: NoteField) -> tuple[Any, Any]:
    extra: Any = {UNLISTED: True} if one.is_unlisted else None
    about = one.about or None
    if one.is_required:
        return _model_type(one, one.about), Field(description=about)
    return Optional[_model_type(one, one.about)], Field(None, description=about, json_schema_extra=extra)  # noqa: UP045


def _changed_field(one: NoteField) -> tuple[Any, Any]:
    described: Any = Annotated[_model_type(one, one.about_change), Field(description=one.about_change or None)]
    return Optional[described], None  # noqa: UP045


def with_fields(table: Sequence[NoteField], *, is_new: bool) -> Callable[[type[M]], type[M]]:
    """Add the fields of a table to a model: of something new, else of changes, which may be any of them."""

    def decorate(model: type[M]) -> type[M]:
        taken = (one for one in table if is_new or one.is_changeable)
        fields: Any = {one.name: _new_field(one) if is_new else _changed_field(one) for one in taken}
        made: Any = create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
        )
        return cast(type[M], made)

    return decorate


@with_fields(FIELDS, is_new=True)
class StoreMemory(InContext):
    pass


class Filters(Params):
    namespace: Annotated[str | None, Field(description="default: all")] = None
    tier: Tier | None = None
    kind: str | None = None
    tags: Annotated[list[str] | None, Field(description="any of these")] = None
    since: str | None = None
    until: str | None = None
    min_priority: Priority | None = None


class Recall(Filters):
    context: Annotated[str, Field(description="in any words")]
    # The place of the caller, which other operations call `context`.
    where: Annotated[dict[str, Any] | None, Field(description="your context")] = None
    limit: Limit = limits.DEFAULT_RECALL_LIMIT
    budget_tokens: Annotated[int | None, Field(ge=1)] = None
    touch: Annotated[bool, Field(json_schema_extra={UNLISTED: True})] = True
    format: Format = "toon_compact"

    def place(self) -> Context:
        return Context.parse(self.where, "where")


class SearchMemories(Filters, InContext):
    query: Annotated[str, Field(description="all of these words")]
    limit: Limit = limits.DEFAULT_SEARCH_LIMIT
    format: Format = "toon_compact"


class ListMemories(Filters, InContext):
    limit: Limit = limits.DEFAULT_SEARCH_LIMIT
    offset: Offset = 0
    format: Format = "toon_compact"


class OneMemory(InContext):
    context: UnlistedContext = None
    id: NoteId


class DeleteMemory(OneMemory):
    undoable: Annotated[bool, Field(description="for a minute, it can be restored from the archive")] = False


class NoMemoryParams(InContext):
    pass


class GetMemory(OneMemory):
    namespace: str | None = None  # of the note: a caller outside of a private project must name it
    archived: Annotated[bool, Field(description="one that is in the archive", json_schema_extra={UNLISTED: True})] = (
        False
    )


@with_fields(FIELDS, is_new=False)
class UpdateMemory(OneMemory):
    """Only what is given changes; nothing given is no error."""


class Link(InContext):
    source_id: NoteId
    target_id: NoteId
    relation: Relation = "related_to"


class DeleteLink(InContext):
    source_id: NoteId
    target_id: NoteId
    relation: Annotated[Relation | None, Field(description="default: every link from one to the other")] = None


class Resolve(InContext):
    winner_id: NoteId
    loser_id: NoteId


class Bulk(InContext):
    memories: Annotated[list[dict[str, Any]], Field(max_length=limits.MAX_BULK_NOTES)]


class StoreMemoryResult(Result):
    """`previous` is the note that was there under the same title. Also `files`, those that the session changed shortly
    before, which the note is taken to be about."""

    id: int
    tier: str
    namespace: str
    kind: str
    title: str
    expires_at: str | None = None
    potential_contradictions: list[int]
    previous: dict[str, Any] | None = None


class ListMemoriesResult(Result):
    """Where nothing is found, also `archived`: how many archived notes match, and `show_archived`, the command that
    lists them."""

    memories: list[dict[str, Any]]
    count: int
    more: bool | None = None


class RecallResult(ListMemoriesResult):
    """Also `expanded_terms`: words that the language model added."""

    mode: str
    tokens: int | None = None


class SearchMemoriesResult(Result):
    results: list[dict[str, Any]]
    count: int
    query: str
    more: bool | None = None


class GetMemoryResult(Result):
    memory: dict[str, Any]
    links: list[dict[str, Any]]


class MemoryResult(Result):
    memory: dict[str, Any]


class DeleteMemoryResult(Result):
    deleted: bool
    id: int


class PromoteResult(Result):
    promoted: bool
    id: int


class LinkResult(Result):
    linked: bool
    new: bool


class DeleteLinkResult(Result):
    deleted: int


class GetLinksResult(Result):
    links: list[dict[str, Any]]


class ResolveResult(Result):
    resolved: bool
    winner_id: int
    loser_id: int


class BulkResult(Result):
    created: int
    updated: int
    ids: list[int]
    errors: list[dict[str, Any]]


def as_text(arguments: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    """The text block of a list of notes, as the caller's `format` says; None for JSON."""
    chosen = arguments.get("format", "toon_compact")
    return None if chosen == "json" else dump_toon(result, TOON_FIELDS if chosen == "toon" else COMPACT_TOON_FIELDS)
