"""Changing one entry of a JSON text, with comments or without, and no byte around it: the text is parsed so that each
value knows its position, and indentation, line ends, comments and commas are taken as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nudge.clients.text_edit import EditBuffer, Malformed
from nudge.core.limits import MAX_JSON_DEPTH
from nudge.core.text import line_at

Path = Sequence[str]

OBJECT, ARRAY, SCALAR = "object", "array", "value"

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_CLOSES = {OBJECT: "}", ARRAY: "]"}
_INDENT = "  "
_SPACE_AND_NEWLINE = re.compile(r"[ \t\r]*\n")


@dataclass(slots=True)
class JsonEntry:
    """A member or an item with what stands around it."""

    lead: int  # end of the bracket, comma or comment before it
    under_comment: bool  # that is a comment which needs the end of its line
    start: int
    end: int
    key: str | None
    node: JsonNode
    comma: int | None = None  # where the one after it is


@dataclass(slots=True)
class JsonNode:
    kind: str
    start: int
    end: int
    scalar: Any = None
    entries: list[JsonEntry] = field(default_factory=list)
    tail: int = 0  # end of the last bracket, entry, comma or comment before the closing bracket
    ends_in_comment: bool = False  # that is a comment which needs the end of its line

    @property
    def close(self) -> int:
        return self.end - 1

    @property
    def is_empty(self) -> bool:
        """Nothing inside, not even a comment."""
        return self.tail == self.start + 1

    def entry(self, key: str) -> JsonEntry | None:
        """The last one of that name, as every reader of JSON has it."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def member(self, key: str) -> JsonNode | None:
        entry = self.entry(key)
        return None if entry is None else entry.node

    def value(self) -> Any:
        if self.kind == OBJECT:
            return {str(entry.key): entry.node.value() for entry in self.entries}
        return [entry.node.value() for entry in self.entries] if self.kind == ARRAY else self.scalar


@dataclass(slots=True)
class Document:
    root: JsonNode | None  # None: nothing but space and comments
    tail: int  # end of the last thing that is no space


@lru_cache(maxsize=4)
def parse(text: str) -> Document:
    """Cached: one edit parses the same text several times, and a client's state can have megabytes."""
    return _JsonParser(text).document()


def load(text: str) -> Any:
    """The value, or None when there is none."""
    root = parse(text).root
    return None if root is None else root.value()


class _JsonParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._tail = 0
        self._line_comment = False  # is what the tail is the end of

    def document(self) -> Document:
        self._skip()
        root = self._value(0) if self._at < len(self._text) else None
        self._skip()
        if self._at < len(self._text):
            raise self._error("there is text after the end of the document")
        return Document(root, self._tail)

    def _value(self, depth: int) -> JsonNode:
        if depth > MAX_JSON_DEPTH:
            raise self._error("nested too deep")
        opening = self._text[self._at : self._at + 1]
        if opening in ("{", "["):
            return self._container(OBJECT if opening == "{" else ARRAY, depth)
        start = self._at
        scalar = self._string() if opening == '"' else self._literal()
        return JsonNode(SCALAR, start, self._at, scalar)

    def _container(self, kind: str, depth: int) -> JsonNode:
        node = JsonNode(kind, self._at, 0)
        self._take(1)
        self._skip()
        while not self._text.startswith(_CLOSES[kind], self._at):
            if node.entries and node.entries[-1].comma is None:
                raise self._error(f"expected a comma or {_CLOSES[kind]}")
            node.entries.append(self._entry(kind, depth))
            self._skip()
        node.tail, node.ends_in_comment = self._tail, self._line_comment
        self._take(1)
        node.end = self._at
        return node

    def _entry(self, kind: str, depth: int) -> JsonEntry:
        lead, under_comment, start = self._tail, self._line_comment, self._at
        key = self._key() if kind == OBJECT else None
        node = self._value(depth + 1)
        entry = JsonEntry(lead, under_comment, start, node.end, key, node)
        self._skip()
        if self._text.startswith(",", self._at):
            entry.comma = self._at
            self._take(1)
        return entry

    def _key(self) -> str:
        if not self._text.startswith('"', self._at):
            raise self._error('expected a name in "quotes" or }')
        key = self._string()
        self._skip()
        if not self._text.startswith(":", self._at):
            raise self._error(f"expected a colon after {json.dumps(key)}")
        self._take(1)
        self._skip()
        return key

    def _string(self) -> str:
        try:
            text, end = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._error(error.msg.lower()) from None
        self._take(end - self._at)
        return str(text)

    def _literal(self) -> Any:
        match = _LITERAL.match(self._text, self._at)
        if match is None:
            raise self._error("expected a value")
        self._take(len(match[0]))
        return json.loads(match[0])

    def _take(self, length: int) -> None:
        self._at += length
        self._tail, self._line_comment = self._at, False

    def _skip(self) -> None:
        """Space and comments; a comment is something that stays where it is, so it moves the tail."""
        while (match := _COMMENT.match(self._text, self._space_end())) is not None:
            self._at = self._tail = match.end()
            self._line_comment = match[0].startswith("//")
        self._at = self._space_end()

    def _space_end(self) -> int:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        return match.end()

    def _error(self, problem: str) -> Malformed:
        return Malformed(problem, line_at(self._text, min(self._at, len(self._text))))


# Editing


