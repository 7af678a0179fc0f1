"""The thin path's JSON is `json`'s, without its import."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.core import thin_json
from tests.unit.test_thin_path import loaded_by

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_it_writes_what_json_writes(value: Any) -> None:
    """Compact and in Unicode for the wire; sorted and in ASCII for a digest."""
    assert thin_json.dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert thin_json.dumps_sorted(value) == json.dumps(value, sort_keys=True)


@given(values)
def test_it_reads_what_json_writes(value: Any) -> None:
    """In text and in bytes, with blanks around it."""
    text = json.dumps(value, indent=1)
    assert thin_json.loads(f"\n{text} ") == value == thin_json.loads(text.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_other_encodings_are_left_to_json(encoding: str) -> None:
    """A hook of Windows may be sent a byte order mark."""
    assert thin_json.loads('{"name": "grün"}'.encode(encoding)) == {"name": "grün"}


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "[1] 2", '"\x01"', "\xa0[]", '{"a" 1}', "-"])
def test_it_refuses_what_json_refuses(text: str) -> None:
    """With the same words: they reach the user."""
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as raised:
        thin_json.loads(text)
    assert str(raised.value) == str(expected.value)


def test_a_malformed_text_is_an_error_before_json_is_imported() -> None:
    """In Python 3.11 the scanner alone cannot raise its own error."""
    statement = (
        "from nudge.core import thin_json as j\ntry: j.loads('{x')\nexcept ValueError: pass\nelse: raise SystemExit(1)"
    )
    assert "json" in loaded_by(f"exec({statement!r})")


def test_a_value_that_json_does_not_know_is_an_error() -> None:
    """It is never written as something else."""
    with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
        thin_json.dumps({"a": {1}})
