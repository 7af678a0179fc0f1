"""TOON: any text survives the way there and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nudge.notes.toon import COMPACT_TOON_FIELDS, TOON_FIELDS, dump_toon
from tests import toon_parser

# What the format is made of, more often than arbitrary text has it.
TEXTS = st.one_of(st.text(), st.text(alphabet="\\\\|\n\rnr:[]ab\u2028\x85\x00"))


@pytest.mark.parametrize("fields", [TOON_FIELDS, COMPACT_TOON_FIELDS], ids=["full", "compact"])
@given(data=st.data())
def test_text_round_trips(fields: tuple[str, ...], data: st.DataObject) -> None:
    """In every field of both forms and in the metadata line; the empty text, which is written as null, becomes null."""
    rows: list[dict[str, Any]] = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(fields, TEXTS)), max_size=4))
    query = data.draw(TEXTS)
    parsed = toon_parser.parse(dump_toon({"query": query, "memories": rows}, fields))
    assert parsed["query"] == query
    assert parsed["memories"] == [{name: value or None for name, value in row.items()} for row in rows]


@given(st.lists(TEXTS, min_size=2))
@example(["a|b", "\\\\|", "\\n\n"])
def test_what_was_parsed_is_written_as_it_was(values: list[str]) -> None:
    """Writing, parsing and writing again gives the same bytes."""
    fields = [f"f{number}" for number in range(len(values))]
    text = dump_toon({"memories": [dict(zip(fields, values, strict=True))]}, fields)
    assert len(text.split("\n")) == 2
    assert dump_toon(toon_parser.parse(text), fields) == text
