from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.clients import json_edit
from nudge.clients.text_edit import Malformed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, st.sampled_from((None, 1, 2, "\t")))
def test_reads_what_the_standard_library_reads(value: Any, indent: Any) -> None:
    """Plain JSON means what it means to everybody."""
    assert json_edit.load(json.dumps(value, indent=indent)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("// a\n{ /* b */ } // c", {}),
        ('{"a": [1, 2,], /* x */ }', {"a": [1, 2]}),
        ('{"url": "http://x//y"} // end', {"url": "http://x//y"}),
        ('{"a": "/* no */"}', {"a": "/* no */"}),
        ("\ufeff{}", {}),
        ("  // only\n", None),
    ],
)
def test_comments_and_trailing_commas(text: str, value: Any) -> None:
    """As the clients that call their files JSON but read more."""
    assert json_edit.load(text) == value


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, "expected a comma or }"),
        ('{\n  "a" 1\n}', 2, 'expected a colon after "a"'),
        ("{\n  a: 1\n}", 2, 'expected a name in "quotes" or }'),
        ('{\n"a": \n}', 3, "expected a value"),
        ('{"a": 1', 1, "expected a comma or }"),
        ('{\n"a": "x\n"}', 2, "control character"),
        ("{}\n{}", 2, "there is text after the end of the document"),
        ("[" * 100, 1, "nested too deep"),
        ("{,}", 1, 'expected a name in "quotes" or }'),
        ('{"a": 01}', 1, "expected a comma or }"),
        ("<<<<<<< HEAD\n", 1, "expected a value"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, what: str) -> None:
    """The error names the line to fix."""
    with pytest.raises(Malformed) as refusal:
        json_edit.parse(text)
    assert refusal.value.line == line and what in refusal.value.problem
