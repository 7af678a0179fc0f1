"""What a query asks for: its words, and the FTS5 expression for them.

Every word is quoted, so that nothing a person types is query syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from nudge.errors import Invalid

MAX_WORDS = 64

# Words of questions that say nothing about what is asked for.
_STOP_WORDS = """
a about after again all am an and any are as at be been before being between both but by can could did do does done
down each few for from had has have having he her here hers him his how i if in into is it its just may me might
mine more most must my no not now of on only or other our ours out over own same shall she should so some such than
that the their them then there these they this those to too up very was we were what when where which who whom whose
why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words to search for, each once, in order; stop words only where there is nothing else.

    A single letter is mostly what an apostrophe cut off.
    """
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    telling = [word for word in words if word not in STOP_WORDS and (len(word) > 1 or not word.isalpha())]
    return (telling or words)[:MAX_WORDS]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, and whether a match must have all of them or any."""

    words: tuple[str, ...]
    all_needed: bool

    @classmethod
    def parse(cls, text: str, *, all_needed: bool, field: str = "query") -> Self:
        """`field` is what an error calls the text."""
        words = words_of(text)
        if not words:
            raise Invalid("must contain a word", field=field)
        return cls(tuple(words), all_needed)

    def terms(self) -> list[str]:
        """The words as FTS5 takes them."""
        return [f'"{word}"' for word in self.words]

    def expression(self) -> str:
        return (" AND " if self.all_needed else " OR ").join(self.terms())
