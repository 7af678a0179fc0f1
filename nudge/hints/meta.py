"""What is known about a hint beside its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nudge import limits
from nudge.hints.fields import parse_choice, parse_list, parse_number, parse_object, parse_text, parse_whole
from nudge.hints.scope import parse_scope
from nudge.hints.ttl import parse_ttl

SECRET = "secret"
SENSITIVITIES = ("normal", SECRET)
SOURCES = ("user", "agent", "tool-output", "file-import")


def parse_meta(raw: object, field: str = "meta") -> dict[str, Any]:
    """Only what was given, which null is not: a default that is written down could never change. An empty scope is no
    scope."""
    given = parse_object({} if raw is None else raw, field, tuple(_PARSERS))
    meta = {name: _PARSERS[name](given[name], f"{field}.{name}") for name in _PARSERS if given.get(name) is not None}
    if not meta.get("scope", True):
        del meta["scope"]
    return meta


def completed(meta: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Parsed fields added to parsed meta, all in the order in which `parse_meta` writes them."""
    merged = {**meta, **more}
    return {name: merged[name] for name in _PARSERS if name in merged}


def _parse_tags(raw: object, field: str) -> list[str]:
    return parse_list(raw, field, limits.MAX_TAGS, lambda tag, at: parse_text(tag, at, limits.MAX_TAG_CHARS, least=1))


def _parse_ttl(raw: object, field: str) -> str:
    parse_ttl(raw, field)
    return str(raw)


_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "reason": lambda raw, field: parse_text(raw, field, limits.MAX_REASON_CHARS),
    "tags": _parse_tags,
    "priority": lambda raw, field: parse_whole(raw, field, limits.MIN_PRIORITY, limits.MAX_PRIORITY),
    "confidence": lambda raw, field: parse_number(raw, field, 0, 1),
    "ttl": _parse_ttl,
    "sensitivity": lambda raw, field: parse_choice(raw, field, SENSITIVITIES),
    "scope": lambda raw, field: parse_scope(raw, field).wire,
    "source": lambda raw, field: parse_choice(raw, field, SOURCES),
    "added_by": lambda raw, field: parse_text(raw, field, limits.MAX_ADDED_BY_CHARS),
}
