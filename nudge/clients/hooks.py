"""Our hooks in a file that nests them as Claude Code does: event, groups, handlers. Codex and Gemini have the same
nesting; Cursor has no
groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nudge.clients import json_edit
from nudge.clients.draft import Draft
from nudge.clients.json_text import ARRAY, OBJECT, Node
from nudge.clients.launch import is_hook_of_ours

KEY = "hooks"

Handlers = Mapping[str, Mapping[str, Any]]  # what to run, by event


def add(draft: Draft, handlers: Handlers, *, grouped: bool = True) -> None:
    """Each in a group of its own behind the others: groups have matchers, and some clients know a hook by its place."""
    for event, handler in handlers.items():
        json_edit.add_item(draft, (KEY, event), {KEY: [handler]} if grouped else handler)


def remove(draft: Draft) -> None:
    """One handler at a time, since every removal moves the rest; groups, events and the whole that this empties go
    too."""
    while (found := next(_ours(draft.text), None)) is not None:
        event, _, array, index = found
        json_edit.remove_item(draft, array, index)
        json_edit.remove_if_bare(draft, (KEY, event))


def has_any(text: str) -> bool:
    return next(_ours(text), None) is not None


def has_all(text: str, handlers: Handlers) -> bool:
    """Each once and, of ours, no others; a timeout that somebody has changed is theirs to change."""
    found = [(event, command) for event, command, _, _ in _ours(text)]
    return sorted(found) == sorted((event, handler["command"]) for event, handler in handlers.items())


def _ours(text: str) -> Iterator[tuple[str, str, Node, int]]:
    """Event and command, and which entry of which array goes with it: a group that has nothing else goes whole."""
    for event, array in _arrays(json_edit.find(text, (KEY,))):
        for number, entry in enumerate(array.entries):
            handlers = entry.node.member(KEY)
            if handlers is None:
                yield from ((event, command, array, number) for command in _command(entry.node))
            elif handlers.kind == ARRAY:
                for index, handler in enumerate(handlers.entries):
                    alone = len(handlers.entries) == 1
                    yield from (
                        (event, command, *((array, number) if alone else (handlers, index)))
                        for command in _command(handler.node)
                    )


def _arrays(hooks: Node | None) -> Iterator[tuple[str, Node]]:
    if hooks is not None and hooks.kind == OBJECT:
        yield from ((str(entry.key), entry.node) for entry in hooks.entries if entry.node.kind == ARRAY)


def _command(handler: Node) -> Iterator[str]:
    """Of a handler that is ours."""
    command = handler.member("command")
    if command is not None and is_hook_of_ours(command.scalar):
        yield str(command.scalar)
