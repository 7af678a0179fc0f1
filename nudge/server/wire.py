"""Strict JSON in, compact JSON out.

Two speeds: `decode` and `encode` are for the event loop and small messages; `decode_slow` and `encode_slow` are for a
worker
thread and large ones. The C code of `json` keeps the interpreter lock from start to end of a call, which on 16 MiB
would stall
the event loop, so they hand it pieces that take well under a millisecond each.
"""

from __future__ import annotations

import asyncio
import json
import re
from codecs import utf_8_decode
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing from the stubs only
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from nudge import limits
from nudge.strict_json import (
    DECODER,
    ENCODER,
    SURROGATE,
    WireError,
    broken,
    check_text,
    decode,
    integer,
    real,
    refuse,
    refuse_depth,
    refuse_repeated_key,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = [
    "WireError",
    "decode",
    "decode_slow",
    "encode",
    "encode_any",
    "encode_blocks",
    "encode_slow",
    "is_small",
    "taken_apart",
]


# --- large messages ---

# Every repetition is bounded: a match of 16 MiB of blanks or digits would keep the interpreter lock as long as `json`
# does.
_BLANKS = rb"[ \t\n\r]{0,99}+"
_PLAIN = rb'"([^"\\\x00-\x1f]{0,4096}+)"'
_SPACE = re.compile(rb"[ \t\n\r]{1,4096}+")
_DIGITS = rb"(-?[0-9][0-9.eE+-]{0,%d}+)" % limits.MAX_NUMBER_CHARS
_VALUE = re.compile(_BLANKS + rb"(?:" + _PLAIN + rb"|" + _DIGITS + rb"|(true|false|null)|([\[{]))")
_KEY = re.compile(_BLANKS + _PLAIN + _BLANKS + rb":")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_IS_STRING, _IS_NUMBER, _IS_WORD = 1, 2, 3  # groups of _VALUE
_WORDS = {b"true": True, b"false": False, b"null": None}
_WINDOW = 4 * limits.KIB
_WINDOW_BRACKETS = 256  # the C scanner recurses for each, and must stay far from the interpreter's limit


def decode_slow(body: bytes) -> Any:
    """`decode` for a worker thread: slower in all, but other threads run meanwhile.

    Only a large body can reach the bounds that it adds: on separators, on the members of one container, on one string.
    """
    _check_separators(body)
    scanner = _Scanner(body)
    try:
        value, end = scanner.value(0, 0)
    except json.JSONDecodeError as error:
        raise broken(error.msg) from None
    except UnicodeDecodeError:
        raise broken("invalid UTF-8") from None
    if scanner.skip_space(end) != len(body):
        raise broken("Extra data", end)
    return value


def _check_separators(body: bytes) -> None:
    """Three bytes can ask for an object of sixty: memory by the hundred MiB, and one long pause to free it."""
    pieces = (body[start : start + limits.MIB] for start in range(0, len(body), limits.MIB))
    if sum(piece.count(b",") + piece.count(b"[") + piece.count(b"{") for piece in pieces) > limits.MAX_JSON_SEPARATORS:
        refuse("too many values in one message; send it in parts")


def taken_apart(value: Any) -> Generator[None, None, None]:
    """Frees a large message step by step: let go as a whole, it would hold the event loop."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
            part.clear()
        elif isinstance(part, list):
            waiting += part
            part.clear()
        yield


class _Scanner:
    """Recursive descent of bounded depth; the C scanner takes over wherever a whole container fits into a window."""

    __slots__ = ("_body", "_window_from")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._window_from = 0

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        found = _VALUE.match(self._body, at)
        if found is None:
            return self._odd_value(at, depth)
        kind, end = found.lastindex, found.end()
        if kind == _IS_STRING:
            return str(found[1], "utf-8"), end
        if kind == _IS_NUMBER:
            return self._number(found[2], end), end
        if kind == _IS_WORD:
            return _WORDS[found[3]], end
        return self._container(end - 1, depth + 1)

    def _odd_value(self, at: int, depth: int) -> tuple[Any, int]:
        """A string that has escapes or is long, or a value behind many blanks."""
        start = self.skip_space(at)
        if self._byte(start) == b'"':
            return self._string(start + 1)
        if start > at and _VALUE.match(self._body, start):
            return self.value(start, depth)
        raise broken("Expecting value", start)

    def _number(self, literal: bytes, end: int) -> int | float:
        text = literal.decode()
        found = _NUMBER.fullmatch(text)
        if found is None and len(text) <= limits.MAX_NUMBER_CHARS:
            raise broken("Malformed number", end - len(text))
        return integer(text) if found and found.lastindex is None else real(text)

    def _string(self, start: int) -> tuple[str, int]:
        end = self._closing_quote(start)
        raw = self._body[start : end + 1]
        text, _ = scanstring(raw.decode(), 0, True)
        if SURROGATE.search(raw):
            check_text(text)
        return text, end + 1

    def _closing_quote(self, start: int) -> int:
        """The next quote behind an even number of backslashes."""
        begin, limit = start, start + limits.MAX_BODY_BYTES
        while (quote := self._body.find(b'"', begin, limit)) >= 0:
            before = self._body[begin:quote]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
                return quote
            begin = quote + 1
        if limit < len(self._body):
            refuse(f"a string is longer than {limits.MAX_BODY_BYTES} bytes")
        raise broken("Unterminated string", start - 1)

    def _container(self, start: int, depth: int) -> tuple[Any, int]:
        if depth > limits.MAX_JSON_DEPTH:
            refuse_depth()
        if start >= self._window_from:
            whole = self._in_window(start, depth)
            if whole is not None:
                return whole
            # Those right behind lie in the same long container: trying each of them would repeat the work at every
            # level.
            self._window_from = start + _WINDOW // 8
        return self._members(start + 1, depth) if self._byte(start) == b"{" else self._items(start + 1, depth)

    def _in_window(self, start: int, depth: int) -> tuple[Any, int] | None:
        """The container that starts here, if the C scanner finds nothing wrong with it in the next few KiB."""
        window = self._body[start : start + _WINDOW]
        if window.count(b"[") + window.count(b"{") > _WINDOW_BRACKETS:
            return None
        try:
            text, _ = utf_8_decode(window, "strict", False)
            value, end = DECODER.raw_decode(text)
        except (json.JSONDecodeError, UnicodeDecodeError, WireError):
            return None  # cut short or wrong: the exact way tells which
        size = end if text.isascii() else len(text[:end].encode())
        nested = window.count(b"[", 0, size) + window.count(b"{", 0, size)
        if depth + nested - 1 > limits.MAX_JSON_DEPTH:
            return None
        if SURROGATE.search(window, 0, size):
            check_text(ENCODER.encode(value))
        return value, start + size

    def _members(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        more, at = self._first(at, b"}")
        while more:
            key, at = self._key(at)
            if key in members:
                refuse_repeated_key()
            members[key], at = self.value(at, depth)
            more, at = self._next(at, b"}", len(members))
        return members, at

    def _items(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        more, at = self._first(at, b"]")
        while more:
            item, at = self.value(at, depth)
            items.append(item)
            more, at = self._next(at, b"]", len(items))
        return items, at

    def _key(self, at: int) -> tuple[str, int]:
        found = _KEY.match(self._body, at)
        if found:
            return str(found[1], "utf-8"), found.end()
        start = self.skip_space(at)
        if self._byte(start) != b'"':
            raise broken("Expecting property name enclosed in double quotes", start)
        key, end = self._string(start + 1)
        end = self.skip_space(end)
        if self._byte(end) != b":":
            raise broken("Expecting ':' delimiter", end)
        return key, end + 1

    def _first(self, at: int, closing: bytes) -> tuple[bool, int]:
        """Whether the container has a member at all, and where to read on."""
        at = self.skip_space(at)
        return (False, at + 1) if self._byte(at) == closing else (True, at)

    def _next(self, at: int, closing: bytes, members: int) -> tuple[bool, int]:
        """Whether another member follows, and where to read on."""
        at = self.skip_space(at)
        byte = self._byte(at)
        if byte == closing:
            return False, at + 1
        if byte != b",":
            raise broken("Expecting ',' delimiter", at)
        if members >= limits.MAX_JSON_MEMBERS:
            refuse(f"an object or array has more than {limits.MAX_JSON_MEMBERS} members")
        return True, at + 1

    def _byte(self, at: int) -> bytes:
        return self._body[at : at + 1]

    def skip_space(self, at: int) -> int:
        while space := _SPACE.match(self._body, at):
            at = space.end()
        return at


# --- out ---

_ARRAYS = (list, tuple)
_SIZED = (str, dict, list, tuple)
_PIECE = 4 * limits.KIB  # characters and values that the C encoder may take at once


def encode(result: Any) -> bytes:
    """Compact UTF-8, for answers of everyday size, in a quarter of the time that `json` takes, which says whether it is
    JSON at all."""
    encoded = to_json(result)
    if b"NaN" in encoded or b"Infinity" in encoded:
        ENCODER.encode(result)  # raises for the number, not for a text that says so
    return encoded


def is_small(result: Any) -> bool:
    """Whether the event loop may encode it itself."""
    return _fits(result, limits.SMALL_JSON_BYTES)


async def encode_any(result: Any) -> bytes:
    """For the event loop, when nobody knows how large the answer is: at the speed that its size asks for."""
    return encode(result) if is_small(result) else await asyncio.to_thread(encode_slow, result)


def encode_slow(result: Any) -> bytes:
    """`encode` for a worker thread: the same bytes, made in pieces so that other threads run meanwhile."""
    return b"".join(encode_blocks(result))


def encode_blocks(result: Any) -> list[bytes]:
    """The same in blocks: even to join forty megabytes takes a while."""
    blocks, block, size = [], [], 0
    for piece in _pieces(result):
        block.append(piece)
        size += len(piece)
        if size >= limits.SMALL_JSON_BYTES:
            blocks.append(b"".join(block))
            block, size = [], 0
    return [*blocks, b"".join(block)]


def _pieces(value: Any) -> Iterator[bytes]:
    if _fits(value, _PIECE):
        yield encode(value)
    elif isinstance(value, dict):
        yield from _object_pieces(value)
    elif isinstance(value, str):
        yield from _string_pieces(value)
    else:
        yield from _array_pieces(value)


def _fits(value: Any, most: int) -> bool:
    """Whether it has so many characters and values at most. Stops counting as soon as it knows: a large one costs no
    more."""
    left, waiting = most, [value]
    while waiting and left >= 0:
        part = waiting.pop()
        kind = type(part)
        left -= len(part) if kind in _SIZED else 1
        if kind is dict and left >= 0:
            waiting += part.values()
        elif kind in _ARRAYS and left >= 0:
            waiting += part
    return left >= 0


def _object_pieces(members: dict[str, Any]) -> Iterator[bytes]:
    before = b"{"
    for key, value in members.items():
        yield before + encode(key) + b":"
        yield from _pieces(value)
        before = b","
    yield b"}"


def _array_pieces(items: list[Any] | tuple[Any, ...]) -> Iterator[bytes]:
    before = b"["
    for item in items:
        yield before
        yield from _pieces(item)
        before = b","
    yield b"]"


def _string_pieces(text: str) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), _PIECE):
        yield encode(text[start : start + _PIECE])[1:-1]
    yield b'"'
