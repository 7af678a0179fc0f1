"""What the OpenAPI document shows of operations on notes: parameters that work, and which refusals to expect.

The examples work in this order on an empty store; a test sends them.
"""

from __future__ import annotations

from typing import Any

_ID: dict[str, Any] = {"id": 1}

EXAMPLES: dict[str, dict[str, Any]] = {
    "nudge.memory_store": {
        "title": "Project uses Axum",
        "content": "The HTTP server is built with Axum 0.8.",
        "tier": "mid",
        "namespace": "my-app",
        "tags": ["rust", "web"],
        "priority": 6,
        "confidence": 1.0,
        "source": "api",
        "ttl_secs": 86_400,
    },
    "nudge.memory_bulk": {
        "memories": [
            {"title": "Sessions are in Redis", "content": "Port 6379.", "namespace": "my-app", "tags": ["redis"]},
            {"title": "Tokens are JWT", "content": "For 15 minutes.", "namespace": "my-app", "kind": "decision"},
        ]
    },
    "nudge.memory_recall": {"context": "auth flow jwt", "limit": 10},
    "nudge.memory_search": {"query": "built axum", "namespace": "my-app", "limit": 10},
    "nudge.memory_list": {"namespace": "my-app", "tier": "mid", "limit": 20, "offset": 0, "min_priority": 5},
    "nudge.memory_explain": {"query": "sessions in redis", "ids": [1], "include_pack_context": True},
    "nudge.assemble_context": {
        "query": "are sessions kept in redis?",
        "context_types": ["values", "notes"],
        "limit": 5,
    },
    "nudge.memory_get": _ID,
    "nudge.memory_update": {"id": 1, "content": "Axum 0.9 since May.", "priority": 8},
    "nudge.memory_link": {"source_id": 1, "target_id": 2, "relation": "related_to"},
    "nudge.memory_get_links": _ID,
    "nudge.memory_resolve": {"winner_id": 3, "loser_id": 2},
    "nudge.memory_promote": _ID,
    "nudge.memory_stats": {},
    "nudge.memory_namespaces": {},
    "nudge.memory_capabilities": {},
    "nudge.memory_auto_consolidate": {"min_count": 3, "dry_run": True},
    "nudge.memory_consolidate": {
        "ids": [1, 2],
        "title": "The server",
        "summary": "Axum, with sessions in Redis.",
        "namespace": "my-app",
        "tier": "long",
    },
    "nudge.memory_archive_list": {"limit": 20},
    "nudge.memory_archive_restore": {"id": 2},
    "nudge.memory_archive_stats": {},
    "nudge.memory_forget": {"pattern": "redis", "tier": "mid", "dry_run": True},
    "nudge.memory_gc": {},
    "nudge.memory_delete": {"id": 2},
    "nudge.memory_archive_purge": {"older_than_days": 30},
    "nudge.memory_import": {
        "memories": [
            {"id": 71, "title": "Port of the API", "content": "8080.", "namespace": "my-app", "tier": "long"},
            {"id": 72, "title": "Ports", "content": "Services are on 8080 to 8089.", "namespace": "my-app"},
        ],
        "links": [{"source_id": 71, "target_id": 72, "relation": "derived_from"}],
    },
    "nudge.memory_export": {"namespace": "my-app"},
}

_WRONG = frozenset(
    f"nudge.memory_{name}"
    for name in (
        *("store", "bulk", "recall", "explain", "search", "list", "get", "update", "link", "get_links", "resolve"),
        *("promote", "import", "export"),
        *("auto_consolidate", "consolidate", "archive_list", "archive_restore", "forget", "delete", "archive_purge"),
    )
)
_MISSING = frozenset(
    f"nudge.memory_{name}"
    for name in (
        *("get", "update", "link", "get_links", "resolve", "promote", "consolidate", "archive_restore", "delete"),
    )
)
_TAKEN = frozenset(f"nudge.memory_{name}" for name in ("update", "consolidate", "archive_restore"))

REFUSALS: dict[str, list[int]] = {
    name: [status for status, names in ((400, _WRONG), (404, _MISSING), (409, _TAKEN)) if name in names]
    for name in EXAMPLES
}
"""By operation, the statuses that say what is wrong with a call."""
