"""What must not reach a disk: credentials, and what a person marked as private. All recorded text passes here first."""

from __future__ import annotations

import re

from nudge import limits
from nudge.security.secrets import find_secret, redact
from nudge.text import to_unicode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PRIVATE = "[private]"

_ELISION = "\n[...]\n"
_IDENTITIES = frozenset(("event_id", "session_id", "prompt_id", "agent_id"))
# With attributes or without, and no blank more: `sort <private >public` is a shell's business.
_TAG = r"(?i)(</?private(?:\s+[a-z][^<>]*(?<!\s))?>)"


def clean(text: str) -> str:
    """The text as it may be kept, whole."""
    return redact(without_private(to_unicode(text)))


def shortened(text: str, most: int) -> str:
    """At most so many characters of it. It is redacted before it is cut: half a credential would not be recognised."""
    text = without_private(to_unicode(text))
    return redact(_start(text)).strip()[:most]


def head_and_tail(text: str, most: int) -> str:
    """The two ends of a long text: an error says at one of them what went wrong."""
    text = without_private(to_unicode(text))
    if len(text) <= limits.REDACTED_AT_ONCE:
        return _ends(redact(text).strip(), most)
    half = (most - len(_ELISION)) // 2
    return redact(_start(text)).strip()[:half] + _ELISION + redact(_end(text)).strip()[-half:]


def without_private(text: str) -> str:
    """`<private>...</private>` leaves nothing behind; one that is never closed reaches to the end."""
    if "<" not in text or "private" not in text.lower():
        return text
    kept, depth = [], 0
    for number, piece in enumerate(re.split(_TAG, text)):
        if number % 2:
            depth = max(0, depth + (-1 if piece[1] == "/" else 1))
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Every text in it, however deep. An id is random by nature, so there only what has the shape of a known credential
    goes."""
    return {name: _identity(value) if name in _IDENTITIES else _leaf(value) for name, value in event.items()}


def _leaf(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _named(str(name), part) for name, part in value.items()}
    return [_leaf(part) for part in value] if isinstance(value, list) else value


def _named(name: str, value: Any) -> Any:
    """`hunter2` alone is a word; under the name `password` it is a credential."""
    value = _leaf(value)
    if not isinstance(value, str):
        return value
    kind = find_secret(f'{name}="{value}"', doubting=True)
    return value if kind is None else f"[REDACTED:{kind}]"


def _identity(value: Any) -> Any:
    """A word in front keeps those rules away that judge a text which is one random run and nothing else."""
    return clean(f"id {value}").removeprefix("id ") if isinstance(value, str) else value


def _start(text: str) -> str:
    """As much as is searched at once, cut between two words."""
    if len(text) <= limits.REDACTED_AT_ONCE:
        return text
    return text[: limits.REDACTED_AT_ONCE].rsplit(None, 1)[0]


def _end(text: str) -> str:
    return text[-limits.REDACTED_AT_ONCE :].split(None, 1)[-1]


def _ends(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = (most - len(_ELISION)) // 2
    return text[:half] + _ELISION + text[-half:]
