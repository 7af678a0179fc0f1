"""Changing one entry of a JSON text and not a byte around it: its indentation, line ends, comments and commas are taken
as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nudge.clients.draft import Draft
from nudge.clients.json_text import ARRAY, OBJECT, Entry, Node, parse
from nudge.clients.malformed import Malformed, line_at

Path = Sequence[str]

_UNIT = "  "
_SPACE_AND_NEWLINE = re.compile(r"[ \t\r]*\n")


def add_member(draft: Draft, path: Path, value: Any) -> None:
    """Put `value` at `path`, where nothing is yet, making the objects on the way."""
    node = _root(draft)
    for depth, name in enumerate(path):
        child = node.member(name)
        if child is None:
            _insert(draft, node, name, _nested(path[depth + 1 :], value))
            return
        node = _expected(draft, child, OBJECT, name)


def add_item(draft: Draft, path: Path, item: Any) -> None:
    """Put `item` last into the array at `path`, making it and the objects on the way."""
    array = find(draft.text, path)
    if array is None:
        add_member(draft, path, [item])
    else:
        _insert(draft, _expected(draft, array, ARRAY, path[-1]), None, item)


def find(text: str, path: Path) -> Node | None:
    node = parse(text).root
    for name in path:
        node = None if node is None else node.member(name)
    return node


def remove_member(draft: Draft, path: Path) -> None:
    """Take it out, and every object above it that this leaves empty."""
    parent = find(draft.text, path[:-1])
    entry = None if parent is None else parent.entry(path[-1])
    if parent is None or entry is None:
        return
    _remove(draft, parent, entry)
    remove_if_bare(draft, path[:-1])


def remove_item(draft: Draft, array: Node, index: int) -> None:
    _remove(draft, array, array.entries[index])


def remove_if_bare(draft: Draft, path: Path) -> None:
    node = find(draft.text, path)
    if path and node is not None and node.is_bare:
        remove_member(draft, path)


# Putting in


def _root(draft: Draft) -> Node:
    """The document's object; made first when there is nothing, or nothing but comments."""
    document = parse(draft.text)
    if document.root is None:
        layout = _Layout.of(draft.text)
        missing_end = "" if draft.text[document.tail :].endswith("\n") else layout.newline
        draft.insert(document.tail, f"{layout.newline if document.tail else ''}{{}}{missing_end}")
        document = parse(draft.text)
    assert document.root is not None
    return _expected(draft, document.root, OBJECT, "the document")


def _nested(names: Path, value: Any) -> Any:
    for name in reversed(names):
        value = {name: value}
    return value


def _expected(draft: Draft, node: Node, kind: str, name: str) -> Node:
    if node.kind != kind:
        raise Malformed(f"{name} is no {kind}", line_at(draft.text, node.start))
    return node


def _insert(draft: Draft, parent: Node, key: str | None, value: Any) -> None:
    layout = _Layout.of(draft.text)
    spread = layout.is_spread(parent)
    indent = layout.indent_in(parent)
    rendered = _rendered(key, value, layout, indent) if spread else _on_one_line(key, value)
    if parent.is_bare:
        ends = (layout.newline + indent, layout.newline + layout.indent_at(parent.start)) if spread else ("", "")
        draft.replace(parent.start + 1, parent.close, ends[0] + rendered + ends[1])
        return
    last = parent.entries[-1] if parent.entries else None
    separator = layout.newline + indent if spread or parent.ends_in_comment else " "
    draft.insert(parent.tail, separator + rendered + ("," if last is not None and last.comma is not None else ""))
    if last is not None and last.comma is None:
        draft.insert(last.end, ",")


def _rendered(key: str | None, value: Any, layout: _Layout, indent: str) -> str:
    text = json.dumps(value, indent=layout.unit, ensure_ascii=False).replace("\n", layout.newline + indent)
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


def _on_one_line(key: str | None, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the author of a text writes."""

    text: str
    newline: str
    unit: str
    many_lines: bool
    root: Node | None

    @classmethod
    def of(cls, text: str) -> _Layout:
        root = parse(text).root
        newline = "\r\n" if "\r\n" in text else "\n"
        layout = cls(text, newline, _UNIT, "\n" in text.strip(), root)
        if root is None or not root.entries or not layout.is_spread(root):
            return layout
        return cls(text, newline, layout.indent_at(root.entries[0].start) or _UNIT, layout.many_lines, root)

    def is_spread(self, parent: Node) -> bool:
        """Whether its entries have lines of their own."""
        if parent.entries:
            return "\n" in self.text[parent.start : parent.entries[0].start]
        return self.many_lines or (self.root is not None and parent.start == self.root.start)

    def indent_in(self, parent: Node) -> str:
        if parent.entries and self.is_spread(parent):
            return self.indent_at(parent.entries[0].start)
        return self.indent_at(parent.start) + self.unit

    def indent_at(self, position: int) -> str:
        """The space that the line of `position` begins with."""
        begin = self.text.rfind("\n", 0, position) + 1
        line = self.text[begin:position]
        return line[: len(line) - len(line.lstrip(" \t"))]


# Taking out


def _remove(draft: Draft, parent: Node, entry: Entry) -> None:
    end = entry.end if entry.comma is None else entry.comma + 1
    if (entry.lead, end) == (parent.start + 1, parent.tail):  # alone in there, without a comment
        draft.delete(parent.start + 1, parent.close)
        return
    needed = entry.under_comment and not _SPACE_AND_NEWLINE.match(draft.text, end)
    draft.delete(entry.start if needed else entry.lead, end)
    index = parent.entries.index(entry)
    before = parent.entries[index - 1] if index else None
    if entry.comma is None and before is not None and before.comma is not None:
        draft.delete(before.comma, before.comma + 1)
