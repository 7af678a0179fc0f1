"""Export and import of notes, and their sync with another database. An import is one transaction: all or nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import UNLISTED, Call, InContext, Result, parse_params
from nudge.core.errors import Invalid, StorageFailed
from nudge.core.json_reader import JsonReader
from nudge.core.loop_turns import LoopTurns
from nudge.core.operation import operation
from nudge.core.text import mask
from nudge.core.transfer_files import open_written, refuse_page
from nudge.core.visibility import Visibility, visible_to
from nudge.hints.transfer_ops import SourceFile, TargetFile, write_pieces
from nudge.notes import namespaces, transfer
from nudge.notes.draft_ops import refuse_secrets
from nudge.notes.fields import GLOBAL, check_namespace, rfc3339
from nudge.notes.foreign_notes import ForeignNotes
from nudge.notes.models import Filters
from nudge.notes.note import find_secret_in
from nudge.notes.ops import lifetimes_of
from nudge.notes.transfer import IncomingLink, IncomingNote, Merge
from nudge.notes.visible_ops import note_filter, shown_links, shown_note
from nudge.security.absolute_paths import normalize_path
from nudge.storage import migrations
from nudge.storage.database import Database
from nudge.storage.deadline import Deadline
from nudge.storage.foreign import open_foreign

T = TypeVar("T")
Row = tuple[str, dict[str, Any]]
"""One of the two lists of an export, and a row of it."""

_PLACE = {transfer.MEMORIES: "index", transfer.LINKS: "link"}  # of a row, in the error that names it
_LINKS_AT_ONCE = 500


class ExportMemories(InContext):
    namespace: Annotated[str | None, Field(description="default: all")] = None
    file: TargetFile = None


class ExportMemoriesResult(Result):
    memories: list[dict[str, Any]] | None = None
    links: list[dict[str, Any]] | None = None
    exported_at: str | None = None
    file: str | None = None


_Ignored = Annotated[Any, Field(json_schema_extra={UNLISTED: True})]


class ImportMemories(InContext):
    memories: Annotated[list[dict[str, Any]], Field(default_factory=list, max_length=limits.MAX_BULK_NOTES)]
    links: Annotated[list[dict[str, Any]], Field(default_factory=list)]
    namespace: Annotated[str | None, Field(description="for notes without one; default: global")] = None
    dry_run: Annotated[bool, Field(description="only report what would change")] = False
    file: SourceFile = None
    exported_at: _Ignored = None
    count: _Ignored = None
    next: _Ignored = None


class ImportMemoriesResult(Result):
    imported: int
    errors: list[dict[str, Any]]
    created: int
    updated: int
    unchanged: int
    expired: int
    forgotten: int
    conflicts: int
    refused: int
    links: int
    dry_run: bool


class SyncMemories(InContext):
    path: Annotated[str, Field(description="absolute path of another nudge.db")]
    direction: Literal["pull", "push", "merge"] = "merge"
    dry_run: bool = False


class SyncMemoriesResult(Result):
    direction: str
    dry_run: bool
    pulled: dict[str, int] | None
    pushed: dict[str, int] | None
    errors: Annotated[list[dict[str, Any]], Field(description="rows that were left out")]


@operation(
    "nudge.memory_export",
    tool="memory_export",
    group="memories",
    effect="read",
    route="GET /api/v1/export",
    result=ExportMemoriesResult,
    listed=False,
    summary="Notes: export all with their links.",
)
async def export(app: App, params: ExportMemories, call: Call) -> Any:
    """All notes of one state of the database, at once or, when they are larger than 1 MiB, in a file."""
    now, visible = app.now(), visible_to(app, call)
    turns = LoopTurns()  # without them 16 MiB hold the loop for 45 ms at worst, with them for 9

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        where = note_filter(connection, visible, Filters(namespace=params.namespace))
        rows = _shown(connection, transfer.export_rows(connection, where, now), visible)
        return _export(app, params.file, str(rfc3339(now)), turns.between(rows))

    async with app.exporting:
        return await app.require_database().read(read, timeout=None)


def _shown(connection: sqlite3.Connection, rows: Iterator[Row], visible: Visibility) -> Iterator[Row]:
    """The rows without what the caller may not see."""
    for list_, of_list in groupby(rows, key=itemgetter(0)):
        contents = map(itemgetter(1), of_list)
        if list_ == transfer.MEMORIES:
            yield from ((list_, shown_note(row, visible)) for row in contents)
        else:
            while links := list(islice(contents, _LINKS_AT_ONCE)):
                yield from ((list_, link) for link in shown_links(connection, links, visible))


def _export(app: App, file: str | None, exported_at: str, rows: Iterator[Row]) -> dict[str, Any]:
    first, size = [], 0
    for row in rows:
        first.append(row)
        size += len(json.dumps(row[1]))
        if size > limits.MAX_BODY_BYTES - limits.KIB:
            break
    else:
        lists = {name: [row for kind, row in first if kind == name] for name in (transfer.MEMORIES, transfer.LINKS)}
        return {**lists, "exported_at": exported_at}
    if file is None:
        raise Invalid("the notes are larger than 1 MiB; run: nudge note export -o FILE", field="namespace")
    write_pieces(app.require_directory(), file, transfer.export_pieces(exported_at, chain(first, rows)))
    return {"file": file}


# Import


@operation(
    "nudge.memory_import",
    tool="memory_import",
    group="memories",
    effect="delete",
    route="POST /api/v1/import",
    result=ImportMemoriesResult,
    listed=False,
    summary="Notes: import an export, all of it or nothing.",
)
async def import_(app: App, params: ImportMemories, call: Call) -> Any:
    """Store the valid notes and links in one transaction. What is invalid or holds a secret is left out and named in
    `errors`. The short name of a namespace is resolved in the parameters only: in notes it is data, and stays."""
    now = app.now()
    turns = LoopTurns()  # without them 16 MiB hold the loop for 33 ms in the median of rounds, with them for 10
    source = _Source(params, None if params.file is None else app.require_directory())
    await asyncio.to_thread(source.check, turns, now, app.lifetime.settings.secret_guard)
    namespace = await _named_namespace(app, source.params, call.located(source.params.place()))

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        merge = Merge(connection, now, lifetimes_of(app))
        notes = (transfer.parse_note(row, now, namespace) for row in turns.between(source.rows(transfer.MEMORIES)))
        links = (transfer.parse_link(row) for row in turns.between(source.rows(transfer.LINKS)))
        counts = _merge(merge, notes, links, dry_run=source.params.dry_run)
        imported = counts["created"] + counts["updated"]
        return {"imported": imported, "errors": source.errors, **counts, "dry_run": source.params.dry_run}

    return await app.write_once(call, write)


class _Source:
    """The notes and links of an import: in its parameters, or in a file, which is read as often as they are asked
    for."""

    def __init__(self, params: ImportMemories, directory: str | None) -> None:
        self.params = params
        """With those in the file, once it is checked."""
        self.errors: list[dict[str, Any]] = []
        """The first rows that are left out, and why."""
        self._directory = directory
        self._left_out: dict[str, set[int]] = {transfer.MEMORIES: set(), transfer.LINKS: set()}

    def check(self, turns: LoopTurns, now: float, guard: bool) -> None:
        """Find the rows that are to be left out. Raises Invalid or JsonError for what is no export, or only one page of
        it."""
        others: dict[str, Any] = {}
        for kind, index, row in turns.between(self._read(others)):
            if not isinstance(row, dict):
                raise Invalid("must be an object", field=f"{kind}[{index}]")
            try:
                _check_row(kind, row, now, guard)
            except Invalid as error:
                self._left_out[kind].add(index)
                if len(self.errors) < limits.MAX_IMPORT_REASONS:
                    self.errors.append({_PLACE[kind]: index, "error": error.message})
        if others.keys() & {"components", "payload"}:
            raise Invalid("has hints and no notes; read it with: nudge import FILE", field="file")
        self.params = parse_params(ImportMemories, {**self.params.model_dump(exclude_unset=True), **others})
        refuse_page(self.params.next, "nudge note export -o FILE")

    def rows(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of one list that are to be stored."""
        left_out = self._left_out[kind]
        return (row for of, index, row in self._read({}, (kind,)) if of == kind and index not in left_out)

    def _read(
        self, others: dict[str, Any], kinds: Collection[str] = (transfer.MEMORIES, transfer.LINKS)
    ) -> Iterator[tuple[str, int, Any]]:
        """Yield list, number and content of each row of these lists; put the other members of a file into `others`."""
        if self._directory is None or self.params.file is None:
            for kind in kinds:
                yield from ((kind, index, row) for index, row in enumerate(getattr(self.params, kind)))
            return
        with open_written(self._directory, self.params.file) as file:
            reader = JsonReader(file)
            for name in reader.members("body"):
                if name in kinds:
                    yield from ((name, index, reader.value()) for index in reader.items(name))
                elif name in self._left_out or len(others) > limits.MAX_TAGS:
                    reader.skip()
                else:
                    others[name] = reader.value()
            reader.end()


