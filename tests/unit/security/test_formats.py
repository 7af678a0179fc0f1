"""The table of published token formats."""

from __future__ import annotations

from nudge.security.formats import FORMATS, SHAPES


def test_the_table_has_about_two_hundred_vendors() -> None:
    """A format is one row; no row is there twice, and each has a fewest and a most that make sense."""
    rows = [(prefix, characters, fewest) for _, prefixes, characters, fewest, _ in FORMATS for prefix in prefixes]
    assert len({kind for kind, *_ in FORMATS} | {kind for kind, *_ in SHAPES}) >= 200
    assert len(set(rows)) == len(rows)
    assert all(fewest <= most for *_, fewest, most in FORMATS)
