"""How long a hint lives: the session, or an ISO-8601 duration."""

from __future__ import annotations

from nudge import limits
from nudge.clock import SESSION, parse_lifetime
from nudge.errors import Invalid
from nudge.hints.fields import parse_text

__all__ = ["SESSION", "parse_ttl"]


def parse_ttl(raw: object, field: str = "meta.ttl") -> float | None:
    """Seconds; None lives as long as the session."""
    try:
        return parse_lifetime(parse_text(raw, field, limits.MAX_TAG_CHARS))
    except ValueError as error:
        raise Invalid(str(error), field=field) from None
