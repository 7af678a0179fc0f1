"""Redaction of recorded text: credentials and what the user marked as private are removed before anything is stored."""

from __future__ import annotations

from nudge.core import limits
from nudge.core.text import to_unicode
from nudge.security.secrets import find_secret, redact, redaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PRIVATE = "[private]"

_ELISION = "\n[...]\n"
_IDENTITIES = frozenset(("event_id", "session_id", "prompt_id", "agent_id"))
# A tag has no space before `>`: `sort <private >public` is a redirection.
_TAG = r"(?i)(</?private(?:\s+[a-z][^<>]*(?<!\s))?>)"


def redact_text(text: str) -> str:
    """Return the whole text, redacted."""
    return redact(remove_private(to_unicode(text)))


def redact_start(text: str, most: int) -> str:
    """Return the first `most` characters. The text is redacted before it is cut: half a credential would not be
    recognized."""
    text = remove_private(to_unicode(text)).strip()
    return redact(_first_words(text)).strip()[:most]


def redact_ends(text: str, most: int) -> str:
    """Return the beginning and the end of a long text, at most `most` characters: an error names its cause at one of
    them."""
    text = remove_private(to_unicode(text)).strip()
    half = (most - len(_ELISION)) // 2
    if len(text) > limits.REDACTED_AT_ONCE:
        return redact(_first_words(text)).strip()[:half] + _ELISION + redact(_last_words(text)).strip()[-half:]
    text = redact(text).strip()
    return text if len(text) <= most else text[:half] + _ELISION + text[-half:]


def remove_private(text: str) -> str:
    """Remove `<private>...</private>`; a tag that is never closed reaches to the end of the text."""
    if "<" not in text or "private" not in text.lower():
        return text
    import re  # late: 7 ms, which most events do not need

    kept, depth = [], 0
    for number, piece in enumerate(re.split(_TAG, text)):
        if number % 2:
            depth = max(0, depth + (-1 if piece[1] == "/" else 1))
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Redact every text in an event, at any depth. Ids are random: only known credential formats are redacted there."""
    return {name: _redact_id(value) if name in _IDENTITIES else _redact_value(value) for name, value in event.items()}


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {redact_text(str(name)): _redact_named(str(name), part) for name, part in value.items()}
    return [_redact_value(part) for part in value] if isinstance(value, list) else value


def _redact_named(name: str, value: Any) -> Any:
    """Redact with the field's name: `hunter2` is a word, but a credential in a field called `password`."""
    value = _redact_value(value)
    if not isinstance(value, str):
        return value
    if len(value) > limits.MAX_NAMED_SECRET:  # a text, whose own words were redacted already
        return value
    kind = find_secret(f'{name}="{value}"', for_redaction=True)
    return value if kind is None else redaction(kind)


def _redact_id(value: Any) -> Any:
    """Redact behind another word, which turns off the rule for a text that is a single random string."""
    return redact_text(f"id {value}").removeprefix("id ") if isinstance(value, str) else value


def _first_words(text: str) -> str:
    """The first REDACTED_AT_ONCE characters of a text without blanks around it, cut between two words."""
    if len(text) <= limits.REDACTED_AT_ONCE:
        return text
    return text[: limits.REDACTED_AT_ONCE].rsplit(None, 1)[0]


def _last_words(text: str) -> str:
    return text[-limits.REDACTED_AT_ONCE :].split(None, 1)[-1]
