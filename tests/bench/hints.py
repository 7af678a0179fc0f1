"""Stores to measure on: payloads for `nudge.import`, small and as large as a store may be."""

from __future__ import annotations

import json
from typing import Any

from nudge.core import limits
from nudge.hints.transfer import SCHEMA_VERSION

COMPONENT, KEY = "service-0", "key-0"
CONTEXT = {"cwd": "/home/me/work/shop/services/api", "repo": "git:acme/shop", "branch": "main", "os": "linux"}
FEW = 50


def payload(count: int, value_chars: int = 40) -> dict[str, Any]:
    """`count` hints, as many in a component as there may be: the case in which a component's size would show."""
    components: dict[str, Any] = {}
    for number in range(count):
        service, key = divmod(number, limits.MAX_HINTS_PER_COMPONENT)
        components.setdefault(f"service-{service}", {"hints": {}})["hints"][f"key-{key}"] = _hint(number, value_chars)
    return {"schema_version": SCHEMA_VERSION, "components": components}


def _hint(number: int, value_chars: int) -> dict[str, Any]:
    text = f"docker compose run service-{number} pytest -q "
    meta = {
        "tags": ["test", f"team-{number % 20}"],
        "reason": "README.md:12",
        "priority": 1 + number % 10,
        "scope": {"repo": "git:acme/shop", "branch": ["main", "release/*"], "cwd_glob": ["**/services/**"]},
    }
    return {"value": (text * (value_chars // len(text) + 1))[:value_chars], "meta": meta}


def request(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
