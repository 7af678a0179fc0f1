from __future__ import annotations

import pytest

from nudge.errors import Invalid
from nudge.hints.fields import parse_name


@pytest.mark.parametrize("name", ["", " ", " api", "api ", "a\nb", "a\0", "x" * 129, 5, None, "\udfff"])
def test_bad_name(name: object) -> None:
    """A component or key is a short printable text with no blank around it."""
    with pytest.raises(Invalid) as refused:
        parse_name(name, "component")
    assert refused.value.field == "component"


@pytest.mark.parametrize("name", ["api", "packages/api", "env.FEATURE_X", "http proxy", "ключ", "x" * 128])
def test_good_name(name: str) -> None:
    """Paths, dots, inner blanks and any script are fine."""
    assert parse_name(name, "component") == name