def _check_row(kind: str, row: dict[str, Any], now: float, guard: bool) -> None:
    if kind == transfer.LINKS:
        transfer.parse_link(row)
        return
    draft = transfer.parse_note(row, now, GLOBAL).draft
    if guard:
        refuse_secrets([draft])


async def _named_namespace(app: App, params: ImportMemories, call: Call) -> str:
    """The namespace of notes that name none."""
    if params.namespace is None:
        return GLOBAL
    name, visible = check_namespace(params.namespace), visible_to(app, call)
    return await app.read(lambda connection: namespaces.find_named(connection, name, visible)) or name


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
    return merge.to_json()


# Sync


@operation(
    "nudge.memory_sync",
    tool="memory_sync",
    group="memories",
    effect="delete",
    route="POST /api/v1/sync",
    result=SyncMemoriesResult,
    listed=False,
    summary="Notes: exchange them with another database file.",
)
async def sync(app: App, params: SyncMemories, call: Call) -> Any:
    """Pull, then push, each in a transaction of its own: the next sync completes one that a crash interrupted."""
    own, other = app.require_database().path, normalize_path(params.path, "path")
    if os.path.exists(other) and os.path.samefile(own, other):
        raise Invalid("is this server's own database", field="path")
    if os.path.lexists(other) and not os.path.isfile(other):  # opening a pipe waits for its other end
        raise Invalid("is not a regular file", field="path")
    if not os.path.exists(other) and (params.direction != "push" or not os.path.isdir(os.path.dirname(other))):
        raise Invalid("there is no such file", field="path")
    visible = visible_to(app, call)
    pulled: Any = None
    pushed: Any = None
    if params.direction != "push":
        pulled = await app.write_once(call, lambda mine: _copy(app, other, mine, params.dry_run))
    if params.direction != "pull":
        pushed = await _push(app, own, other, params.dry_run, visible)
    return {
        "direction": params.direction,
        "dry_run": params.dry_run,
        "pulled": pulled and pulled["counts"],
        "pushed": pushed and pushed["counts"],
        "errors": [one for part in (pulled, pushed) if part for one in part["errors"]],
    }


