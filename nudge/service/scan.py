"""Scan: what a repo's manifests say becomes hints, and stays in step with them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from nudge import limits
from nudge.service.app import App
from nudge.service.call import Call
from nudge.service.hints import Params

ADDED_BY = "nudge scan"
CONFIDENCE = 0.4  # a manifest is a good guess; what a person or an agent says counts for more


class FoundCommand(Params):
    component: str
    key: str
    value: Any
    reason: str


class Scan(Params):
    repo: str
    found: Annotated[list[FoundCommand], Field(max_length=limits.MAX_SCANNED)]
    dry_run: bool = False


class Scanned(BaseModel):
    added: list[dict[str, Any]]
    updated: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    unchanged: int
    skipped: list[dict[str, Any]] | None = None


async def scan(app: App, params: Scan, call: Call) -> Any:
    return await app.once(call, lambda: _scan(app, params, call))


async def _scan(app: App, params: Scan, call: Call) -> Any:
    found = [(item.component, item.key, item.value, _meta(item, params.repo)) for item in params.found]
    decision = app.session.store.decide_sync(app.now(), {"repo": params.repo}, ADDED_BY, found)
    return decision.result if params.dry_run else app.commit(decision, call)


def _meta(item: FoundCommand, repo: str) -> dict[str, Any]:
    return {
        "reason": item.reason, "confidence": CONFIDENCE, "source": "tool-output", "added_by": ADDED_BY,
        "tags": [item.key], "scope": {"repo": repo},
    }  # fmt: skip
