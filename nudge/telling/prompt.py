"""Which note a prompt is about: mostly none.

A prompt and a note share words by chance, so each word weighs by how rare it is in what developers say anyway
(`common_words`), more in the title, and more beside another shared word. The rule looks at the whole prompt and at each
of its sentences, and at a note passage by passage: a long note has every word somewhere. A path in a prompt weighs
nothing: when the agent opens the file, it is told what was decided about it. `tests/bench/decisions.py` measures it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from nudge.telling.common_words import weight_of
from nudge.words import split_words, stem

_THRESHOLD = 1.45
_TITLE = 1.5  # times what a word weighs elsewhere
_LACKING, _MOST_LACKING = 0.15, 0.4  # taken away for each unit of weight that the note lacks, and at most
_NAME = 1.0
_ONE_WORD = 0.5  # more that is needed where only one word is shared
# What words have in common by chance grows with the number of passages, and with the words of a prompt.
_PASSAGES, _WORDS, _USUAL_WORDS = 0.4, 2.5, 7
_MOST_SENTENCES = 6
_MOST_WORDS = 400  # of a prompt
_NEAR = 2  # places between the words of a pair

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_SUFFIXES = "py|ts|tsx|js|rs|go|java|rb|c|h|cpp|md|json|toml|yaml|yml|css|html|sh|sql"
_PATH = re.compile(rf"(?:\.{{0,2}}/)?(?:[\w.@-]+/)+[\w.@-]*\w|\b[\w-]+\.(?:{_SUFFIXES})\b")
# release/2.8 is a branch, not a path; "node 22" is a name, too.
_VERSIONED = re.compile(r"[a-z]+/v?\d[\d.]*")
_NAMES = re.compile(
    r"\b[A-Za-z]+(?:[_-][A-Za-z0-9]+)+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Za-z]+[/ -]v?\d+(?:\.\d+)*\b",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A prompt or one of its sentences: its words in order, as stems, and the names in it."""

    words: tuple[str, ...]
    names: frozenset[str]

    @property
    def weights(self) -> dict[str, float]:
        return {word: weight for word in self.words if (weight := weight_of(word))}


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much a prompt is about a note, and the stems and the names that they share."""

    score: float
    words: tuple[str, ...]
    names: frozenset[str]


def parse_prompt(text: str) -> list[Part]:
    """Return the whole prompt and its first sentences; none without a word that says anything."""
    plain = _PATH.sub(lambda path: path[0] if _VERSIONED.fullmatch(path[0]) else " ", text)
    sentences = [sentence for sentence in _SENTENCE_END.split(plain) if sentence.strip()]
    texts = [plain, *(sentences[:_MOST_SENTENCES] if len(sentences) > 1 else ())]
    parts = [Part(_stems(text)[:_MOST_WORDS], _names(text)) for text in texts]
    return [part for part in parts if part.weights]


def search_words(parts: Sequence[Part], text: str) -> str:
    """The words of a prompt to recall notes by."""
    wanted = {word for part in parts for word in part.weights}
    return " ".join(word for word in dict.fromkeys(split_words(text)) if stem(word) in wanted)


def relevance(parts: Sequence[Part], title: str, passages: Sequence[str]) -> Relevance | None:
    """Return how much a prompt is about a note; None when it is not. The best part and the best passage count."""
    if not parts:
        return None
    heading = _stems(title)
    by_chance = _PASSAGES * log(len(passages))
    candidates = (_score(part, heading, title, passage) for passage in passages for part in parts)
    best = max(candidates, key=lambda one: one.score)
    threshold = _THRESHOLD if len(best.words) + len(best.names) > 1 else _THRESHOLD + _ONE_WORD
    return best if best.score - by_chance >= threshold else None


def _score(part: Part, heading: tuple[str, ...], title: str, passage: str) -> Relevance:
    text = _stems(passage)
    words, in_title = {*heading, *text}, frozenset(heading)
    weights = part.weights
    shared = [word for word in weights if word in words]
    score = sum(weights[word] * (_TITLE if word in in_title else 1.0) for word in shared)
    score += sum(min(weights[one], weights[other]) for one, other in _shared_pairs(part.words, weights, heading, text))
    names = part.names & (_names(title) | _names(passage)) if part.names else part.names
    score += _NAME * len(names)
    lacking = sum(weight for word, weight in weights.items() if word not in words)
    score -= min(_MOST_LACKING, _LACKING * lacking) + _WORDS * log(max(len(weights) / _USUAL_WORDS, 1.0))
    return Relevance(score, tuple(shared), names)


def _shared_pairs(
    prompt: tuple[str, ...], weights: dict[str, float], heading: tuple[str, ...], text: tuple[str, ...]
) -> set[tuple[str, str]]:
    """Pairs of words that stand near each other in both."""
    wanted = {pair for pair in _pairs(prompt) if pair[0] in weights and pair[1] in weights}
    return wanted & {*_pairs(heading), *_pairs(text)} if wanted else set()


def _pairs(words: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for distance in range(1, _NEAR + 1):
        yield from zip(words, words[distance:], strict=False)


def _stems(text: str) -> tuple[str, ...]:
    return tuple(map(stem, split_words(text)))


def _names(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"[ /]", "-", name.lower()) for name in _NAMES.findall(text))
