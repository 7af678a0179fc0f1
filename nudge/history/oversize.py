"""What the beginning of an event tells when there is more of it than is read: a client names the session, the event,
the tool and the
path before it comes to the contents of a file."""

from __future__ import annotations

import json
import re

from nudge import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MEMBER = re.compile(r'\s*[{,]\s*(?P<name>"(?:[^"\\]|\\.){0,256}+")\s*:\s*')
_OBJECTS_WITHIN = 2
_KEPT_BY_THEIR_BEGINNING = frozenset(("command", "cmd", "prompt", "error"))

_decode = json.JSONDecoder().raw_decode


def beginning(raw: bytes) -> dict[str, Any]:
    """The members that are whole, and the start of a text of which only the start is kept anyway."""
    return _members(raw[: limits.HOOK_BEGINNING_BYTES].decode("utf-8", "ignore"), 0, _OBJECTS_WITHIN)


def _members(text: str, at: int, objects_within: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while member := _MEMBER.match(text, at):
        name, at = str(json.loads(member["name"], strict=False)), member.end()
        try:
            found[name], at = _decode(text, at)
        except (ValueError, RecursionError):
            return found | _cut(name, text, at, objects_within)
    return found


def _cut(name: str, text: str, at: int, objects_within: int) -> dict[str, Any]:
    """The member in which the text ends."""
    if text.startswith("{", at) and objects_within:
        return {name: _members(text, at, objects_within - 1)}
    if text.startswith('"', at) and name in _KEPT_BY_THEIR_BEGINNING:
        return {name: _start_of_text(text[at:])}
    return {}


def _start_of_text(text: str) -> str:
    """Without its last characters, which may be half of an escape."""
    for length in range(len(text), max(len(text) - len("\\ud83d\\ude00"), 0), -1):
        try:
            return str(json.loads(text[:length] + '"'))
        except ValueError:
            continue
    return ""
