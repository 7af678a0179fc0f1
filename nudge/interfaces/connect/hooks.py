"""Our hooks in a file that nests them as Claude Code does: event, groups, handlers. Codex and Gemini have the same nesting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nudge.interfaces.connect import json_edit
from nudge.interfaces.connect.draft import Draft
from nudge.interfaces.connect.json_text import ARRAY, OBJECT, Node
from nudge.interfaces.connect.launch import is_hook_of_ours

KEY = "hooks"

Handlers = Mapping[str, Mapping[str, Any]]  # what to run, by event


def add(draft: Draft, handlers: Handlers) -> None:
    """Each in a group of its own behind the others: groups have matchers, and some clients know a hook by its place."""
    for event, handler in handlers.items():
        json_edit.add_item(draft, (KEY, event), {KEY: [handler]})


def remove(draft: Draft) -> None:
    """One handler at a time, since every removal moves the rest; groups, events and the whole that this empties go too."""
    while (found := next(_ours(draft.text), None)) is not None:
        event, groups, group, handlers, index = found
        if len(handlers.entries) > 1:
            json_edit.remove_item(draft, handlers, index)
        else:
            json_edit.remove_item(draft, groups, group)
        json_edit.remove_if_bare(draft, (KEY, event))


def has_any(text: str) -> bool:
    return next(_ours(text), None) is not None


def has_all(text: str, handlers: Handlers) -> bool:
    """Each once and, of ours, no others; a timeout that somebody has changed is theirs to change."""
    found = [(event, node.entries[index].node.plain()["command"]) for event, _, _, node, index in _ours(text)]
    return sorted(found) == sorted((event, handler["command"]) for event, handler in handlers.items())


def _ours(text: str) -> Iterator[tuple[str, Node, int, Node, int]]:
    """Event, its groups, which group, that group's handlers, which handler."""
    for event, groups in _arrays(json_edit.find(text, (KEY,))):
        for number, entry in enumerate(groups.entries):
            handlers = entry.node.member(KEY)
            for index in _of_ours(handlers) if handlers is not None and handlers.kind == ARRAY else ():
                assert handlers is not None
                yield event, groups, number, handlers, index


def _arrays(hooks: Node | None) -> Iterator[tuple[str, Node]]:
    if hooks is not None and hooks.kind == OBJECT:
        yield from ((str(entry.key), entry.node) for entry in hooks.entries if entry.node.kind == ARRAY)


def _of_ours(handlers: Node) -> Iterator[int]:
    for index, entry in enumerate(handlers.entries):
        command = entry.node.member("command")
        if command is not None and is_hook_of_ours(command.scalar):
            yield index
