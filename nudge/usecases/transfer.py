"""Import and export of hints: in one call, or in pages for more than 1 MiB. An import stores all of its hints or
none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge import limits
from nudge.errors import Invalid, QuotaExceeded
from nudge.hints import import_export
from nudge.hints.import_export import IncomingHint
from nudge.hints.model import Decision, Hint
from nudge.usecases import freshness
from nudge.usecases.app import App, with_loop_turns
from nudge.usecases.call import Call, Params, Result
from nudge.usecases.staging import StagedImport
from nudge.usecases.visibility import visible_hints

Mode = Literal["merge", "replace", "skip"]
Reveal = Annotated[bool, Field(description="include the values of secrets")]

_TOO_LARGE = "the export is larger than 1 MiB: pass `component`, or read it in pages with nudge.export_page"


class Export(Params):
    format: Literal["json"] = "json"
    component: str | None = None
    reveal: Reveal = False


class ExportResult(Result):
    payload: dict[str, Any]


class ExportPage(Params):
    component: str | None = None
    reveal: Reveal = False
    cursor: Annotated[str | None, Field(description="`next` of the previous page; omit it for the first")] = None


class ExportPageResult(Result):
    schema_version: str
    created_at: str
    session_id: str
    components: dict[str, Any]
    next: str | None


class Import(Params):
    payload: dict[str, Any]
    mode: Mode = "merge"


class ImportResult(Result):
    imported: int
    skipped: int
    removed: int
    reasons: list[dict[str, Any]]


class ImportBegin(Params):
    header: Annotated[dict[str, Any], Field(description="the payload without its components")]
    mode: Mode = "merge"


class ImportBeginResult(Result):
    transfer: str


class ImportPage(Params):
    transfer: str
    page: Annotated[int, Field(ge=0, description="counted from 0")]
    components: dict[str, Any]


class ImportPageResult(Result):
    pages: int
    hints: int


class ImportCommit(Params):
    transfer: str


# Export


async def export(app: App, params: Export, call: Call) -> Any:
    store, visible = app.session.store, visible_hints(app, call)
    hints = store.live_hints(app.now(), params.component, visible)
    components = await asyncio.to_thread(_components_of_one_call, hints, params.reveal)
    return {"payload": {**store.export_header(hints), "components": components}}


def _components_of_one_call(hints: list[Hint], reveal: bool) -> dict[str, Any]:
    """Raises Invalid, which names the parameter, when the export is too large for one call."""
    if sum(hint.weight for hint in hints) > limits.MAX_BODY_BYTES:
        raise Invalid(_TOO_LARGE, field="component")
    components = import_export.export_components(hints, reveal)
    if len(json.dumps(components)) > limits.MAX_BODY_BYTES:
        raise Invalid(_TOO_LARGE, field="component")
    return components


async def export_page(app: App, params: ExportPage, call: Call) -> Any:
    """The first page pins the hints as they are then; the last one releases them."""
    store = app.session.store
    if params.cursor is None:
        hints = store.live_hints(app.now(), params.component, visible_hints(app, call))
        transfer, start = app.transfers.begin_export(store.export_header(hints), hints, params.reveal), 0
    else:
        transfer, start = _parse_cursor(params.cursor)
    pinned = app.transfers.pinned_export(transfer)
    components, next_start = await asyncio.to_thread(import_export.export_page, pinned.hints, start, pinned.reveal)
    if next_start is None:
        app.transfers.drop(transfer)
    return {
        **pinned.header,
        "components": components,
        "next": None if next_start is None else f"{transfer}:{next_start}",
    }


def _parse_cursor(cursor: str) -> tuple[str, int]:
    transfer, _, start = cursor.partition(":")
    if not start.isascii() or not start.isdigit() or len(start) > 9:
        raise Invalid("must be the `next` of the previous page", field="cursor")
    return transfer, int(start)


# Import


async def import_(app: App, params: Import, call: Call) -> Any:
    return await app.once(call, lambda: _import(app, params, call))


async def _import(app: App, params: Import, call: Call) -> Any:
    store, now = app.session.store, app.now()
    incoming = await asyncio.to_thread(store.read_payload, now, params.payload)
    visible = visible_hints(app, call)

    def decide() -> Decision:
        return store.decide_import(now, _with_bases(incoming, call), params.mode, visible)

    result = await app.commit_large(await asyncio.to_thread(decide), call)
    await app.note_import({one.hint.identity for one in incoming})
    return result


def _with_bases(incoming: Iterable[IncomingHint], call: Call) -> Iterator[IncomingHint]:
    """Add to the hints of the caller's repo the files that they rest on, as a `set` does. Reads files."""
    for one in incoming:
        repo = one.hint.meta.get("scope", {}).get("repo")
        basis = freshness.find_basis_of_hint(one.hint.value, repo, call.context, call.door)
        yield replace(one, hint=replace(one.hint, basis=basis)) if basis else one


async def import_begin(app: App, params: ImportBegin, _call: Call) -> Any:
    import_export.read_header(params.header)
    return {"transfer": app.transfers.begin_import(params.mode)}


async def import_page(app: App, params: ImportPage, call: Call) -> Any:
    """Check a page and stage it. A page that is sent again, because its answer was lost, is staged once."""
    staged = app.transfers.staged_import(params.transfer)
    async with staged.lock:
        if staged.is_new(params.page):
            try:
                hints = app.session.store.read_page(app.now(), params.components, staged.seen)
                await asyncio.to_thread(_stage, staged, with_loop_turns(_with_bases(hints, call)))
            except BaseException:
                app.transfers.drop(params.transfer)  # it may hold an incomplete page
                raise
        return {"pages": staged.pages, "hints": staged.hints}


def _stage(staged: StagedImport, hints: Iterator[IncomingHint]) -> None:
    incoming = list(hints)
    if len(staged.seen) > limits.MAX_STAGED_HINTS:
        raise QuotaExceeded(
            f"an import may have at most {limits.MAX_STAGED_HINTS} hints",
            limit="staged hints",
            max=limits.MAX_STAGED_HINTS,
        )
    staged.append(incoming)


async def import_commit(app: App, params: ImportCommit, call: Call) -> Any:
    return await app.once(call, lambda: _commit(app, params, call))


async def _commit(app: App, params: ImportCommit, call: Call) -> Any:
    """Decide against the present store; `App.once` blocks every other write until the result."""
    staged = app.transfers.staged_import(params.transfer)
    async with staged.lock:
        incoming = with_loop_turns(staged.read())
        visible = visible_hints(app, call)
        decision = await asyncio.to_thread(app.session.store.decide_import, app.now(), incoming, staged.mode, visible)
        result = await app.commit_large(decision, call)
        await app.note_import(staged.seen)
    app.transfers.drop(params.transfer)
    return result