async def _push(app: App, own: str, other: str, dry_run: bool, visible: Visibility) -> dict[str, Any]:
    """Copy the visible notes into the other database. Opening it takes its lock, and migrates an older one."""
    if os.path.exists(other):
        await asyncio.to_thread(_refuse_foreign, other)
    target = await asyncio.to_thread(Database.open, other)
    try:
        if target.reason is not None:
            raise StorageFailed(f"{mask(other)}: {target.reason}")
        return await target.write(
            lambda theirs: _copy(app, own, theirs, dry_run, visible, Deadline(theirs, limits.FOREIGN_READ_TIMEOUT))
        )
    finally:
        await asyncio.to_thread(target.close)


def _refuse_foreign(path: str) -> None:
    with open_foreign(path):
        pass


def _copy(
    app: App,
    source: str,
    target: sqlite3.Connection,
    dry_run: bool,
    visible: Visibility | None = None,
    deadline: Deadline | None = None,
) -> dict[str, Any]:
    """Merge the notes and links of the database at `source` into `target`: all, or those that are `visible`. Return the
    counts, and what is wrong with the rows that were left out. `deadline` is that of a target of somebody else."""
    guard, now = app.lifetime.settings.secret_guard, app.now()
    with open_foreign(source) as opened:
        if migrations.read_version(opened.connection) != migrations.LATEST:
            raise Invalid("is a database of another version of Nudge", field="path")
        hidden = () if visible is None else namespaces.find_hidden(opened.connection, visible)
        incoming = ForeignNotes(opened.rows, now, hidden)
        merge = Merge(
            target, now, lifetimes_of(app), revived=False, is_refused=partial(_has_secret, incoming) if guard else None
        )
        notes, links = _renewing(deadline, incoming.notes()), _renewing(deadline, incoming.links())
        counts = _merge(merge, notes, links, dry_run=dry_run)
    errors = [{"from": os.path.basename(source), **one} for one in incoming.errors]
    return {"counts": {**counts, "invalid": len(incoming.bad_notes) + incoming.bad_links}, "errors": errors}


def _renewing(deadline: Deadline | None, incoming: Iterator[T]) -> Iterator[T]:
    """The notes or links, each with the whole time for its statements in the target."""
    for one in incoming:
        if deadline is not None:
            deadline.renew()
        yield one


def _has_secret(incoming: ForeignNotes, one: IncomingNote) -> bool:
    """Whether a note holds a credential; it is then named among those that are left out."""
    if (found := find_secret_in(one.draft)) is None:
        return False
    field, kind = found
    incoming.name({"id": one.source_id, "error": f"{field}: looks like a secret ({kind})"})
    return True
