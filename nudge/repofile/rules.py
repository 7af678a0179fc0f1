"""What no text in a repository's file may have: characters that nobody sees, variables and templates, markup,
credentials. A pull request must not bring text that a reviewer reads differently than an agent does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nudge.core.text import is_visible
from nudge.security.secrets import find_secret

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ZERO_WIDTH = frozenset("\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff")
_FORBIDDEN = (
    (re.compile(r"\{\{|\{%|<%|\$\{"), "must not have a template or variable; nothing here is filled in"),
    (re.compile(r"\$\("), "must not have a command substitution"),
    (re.compile(r"`"), "must not have a backtick, which is a command substitution or markup"),
    (
        re.compile(r"\$[A-Za-z0-9_?!@*#$-]|%[A-Za-z_]\w*%"),
        "must not have a variable; nothing here is filled in",
    ),
    (re.compile(r"<[A-Za-z/!?]"), "must not have markup; write a blank behind a `<` that is none"),
    (re.compile(r"\]\("), "must not have markup such as a link"),
)


class Fault(NamedTuple):
    """What is wrong with a text, and at which character."""

    place: int
    rule: str


def find_invisible(text: str, allowed: str = "") -> Fault | None:
    """Return the first character that a reader cannot see: control, bidirectional, zero-width, tag, blank."""
    if text.isascii() and text.isprintable():
        return None
    for index, char in enumerate(text):
        if char not in allowed and not is_visible(char):
            return Fault(index, f"must not have a {_kind(char)} character (U+{ord(char):04X})")
    return None


def _kind(char: str) -> str:
    if char in _BIDI:
        return "bidirectional"
    if char in _ZERO_WIDTH:
        return "zero-width"
    if 0xE0000 <= ord(char) <= 0xE007F:
        return "tag"
    return "control" if char < " " or "\x7f" <= char <= "\x9f" else "invisible"


def find_fault(text: str) -> Fault | None:
    """Return the first fault of a text that agents are told, or None."""
    if invisible := find_invisible(text):
        return invisible
    found = [Fault(match.start(), rule) for pattern, rule in _FORBIDDEN if (match := pattern.search(text))]
    if found:
        return min(found)
    kind = find_secret(text)
    return Fault(0, f"looks like a credential ({kind}); it must not be in a repository") if kind else None
