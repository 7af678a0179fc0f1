"""The words of a text: split as SQLite's FTS5 does with `porter unicode61`, their stems, and which of them say what a
question is about. One word finds the same in hints, notes and history."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_WORD_OR_NAME = re.compile(r"\w+")
_COMBINING = re.compile(r"[\u0300-\u036f]")
_STOP_WORDS = """
a about after again all am an and any are as at be been before being between both but by can could did do does done
down each few for from had has have having he her here hers him his how i if in into is it its just many may me
might mine more most much must my no not now of on only or other our ours out over own same shall she should so some
such than that the their them then there these they this those to too up very was we were what when where which who whom
whose why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def distinct_words(text: str) -> list[str]:
    """Return all words of a text in lower case, each once, in order."""
    return list(dict.fromkeys(word.lower() for word in _WORD_OR_NAME.findall(text)))


def content_words(text: str) -> list[str]:
    """Return the words to search for, each once, in order; stop words only where there is nothing else.

    A single letter is mostly what an apostrophe cut off.
    """
    words = distinct_words(text)
    content = [word for word in words if word not in STOP_WORDS and (len(word) > 1 or not word.isalpha())]
    return content or words


def split_words(text: str) -> list[str]:
    """Return the words of a text in order: runs of letters and digits, in lower case, without accents. The parts of a
    name between `_`, `.` and `-` are words."""
    lowered = text.lower()
    if not lowered.isascii():
        lowered = _COMBINING.sub("", unicodedata.normalize("NFD", lowered))
    return _WORD.findall(lowered)


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """Return the stem of a word in lower case. A very short or very long word is returned unchanged."""
    spelled = word.encode("utf-8", "replace").decode("latin-1")  # as SQLite does it, byte by byte
    if not 3 <= len(spelled) <= 64:
        return word
    for step in (_plurals, _endings_ed_ing, _final_y, _double_suffixes, _suffixes, _long_suffixes, _final_e):
        spelled = step(spelled)
    return spelled.encode("latin-1").decode("utf-8", "replace")


def root(word: str) -> str:
    """Return the stem of the stem, and so on: "deployment" and "deploy" have different stems, "deploy" and "deploi"."""
    while (shorter := stem(word)) != word:
        word = shorter
    return word


def has_word(text: str, word: str) -> bool:
    """Whether a text has a word in any form that has the same stem. Both are in lower case and ASCII."""
    at = text.find(word)
    if at >= 0 and not text[at - 1 : at].isalnum() and not text[at + len(word) : at + len(word) + 1].isalnum():
        return True
    stemmed = stem(word)
    beginning = stemmed[:-1]  # only the last letter of a stem may differ from the word: happi, file
    if beginning not in text:
        return False
    return any(stem(other) == stemmed for other in split_words(text) if other.startswith(beginning))


# Stems: Porter's measure counts how often a vowel is followed by a consonant; `y` is a vowel after a consonant.


def _shape(word: str) -> str:
    """Return one letter for each letter of the word: v for a vowel, c for a consonant."""
    shape = ""
    for char in word:
        is_vowel = char in "aeiou" or (char == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    """Here `y` is one everywhere but at the start."""
    return any(char in "aeiou" for char in word) or "y" in word[1:]


def _ends_in_double_consonant(word: str) -> bool:
    """Here `y` is a consonant."""
    return len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeiou"


def _ends_in_cvc(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plurals(word: str) -> str:
    if (word.endswith("sses") and len(word) > 4) or (word.endswith("ies") and len(word) > 3):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _endings_ed_ing(word: str) -> str:
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stripped = word.removesuffix(suffix)
        if stripped != word:
            return _repair(stripped) if _has_vowel(stripped) else word
    return word


def _repair(word: str) -> str:
    """Complete a word from which `-ed` or `-ing` was removed: hopp becomes hop, fil becomes file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_in_double_consonant(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_in_cvc(word) else word


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _pairs(text: str) -> dict[str, str]:
    """Parse `suffix:replacement` pairs, in the order in which they are tried."""
    return dict(pair.split(":") for pair in text.split())


_DOUBLE = _pairs(
    "ational:ate tional:tion enci:ence anci:ance izer:ize logi:log bli:ble alli:al entli:ent eli:e ousli:ous "
    "ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
)
_SINGLE = _pairs("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_LONG = [
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
]


def _replace_suffix(word: str, suffixes: dict[str, str]) -> str:
    for suffix, replacement in suffixes.items():
        if word.endswith(suffix):
            return word[: -len(suffix)] + replacement if _measure(word[: -len(suffix)]) > 0 else word
    return word


def _double_suffixes(word: str) -> str:
    return _replace_suffix(word, _DOUBLE)


def _suffixes(word: str) -> str:
    return _replace_suffix(word, _SINGLE)


def _long_suffixes(word: str) -> str:
    for suffix in _LONG:
        if word.endswith(suffix):
            return word[: -len(suffix)] if _measure(word[: -len(suffix)]) > 1 else word
    if word.endswith(("sion", "tion")) and _measure(word[:-3]) > 1:
        return word[:-3]
    return word


def _final_e(word: str) -> str:
    if word.endswith("e") and (_measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _ends_in_cvc(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
