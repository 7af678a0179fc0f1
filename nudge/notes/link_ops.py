"""The operations of links between notes, and of two that contradict each other."""

from __future__ import annotations

import sqlite3
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.notes import store as notes
from nudge.notes.fields import check_relation
from nudge.notes.models import (
    DeleteLink,
    DeleteLinkResult,
    GetLinksResult,
    Link,
    LinkResult,
    OneMemory,
    Resolve,
    ResolveResult,
)
from nudge.notes.ops import lifetimes_of
from nudge.notes.visible_ops import refuse_hidden, shown_links, shown_one


@operation(
    "nudge.memory_link",
    tool="memory_link",
    group="memories",
    effect="write",
    route="POST /api/v1/links",
    result=LinkResult,
    listed=False,
    summary="Notes: link two of them.",
)
async def link(app: App, params: Link, call: Call) -> Any:
    relation, visible = check_relation(params.relation), visible_to(app, call)

    def write(connection: sqlite3.Connection) -> bool:
        refuse_hidden(connection, visible, [params.source_id, params.target_id])
        return notes.link(connection, params.source_id, params.target_id, relation, app.now())

    return {"linked": True, "new": await app.write_once(call, write)}


@operation(
    "nudge.memory_delete_link",
    tool="memory_delete_link",
    group="memories",
    effect="delete",
    route="DELETE /api/v1/links",
    result=DeleteLinkResult,
    listed=False,
    summary="Notes: delete a link between two of them.",
)
async def delete_link(app: App, params: DeleteLink, call: Call) -> Any:
    relation = None if params.relation is None else check_relation(params.relation)
    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> int:
        refuse_hidden(connection, visible, [params.source_id, params.target_id])
        return notes.delete_links(connection, params.source_id, params.target_id, relation, app.now())

    return {"deleted": await app.write_once(call, write)}


@operation(
    "nudge.memory_resolve",
    tool="memory_resolve",
    group="memories",
    effect="write",
    route="POST /api/v1/resolve",
    result=ResolveResult,
    listed=False,
    summary="Notes: resolve a contradiction; the winner supersedes the loser, which gets the lowest priority.",
)
async def resolve_contradiction(app: App, params: Resolve, call: Call) -> Any:
    """The winner supersedes the loser and is touched; the loser falls to priority 1 and confidence 0.1."""
    winner, loser, lifetimes = params.winner_id, params.loser_id, lifetimes_of(app)
    if winner == loser:
        raise Invalid("must be another note than winner_id", field="loser_id")
    visible = visible_to(app, call)

    def write(connection: sqlite3.Connection) -> None:
        refuse_hidden(connection, visible, [winner, loser])
        notes.resolve(connection, winner, loser, app.now(), lifetimes)

    await app.write_once(call, write)
    return {"resolved": True, "winner_id": winner, "loser_id": loser}


@operation(
    "nudge.memory_get_links",
    tool="memory_get_links",
    group="memories",
    effect="read",
    route="GET /api/v1/links/{id}",
    result=GetLinksResult,
    listed=False,
    summary="Notes: the links of one.",
)
async def get_links(app: App, params: OneMemory, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        shown_one(connection, visible, params.id, now)
        return {"links": shown_links(connection, notes.links_of(connection, params.id), visible)}

    return await app.read(read)
