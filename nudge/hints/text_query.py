"""The query by words that a user writes: terms, phrases and prefixes, and which texts have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from nudge import limits
from nudge.errors import Invalid
from nudge.hints.fields import parse_text
from nudge.words import content_words, has_word, split_words, stem

_CHUNK = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')


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

    def is_in_text(self, text: str) -> bool:
        """The same for a text; one word of ASCII is looked for without splitting it."""
        word = self.words[0]
        if len(self.words) == 1 and not self.is_prefix and word.isascii() and text.isascii():
            return has_word(text.lower(), word)
        return self.is_in(split_words(text))

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
            if any(term.is_in_text(text) for term in self.terms):
                return name
        return None


def _words_of_question(text: str) -> tuple[str, ...]:
    """The words that tell something, each once; two spellings of one stem are one word."""
    words = {stem(word): word for part in content_words(text) for word in split_words(part)}
    return tuple(words.values())[: limits.MAX_QUESTION_WORDS]
