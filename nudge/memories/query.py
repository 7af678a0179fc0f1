"""What a query asks for: its words, and the FTS5 expression for them.

Every word is quoted, so that nothing a person types is query syntax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from nudge.errors import Invalid
from nudge.stop_words import content_words, distinct_words

MAX_WORDS = 64


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, and whether a match must have all of them or any."""

    words: tuple[str, ...]
    all_needed: bool

    @classmethod
    def parse(cls, text: str, *, all_needed: bool, field: str = "query") -> Self:
        """`field` is what an error calls the text. Where all words are needed, none is left out, not even a stop word:
        a shorter query would match more."""
        words = distinct_words(text) if all_needed else content_words(text)[:MAX_WORDS]
        if not words:
            raise Invalid("must contain a word", field=field)
        if len(words) > MAX_WORDS:
            raise Invalid(f"must have at most {MAX_WORDS} different words", field=field)
        return cls(tuple(words), all_needed)

    def terms(self) -> list[str]:
        """The words as FTS5 takes them."""
        return [f'"{word}"' for word in self.words]

    def expression(self) -> str:
        return (" AND " if self.all_needed else " OR ").join(self.terms())