def add_member(buffer: EditBuffer, path: Path, value: Any) -> None:
    """Add `value` at `path`, where nothing is yet, and the objects on the way to it."""
    node = _root(buffer)
    for depth, name in enumerate(path):
        child = node.member(name)
        if child is None:
            _insert(buffer, node, name, _nested(path[depth + 1 :], value))
            return
        node = _expect(buffer, child, OBJECT, name)


def add_item(buffer: EditBuffer, path: Path, item: Any) -> None:
    """Append `item` to the array at `path`; add that, and the objects on the way to it, when they are missing."""
    array = find(buffer.text, path)
    if array is None:
        add_member(buffer, path, [item])
    else:
        _insert(buffer, _expect(buffer, array, ARRAY, path[-1]), None, item)


def find(text: str, path: Path) -> JsonNode | None:
    node = parse(text).root
    for name in path:
        node = None if node is None else node.member(name)
    return node


def remove_member(buffer: EditBuffer, path: Path) -> None:
    """Remove it, and every object above it that this leaves empty."""
    parent = find(buffer.text, path[:-1])
    entry = None if parent is None else parent.entry(path[-1])
    if parent is None or entry is None:
        return
    _remove(buffer, parent, entry)
    remove_if_empty(buffer, path[:-1])


def remove_item(buffer: EditBuffer, array: JsonNode, index: int) -> None:
    _remove(buffer, array, array.entries[index])


def remove_if_empty(buffer: EditBuffer, path: Path) -> None:
    node = find(buffer.text, path)
    if path and node is not None and node.is_empty:
        remove_member(buffer, path)


# Adding


def _root(buffer: EditBuffer) -> JsonNode:
    """The document's object; added first when there is nothing, or nothing but comments."""
    document = parse(buffer.text)
    if document.root is None:
        layout = _Layout.of(buffer.text)
        missing_end = "" if buffer.text[document.tail :].endswith("\n") else layout.newline
        buffer.insert(document.tail, f"{layout.newline if document.tail else ''}{{}}{missing_end}")
        document = parse(buffer.text)
    assert document.root is not None
    return _expect(buffer, document.root, OBJECT, "the document")


def _nested(names: Path, value: Any) -> Any:
    for name in reversed(names):
        value = {name: value}
    return value


def _expect(buffer: EditBuffer, node: JsonNode, kind: str, name: str) -> JsonNode:
    if node.kind != kind:
        raise Malformed(f"{name} is not an {kind}", line_at(buffer.text, node.start))
    return node


def _insert(buffer: EditBuffer, parent: JsonNode, key: str | None, value: Any) -> None:
    layout = _Layout.of(buffer.text)
    spread = layout.is_spread(parent)
    indent = layout.indent_in(parent)
    rendered = _render(key, value, layout, indent) if spread else _render_on_one_line(key, value)
    if parent.is_empty:
        ends = (layout.newline + indent, layout.newline + layout.indent_at(parent.start)) if spread else ("", "")
        buffer.replace(parent.start + 1, parent.close, ends[0] + rendered + ends[1])
        return
    last = parent.entries[-1] if parent.entries else None
    separator = layout.newline + indent if spread or parent.ends_in_comment else " "
    buffer.insert(parent.tail, separator + rendered + ("," if last is not None and last.comma is not None else ""))
    if last is not None and last.comma is None:
        buffer.insert(last.end, ",")


def _render(key: str | None, value: Any, layout: _Layout, indent: str) -> str:
    text = json.dumps(value, indent=layout.unit, ensure_ascii=False).replace("\n", layout.newline + indent)
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


def _render_on_one_line(key: str | None, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


@dataclass(frozen=True, slots=True)
class _Layout:
    """The line ends and indentation of a text."""

    text: str
    newline: str
    unit: str
    many_lines: bool
    root: JsonNode | None

    @classmethod
    def of(cls, text: str) -> _Layout:
        root = parse(text).root
        newline = "\r\n" if "\r\n" in text else "\n"
        layout = cls(text, newline, _INDENT, "\n" in text.strip(), root)
        if root is None or not root.entries or not layout.is_spread(root):
            return layout
        return cls(text, newline, layout.indent_at(root.entries[0].start) or _INDENT, layout.many_lines, root)

    def is_spread(self, parent: JsonNode) -> bool:
        """Whether its entries have lines of their own."""
        if parent.entries:
            return "\n" in self.text[parent.start : parent.entries[0].start]
        return self.many_lines or (self.root is not None and parent.start == self.root.start)

    def indent_in(self, parent: JsonNode) -> str:
        if parent.entries and self.is_spread(parent):
            return self.indent_at(parent.entries[0].start)
        return self.indent_at(parent.start) + self.unit

    def indent_at(self, position: int) -> str:
        """The space that the line of `position` begins with."""
        begin = self.text.rfind("\n", 0, position) + 1
        line = self.text[begin:position]
        return line[: len(line) - len(line.lstrip(" \t"))]


# Removing


def _remove(buffer: EditBuffer, parent: JsonNode, entry: JsonEntry) -> None:
    end = entry.end if entry.comma is None else entry.comma + 1
    if (entry.lead, end) == (parent.start + 1, parent.tail):  # alone in there, without a comment
        buffer.delete(parent.start + 1, parent.close)
        return
    needed = entry.under_comment and not _SPACE_AND_NEWLINE.match(buffer.text, end)
    buffer.delete(entry.start if needed else entry.lead, end)
    index = parent.entries.index(entry)
    before = parent.entries[index - 1] if index else None
    if entry.comma is None and before is not None and before.comma is not None:
        buffer.delete(before.comma, before.comma + 1)
