"""Reading JSON with comments so that each value knows its place in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nudge.clients.malformed import Malformed, line_at
from nudge.limits import MAX_JSON_DEPTH

OBJECT, ARRAY, SCALAR = "object", "array", "value"

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_CLOSES = {OBJECT: "}", ARRAY: "]"}


@dataclass(slots=True)
class Entry:
    """A member or an item with what stands around it."""

    lead: int  # end of the bracket, comma or comment before it
    under_comment: bool  # that is a comment which needs the end of its line
    start: int
    end: int
    key: str | None
    node: Node
    comma: int | None = None  # where the one after it is


@dataclass(slots=True)
class Node:
    kind: str
    start: int
    end: int
    scalar: Any = None
    entries: list[Entry] = field(default_factory=list)
    tail: int = 0  # end of the last bracket, entry, comma or comment before the closing bracket
    ends_in_comment: bool = False  # that is a comment which needs the end of its line

    @property
    def close(self) -> int:
        return self.end - 1

    @property
    def is_bare(self) -> bool:
        """Nothing inside, not even a comment."""
        return self.tail == self.start + 1

    def entry(self, key: str) -> Entry | None:
        """The last one of that name, as every reader of JSON has it."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def member(self, key: str) -> Node | None:
        entry = self.entry(key)
        return None if entry is None else entry.node

    def plain(self) -> Any:
        if self.kind == OBJECT:
            return {str(entry.key): entry.node.plain() for entry in self.entries}
        return [entry.node.plain() for entry in self.entries] if self.kind == ARRAY else self.scalar


@dataclass(slots=True)
class Document:
    root: Node | None  # None: nothing but space and comments
    tail: int  # end of the last thing that is no space


@lru_cache(maxsize=4)
def parse(text: str) -> Document:
    """Remembered: one edit looks at the same text several times, and a client's state can have megabytes."""
    return _Reader(text).document()


def plain(text: str) -> Any:
    """The value, or None when there is none."""
    root = parse(text).root
    return None if root is None else root.plain()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._tail = 0
        self._line_comment = False  # is what the tail is the end of

    def document(self) -> Document:
        self._skip()
        root = self._value(0) if self._at < len(self._text) else None
        self._skip()
        if self._at < len(self._text):
            raise self._wrong("something follows the end of the document")
        return Document(root, self._tail)

    def _value(self, depth: int) -> Node:
        if depth > MAX_JSON_DEPTH:
            raise self._wrong("nested too deep")
        opening = self._text[self._at : self._at + 1]
        if opening in ("{", "["):
            return self._container(OBJECT if opening == "{" else ARRAY, depth)
        start = self._at
        scalar = self._string() if opening == '"' else self._literal()
        return Node(SCALAR, start, self._at, scalar)

    def _container(self, kind: str, depth: int) -> Node:
        node = Node(kind, self._at, 0)
        self._take(1)
        self._skip()
        while not self._text.startswith(_CLOSES[kind], self._at):
            if node.entries and node.entries[-1].comma is None:
                raise self._wrong(f"expected a comma or {_CLOSES[kind]}")
            node.entries.append(self._entry(kind, depth))
            self._skip()
        node.tail, node.ends_in_comment = self._tail, self._line_comment
        self._take(1)
        node.end = self._at
        return node

    def _entry(self, kind: str, depth: int) -> Entry:
        lead, under_comment, start = self._tail, self._line_comment, self._at
        key = self._key() if kind == OBJECT else None
        node = self._value(depth + 1)
        entry = Entry(lead, under_comment, start, node.end, key, node)
        self._skip()
        if self._text.startswith(",", self._at):
            entry.comma = self._at
            self._take(1)
        return entry

    def _key(self) -> str:
        if not self._text.startswith('"', self._at):
            raise self._wrong('expected a name in "quotes" or }')
        key = self._string()
        self._skip()
        if not self._text.startswith(":", self._at):
            raise self._wrong(f"expected a colon after {json.dumps(key)}")
        self._take(1)
        self._skip()
        return key

    def _string(self) -> str:
        try:
            text, end = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._wrong(error.msg.lower()) from None
        self._take(end - self._at)
        return str(text)

    def _literal(self) -> Any:
        found = _LITERAL.match(self._text, self._at)
        if found is None:
            raise self._wrong("expected a value")
        self._take(len(found[0]))
        return json.loads(found[0])

    def _take(self, length: int) -> None:
        self._at += length
        self._tail, self._line_comment = self._at, False

    def _skip(self) -> None:
        """Space and comments; a comment is something that stays where it is, so it moves the tail."""
        while (found := _COMMENT.match(self._text, self._space_end())) is not None:
            self._at = self._tail = found.end()
            self._line_comment = found[0].startswith("//")
        self._at = self._space_end()

    def _space_end(self) -> int:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        return found.end()

    def _wrong(self, what: str) -> Malformed:
        return Malformed(what, line_at(self._text, min(self._at, len(self._text))))
