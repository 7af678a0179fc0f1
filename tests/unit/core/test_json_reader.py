"""A document that is read piece by piece is the one that is read at once, wherever the pieces end."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.core import json_reader, limits
from nudge.core.errors import Invalid, NudgeError
from nudge.core.json_reader import JsonReader
from nudge.core.strict_json import JsonError, decode

_SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    _SCALARS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aé€😀", max_size=3), inner, max_size=4),
    max_leaves=12,
)


class _Pieces(io.BytesIO):
    """Gives a few bytes at once, as a pipe may."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    def read(self, _size: int | None = -1) -> bytes:
        return super().read(self._size)


def walk(reader: JsonReader, levels: int) -> Any:
    """The value at the reader's place, of which it goes through this many levels itself."""
    kind = reader.kind()
    if levels and kind == "{":
        return {name: walk(reader, levels - 1) for name in reader.members("x")}
    if levels and kind == "[":
        return [walk(reader, levels - 1) for _ in reader.items("x")]
    return reader.value()


@given(_JSON, st.integers(1, 5), st.integers(0, 3), st.sampled_from((None, 1)), st.booleans())
def test_any_pieces_of_any_document(
    document: Any, size: int, levels: int, indent: int | None, ascii_only: bool
) -> None:
    """Numbers, escapes and characters of several bytes may be cut anywhere."""
    content = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()
    reader = JsonReader(_Pieces(content, size))
    assert walk(reader, levels) == document
    reader.end()
    passed = JsonReader(_Pieces(content, size))
    passed.skip()
    passed.end()


@given(st.binary(max_size=40) | st.text('{}[]",:01.eE-+tfn \\u').map(str.encode), st.integers(1, 4))
def test_what_is_not_json_is_refused_as_elsewhere(content: bytes, size: int) -> None:
    """Piece by piece the same documents are valid as at once."""

    def outcome(read: Any) -> Any:
        try:
            return ("read", read())
        except NudgeError:
            return "refused"

    def by_pieces() -> Any:
        reader = JsonReader(_Pieces(content, size))
        value = walk(reader, 2)
        reader.end()
        return value

    assert outcome(by_pieces) == outcome(lambda: decode(content))


def test_a_value_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a step depends on its largest value: one without end is refused."""
    monkeypatch.setattr(limits, "MAX_IMPORT_ROW_CHARS", 1_000)
    monkeypatch.setattr(json_reader, "_PIECE", 100)
    reader = JsonReader(io.BytesIO(b'["' + b"x" * 900 + b'", "' + b"x" * 10_000))
    items = reader.items("x")
    next(items)
    assert reader.value() == "x" * 900
    next(items)
    with pytest.raises(Invalid, match="has a value of more than"):
        reader.value()


def test_an_error_says_where_it_is() -> None:
    """In characters from the beginning of the document, whatever was read before."""
    content = b'{"a": "' + "é".encode() * 100_000 + b'", "b": nul}'
    reader = JsonReader(io.BytesIO(content))
    with pytest.raises(JsonError, match="Parse error at 100015: Expecting value"):
        walk(reader, 1)
