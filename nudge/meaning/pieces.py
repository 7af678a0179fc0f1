"""What of a passage is embedded: the whole with the title of its note, and each of its sentences.

A passage of 80 words says several things, and its vector is something between them; a question is mostly about one. On
the open half of LongMemEval, all notes in one store, the right note is the first for 76 of 100 questions with the
sentences, for 71 without.
"""

from __future__ import annotations

from nudge.core.passages import split_passages

SENTENCE_WORDS = 20
_MOST = 24  # pieces of a passage: a list of numbers has many lines, and means nothing


def split_pieces(title: str, passage: str) -> list[str]:
    """Return the texts to embed for a passage, the whole one first."""
    sentences = split_passages(passage, SENTENCE_WORDS)
    whole = f"{title}\n{passage}"
    return [whole, *sentences[:_MOST]] if len(sentences) > 1 else [whole]
