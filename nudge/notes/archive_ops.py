"""The operations of the archive: forgetting, consolidating and expiry, which move notes there, and what is in it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.meaning.fusion import ALIKE
from nudge.notes import archive
from nudge.notes import store as notes
from nudge.notes.draft_ops import checked
from nudge.notes.fields import parse_draft
from nudge.notes.models import Filters, Format, Limit, NoMemoryParams, NoteId, Offset, OneMemory, Tier, as_text
from nudge.notes.namespaces import find_hidden, find_named
from nudge.notes.note import Note
from nudge.notes.ops import fitting, lifetimes_of
from nudge.notes.retrieval import Words
from nudge.notes.visible_ops import note_filter, refuse_hidden, shown_note
from nudge.storage.database import forget_answers

_DAY = 86_400.0


class Forget(Filters, InContext):
    ids: Annotated[list[NoteId] | None, Field(max_length=limits.MAX_FORGOTTEN_IDS)] = None
    pattern: Annotated[str | None, Field(description="all of these words")] = None
    dry_run: Annotated[bool, Field(description="only report what would be archived")] = False


class Consolidate(InContext):
    ids: Annotated[list[NoteId], Field(min_length=2, max_length=limits.MAX_CONSOLIDATED)]
    title: str
    summary: Annotated[str, Field(description="content of the new note")]
    namespace: Annotated[str | None, Field(description="default: the first note's")] = None
    tier: Tier = "long"


class AutoConsolidate(InContext):
    namespace: str | None = None
    short_only: Annotated[bool, Field(description="only notes of the tier short")] = False
    min_count: Annotated[int, Field(ge=2, le=limits.MAX_CONSOLIDATED)] = 3
    dry_run: bool = False


class ListArchive(Filters, InContext):
    query: Annotated[str | None, Field(description="any of these words")] = None
    limit: Limit = limits.DEFAULT_SEARCH_LIMIT
    offset: Offset = 0
    format: Format = "toon_compact"


class PurgeArchive(InContext):
    older_than_days: Annotated[int | None, Field(ge=0, le=limits.MAX_RETENTION_DAYS)] = None


class ForgetResult(Result):
    """`memories` are the first of the notes that match."""

    deleted: int
    dry_run: bool
    memories: list[dict[str, Any]]


class ConsolidateResult(Result):
    id: int
    consolidated: int


class AutoConsolidateResult(Result):
    """`alike`: groups of notes that say nearly the same, whatever their tags; only with `dry_run` and a model. They are
    not consolidated by themselves."""

    groups: list[dict[str, Any]]
    consolidated: int
    dry_run: bool
    alike: list[dict[str, Any]] | None = None


class ListArchiveResult(Result):
    memories: list[dict[str, Any]]
    count: int
    more: bool | None = None


class RestoreResult(Result):
    restored: bool
    memory: dict[str, Any]


class PurgeArchiveResult(Result):
    purged: int


class ArchiveStatsResult(Result):
    count: int
    bytes: int
    oldest: str | None = None
    newest: str | None = None
    by_reason: list[dict[str, Any]]


class GcResult(Result):
    expired_deleted: int


# Forgetting and consolidating


@operation(
    "nudge.memory_forget",
    tool="memory_forget",
    group="memories",
    effect="delete",
    route="POST /api/v1/forget",
    result=ForgetResult,
    listed=False,
    summary="Notes: archive those that match the filters; dry_run only lists them.",
)
async def forget(app: App, params: Forget, call: Call) -> Any:
    """Move the notes that match all given filters to the archive, from which they can be restored."""
    if not any(value for name, value in params if name != "dry_run"):
        raise Invalid(
            "name what to forget: `ids`, `namespace`, `pattern`, `tier`, `kind`, `tags`, `since`, `until` or"
            " `min_priority`"
        )
    now, visible = app.now(), visible_to(app, call)

    def work(connection: sqlite3.Connection) -> dict[str, Any]:
        refuse_hidden(connection, visible, params.ids or ())
        where = replace(note_filter(connection, visible, params), ids=params.ids)
        forgotten = archive.forget(connection, where, params.pattern, now, dry_run=params.dry_run)
        return {"deleted": len(forgotten), "dry_run": params.dry_run, "memories": _summaries(forgotten)}

    return await (app.read(work) if params.dry_run else app.write_once(call, work))


@operation(
    "nudge.memory_consolidate",
    tool="memory_consolidate",
    group="memories",
    effect="delete",
    route="POST /api/v1/consolidate",
    result=ConsolidateResult,
    listed=False,
    summary="Notes: replace 2 to 100 with one summary; the originals are archived.",
)
async def consolidate(app: App, params: Consolidate, call: Call) -> Any:
    """Replace several notes by one, and move them to the archive, in one transaction."""
    ids = list(dict.fromkeys(params.ids))
    if len(ids) < 2:
        raise Invalid("must name at least 2 notes", field="ids")
    now, lifetimes, visible = app.now(), lifetimes_of(app), visible_to(app, call)
    given = {"title": params.title, "content": params.summary, "namespace": params.namespace, "tier": params.tier}
    draft = parse_draft(given, now=now, source="consolidation")
    await checked(app, [draft])

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        refuse_hidden(connection, visible, ids)
        namespace = find_named(connection, params.namespace, visible)
        namespace = namespace or notes.get(connection, ids[0], now).draft.namespace
        whole = archive.consolidate(connection, ids, replace(draft, namespace=namespace), now, lifetimes)
        return {"id": whole.id, "consolidated": len(ids)}

    return await app.write_once(call, write)


@operation(
    "nudge.memory_auto_consolidate",
    tool="memory_auto_consolidate",
    group="memories",
    effect="delete",
    route="POST /api/v1/consolidate/auto",
    result=AutoConsolidateResult,
    listed=False,
    summary="Notes: consolidate groups with the same repo and first tag; dry_run only lists them.",
)
async def auto_consolidate(app: App, params: AutoConsolidate, call: Call) -> Any:
    """Replace each group of notes with the same namespace and first tag by one long-term note."""
    now, lifetimes, visible = app.now(), lifetimes_of(app), visible_to(app, call)
    filters = Filters(namespace=params.namespace, tier="short" if params.short_only else None)

    def work(connection: sqlite3.Connection) -> dict[str, Any]:
        groups = archive.groups(connection, note_filter(connection, visible, filters), params.min_count, now)
        shown: list[dict[str, Any]] = []
        for namespace, tag, members in groups:
            ids = [note.id for note in members]
            group: dict[str, Any] = {"namespace": namespace, "tag": tag, "count": len(ids), "ids": ids}
            if not params.dry_run:
                draft = archive.consolidated_draft(namespace, tag, members, now)
                group["id"] = archive.consolidate(connection, ids, draft, now, lifetimes).id
            shown.append(group)
        total = 0 if params.dry_run else sum(group["count"] for group in shown)
        return {"groups": shown, "consolidated": total, "dry_run": params.dry_run}

    if not params.dry_run:
        return await app.write_once(call, work)
    return {**await app.read(work), **await _groups_alike(app, filters, visible)}


async def _groups_alike(app: App, filters: Filters, visible: Visibility) -> dict[str, Any]:
    """Groups of notes in one repo that say nearly the same, for who looks for some to consolidate; empty without a
    model."""
    now = app.now()

    def newest(connection: sqlite3.Connection) -> dict[int, str]:
        found = notes.find_notes(connection, note_filter(connection, visible, filters), None, now)
        return {note.id: note.draft.namespace for note in found[-limits.MAX_NOTES_COMPARED :]}

    namespace_of = await app.read(newest)
    alike: list[list[int]] = []
    for namespace in sorted(set(namespace_of.values())):
        ids = [note_id for note_id, held_in in namespace_of.items() if held_in == namespace]
        alike += await app.meaning.alike(ids, ALIKE)
    return {"alike": [{"namespace": namespace_of[ids[0]], "ids": ids} for ids in alike]} if alike else {}


def _summaries(forgotten: list[Note]) -> list[dict[str, Any]]:
    return [
        {"id": note.id, "title": note.draft.title, "namespace": note.draft.namespace, "tier": note.draft.tier}
        for note in forgotten[: limits.FORGOTTEN_SHOWN]
    ]


# The archive and expiry


@operation(
    "nudge.memory_archive_list",
    tool="memory_archive_list",
    group="memories",
    effect="read",
    route="GET /api/v1/archive",
    result=ListArchiveResult,
    listed=False,
    as_text=as_text,
    summary="Notes: list the archive: those that expired, were forgotten or were consolidated.",
)
async def archive_list(app: App, params: ListArchive, call: Call) -> Any:
    visible = visible_to(app, call)
    words = None if params.query is None else Words.parse(params.query, all_needed=False)

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        where = note_filter(connection, visible, params)
        return archive.list_archived(connection, params.limit + 1, params.offset, where=where, words=words)

    entries = await app.read(read)
    rows, cut = fitting([shown_note(entry, visible) for entry in entries[: params.limit]])
    more = cut or len(entries) > params.limit
    return {"memories": rows, "count": len(rows), **({"more": True} if more else {})}


@operation(
    "nudge.memory_archive_restore",
    tool="memory_archive_restore",
    group="memories",
    effect="write",
    route="POST /api/v1/archive/{id}/restore",
    result=RestoreResult,
    listed=False,
    summary="Notes: restore one from the archive, with a new expiry.",
)
async def archive_restore(app: App, params: OneMemory, call: Call) -> Any:
    now, lifetimes, visible = app.now(), lifetimes_of(app), visible_to(app, call)

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        refuse_hidden(connection, visible, [params.id], archived=True)
        restored = archive.restore(connection, params.id, now, lifetimes)
        return {"restored": True, "memory": shown_note(restored.to_json(), visible)}

    return await app.write_once(call, write)


@operation(
    "nudge.memory_archive_purge",
    tool="memory_archive_purge",
    group="memories",
    effect="delete",
    route="DELETE /api/v1/archive",
    result=PurgeArchiveResult,
    listed=False,
    summary="Notes: delete archived ones permanently.",
)
async def archive_purge(app: App, params: PurgeArchive, call: Call) -> Any:
    days, visible = params.older_than_days, visible_to(app, call)
    before = None if days is None else app.now() - days * _DAY

    def write(connection: sqlite3.Connection) -> int:
        return archive.purge(connection, before, find_hidden(connection, visible))

    return {"purged": await app.write_once(call, write)}


@operation(
    "nudge.memory_archive_stats",
    tool="memory_archive_stats",
    group="memories",
    effect="read",
    route="GET /api/v1/archive/stats",
    result=ArchiveStatsResult,
    listed=False,
    summary="Notes: count and size of the archive, oldest and newest, counts by reason.",
)
async def archive_stats(app: App, _params: NoMemoryParams, call: Call) -> Any:
    visible = visible_to(app, call)
    return await app.read(lambda connection: archive.stats(connection, find_hidden(connection, visible)))


@operation(
    "nudge.memory_gc",
    tool="memory_gc",
    group="memories",
    effect="delete",
    route="POST /api/v1/gc",
    result=GcResult,
    listed=False,
    summary="Notes: archive all expired ones now.",
)
async def gc(app: App, _params: NoMemoryParams, call: Call) -> Any:
    """Move every expired note to the archive, in portions, so that other writes need not wait long."""
    total = 0
    while True:
        swept = await _sweep(app, call)
        total += swept
        if swept < limits.SWEPT_NOTES:
            return {"expired_deleted": total}


async def _sweep(app: App, call: Call) -> int:
    """Move one portion of expired notes to the archive. Also delete old answers of `write_once`: they may hold text
    that was deleted since."""
    now, keep = app.now(), bool(app.lifetime.settings.memories.get("archive_on_gc", 1))

    def write(connection: sqlite3.Connection) -> int:
        forget_answers(connection, now)
        return archive.sweep(connection, now, keep=keep)

    return await app.write(call, write)


async def purge_deleted(app: App) -> None:
    """Delete for good what was deleted, and kept for an undo that is too late now."""
    before = app.now() - limits.UNDO_KEPT
    if await app.read(lambda connection: archive.has_deleted(connection, before)):
        await app.write(Call(), lambda connection: archive.purge_deleted(connection, before))
