"""TOON: the documented example byte for byte, and what is lost."""

from __future__ import annotations

import pytest

from nudge.memories import toon
from tests import toon_parser

RESPONSE = {
    "memories": [
        {
            "id": "abc-123",
            "title": "PostgreSQL config",
            "tier": "long",
            "namespace": "infra",
            "priority": 9,
            "score": 0.763,
            "tags": ["postgres", "db"],
        },
        {
            "id": "def-456",
            "title": "Redis cache",
            "tier": "long",
            "namespace": "infra",
            "priority": 8,
            "score": 0.541,
            "tags": ["redis"],
        },
        {
            "id": "ghi-789",
            "title": "Deploy notes",
            "tier": "mid",
            "namespace": "infra",
            "priority": 5,
            "score": 0.320,
            "tags": [],
        },
    ],
    "count": 3,
    "mode": "hybrid",
}
TEXT = """count:3|mode:hybrid
memories[id|title|tier|namespace|priority|score|tags]:
abc-123|PostgreSQL config|long|infra|9|0.763|postgres,db
def-456|Redis cache|long|infra|8|0.541|redis
ghi-789|Deploy notes|mid|infra|5|0.32|"""


def test_the_documented_example_is_written_byte_for_byte() -> None:
    """Metadata line, header and rows as the format's specification prints them."""
    assert toon.dump(RESPONSE) == TEXT


def test_the_documented_example_is_parsed() -> None:
    """Values come back as text, an empty one as null, and written again they are the same bytes."""
    parsed = toon_parser.parse(TEXT)
    assert parsed["count"] == "3" and parsed["mode"] == "hybrid"
    assert [row["title"] for row in parsed["memories"]] == ["PostgreSQL config", "Redis cache", "Deploy notes"]
    assert parsed["memories"][2]["tags"] is None
    assert toon.dump(parsed) == TEXT


def test_search_results_are_called_memories() -> None:
    """The header is the same whichever key the response has."""
    assert toon.dump({"results": [], "count": 0}, ("id",)) == "count:0\nmemories[id]:"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({"id": None, "title": ""}, "|"),
        ({"id": True, "title": 1}, "1|1"),
        ({"id": ["a,b"], "title": ["a", "b"]}, "a,b|a,b"),
        ({"id": {"a": 1}, "title": 2.50}, "[object]|2.5"),
    ],
)
def test_what_does_not_come_back(values: dict[str, object], written: str) -> None:
    """Each of the losses that the module lists."""
    assert toon.dump({"memories": [values]}, ("id", "title")).splitlines()[1] == written
