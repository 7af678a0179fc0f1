"""Scan: the commands in a repo's manifests become hints, and stay in step with them."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any

from pydantic import Field

from nudge import limits
from nudge.hints.model import Hint
from nudge.hints.sync import GUESS_CONFIDENCE, LEARNED_BY, SCANNED_BY, is_guess
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import Params, Result

CONFIDENCE = 0.4  # what a user or an agent sets counts for more


class FoundCommand(Params):
    component: str
    key: str
    value: Annotated[Any, Field(json_schema_extra={"anyOf": [{"type": "string"}, {"type": "object"}]})]
    reason: str
    guess: bool = False
    files: Annotated[
        dict[str, str],
        Field(default_factory=dict, max_length=limits.MAX_BASIS_FILES, description="that it rests on: path, digest"),
    ]


class Scan(Params):
    repo: str
    found: Annotated[list[FoundCommand], Field(max_length=limits.MAX_SCANNED)]
    dry_run: bool = False
    unread: Annotated[list[str], Field(default_factory=list, max_length=limits.MAX_UNREAD_MANIFESTS)]


class ScanResult(Result):
    added: list[dict[str, Any]]
    updated: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    unchanged: int
    skipped: list[dict[str, Any]] | None = None


async def scan(app: App, params: Scan, call: Call) -> Any:
    return await app.once(call, lambda: _scan(app, params, call))


async def _scan(app: App, params: Scan, call: Call) -> Any:
    entries = [(item.component, item.key, item.value, _meta(item, params.repo)) for item in params.found]
    bases = {(item.component, item.key): item.files for item in params.found if item.files}
    decision = app.session.store.decide_sync(
        app.now(), {"repo": params.repo}, SCANNED_BY, entries, _Unread(params.unread).keeps, _replaces, bases
    )
    return decision.result if params.dry_run else app.commit(decision, call)


def _replaces(held: Hint, new: Hint) -> bool:
    """What the repo names itself replaces what was learned from outcomes; a guess does not."""
    return held.meta.get("added_by") == LEARNED_BY and not is_guess(new.meta)


class _Unread:
    """Manifests that exist but could not be read, most often in the middle of an edit: their hints stay."""

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


def _meta(item: FoundCommand, repo: str) -> dict[str, Any]:
    return {
        "reason": item.reason,
        "confidence": GUESS_CONFIDENCE if item.guess else CONFIDENCE,
        "source": "tool-output",
        "added_by": SCANNED_BY,
        "tags": [item.key],
        "scope": {"repo": repo},
    }
