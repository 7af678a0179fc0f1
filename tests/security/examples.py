"""One good call of each operation, with every field that it takes: what hostile calls are made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]

SCOPE = {
    "cwd_glob": ["/home/me/**"],
    "repo": "git:org/x",
    "branch": ["main"],
    "os": ["linux"],
    "env_required": ["CI"],
    "env_match": {"MODE": ["fast"]},
}
META = {
    "reason": "it works",
    "tags": ["t"],
    "priority": 5,
    "confidence": 0.5,
    "ttl": "PT2H",
    "sensitivity": "normal",
    "source": "user",
    "added_by": "me",
    "scope": SCOPE,
}
CONTEXT = {
    "cwd": "/home/me/x",
    "repo": "git:org/x",
    "branch": "main",
    "os": "linux",
    "env": {"CI": "1", "MODE": "fast"},
    "project": "x",
    "files_open": ["/home/me/x/a"],
}
NAME = {"component": "c", "key": "k"}
STORED = {
    "value": "v",
    "meta": META,
    "version": 3,
    "created_at": "2026-11-16T08:30:00Z",
    "updated_at": "2026-11-16T08:30:00Z",
    "last_used_at": "2026-11-16T08:30:00Z",
    "use_count": 2,
}
PAYLOAD = {
    "schema_version": "1.0",
    "created_at": "2026-11-16T08:30:00Z",
    "session_id": "s",
    "components": {"c": {"hints": {"k": STORED, "l": [STORED]}}},
}

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("nudge.set_hint", {**NAME, "value": "v", "meta": META, "if_match_version": 0}),
    ("nudge.set_hint", {**NAME, "value": {"type": "command", "cmd": "make", "shell": "bash"}}),
    ("nudge.set_hint", {**NAME, "value": {"type": "path", "abs": "/a/b", "os": ["linux"]}}),
    ("nudge.set_hint", {**NAME, "value": {"type": "template", "format": "jinja", "body": "b", "defaults": {"a": "b"}}}),
    ("nudge.set_hint", {**NAME, "value": {"type": "json", "data": {"a": ["b"]}}}),
    ("nudge.get_hint", {**NAME, "context": CONTEXT}),
    ("nudge.query", {"component": "c", "keys": ["k"], "tags": ["t"], "regex": "v", "context": CONTEXT, "limit": 5}),
    ("nudge.bump", {**NAME, "delta": 1, "context": CONTEXT}),
    ("nudge.list_components", {"component": "c", "context": CONTEXT}),
    ("nudge.export", {"format": "json", "component": "c", "reveal": True}),
    ("nudge.import", {"payload": PAYLOAD, "mode": "merge"}),
    ("nudge.scan", {"repo": "git:org/x", "commands": [{**NAME, "value": "v", "reason": "r"}], "dry_run": False}),
    ("nudge.delete_hint", {**NAME, "scope": SCOPE}),
]


def places(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value in a tree, itself first, with the way to it."""
    yield place, node
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in inner:
        yield from places(child, (*place, step))


def replaced(node: Any, place: Place, value: Any) -> Any:
    """The tree with one value in it exchanged."""
    if not place:
        return value
    step, rest = place[0], place[1:]
    if isinstance(node, dict):
        return {name: replaced(child, rest, value) if name == step else child for name, child in node.items()}
    return [replaced(child, rest, value) if index == step else child for index, child in enumerate(node)]


def renamed(node: Any, place: Place, name: str) -> Any:
    """The tree with the name of one member exchanged."""
    step, rest = place[0], place[1:]
    if rest:
        return replaced(node, (step,), renamed(node[step], rest, name))
    return {name if old == step else old: child for old, child in node.items()}
