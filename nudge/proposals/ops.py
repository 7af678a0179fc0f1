"""The operations that ask the language model: words for a query, tags for a note, whether two notes contradict."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result, UnlistedContext
from nudge.core.errors import Conflict, Invalid
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.notes import store as notes
from nudge.notes.models import NoteId, OneMemory
from nudge.notes.note import Note
from nudge.notes.visible_ops import refuse_hidden, shown_one
from nudge.proposals import store
from nudge.proposals.answers import tags_in_answer, verdict_in_answer
from nudge.proposals.disclosure import why_note_is_withheld, why_query_is_withheld
from nudge.proposals.expansion_ops import expand
from nudge.proposals.questions import ask_for_contradiction, ask_for_tags


class ExpandQuery(InContext):
    query: Annotated[str, Field(min_length=1, max_length=limits.MODEL_TEXT_CHARS)]


class AutoTag(OneMemory):
    pass


class DetectContradiction(InContext):
    context: UnlistedContext = None
    id_a: NoteId
    id_b: NoteId


class ExpandQueryResult(Result):
    original: str
    expanded_terms: list[str]


class AutoTagResult(Result):
    """`proposal` is the number to accept or reject; there is none where no new tag is proposed."""

    id: int
    tags: list[str]
    proposed_tags: list[str]
    proposal: int | None = None


class DetectContradictionResult(Result):
    """`proposal` is the number to accept or reject; there is none where they do not contradict each other, where that
    was rejected before, and where they are linked."""

    id_a: int
    id_b: int
    contradicts: bool
    proposal: int | None = None


@operation(
    "nudge.memory_expand_query",
    tool="memory_expand_query",
    group="memories",
    effect="read",
    route="POST /api/v1/expand_query",
    result=ExpandQueryResult,
    listed=False,
    summary="Notes: words that a note about the query may use, from the language model; tier smart.",
)
async def expand_query(app: App, params: ExpandQuery, call: Call) -> Any:
    if (why := why_query_is_withheld(params.query, visible_to(app, call))) is not None:
        raise Conflict(f"the language model may not see the query: {why}")
    return {"original": params.query, "expanded_terms": await expand(app, params.query)}


@operation(
    "nudge.memory_auto_tag",
    tool="memory_auto_tag",
    group="memories",
    effect="write",
    route="POST /api/v1/auto_tag",
    result=AutoTagResult,
    listed=False,
    summary="Notes: propose tags for one, from the language model; tier smart. They count once they are accepted.",
)
async def auto_tag(app: App, params: AutoTag, call: Call) -> Any:
    visible, now = visible_to(app, call), app.now()
    note = await app.read(lambda connection: shown_one(connection, visible, params.id, now))
    proposed, proposal = await propose_tags(app, note, visible, call)
    shown = {"id": note.id, "tags": list(note.draft.tags), "proposed_tags": proposed}
    return shown if proposal is None else {**shown, "proposal": proposal}


@operation(
    "nudge.memory_detect_contradiction",
    tool="memory_detect_contradiction",
    group="memories",
    effect="write",
    route="POST /api/v1/detect_contradiction",
    result=DetectContradictionResult,
    listed=False,
    summary="Notes: ask the language model whether two contradict each other; tier smart. A yes proposes a link.",
)
async def detect_contradiction(app: App, params: DetectContradiction, call: Call) -> Any:
    visible, now = visible_to(app, call), app.now()
    if params.id_a == params.id_b:
        raise Invalid("must be another note than id_a", field="id_b")

    def read(connection: sqlite3.Connection) -> tuple[Note, Note]:
        refuse_hidden(connection, visible, [params.id_a, params.id_b])
        return notes.get(connection, params.id_a, now), notes.get(connection, params.id_b, now)

    pair = await app.read(read)
    contradicts, proposal = await propose_contradiction(app, *pair, visible, call)
    shown = {"id_a": params.id_a, "id_b": params.id_b, "contradicts": contradicts}
    return shown if proposal is None else {**shown, "proposal": proposal}


async def propose_tags(app: App, note: Note, visible: Visibility, call: Call) -> tuple[list[str], int | None]:
    """Ask for tags, and store those as a proposal that the note does not have and nobody rejected. Raises Conflict
    where the model may not see the note."""
    await asyncio.to_thread(_refuse_withheld, [note], visible)
    said = await app.model.ask(ask_for_tags(note.draft.title, note.draft.content), tags_in_answer)

    def write(connection: sqlite3.Connection) -> tuple[list[str], int | None]:
        current = _unchanged(connection, note, app.now())
        known = {*current.draft.tags, *store.known_tags(connection, note.id)}
        room = limits.MAX_NOTE_TAGS - len(current.draft.tags)
        tags = [tag for tag in said if tag not in known][:room]
        if not tags:
            return [], None
        return tags, store.propose(connection, store.TAGS, [note.id], {"tags": tags}, app.model.name, app.now())

    return await app.write(call, write)


async def propose_contradiction(
    app: App, one: Note, other: Note, visible: Visibility, call: Call
) -> tuple[bool, int | None]:
    """Ask whether two notes contradict each other, and store a yes as a proposal. Raises Conflict where the model may
    not see one of them."""
    await asyncio.to_thread(_refuse_withheld, [one, other], visible)
    texts = [(note.draft.title, note.draft.content) for note in (one, other)]
    contradicts = await app.model.ask(ask_for_contradiction(*texts), verdict_in_answer)
    if not contradicts:
        return False, None

    def write(connection: sqlite3.Connection) -> int | None:
        ids = [_unchanged(connection, note, app.now()).id for note in (one, other)]
        if any(row[2] == "contradicts" and {*ids} == {*row[:2]} for row in notes.link_rows(connection, ids[0])):
            return None
        return store.propose(connection, store.CONTRADICTION, ids, {}, app.model.name, app.now())

    return True, await app.write(call, write)


def _refuse_withheld(asked: Sequence[Note], visible: Visibility) -> None:
    """On a thread: a long text takes 50 ms."""
    for note in asked:
        if (why := why_note_is_withheld(note, visible)) is not None:
            raise Conflict(f"the language model may not see m{note.id}: {why}", id=note.id)


def _unchanged(connection: sqlite3.Connection, asked: Note, now: float) -> Note:
    """The note as it is now, if its text is what the model was asked about."""
    note = notes.get(connection, asked.id, now)
    if (note.draft.title, note.draft.content) != (asked.draft.title, asked.draft.content):
        raise Conflict(f"m{note.id} was changed while the language model was asked; ask again", id=note.id)
    return note
