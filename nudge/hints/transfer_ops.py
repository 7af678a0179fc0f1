"""Import and export of hints, through a file when they are larger than 1 MiB. An import stores all of its hints or
none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge.core import limits, transfer_files
from nudge.core.app import App
from nudge.core.call import UNLISTED, Call, Params, Result, parse_params
from nudge.core.errors import Invalid, QuotaExceeded
from nudge.core.json_reader import JsonReader
from nudge.core.operation import operation
from nudge.core.visibility import visible_hints
from nudge.hints import freshness
from nudge.hints import transfer as import_export
from nudge.hints.model import Decision, Hint
from nudge.hints.transfer import IncomingHint, PayloadReader

Mode = Literal["merge", "replace", "skip"]
Reveal = Annotated[bool, Field(description="include the values of secrets")]
TargetFile = Annotated[
    str | None,
    Field(description="file in the runtime directory for a result above 1 MiB", json_schema_extra={UNLISTED: True}),
]
Versions = Annotated[bool, Field(description="include what the hints said before, and in which session each was set")]
SourceFile = Annotated[
    str | None,
    Field(description="file in the runtime directory with these parameters", json_schema_extra={UNLISTED: True}),
]

_TOO_LARGE = "the export is larger than 1 MiB; run: nudge export -o FILE, or pass `component`"


class Export(Params):
    format: Literal["json"] = "json"
    component: str | None = None
    reveal: Reveal = False
    versions: Versions = False
    file: TargetFile = None


class ExportResult(Result):
    payload: dict[str, Any] | None = None
    file: str | None = None


class Import(Params):
    payload: dict[str, Any] | None = None
    mode: Mode = "merge"
    file: SourceFile = None


class ImportResult(Result):
    imported: int
    skipped: int
    removed: int
    reasons: list[dict[str, Any]]


# Export


@operation(
    "nudge.export",
    tool="nudge_export",
    group="hints",
    effect="read",
    route="GET /api/v1/hints/export",
    result=ExportResult,
    listed=False,
    summary="Hints: export all as one JSON payload; secrets without their values.",
)
async def export(app: App, params: Export, call: Call) -> Any:
    """The hints as they are now; what is written meanwhile is not among them."""
    store, visible = app.lifetime.store, visible_hints(app, call)
    hints = store.live_hints(app.now(), params.component, visible)
    form = import_export.Form(params.reveal, params.versions)
    header = store.export_header(hints, form)
    components = await asyncio.to_thread(_components_of_one_call, hints, form)
    if components is not None:
        return {"payload": {**header, "components": components}}
    if params.file is None:
        raise Invalid(_TOO_LARGE, field="component")
    pieces = import_export.export_pieces(header, hints, form)
    await write_file(app, params.file, chain(('{"payload":',), pieces, ("}",)))
    return {"file": params.file}


def _components_of_one_call(hints: list[Hint], form: import_export.Form) -> dict[str, Any] | None:
    """None when they are too large for one call."""
    if sum(hint.weight for hint in hints) > limits.MAX_BODY_BYTES:
        return None
    components = import_export.export_components(hints, form)
    return components if len(json.dumps(components)) <= limits.MAX_BODY_BYTES else None


async def write_file(app: App, name: str, pieces: Iterable[str]) -> None:
    """Write text to a new file for whoever asked for it. Raises StorageFailed, and leaves no file."""
    await asyncio.to_thread(write_pieces, app.require_directory(), name, pieces)


def write_pieces(directory: str, name: str, pieces: Iterable[str]) -> None:
    with transfer_files.created(directory, name) as file:
        for piece in pieces:
            file.write(piece.encode())


# Import


@operation(
    "nudge.import",
    tool="nudge_import",
    group="hints",
    effect="delete",
    route="POST /api/v1/hints/import",
    result=ImportResult,
    listed=False,
    summary=(
        "Hints: import an exported payload. merge: the newer version wins; skip: existing hints stay; "
        "replace: hints that it does not contain are deleted."
    ),
)
async def import_(app: App, params: Import, call: Call) -> Any:
    store, now = app.lifetime.store, app.now()
    visible = visible_hints(app, call)

    def read() -> tuple[list[IncomingHint], str]:
        if params.file is None:
            return list(_with_bases(store.read_payload(now, params.payload), call)), params.mode
        hints = _FileHints(store.payload_reader(now), params)
        with transfer_files.open_written(app.require_directory(), params.file) as file:
            incoming = list(_with_bases(hints.read(JsonReader(file)), call))
        return incoming, hints.params().mode

    if params.file is None and params.payload is None:
        raise Invalid("is required", field="payload")
    incoming, mode = await asyncio.to_thread(read)

    async def commit() -> Any:
        """Decide against the present store; `HintChanges.serialize` blocks every other write until the result."""
        decision: Decision = await asyncio.to_thread(store.decide_import, app.now(), incoming, mode, visible)
        result = await app.changes.commit_large(decision, call)
        await app.changes.note_import({one.hint.identity for one in incoming})
        return result

    return await app.changes.serialize(call, commit)


class _FileHints:
    """The hints of a file, which holds a payload, or the parameters of this operation."""

    def __init__(self, payload: PayloadReader, params: Import) -> None:
        self._payload, self._params = payload, params
        self._others: dict[str, Any] = {}

    def read(self, reader: JsonReader) -> Iterator[IncomingHint]:
        for count, hint in enumerate(self._read(reader), 1):
            if count > limits.MAX_IMPORTED_HINTS:
                raise QuotaExceeded(
                    f"an import may have at most {limits.MAX_IMPORTED_HINTS} hints",
                    limit="hints of an import",
                    max=limits.MAX_IMPORTED_HINTS,
                )
            yield hint

    def _read(self, reader: JsonReader) -> Iterator[IncomingHint]:
        for name in reader.members("body"):
            if name == "payload":
                for member in reader.members("payload"):
                    yield from self._payload.read_member(reader, member)
            elif name in (*import_export.PAYLOAD_FIELDS, "next"):
                yield from self._payload.read_member(reader, name)
            else:
                self._others[name] = reader.value()
                self.params()
        reader.end()
        self._payload.check_complete()

    def params(self) -> Import:
        """The parameters of the call with those of the file."""
        given = {**self._params.model_dump(exclude_unset=True), **self._others}
        parsed: Import = parse_params(Import, given)
        return parsed


def _with_bases(incoming: Iterable[IncomingHint], call: Call) -> Iterator[IncomingHint]:
    """Add to the hints of the caller's repo the files that they rest on, as a `set` does. Reads files."""
    for one in incoming:
        repo = one.hint.meta.get("scope", {}).get("repo")
        basis = freshness.find_basis_of_hint(one.hint.value, repo, call.context, call.interface)
        yield replace(one, hint=replace(one.hint, basis=basis)) if basis else one
