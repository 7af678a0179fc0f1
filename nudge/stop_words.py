"""The words of a question that say what it is about."""

from __future__ import annotations

import re

_STOP_WORDS = """
a about after again all am an and any are as at be been before being between both but by can could did do does done
down each few for from had has have having he her here hers him his how i if in into is it its just many may me
might mine more most much must my no not now of on only or other our ours out over own same shall she should so some
such than that the their them then there these they this those to too up very was we were what when where which who whom
whose why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"\w+")


def distinct_words(text: str) -> list[str]:
    """Return all words of a text in lower case, each once, in order."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))


def content_words(text: str) -> list[str]:
    """Return the words to search for, each once, in order; stop words only where there is nothing else.

    A single letter is mostly what an apostrophe cut off.
    """
    words = distinct_words(text)
    content = [word for word in words if word not in STOP_WORDS and (len(word) > 1 or not word.isalpha())]
    return content or words
