"""The operations that describe all notes: counts, namespaces, and what this server can do with them."""

from __future__ import annotations

import sqlite3
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call, Result
from nudge.core.errors import NudgeError
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.notes import namespaces as note_namespaces
from nudge.notes.fields import KINDS, RELATIONS, TIERS
from nudge.notes.models import NoMemoryParams
from nudge.notes.namespaces import find_hidden
from nudge.notes.ops import lifetimes_of

_PROBE = "SELECT 1 FROM notes_fts JOIN notes ON notes.id = notes_fts.rowid WHERE notes_fts MATCH 'nudge' LIMIT 1"


class MemoryStatsResult(Result):
    total: int
    by_tier: list[dict[str, Any]]
    by_namespace: list[dict[str, Any]]
    expiring_soon: int
    links_count: int
    archived: int
    db_size_bytes: int


class NamespacesResult(Result):
    namespaces: list[dict[str, Any]]


class CapabilitiesResult(Result):
    """`semantic`: which model finds notes by their meaning, how many are embedded, and the `reason` if none does."""

    tier: str
    features: dict[str, bool]
    semantic: dict[str, Any]
    tiers: dict[str, Any]
    kinds: list[str]
    relations: list[str]
    formats: list[str]


@operation(
    "nudge.memory_stats",
    tool="memory_stats",
    group="memories",
    effect="read",
    route="GET /api/v1/stats",
    result=MemoryStatsResult,
    listed=False,
    summary="Notes: counts by tier and repo, and the size of the database.",
)
async def stats(app: App, _params: NoMemoryParams, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)
    return await app.read(lambda connection: note_namespaces.stats(connection, now, find_hidden(connection, visible)))


@operation(
    "nudge.memory_namespaces",
    tool="memory_namespaces",
    group="memories",
    effect="read",
    route="GET /api/v1/namespaces",
    result=NamespacesResult,
    listed=False,
    summary="Notes: the repos that have notes, with their counts.",
)
async def namespaces(app: App, _params: NoMemoryParams, call: Call) -> Any:
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        return {"namespaces": note_namespaces.counts(connection, now, find_hidden(connection, visible))}

    return await app.read(read)


@operation(
    "nudge.memory_capabilities",
    tool="memory_capabilities",
    group="memories",
    effect="read",
    route="GET /api/v1/capabilities",
    result=CapabilitiesResult,
    listed=False,
    summary="Notes: what this server supports: how notes are found, and whether a language model helps.",
)
async def capabilities(app: App, _params: NoMemoryParams, _call: Call) -> Any:
    """What this server can do now, and `model`, why its language model cannot help if it cannot."""
    lifetimes, model = lifetimes_of(app), app.model.report()
    semantic = await app.meaning.report()
    has_model = model is not None and model["state"] != "off"
    return {
        "tier": app.lifetime.settings.tier,
        "features": {
            "keyword_search": True,
            "semantic_search": semantic["reason"] is None,
            "query_expansion": has_model,
            "auto_tagging": has_model,
            "contradiction_analysis": has_model,
        },
        "semantic": semantic,
        **({} if model is None else {"model": model}),
        "tiers": dict(zip(TIERS, (lifetimes.short, lifetimes.mid, lifetimes.long), strict=True)),
        "kinds": list(KINDS),
        "relations": list(RELATIONS),
        "formats": ["json", "toon", "toon_compact"],
    }


async def is_healthy(app: App) -> bool:
    """Whether notes and their full-text index can be read, and written."""
    try:
        await app.read(lambda connection: connection.execute(_PROBE).fetchone())
    except NudgeError:
        return False
    return app.require_database().reason is None
