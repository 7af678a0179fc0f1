from __future__ import annotations

import pytest

from nudge.errors import Invalid
from nudge.hints.ttl import parse_ttl


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT90S", 90),
        ("PT2H", 7_200),
        ("P1DT2H", 93_600),
        ("P2W", 1_209_600),
        ("P1W1D", 691_200),
        ("PT1H30M", 5_400),
        ("PT1.5H", 5_400),
        ("PT0,5S", 0.5),
        ("P1DT0S", 86_400),
        ("session", None),
    ],
)
def test_ttl(text: str, seconds: float | None) -> None:
    """Weeks to seconds, a fraction in the last part; `session` has no seconds of its own."""
    assert parse_ttl(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "PT0S",
        "P0D",
        "-PT1H",
        "PT-1H",
        "PT1.5H3M",
        "pt2h",
        "2h",
        "PT1H ",
        "P99999W",
        "PT1S1H",
        "Session",
        "P１D",
    ],
)
def test_bad_ttl(text: str) -> None:
    """Months and years have no fixed length; nothing, less than nothing and more than a year are no lifetime."""
    with pytest.raises(Invalid) as refused:
        parse_ttl(text)
    assert refused.value.field == "meta.ttl"
