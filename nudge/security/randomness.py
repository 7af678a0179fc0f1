"""Whether a text is what a generator makes, and no word, name or number."""

from __future__ import annotations

import re

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z"

_patterns: dict[str, re.Pattern[str]] = {}


def matches(pattern: str, text: str) -> bool:
    """Whether the text begins with the pattern, which is compiled once."""
    compiled = _patterns.get(pattern) or _patterns.setdefault(pattern, re.compile(pattern))
    return compiled.match(text) is not None


def looks_random(text: str) -> bool:
    """Whether a part of the text is what a generator makes: hex, scattered digits, or capitals that start no word."""
    if matches(UUID, text):
        return True
    parts = re.findall("[A-Za-z0-9]+", text)
    longest = max(parts, key=len, default="")
    if len(longest) < 8 and len(text) >= 20 and not all(map(str.isalpha, parts)):
        longest = "".join(parts)
    if longest.isdigit():
        return False
    if len(longest) >= 16 and matches("[0-9a-f]+\\Z|[0-9A-F]+\\Z", longest):
        return True
    if longest.isalpha():
        return is_unreadable(longest)
    if longest != longest.lower() and longest != longest.upper():
        return len(longest) >= 8 and wordiness(longest) < 0.75
    return len(longest) >= 12 and len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", longest)) >= len(longest) / 5


def is_unreadable(text: str) -> bool:
    """Whether letters are neither a word nor words in Camel case nor an abbreviation."""
    if len(text) < 8 or text[1:] == text[1:].lower() or text == text.upper():
        return False
    vowels = len(re.findall("[aeiouyAEIOUY]", text)) / len(text)
    return wordiness(text, 3) < 0.6 and (wordiness(text) < 0.8 or vowels < 0.25)


def wordiness(text: str, shortest: int = 2) -> float:
    """Return the share of the text that reads as words in lower or camel case."""
    return sum(map(len, re.findall(f"[A-Z]?[a-z]{{{shortest},}}", text))) / len(text)


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    from math import log2

    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)
