"""Which note a prompt means, where no word says so: mostly none.

The closest note is told when two of its pieces are close to the prompt, not one by chance; when it is clearly closer
than the next one; when it is still close without the words that both have, which by themselves were found to say
nothing (`prompt`): "give the rating stars a hover state" is near every note on ratings; and when the prompt is not near
what is asked of any repository. `make meaning` prints how many are told for other values of `LEAST`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nudge.core.words import split_words, stem
from nudge.telling.common_words import weight_of

LEAST = 0.34
_AHEAD = 0.3  # of how much closer it is than the next note
_WITHOUT_SHARED = 0.3  # of the closeness: that of the prompt without the words that both have
_EVERYDAY = 0.25  # of how close the prompt is to what is asked of any repository
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Signs:
    """How close a prompt is to its closest note and to the next one, how close it is to the first without the words
    that both have, and how close it is to everyday prompts."""

    closest: float
    next: float
    without_shared: float
    everyday: float

    @property
    def sum(self) -> float:
        ahead = self.closest + _AHEAD * (self.closest - self.next)
        alone = min(self.without_shared, self.closest)
        return (1 - _WITHOUT_SHARED) * ahead + _WITHOUT_SHARED * alone - _EVERYDAY * self.everyday


def is_meant(signs: Signs, least: float = LEAST) -> bool:
    """Whether a prompt is about the closest note."""
    return signs.sum >= least


def without_words_of(prompt: str, note: str) -> str:
    """The prompt without the words that the note has too; those that say nothing by themselves stay."""
    had = {word for word in map(stem, split_words(note)) if weight_of(word)}
    kept = _WORD.sub(lambda word: "" if had.intersection(map(stem, split_words(word[0]))) else word[0], prompt)
    return " ".join(kept.split())
