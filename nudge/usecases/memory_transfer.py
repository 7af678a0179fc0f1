"""Export and import of notes, and their sync with another database. An import is one transaction: all or nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge import limits
from nudge.core.visibility import Visibility
from nudge.errors import Invalid, StorageFailed
from nudge.memories import namespaces, transfer
from nudge.memories.note import GLOBAL, Draft, check_namespace, find_secret_in, rfc3339
from nudge.memories.transfer import IncomingLink, IncomingNote, Merge
from nudge.security.absolute_paths import normalize_path
from nudge.storage import migrations
from nudge.storage.database import Database
from nudge.storage.sqlite import open_readonly
from nudge.text import mask
from nudge.usecases.app import App
from nudge.usecases.call import Call, InContext, Result
from nudge.usecases.memories import lifetimes_of, note_filter, refuse_secrets, shown_links, shown_note
from nudge.usecases.memory_models import Filters
from nudge.usecases.staging import StagedNotes
from nudge.usecases.visibility import visible_to


class ExportMemories(InContext):
    namespace: Annotated[str | None, Field(description="default: all")] = None
    after: Annotated[int, Field(ge=0, description="`next` of the previous page")] = 0


class ExportMemoriesResult(Result):
    memories: list[dict[str, Any]]
    links: list[dict[str, Any]]
    exported_at: str
    next: int | None


class ImportMemories(InContext):
    memories: Annotated[list[dict[str, Any]], Field(default_factory=list, max_length=limits.MAX_BULK_NOTES)]
    links: Annotated[list[dict[str, Any]], Field(default_factory=list)]
    namespace: Annotated[str | None, Field(description="for notes without one; default: global")] = None
    dry_run: Annotated[bool, Field(description="only report what would change")] = False
    more: Annotated[bool, Field(description="more pages follow; nothing is stored until the last")] = False
    transfer: Annotated[str | None, Field(description="from the answer to the first page")] = None
    page: Annotated[int, Field(ge=0, description="counted from 0")] = 0


class ImportMemoriesResult(Result):
    imported: int
    errors: list[dict[str, Any]]
    created: int | None = None
    updated: int | None = None
    unchanged: int | None = None
    expired: int | None = None
    forgotten: int | None = None
    conflicts: int | None = None
    links: int | None = None
    dry_run: bool | None = None
    transfer: str | None = None


class SyncMemories(InContext):
    path: Annotated[str, Field(description="absolute path of another nudge.db")]
    direction: Literal["pull", "push", "merge"] = "merge"
    dry_run: bool = False


class SyncMemoriesResult(Result):
    direction: str
    dry_run: bool
    pulled: dict[str, int] | None
    pushed: dict[str, int] | None


async def export(app: App, params: ExportMemories, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        where = note_filter(connection, visible, Filters(namespace=params.namespace))
        memories, links, last = transfer.export_page(connection, where, now, params.after, limits.PAGE_BYTES)
        return {
            "memories": [shown_note(row, visible) for row in memories],
            "links": shown_links(connection, links, visible),
            "exported_at": rfc3339(now),
            "next": last,
        }

    return await app.read(read)


# Import


async def import_(app: App, params: ImportMemories, call: Call) -> Any:
    """Stage a page; store all pages with the last one. Notes that are invalid or hold a secret are left out and named
    in `errors`. The short name of a namespace is resolved in the parameters only: in notes it is data, and stays."""
    if params.transfer and not params.more and (answer := await app.stored_answer(call)) is not None:
        return answer.result  # the server that stored it has died, and the transfer with it
    namespace = await _named_namespace(app, params, call)
    staged = app.transfers.staged_notes(params.transfer) if params.transfer else app.transfers.begin_notes()
    now, guard = app.now(), app.session.settings.secret_guard
    async with staged.lock:
        if staged.is_new(params.page):
            await asyncio.to_thread(_stage_page, staged, params, namespace, now, guard)
        if params.more:
            return {"imported": 0, "errors": staged.errors[: limits.MAX_IMPORT_REASONS], "transfer": staged.id}

        def write(connection: sqlite3.Connection) -> dict[str, Any]:
            merge = Merge(connection, now, lifetimes_of(app))
            notes = (transfer.parse_note(fields, now, namespace) for fields, namespace in staged.notes())
            counts = _merge(merge, notes, map(transfer.parse_link, staged.links()), dry_run=params.dry_run)
            imported = counts["created"] + counts["updated"]
            errors = staged.errors[: limits.MAX_IMPORT_REASONS]
            return {"imported": imported, "errors": errors, **counts, "dry_run": params.dry_run}

        result = await app.write_once(call, write)
    app.transfers.drop(staged.id)
    return result


async def _named_namespace(app: App, params: ImportMemories, call: Call) -> str:
    """The namespace of notes that name none."""
    if params.namespace is None:
        return GLOBAL
    name, visible = check_namespace(params.namespace), visible_to(app, call)
    return await app.read(lambda connection: namespaces.find_named(connection, name, visible)) or name


def _stage_page(staged: StagedNotes, params: ImportMemories, namespace: str, now: float, guard: bool) -> None:
    """Stage the valid notes and links of a page, and an error for each of the others with its index in the whole
    import. Blocks: call it on a worker thread."""
    notes, links, errors = [], [], []
    for index, fields in enumerate(params.memories, staged.read):
        try:
            draft = transfer.parse_note(fields, now, namespace).draft
            if guard:
                refuse_secrets([draft])
            notes.append(fields)
        except Invalid as error:
            errors.append({"index": index, "error": error.message})
    for number, link in enumerate(params.links):
        try:
            transfer.parse_link(link)
            links.append(link)
        except Invalid as error:
            errors.append({"link": number, "error": error.message})
    staged.append(notes, links, namespace, errors, read=len(params.memories))


def _merge(
    merge: Merge, notes: Iterable[IncomingNote], links: Iterable[IncomingLink], *, dry_run: bool
) -> dict[str, int]:
    """Merge notes and links into the database and return the counts; a dry run does all the work and rolls it back."""
    merge.connection.execute("SAVEPOINT transfer")
    try:
        merge.add_notes(notes)
        merge.add_links(links)
    finally:
        if dry_run:
            merge.connection.execute("ROLLBACK TO transfer")
        merge.connection.execute("RELEASE transfer")
    return merge.to_wire()


# Sync


async def sync(app: App, params: SyncMemories, call: Call) -> Any:
    """Pull, then push, each in a transaction of its own: the next sync completes one that a crash interrupted."""
    own, other = app.database().path, normalize_path(params.path, "path")
    if os.path.exists(other) and os.path.samefile(own, other):
        raise Invalid("is this server's own database", field="path")
    if not (os.path.isfile(other) or (params.direction == "push" and os.path.isdir(os.path.dirname(other)))):
        raise Invalid("there is no such file", field="path")
    visible = visible_to(app, call)
    pulled = pushed = None
    if params.direction != "push":
        pulled = await app.write_once(call, lambda mine: _copy(app, other, mine, params.dry_run))
    if params.direction != "pull":
        pushed = await _push(app, own, other, params.dry_run, visible)
    return {"direction": params.direction, "dry_run": params.dry_run, "pulled": pulled, "pushed": pushed}


async def _push(app: App, own: str, other: str, dry_run: bool, visible: Visibility) -> dict[str, int]:
    """Copy the visible notes into the other database. Opening it takes its lock, and migrates an older one."""
    target = await asyncio.to_thread(Database.open, other)
    try:
        if target.reason is not None:
            raise StorageFailed(f"{mask(other)}: {target.reason}")
        return await target.write(lambda theirs: _copy(app, own, theirs, dry_run, visible))
    finally:
        await asyncio.to_thread(target.close)


def _copy(
    app: App, source: str, target: sqlite3.Connection, dry_run: bool, visible: Visibility | None = None
) -> dict[str, int]:
    """Merge the notes and links of the database at `source` into `target`: all, or those that are `visible`."""
    guard = app.session.settings.secret_guard
    with closing(open_readonly(source, limits.BUSY_TIMEOUT)) as notes:
        if migrations.read_version(notes) != migrations.LATEST:
            raise Invalid("is a database of another version of Nudge", field="path")
        notes.execute("BEGIN")  # reads one state of it, whatever is written meanwhile
        merge = Merge(target, app.now(), lifetimes_of(app), revived=False, is_refused=_is_secret if guard else None)
        hidden = () if visible is None else namespaces.find_hidden(notes, visible)
        return _merge(merge, transfer.all_notes(notes, merge.now, hidden), transfer.all_links(notes), dry_run=dry_run)


def _is_secret(draft: Draft) -> bool:
    return find_secret_in(draft) is not None
