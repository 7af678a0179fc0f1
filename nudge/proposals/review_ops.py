"""The operations that decide on proposals: list, accept, reject, undo.

Only these change a note, and each can be undone. An accepted contradiction becomes a link, accepted tags become the
note's, an accepted group becomes one note."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result, UnlistedContext
from nudge.core.errors import Conflict
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.notes import archive
from nudge.notes import store as notes
from nudge.notes.fields import rfc3339
from nudge.notes.models import Offset
from nudge.notes.namespaces import find_hidden
from nudge.notes.note import Lifetimes, Note
from nudge.notes.ops import lifetimes_of
from nudge.proposals import store
from nudge.proposals.store import ACCEPTED, CONTRADICTION, GROUP, OPEN, REJECTED, TAGS, Proposal

_CONTRADICTS = "contradicts"
_UNDONE = "undone"  # why a note that stood for a group is in the archive


class ListProposals(InContext):
    kind: Literal["tags", "contradiction", "group"] | None = None
    state: Literal["open", "accepted", "rejected", "all"] = "open"
    limit: Annotated[int, Field(ge=1, le=limits.MAX_PROPOSALS_LISTED)] = limits.DEFAULT_SEARCH_LIMIT
    offset: Offset = 0


class OneProposal(InContext):
    context: UnlistedContext = None
    id: Annotated[int, Field(ge=1, le=limits.MAX_ROW_ID)]


class ListProposalsResult(Result):
    """Each with the notes that it is about: `tags` for one note; `contradiction` of two; `group` of notes that could be
    one with this `tag`."""

    proposals: list[dict[str, Any]]
    count: int
    more: bool | None = None


class AcceptProposalResult(Result):
    """`changed` is what was done: the `tags` that were added; the new link; the `note` that stands for a group."""

    accepted: bool
    id: int
    changed: dict[str, Any]


class RejectProposalResult(Result):
    rejected: bool
    id: int


class UndoProposalResult(Result):
    undone: bool
    id: int
    was: str


@operation(
    "nudge.memory_proposals",
    tool="memory_proposals",
    group="memories",
    effect="read",
    route="GET /api/v1/proposals",
    result=ListProposalsResult,
    listed=False,
    summary="Notes: what the language model proposes: tags, contradictions, groups to consolidate.",
)
async def list_proposals(app: App, params: ListProposals, call: Call) -> Any:
    visible, now = visible_to(app, call), app.now()
    state = None if params.state == "all" else params.state

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        hidden = find_hidden(connection, visible)
        found = store.find(
            connection, hidden, limit=params.limit + 1, offset=params.offset, state=state, kind=params.kind
        )
        return [_shown(connection, proposal, now) for proposal in found]

    rows = await app.read(read)
    more = {"more": True} if len(rows) > params.limit else {}
    return {"proposals": rows[: params.limit], "count": min(len(rows), params.limit), **more}


def _shown(connection: sqlite3.Connection, proposal: Proposal, now: float) -> dict[str, Any]:
    live = notes.get_many(connection, proposal.notes, now)
    shown = [
        {"id": note.id, "title": note.draft.title, "namespace": note.draft.namespace, "tags": list(note.draft.tags)}
        for note in (live[note_id] for note_id in proposal.notes if note_id in live)
    ]
    decided = {} if proposal.decided_at is None else {"decided_at": rfc3339(proposal.decided_at)}
    return {
        "id": proposal.id,
        "kind": proposal.kind,
        "state": proposal.state,
        **proposal.details,
        "ids": list(proposal.notes),
        "notes": shown,
        "model": proposal.model,
        "proposed_at": rfc3339(proposal.proposed_at),
        **decided,
    }


@operation(
    "nudge.memory_proposal_accept",
    tool="memory_proposal_accept",
    group="memories",
    effect="write",
    route="POST /api/v1/proposals/{id}/accept",
    result=AcceptProposalResult,
    listed=False,
    summary="Notes: accept a proposal: add the tags, link the two notes, or replace the group by one note.",
)
async def accept(app: App, params: OneProposal, call: Call) -> Any:
    visible, now, lifetimes = visible_to(app, call), app.now(), lifetimes_of(app)

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        proposal = store.get(connection, params.id, find_hidden(connection, visible))
        if proposal.state != OPEN:
            raise Conflict(f"proposal {params.id} is {proposal.state}; first: nudge note review undo {params.id}")
        store.decide(connection, params.id, ACCEPTED, now, {})  # first: open ones go with the notes of a group
        undo, changed = _APPLY[proposal.kind](connection, proposal, now, lifetimes)
        store.decide(connection, params.id, ACCEPTED, now, undo)
        return changed

    return {"accepted": True, "id": params.id, "changed": await app.write_once(call, write)}


@operation(
    "nudge.memory_proposal_reject",
    tool="memory_proposal_reject",
    group="memories",
    effect="write",
    route="POST /api/v1/proposals/{id}/reject",
    result=RejectProposalResult,
    listed=False,
    summary="Notes: reject a proposal; it is not made again unless the text of the note changes.",
)
async def reject(app: App, params: OneProposal, call: Call) -> Any:
    visible, now = visible_to(app, call), app.now()

    def write(connection: sqlite3.Connection) -> None:
        proposal = store.get(connection, params.id, find_hidden(connection, visible))
        if proposal.state == ACCEPTED:
            raise Conflict(f"proposal {params.id} is accepted; first: nudge note review undo {params.id}")
        store.decide(connection, params.id, REJECTED, now, None)

    await app.write_once(call, write)
    return {"rejected": True, "id": params.id}


@operation(
    "nudge.memory_proposal_undo",
    tool="memory_proposal_undo",
    group="memories",
    effect="write",
    route="POST /api/v1/proposals/{id}/undo",
    result=UndoProposalResult,
    listed=False,
    summary="Notes: take back what accepting or rejecting a proposal did; it is open again.",
)
async def undo(app: App, params: OneProposal, call: Call) -> Any:
    visible, now, lifetimes = visible_to(app, call), app.now(), lifetimes_of(app)

    def write(connection: sqlite3.Connection) -> str:
        proposal = store.get(connection, params.id, find_hidden(connection, visible))
        if proposal.state == OPEN:
            raise Conflict(f"proposal {params.id} is open: there is nothing to undo")
        if proposal.state == ACCEPTED:
            _TAKE_BACK[proposal.kind](connection, proposal, now, lifetimes)
        store.decide(connection, params.id, OPEN, None, None)
        return proposal.state

    return {"undone": True, "id": params.id, "was": await app.write_once(call, write)}


# What accepting does, and what takes it back

Changes = tuple[Mapping[str, Any], dict[str, Any]]
"""What is needed to undo, and what the caller is told."""


def _add_tags(connection: sqlite3.Connection, proposal: Proposal, now: float, lifetimes: Lifetimes) -> Changes:
    note = notes.get(connection, proposal.notes[0], now)
    added = [tag for tag in proposal.details["tags"] if tag not in note.draft.tags]
    if len(note.draft.tags) + len(added) > limits.MAX_NOTE_TAGS:
        raise Conflict(f"m{note.id} has {len(note.draft.tags)} tags; it may have {limits.MAX_NOTE_TAGS}", id=note.id)
    _set_tags(connection, note, (*note.draft.tags, *added), now, lifetimes)
    return {"tags": added}, {"id": note.id, "tags": added}


def _remove_tags(connection: sqlite3.Connection, proposal: Proposal, now: float, lifetimes: Lifetimes) -> None:
    note = notes.get(connection, proposal.notes[0], now)
    added = (proposal.undo or {}).get("tags", ())
    _set_tags(connection, note, tuple(tag for tag in note.draft.tags if tag not in added), now, lifetimes)


def _set_tags(
    connection: sqlite3.Connection, note: Note, tags: tuple[str, ...], now: float, lifetimes: Lifetimes
) -> None:
    """Nothing more is proposed for a note because its tags changed here."""
    changed = notes.update(connection, note.id, {"tags": tags}, now, lifetimes)
    store.note_examined(connection, note.id, changed.updated_at)


def _link(connection: sqlite3.Connection, proposal: Proposal, now: float, _: Lifetimes) -> Changes:
    """The newer note contradicts the older one."""
    older, newer = sorted(
        (notes.get(connection, note_id, now) for note_id in proposal.notes), key=lambda note: (note.created_at, note.id)
    )
    is_new = notes.link(connection, newer.id, older.id, _CONTRADICTS, now)
    link = {"source_id": newer.id, "target_id": older.id, "relation": _CONTRADICTS}
    return {"link": [newer.id, older.id] if is_new else None}, link


def _unlink(connection: sqlite3.Connection, proposal: Proposal, now: float, _: Lifetimes) -> None:
    made = (proposal.undo or {}).get("link")
    if made is None:
        return
    source, target = made
    if any((source, target, _CONTRADICTS) == row[:3] for row in notes.link_rows(connection, source)):
        notes.delete_links(connection, source, target, _CONTRADICTS, now)


def _consolidate(connection: sqlite3.Connection, proposal: Proposal, now: float, lifetimes: Lifetimes) -> Changes:
    """The new note has the texts of all: nothing in it but its tag comes from the model."""
    members = [notes.get(connection, note_id, now) for note_id in proposal.notes]
    namespace = members[0].draft.namespace
    if any(note.draft.namespace != namespace for note in members):
        raise Conflict(f"the notes of proposal {proposal.id} are not in one repo any more; reject it")
    draft = archive.consolidated_draft(namespace, proposal.details["tag"], members, now)
    if len(draft.content.encode()) > limits.MAX_NOTE_BYTES:
        raise Conflict(f"the notes of proposal {proposal.id} are too long for one note; reject it")
    whole = archive.consolidate(connection, list(proposal.notes), draft, now, lifetimes)
    store.note_examined(connection, whole.id, whole.updated_at)
    return {"note": whole.id}, {"note": whole.id, "ids": list(proposal.notes)}


def _restore(connection: sqlite3.Connection, proposal: Proposal, now: float, lifetimes: Lifetimes) -> None:
    whole = notes.get_many(connection, [(proposal.undo or {}).get("note", 0)], now)
    notes.archive_notes(connection, whole.values(), _UNDONE, now)
    live = notes.get_many(connection, proposal.notes, now)
    for note_id in proposal.notes:
        if note_id not in live:
            restored = archive.restore(connection, note_id, now, lifetimes)
            store.note_examined(connection, note_id, restored.updated_at)


_APPLY: dict[str, Callable[[sqlite3.Connection, Proposal, float, Lifetimes], Changes]] = {
    TAGS: _add_tags,
    CONTRADICTION: _link,
    GROUP: _consolidate,
}
_TAKE_BACK: dict[str, Callable[[sqlite3.Connection, Proposal, float, Lifetimes], None]] = {
    TAGS: _remove_tags,
    CONTRADICTION: _unlink,
    GROUP: _restore,
}
