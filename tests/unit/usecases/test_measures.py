from __future__ import annotations

import pytest

from nudge.usecases.measures import size, span


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (4 * 1024**2, "4 MiB"),
        (5 * 1024**3, "5 GiB"),
    ],
)
def test_size(count: int, words: str) -> None:
    """The largest unit that it reaches, with one decimal where there is one."""
    assert size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (62, "1m 2s"),
        (43_200, "12h"),
        (11_520, "3h 12m"),
        (86_700, "1d"),
        (90_000, "1d 1h"),
    ],
)
def test_span(seconds: float, words: str) -> None:
    """Two units at most, and none that says nothing."""
    assert span(seconds) == words
