"""Search by words: what the words of a text are, their stems, and the query that a user writes.

Words and stems are those of SQLite's FTS5 with `porter unicode61`, which searches the history: one word finds the same
in both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from nudge import limits
from nudge.errors import Invalid
from nudge.hints.fields import parse_text
from nudge.stop_words import content_words

_WORD = re.compile(r"[^\W_]+")
_COMBINING = re.compile(r"[\u0300-\u036f]")
_CHUNK = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')


def split_words(text: str) -> list[str]:
    """The words of a text in order: runs of letters and digits, in lower case, without accents. The parts of a name
    between `_`, `.` and `-` are words."""
    lowered = text.lower()
    if not lowered.isascii():
        lowered = _COMBINING.sub("", unicodedata.normalize("NFD", lowered))
    return _WORD.findall(lowered)


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """The stem of a word in lower case. A very short or long word is its own."""
    spelled = word.encode("utf-8", "replace").decode("latin-1")  # as SQLite does it, byte by byte
    if not 3 <= len(spelled) <= 64:
        return word
    for step in (_plurals, _endings_ed_ing, _final_y, _double_suffixes, _suffixes, _long_suffixes, _final_e):
        spelled = step(spelled)
    return spelled.encode("latin-1").decode("utf-8", "replace")


# The query


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or words that stand next to each other; the last may be the beginning of one."""

    words: tuple[str, ...]
    is_prefix: bool

    def is_in(self, words: Sequence[str]) -> bool:
        *first, last = self.words
        if not first and not self.is_prefix:
            return stem(last) in map(stem, words)
        return any(
            all(stem(wanted) == stem(word) for wanted, word in zip(first, words[at:], strict=False))
            and self._ends_with(last, words[at + len(first)])
            for at in range(len(words) - len(first))
        )

    def _ends_with(self, last: str, word: str) -> bool:
        return word.startswith(last) if self.is_prefix else stem(last) == stem(word)


@dataclass(frozen=True, slots=True)
class TextQuery:
    """Terms that all must be in a hint, in any order and in any of its texts. Of a question, which has several of them,
    `any_of` are the words of which some are enough for a hint that comes behind those."""

    terms: tuple[Term, ...]
    any_of: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: object, field: str = "text") -> Self:
        """`docker build`, `"next to each other"`, `dock*`; a name such as `http-proxy` is its parts next to each
        other."""
        terms = []
        text = parse_text(raw, field, limits.MAX_QUERY_TEXT_CHARS, lines=True)
        for phrase, star, chunk in _CHUNK.findall(text):
            if words := split_words(phrase or chunk):
                terms.append(Term(tuple(words), bool(star) or chunk.endswith("*")))
        if not terms:
            raise Invalid("must contain a word", field=field)
        any_of = _words_of_question(text) if len(terms) >= limits.QUESTION_WORDS else ()
        return cls(tuple(dict.fromkeys(terms)), any_of)

    @property
    def has_phrases(self) -> bool:
        return any(len(term.words) > 1 for term in self.terms)

    def matches(self, texts: Iterable[tuple[str, str]]) -> bool:
        """Whether each term is in one of the texts, which come with the names of their fields."""
        split = [split_words(text) for _, text in texts]
        return all(any(term.is_in(words) for words in split) for term in self.terms)

    def words_in(self, texts: Iterable[tuple[str, str]]) -> list[str]:
        """Those of `any_of` that are in the texts."""
        stems = {stem(word) for _, text in texts for word in split_words(text)}
        return [word for word in self.any_of if stem(word) in stems]

    def first_field(self, texts: Iterable[tuple[str, str]]) -> str | None:
        """The first field with one of the terms."""
        for name, text in texts:
            words = split_words(text)
            if any(term.is_in(words) for term in self.terms):
                return name
        return None


def _words_of_question(text: str) -> tuple[str, ...]:
    """The words that tell something, each once; two spellings of one stem are one word."""
    words = {stem(word): word for part in content_words(text) for word in split_words(part)}
    return tuple(words.values())[: limits.MAX_QUESTION_WORDS]


# Stems: Porter's measure counts how often a vowel is followed by a consonant; `y` is a vowel after a consonant.


def _shape(word: str) -> str:
    """One letter for each: v for a vowel, c for a consonant."""
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
    """What `-ed` or `-ing` was taken off: hopp becomes hop, fil becomes file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_in_double_consonant(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_in_cvc(word) else word


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _pairs(text: str) -> dict[str, str]:
    """From `suffix:replacement`, in the order in which they are tried."""
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
