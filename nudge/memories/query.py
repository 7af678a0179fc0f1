"""FTS5 queries from untrusted words: every word is quoted, so that nothing a person types is query syntax."""

from __future__ import annotations

import re

from nudge.errors import Invalid

MAX_WORDS = 64

# Words of questions that say nothing about what is asked for.
STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "being",
        "between",
        "both",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "done",
        "down",
        "each",
        "few",
        "for",
        "from",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "may",
        "me",
        "might",
        "mine",
        "more",
        "most",
        "must",
        "my",
        "no",
        "not",
        "now",
        "of",
        "on",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "out",
        "over",
        "own",
        "same",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "too",
        "up",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
    ]
)
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words to search for, each once, in order; stop words only where there is nothing else."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    return ([word for word in words if word not in STOP_WORDS and len(word) > 1] or words)[:MAX_WORDS]


def match_any(text: str) -> str:
    """Return an FTS5 query for the notes that have any of the words."""
    return _joined(text, " OR ")


def match_all(text: str) -> str:
    """Return an FTS5 query for the notes that have all of the words."""
    return _joined(text, " AND ")


def _joined(text: str, operator: str) -> str:
    words = words_of(text)
    if not words:
        raise Invalid("must contain a word", field="query")
    return operator.join(f'"{word}"' for word in words)
