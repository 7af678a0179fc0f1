"""How long a hint lives: the session, or an ISO-8601 duration."""

from __future__ import annotations

import re

from nudge import limits
from nudge.errors import Invalid
from nudge.hints.fields import parse_text

SESSION = "session"

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_DURATION = re.compile(rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_UNIT_SECONDS = (7 * 86_400, 86_400, 3_600, 60, 1)
_RULE = 'must be "session" or a duration in weeks, days, hours, minutes and seconds such as PT2H or P1DT12H'


def parse_ttl(raw: object, field: str = "meta.ttl") -> float | None:
    """Seconds; None lives as long as the session. Months and years have no fixed length, so they are refused."""
    text = parse_text(raw, field, limits.MAX_TAG_CHARS)
    if text == SESSION:
        return None
    seconds = _seconds(text)
    if seconds is None:
        raise Invalid(_RULE, field=field)
    if not 0 < seconds <= limits.MAX_TTL_SECONDS:
        raise Invalid(f"must be more than nothing and at most {limits.MAX_TTL_SECONDS // 86_400} days", field=field)
    return seconds


def _seconds(text: str) -> float | None:
    """None when it is no duration, or has a fraction before its last part."""
    found = _DURATION.fullmatch(text.replace(",", "."))
    parts = zip(found.groups(), _UNIT_SECONDS, strict=True) if found else ()
    given = [(number, unit) for number, unit in parts if number]
    if not given or any("." in number for number, _ in given[:-1]):
        return None
    return sum(float(number) * unit for number, unit in given)
