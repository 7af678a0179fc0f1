"""The operations of notes: storing, changing and finding them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from nudge.core import limits, strict_json
from nudge.core.app import App
from nudge.core.call import Call, parse_params
from nudge.core.errors import Invalid, NotFound
from nudge.core.note_files import FILES, given_files
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.notes import archive, namespaces, ranking
from nudge.notes import store as notes
from nudge.notes.archive import DELETED
from nudge.notes.draft_ops import Origin, checked, refuse_secrets, top_for
from nudge.notes.fields import ATTEMPT, Draft, parse_changes
from nudge.notes.models import (
    Bulk,
    BulkResult,
    DeleteMemory,
    DeleteMemoryResult,
    GetMemory,
    GetMemoryResult,
    ListMemories,
    ListMemoriesResult,
    MemoryResult,
    OneMemory,
    PromoteResult,
    Recall,
    RecallResult,
    SearchMemories,
    SearchMemoriesResult,
    StoreMemory,
    StoreMemoryResult,
    UpdateMemory,
    as_text,
)
from nudge.notes.note import Lifetimes, Note
from nudge.notes.retrieval import Words, merge_new_segments
from nudge.notes.visible_ops import note_filter, refuse_hidden, shown_links, shown_note, shown_one
from nudge.proposals.expansion_ops import recall_more
from nudge.proposals.store import proposed_tags

_NOTES_PER_MERGE = 4  # new notes that are stored alone, for one merge of their parts of the index
_ACKNOWLEDGED = ("id", "tier", "namespace", "kind", "title", "expires_at")


# Writing


@operation(
    "nudge.memory_store",
    tool="memory_store",
    group="memories",
    effect="write",
    route="POST /api/v1/memories",
    result=StoreMemoryResult,
    summary="Notes: store a decision, lesson or finding. Title: its subject. Content: first what holds, then why."
    " files: what it is about. Never secrets.",
)
async def store(app: App, params: StoreMemory, call: Call) -> Any:
    visible = visible_to(app, call)
    origin = Origin(app, call, visible)
    draft = await checked(app, [origin.draft(params, app.now())])
    now, lifetimes = app.now(), lifetimes_of(app)
    alike = await _notes_alike(app, draft[0], visible)

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        complete = origin.complete(connection, draft[0])
        note, previous = notes.store(connection, complete, now, lifetimes)
        if previous is not None or note.id % _NOTES_PER_MERGE == 0:
            merge_new_segments(connection)
        shown = note.to_json()
        return {
            **{name: shown[name] for name in _ACKNOWLEDGED if name in shown},
            **(
                {"files": files}
                if draft[0].metadata != note.draft.metadata and (files := given_files(note.draft.metadata))
                else {}
            ),
            "potential_contradictions": _without(note.id, ranking.similar_titles(connection, note, now), alike),
            **({} if previous is None else {"previous": shown_note(previous.to_json(), visible)}),
        }

    stored = await app.write_once(call, write)
    app.deferred.merge_index()
    return stored


async def _notes_alike(app: App, draft: Draft, visible: Visibility) -> list[int]:
    """The notes that say nearly the same as a new one; none without a model that answers at once."""
    text = f"{draft.title}\n{draft.content}"
    if draft.kind == ATTEMPT or (question := await app.meaning.question(text, limits.STORE_QUESTION_TIMEOUT)) is None:
        return []

    def read(connection: sqlite3.Connection) -> list[int]:
        namespace = namespaces.find(connection, draft.namespace, visible)
        return ranking.notes_alike(connection, question, namespace, app.now())

    return await app.read(read)


def _without(note_id: int, *lists: Sequence[int]) -> list[int]:
    """The ids of several lists without this one, each once."""
    return [other for other in dict.fromkeys(chain(*lists)) if other != note_id][: limits.MAX_CONTRADICTIONS]


@operation(
    "nudge.memory_bulk",
    tool="memory_bulk",
    group="memories",
    effect="write",
    route="POST /api/v1/memories/bulk",
    result=BulkResult,
    listed=False,
    summary="Notes: store up to 1,000 in one transaction.",
)
async def bulk(app: App, params: Bulk, call: Call) -> Any:
    """Store what is valid, all in one transaction, and say what is wrong with the rest."""
    origin = Origin(app, call, visible_to(app, call))
    now, lifetimes = app.now(), lifetimes_of(app)
    guard = app.lifetime.settings.secret_guard
    drafts, errors = await asyncio.to_thread(_valid_drafts, origin, params.memories, now, guard)

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        stored, refused_late = [], []
        for index, draft in drafts:
            try:
                stored.append(notes.store(connection, origin.complete(connection, draft), now, lifetimes))
            except Invalid as error:
                refused_late.append({"index": index, "error": error.message})
        updated = sum(previous is not None for _, previous in stored)
        ids = [note.id for note, _ in stored]
        refused = sorted([*errors, *refused_late], key=lambda error: error["index"])
        return {"created": len(stored) - updated, "updated": updated, "ids": ids, "errors": refused}

    return await app.write_once(call, write)


def _valid_drafts(
    origin: Origin, items: Sequence[Mapping[str, Any]], now: float, guard: bool
) -> tuple[list[tuple[int, Draft]], list[dict[str, Any]]]:
    """The drafts of what is valid, and the errors of the rest, each by its place."""
    drafts, errors = [], []
    for index, item in enumerate(items):
        try:
            draft = origin.draft(parse_params(StoreMemory, dict(item)), now)
            if guard:
                refuse_secrets([draft])
            drafts.append((index, draft))
        except Invalid as error:
            errors.append({"index": index, "error": error.message})
    return drafts, errors


@operation(
    "nudge.memory_update",
    tool="memory_update",
    group="memories",
    effect="write",
    route="PUT /api/v1/memories/{id}",
    result=MemoryResult,
    listed=False,
    summary="Notes: change fields of one.",
)
async def update(app: App, params: UpdateMemory, call: Call) -> Any:
    now, lifetimes, visible = app.now(), lifetimes_of(app), visible_to(app, call)
    fields = params.model_dump(exclude={"id", "context"}, exclude_none=True)
    changes = parse_changes(fields, now=now, top=top_for(fields, call))
    if not changes:

        def read(connection: sqlite3.Connection) -> dict[str, Any]:
            return {"memory": shown_note(shown_one(connection, visible, params.id, now).to_json(), visible)}

        return await app.read(read)
    texts = {name: changes.get(name, "") for name in ("title", "content")}
    extra = {"tags": changes["tags"]} if "tags" in changes else {}
    metadata = {name: changes[name] for name in ("metadata", FILES) if name in changes}
    await checked(app, [Draft(**texts, **extra, metadata=metadata)])

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        refuse_hidden(connection, visible, [params.id])
        namespace = namespaces.find_named(connection, changes.get("namespace"), visible)
        complete = {**changes, "namespace": namespace} if namespace else changes
        note = notes.update(connection, params.id, complete, now, lifetimes)
        merge_new_segments(connection)
        return {"memory": shown_note(note.to_json(), visible)}

    return await app.write_once(call, write)


@operation(
    "nudge.memory_delete",
    tool="memory_delete",
    group="memories",
    effect="delete",
    route="DELETE /api/v1/memories/{id}",
    result=DeleteMemoryResult,
    listed=False,
    summary="Notes: delete one permanently, with its links.",
)
async def delete(app: App, params: DeleteMemory, call: Call) -> Any:
    """For good: a deleted note is not in the archive, unless it is to be kept there for a minute."""
    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> int:
        refuse_hidden(connection, visible, [params.id])
        if params.undoable:
            notes.archive_notes(connection, [notes.get(connection, params.id, app.now())], DELETED, app.now())
            return params.id
        return notes.delete(connection, params.id, app.now()).id

    return {"deleted": True, "id": await app.write_once(call, write)}


@operation(
    "nudge.memory_promote",
    tool="memory_promote",
    group="memories",
    effect="write",
    route="POST /api/v1/memories/{id}/promote",
    result=PromoteResult,
    listed=False,
    summary="Notes: keep one permanently (tier long, no expiry).",
)
async def promote(app: App, params: OneMemory, call: Call) -> Any:
    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> int:
        refuse_hidden(connection, visible, [params.id])
        return notes.promote(connection, params.id, app.now()).id

    return {"promoted": True, "id": await app.write_once(call, write)}


# Reading


@operation(
    "nudge.memory_recall",
    tool="memory_recall",
    group="memories",
    effect="write",
    route="POST /api/v1/recall",
    result=RecallResult,
    as_text=as_text,
    summary="Notes: what is known about something, best first. Ask before you decide or ask the user again.",
)
async def recall(app: App, params: Recall, call: Call) -> Any:
    """The notes that fit the words best. What is returned is touched after the answer: a commit waits for the disk."""
    now, visible = app.now(), visible_to(app, call)
    question = await app.meaning.question(params.context)

    def read(connection: sqlite3.Connection) -> tuple[list[ranking.Match], dict[str, Any]]:
        where = note_filter(connection, visible, params)
        found = ranking.recall(connection, params.context, where, params.limit, now, question)
        if found:
            return found, {}
        words = Words.parse(params.context, all_needed=False, field="context")
        return found, archive.describe_matches(connection, where, words)

    def find(connection: sqlite3.Connection, query: str) -> list[ranking.Match]:
        return ranking.recall(connection, query, note_filter(connection, visible, params), params.limit, now, question)

    matches, archived = await app.read(read)
    matches, more_words = await recall_more(
        app, params.context, matches, find, visible=visible, namespace=params.namespace
    )
    chosen, tokens = _within_budget(matches, params.budget_tokens)
    rows, more = fitting([shown_note(match.note.to_row(match.score.total), visible) for match in chosen])
    if params.touch and rows:
        app.deferred.count_recall([row["id"] for row in rows])
    budget = {} if params.budget_tokens is None else {"tokens": tokens}
    has_meaning = any(match.score.components["semantic_boost"] is not None for match in matches)
    mode = "hybrid" if has_meaning else "keyword"
    more_of = {"more": True} if more else {}
    expanded = {"expanded_terms": more_words} if more_words else {}
    return {
        "memories": rows,
        "count": len(rows),
        "mode": mode,
        **budget,
        **more_of,
        **expanded,
        **({} if rows else archived),
    }


@operation(
    "nudge.memory_search",
    tool="memory_search",
    group="memories",
    effect="read",
    route="GET /api/v1/search",
    result=SearchMemoriesResult,
    listed=False,
    as_text=as_text,
    summary="Notes: find those that contain all the words.",
)
async def search(app: App, params: SearchMemories, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> tuple[list[ranking.Match], dict[str, Any]]:
        where = note_filter(connection, visible, params)
        found = ranking.search(connection, params.query, where, params.limit, now)
        words = Words.parse(params.query, all_needed=False, field="query")
        return found, {} if found else archive.describe_matches(connection, where, words)

    matches, archived = await app.read(read)
    rows, more = fitting([shown_note(match.note.to_row(match.score.total), visible) for match in matches])
    more_of = {"more": True} if more else {}
    return {"results": rows, "count": len(rows), "query": params.query, **more_of, **archived}


@operation(
    "nudge.memory_list",
    tool="memory_list",
    group="memories",
    effect="read",
    route="GET /api/v1/memories",
    result=ListMemoriesResult,
    listed=False,
    as_text=as_text,
    summary="Notes: list by priority, newest first, with filters.",
)
async def list_memories(app: App, params: ListMemories, call: Call) -> Any:
    """`more`: there are others behind these."""
    await app.deferred.recalls_counted()
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> tuple[list[Note], dict[str, Any]]:
        where = note_filter(connection, visible, params)
        found = notes.list_notes(connection, where, params.limit + 1, now, params.offset)
        is_nothing = not found and not params.offset
        return found, archive.describe_matches(connection, where, None) if is_nothing else {}

    matches, archived = await app.read(read)
    rows, cut = fitting([shown_note(note.to_row(), visible) for note in matches[: params.limit]])
    more = cut or len(matches) > params.limit
    return {"memories": rows, "count": len(rows), **({"more": True} if more else {}), **archived}


@operation(
    "nudge.memory_get",
    tool="memory_get",
    group="memories",
    effect="read",
    route="GET /api/v1/memories/{id}",
    result=GetMemoryResult,
    summary="Notes: one in full, with its links.",
)
async def get(app: App, params: GetMemory, call: Call) -> Any:
    """A private note elsewhere is not found, unless its namespace is named."""
    await app.deferred.recalls_counted()
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        if params.archived:
            refuse_hidden(connection, visible, [params.id], archived=True)
            return {"memory": shown_note(archive.get(connection, params.id), visible), "links": []}
        named = namespaces.find_named(connection, params.namespace, visible)
        note = notes.get(connection, params.id, now)
        if named not in (None, note.draft.namespace) or not visible.shows(note.draft.namespace, named):
            raise NotFound(f"there is no note m{params.id}", id=params.id)
        links = shown_links(connection, notes.links_of(connection, params.id), visible)
        tags = proposed_tags(connection, params.id)
        proposed = {"proposed_tags": tags} if tags else {}
        return {"memory": {**shown_note(note.to_json(), visible), **proposed}, "links": links}

    return await app.read(read)


def _within_budget(matches: Sequence[ranking.Match], budget: int | None) -> tuple[list[ranking.Match], int]:
    """The best matches that fit into so many tokens, at least one; a long one does not keep out a shorter one after
    it."""
    chosen: list[ranking.Match] = []
    spent = 0
    for match in matches:
        cost = tokens_of(match.note)
        if budget is None or not chosen or spent + cost <= budget:
            chosen.append(match)
            spent += cost
    return chosen, spent


def tokens_of(note: Note) -> int:
    """Roughly, at four characters a token."""
    return -(-(len(note.draft.title) + len(note.draft.content) + sum(map(len, note.draft.tags))) // 4)


def fitting(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """As many rows as one answer may hold, at least one; and whether that left any out. They are measured as JSON: in
    the text block of an MCP answer it is quoted once more."""
    size, fit = 0, 0
    for row in rows:
        size += len(strict_json.encode(row)) + 1
        if fit and size > limits.MAX_BODY_BYTES:
            break
        fit += 1
    return list(rows[:fit]), fit < len(rows)


def lifetimes_of(app: App) -> Lifetimes:
    return Lifetimes.configured(app.lifetime.settings.memories)
