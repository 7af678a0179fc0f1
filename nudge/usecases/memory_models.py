"""Parameters and results of the operations on notes. Agents read the schemas in every session: limits in bytes, and
choices that an agent seldom makes, are left out of them and checked by `nudge.memories.note`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from nudge import limits
from nudge.errors import Invalid
from nudge.memories.note import parse_id
from nudge.usecases.params import InContext, Params, Result


def _note_id(value: object) -> int:
    try:
        return parse_id(value)
    except Invalid as error:
        raise PydanticCustomError("note_id", "must be a note's number, such as 12 or m12") from error


NoteId = Annotated[
    int,
    BeforeValidator(_note_id),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
]
Tier = Literal["short", "mid", "long"]
Kind = Literal[
    "note",
    "decision",
    "bugfix",
    "feature",
    "refactor",
    "discovery",
    "change",
    "lesson",
    "session_summary",
]
Relation = Literal["related_to", "supersedes", "contradicts", "derived_from"]
Format = Literal["json", "toon", "toon_compact"]
"""Of the text block in an MCP answer."""
Priority = Annotated[int, Field(ge=limits.MIN_PRIORITY, le=limits.MAX_PRIORITY)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=limits.MAX_NOTES_LISTED)]
Offset = Annotated[int, Field(ge=0, le=limits.MAX_SEARCH_OFFSET)]
Time = Annotated[str, Field(description="RFC 3339")]


class StoreMemory(InContext):
    title: Annotated[str, Field(description="the same title updates")]
    content: str
    kind: Kind = "note"
    tier: Annotated[Tier, Field(description="6 hours, 7 days, permanent")] = "mid"
    tags: list[str] | None = None
    priority: Priority = limits.DEFAULT_PRIORITY
    confidence: Confidence = 1.0
    namespace: Annotated[str | None, Field(description="default: your repo")] = None
    source: str | None = None
    expires_at: Time | None = None
    ttl_secs: int | None = None
    metadata: dict[str, Any] | None = None


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
    limit: Limit = limits.DEFAULT_RECALL_LIMIT
    budget_tokens: Annotated[int | None, Field(ge=1)] = None
    touch: bool = True
    format: Format = "toon_compact"


class SearchMemories(Filters):
    query: Annotated[str, Field(validation_alias=AliasChoices("query", "q"), description="all of these words")]
    limit: Limit = limits.DEFAULT_SEARCH_LIMIT
    format: Format = "toon_compact"


class ListMemories(Filters):
    limit: Limit = limits.DEFAULT_SEARCH_LIMIT
    offset: Offset = 0
    format: Format = "toon_compact"


class OneMemory(Params):
    id: NoteId


class GetMemory(OneMemory):
    namespace: str | None = None  # of the note: a caller outside of a private project must name it


class UpdateMemory(OneMemory):
    """Only what is given changes."""

    title: str | None = None
    content: str | None = None
    kind: Kind | None = None
    tier: Tier | None = None
    tags: list[str] | None = None
    priority: Priority | None = None
    confidence: Confidence | None = None
    namespace: str | None = None
    source: str | None = None
    expires_at: Time | None = None
    metadata: dict[str, Any] | None = None


class Link(Params):
    source_id: NoteId
    target_id: NoteId
    relation: Relation = "related_to"


class Resolve(Params):
    winner_id: NoteId
    loser_id: NoteId


class Bulk(InContext):
    memories: Annotated[list[dict[str, Any]], Field(max_length=limits.MAX_BULK_NOTES)]


class StoreMemoryResult(Result):
    """`previous` is the note that was there under the same title."""

    id: int
    tier: str
    namespace: str
    kind: str
    title: str
    expires_at: str | None = None
    potential_contradictions: list[int]
    previous: dict[str, Any] | None = None


class ListMemoriesResult(Result):
    memories: list[dict[str, Any]]
    count: int
    more: bool | None = None


class RecallResult(ListMemoriesResult):
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
