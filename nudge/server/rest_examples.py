"""Examples in the OpenAPI document for operations on notes and attempts: valid parameters, and the error statuses to
expect.

The examples for notes, and those for attempts, succeed in this order on an empty store; tests send them.
"""

from __future__ import annotations

from typing import Any

_ID: dict[str, Any] = {"id": 1}

NOTE_EXAMPLES: dict[str, dict[str, Any]] = {
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

JOURNAL_EXAMPLES: dict[str, dict[str, Any]] = {
    "nudge.start_session": {},
    "nudge.start_ghap": {
        "goal": "make login fast",
        "hypothesis": "the session lookup has no index",
        "action": "add an index on sessions.user_id",
        "prediction": "make bench passes",
        "domain": "optimization",
        "strategy": "check-assumptions",
        "confidence": 0.8,
        "session_id": "s-1",
    },
    "nudge.update_ghap": {"id": 1, "hypothesis": "the pool is too small", "note": "it has one", "session_id": "s-1"},
    "nudge.get_active_ghap": {"session_id": "s-1"},
    "nudge.increment_tool_count": {"session_id": "s-1"},
    "nudge.should_check_in": {"frequency": 10, "session_id": "s-1"},
    "nudge.reset_tool_count": {"session_id": "s-1"},
    "nudge.get_orphaned_ghap": {"session_id": "s-2"},
    "nudge.resolve_ghap": {
        "id": 1,
        "status": "falsified",
        "result": "make bench fails as before",
        "surprise": "the time goes into TLS",
        "root_cause": {"category": "wrong_assumption", "description": "nobody had measured"},
        "lesson": {"what_worked": "a profile", "takeaway": "measure before you add an index"},
        "session_id": "s-1",
    },
    "nudge.list_ghap_entries": {"limit": 20, "domain": "optimization", "outcome": "falsified"},
    "nudge.journal_calibration": {},
}
EXAMPLES = {**NOTE_EXAMPLES, **JOURNAL_EXAMPLES}

_CAN_BE_INVALID = frozenset(
    f"nudge.memory_{name}"
    for name in (
        *("store", "bulk", "recall", "explain", "search", "list", "get", "update", "link", "get_links", "resolve"),
        *("promote", "import", "export"),
        *("auto_consolidate", "consolidate", "archive_list", "archive_restore", "forget", "delete", "archive_purge"),
    )
) | (JOURNAL_EXAMPLES.keys() - {"nudge.start_session"})
_CAN_BE_MISSING = frozenset(
    f"nudge.memory_{name}"
    for name in (
        *("get", "update", "link", "get_links", "resolve", "promote", "consolidate", "archive_restore", "delete"),
    )
) | {"nudge.update_ghap", "nudge.resolve_ghap", "nudge.get_orphaned_ghap"}
_CAN_CONFLICT = frozenset(f"nudge.memory_{name}" for name in ("update", "consolidate", "archive_restore")) | {
    *("nudge.start_ghap", "nudge.update_ghap", "nudge.resolve_ghap", "nudge.get_orphaned_ghap"),
}

REFUSALS: dict[str, list[int]] = {
    name: [
        status
        for status, names in ((400, _CAN_BE_INVALID), (404, _CAN_BE_MISSING), (409, _CAN_CONFLICT))
        if name in names
    ]
    for name in EXAMPLES
}
"""The HTTP statuses of the errors that each operation can answer with."""
