"""The operation that reconciles the hints of a repo with the commands in its manifests."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, Params, Result
from nudge.core.operation import operation
from nudge.hints.model import Hint
from nudge.hints.reconcile import GUESS_CONFIDENCE, SCANNED_BY

_SCAN_CONFIDENCE = 0.4  # hints that a user or an agent sets count for more


class ScannedCommand(Params):
    component: str
    key: str
    value: Annotated[Any, Field(json_schema_extra={"anyOf": [{"type": "string"}, {"type": "object"}]})]
    reason: str
    guess: bool = False
    files: Annotated[
        dict[str, str],
        Field(default_factory=dict, max_length=limits.MAX_BASIS_FILES, description="files it depends on: path, digest"),
    ]


class Scan(Params):
    repo: str
    commands: Annotated[list[ScannedCommand], Field(max_length=limits.MAX_SCANNED)]
    dry_run: bool = False
    unread: Annotated[list[str], Field(default_factory=list, max_length=limits.MAX_UNREAD_MANIFESTS)]


class ScanResult(Result):
    added: list[dict[str, Any]]
    updated: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    unchanged: int
    skipped: list[dict[str, Any]] | None = None


@operation(
    "nudge.scan",
    tool="nudge_scan",
    group="hints",
    effect="delete",
    route="POST /api/v1/scan",
    result=ScanResult,
    listed=False,
    summary=(
        "Hints: reconcile the commands read from a repo's manifests with those of the last scan; hints set by"
        " hand are never touched."
    ),
)
async def scan(app: App, params: Scan, call: Call) -> Any:
    return await app.changes.serialize(call, lambda: _scan(app, params, call))


async def _scan(app: App, params: Scan, call: Call) -> Any:
    entries = [(item.component, item.key, item.value, _scan_meta(item, params.repo)) for item in params.commands]
    bases = {(item.component, item.key): item.files for item in params.commands if item.files}
    decision = app.lifetime.store.decide_sync(
        app.now(), {"repo": params.repo}, SCANNED_BY, entries, _Unread(params.unread).keeps, bases
    )
    return decision.result if params.dry_run else app.changes.commit(decision, call)


class _Unread:
    """Manifests that exist but could not be read, usually while they are edited: their hints stay."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = frozenset(paths)
        self._directories = frozenset(map(posixpath.dirname, paths))

    def keeps(self, held: Hint, new: Hint | None) -> bool:
        """A hint from such a file is not replaced. One from a file in the same directory is not removed either: its
        package may be named by the file that could not be read."""
        file = str(held.meta.get("reason", "")).rpartition(":")[0]
        if any(path in (file, ".") or file.startswith(f"{path}/") for path in self._paths):
            return True
        return new is None and bool(self._paths) and posixpath.dirname(file) in self._directories


def _scan_meta(item: ScannedCommand, repo: str) -> dict[str, Any]:
    return {
        "reason": item.reason,
        "confidence": GUESS_CONFIDENCE if item.guess else _SCAN_CONFIDENCE,
        "source": "tool-output",
        "added_by": SCANNED_BY,
        "tags": [item.key],
        "scope": {"repo": repo},
    }
