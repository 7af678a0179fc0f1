"""Which note a prompt is about: mostly none.

A prompt and a note share words by chance, so each word weighs by how rare it is in what developers say anyway
(`common_words`), more in the title, more beside another shared word, and more where the note decides against it: who
names that is about to do it. Where a mechanical edit is asked for, more is needed. The rule looks at the whole prompt
and at each of its sentences, and at a note passage by passage: a long note has every word somewhere. A path in a prompt
weighs nothing: when the agent opens the file, it is told what was decided about it. `tests/bench/decisions.py` measures
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from posixpath import basename

from nudge.core.passages import split_passages
from nudge.core.words import split_words, stem
from nudge.telling.common_words import is_stop_word, weight_of

_THRESHOLD = 1.47
_TITLE = 1.5  # times what a word weighs elsewhere
_LACKING, _MOST_LACKING = 0.15, 0.4  # taken away for each unit of weight that the note lacks, and at most
_NAME = 1.0
_ONE_WORD = 0.7  # more that is needed where only one word is shared
_HALF_PAIR = 0.4  # for two words beside each other of which one says nothing by itself: "day view"
# What words have in common by chance grows with the number of passages, with the words of a prompt, of which one
# sentence counts, and with those of the sentence.
_PASSAGES = 0.4
_PROMPT_WORDS, _USUAL_PROMPT = 1.0, 12
_WORDS, _USUAL_WORDS = 2.5, 7
# A decision is told to who is about to do something else than it says; of a mere record, what is asked for must be in.
_RECORD, _LACKING_NAME = 0.05, 2.0
_MOST_SENTENCES = 6
_MOST_WORDS = 400  # of a prompt
_REJECTED = 0.6  # of a word's weight, added where the note decides against what the word names
_ENOUGH_REJECTED = 0.7  # the weight from which one word that the note decides against needs no other
_CHORE = 1.2  # more that is needed where a mechanical edit is asked for
_SHORT = 2  # letters
_NEAR = 2  # places between the words of a pair

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_SUFFIXES = (
    "py|ts|tsx|js|jsx|rs|go|java|rb|c|h|cpp|hpp|cc|cs|kt|swift|dart|php|ex|exs|scala|lua|vue|svelte|tf|proto|md|txt|json"
    "|toml|yaml|yml|xml|ini|cfg|conf|lock|css|html|sh|sql"
)
_PATH = re.compile(rf"(?:\.{{0,2}}/)?(?:[\w.@-]+/)+[\w.@-]*\w|\b[\w-]+\.(?:{_SUFFIXES})\b")
# release/2.8 and hotfix/login are branches, not paths; "node 22" is a name, too.
_BRANCH = r"[a-z]+/v?\d[\d.]*|(?:release|hotfix|stable|support|maint|feature)/[\w.-]*\w"
_IS_BRANCH = re.compile(_BRANCH)
_NAMES = re.compile(
    rf"{_BRANCH}|\b[A-Za-z]+(?:[_-][A-Za-z0-9]+)+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Za-z]+[A-Z][a-z]\w*\b"
    r"|\b[A-Za-z]+[ -]v?\d+(?:\.\d+)*\b"
)
_EXTENSION = re.compile(rf"(?<=[\w*])\.(?:{_SUFFIXES})\b")  # a file of YAML is not about YAML
_AGAINST = re.compile(r"\b(?:no|not|never|nor|neither|without|instead of|don't|cannot)\b([^.;:\n(]*)", re.IGNORECASE)
_MOST_REJECTED = 6  # words after the one that denies them
_CHORE_NAMES = """
alphabetically camelcase comment comments count docstring docstrings explain fmt format formatting imports indent
indentation lint linter reformat rename sort spelling spaces translate typo typos unused whitespace
"""
_CHORES = frozenset(map(stem, _CHORE_NAMES.split()))
_CHORE_WORDS = 4  # at the beginning of a prompt, where it says what to do
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)(?![\w.])")
_INSIDE_NAME = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_UNIT = re.compile(r"\b(\d+)(?=[a-zA-Z]{2,}\b)")  # 64MiB
_CAPITALIZED = re.compile(r"""(?<=[a-z,'"(] )['"(]?([A-Z]\w+)""")  # not at the start of a sentence


@dataclass(frozen=True, slots=True)
class Part:
    """A prompt or one of its sentences: its words in order, as stems, those that say anything with their weights, the
    names in it, and the words that are capitalized within a sentence."""

    words: tuple[str, ...]
    weights: dict[str, float]
    pairs: frozenset[tuple[str, str]]
    names: frozenset[str]
    capitalized: frozenset[str]


@dataclass(frozen=True, slots=True)
class Text:
    """A note as prompts are compared with it. Its files are those that it was given; `is_record`: it decides
    nothing."""

    title: str
    content: str
    files: Sequence[str] = ()
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class Relevance:
    """How much a prompt is about a note, and the stems and the names that they share. `is_rejected`: the note decides
    against one of the words that are rare."""

    score: float
    words: tuple[str, ...]
    names: frozenset[str]
    is_rejected: bool


@dataclass(frozen=True, slots=True)
class _Passage:
    """A passage of a note, with the title and the names of the files, which belong to each; `rejected` are the words
    for what it decides against."""

    title: frozenset[str]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    names: frozenset[str]
    rejected: frozenset[str]


def parse_prompt(text: str) -> list[Part]:
    """Return the whole prompt and its first sentences; none without a word that says anything."""
    plain = without_paths(text)
    sentences = [sentence for sentence in _SENTENCE_END.split(plain) if sentence.strip()]
    texts = [plain, *(sentences[:_MOST_SENTENCES] if len(sentences) > 1 else ())]
    return [part for part in map(_parse_part, texts) if part.weights]


def without_paths(text: str) -> str:
    """A prompt without the paths in it: when the agent opens the file, it is told what was decided about it."""
    return _PATH.sub(lambda path: path[0] if _IS_BRANCH.fullmatch(path[0]) else " ", text)


def is_chore(text: str) -> bool:
    """Whether a prompt begins with a mechanical edit."""
    return any(_is_of_chore(word) for word in _parse_part(without_paths(text)).words[:_CHORE_WORDS])


def _is_of_chore(word: str) -> bool:
    return word in _CHORES or word.endswith("lint")


def _parse_part(text: str) -> Part:
    words = _stems(text)[:_MOST_WORDS]
    weights = {word: weight for word in words if (weight := weight_of(word))}
    capitalized = {stem(word) for name in _CAPITALIZED.findall(text) for word in split_words(name)}
    return Part(words, weights, _pairs(words), _names(text), frozenset(capitalized))


def search_words(parts: Sequence[Part], text: str) -> str:
    """The words of a prompt to recall notes by: also the parts of names, which the index may have by themselves."""
    wanted = {word for part in parts for word in part.weights}
    found = [word for word in _split(text) if stem(word) in wanted]
    return " ".join(dict.fromkeys((*found, *(name for part in parts for name in sorted(part.names) if name.isalpha()))))


def relevance(parts: Sequence[Part], note: Text) -> Relevance | None:
    """Return how much a prompt is about a note; None when it is not. The best part and the best passage count."""
    if not parts:
        return None
    texts = split_passages(note.content)
    passages = _passages(note, _that_may_share(texts, parts[0]), frozenset(parts[0].words))
    best = max((_score(part, passage) for passage in passages for part in parts), key=lambda one: one.score)
    threshold = _THRESHOLD + _PASSAGES * log(len(texts))
    threshold += _PROMPT_WORDS * log(max(len(parts[0].weights) / _USUAL_PROMPT, 1.0))
    if len(best.words) + len(best.names) <= 1 and not best.is_rejected:
        threshold += _ONE_WORD
    if _is_chore(parts[0], passages):
        threshold += _CHORE
    if note.is_record:
        threshold += _RECORD + _lacking_names(parts[0], passages)
    return best if best.score >= threshold else None


def _that_may_share(texts: Sequence[str], prompt: Part) -> list[str]:
    """The passages that may have a word or version of the prompt, and the first one, which has the title. To look at
    every word of a long note takes a millisecond for each thousand."""
    # Only the last letter of a stem may differ from the word.
    beginnings = [word[:-1] if len(word) > _SHORT else word for word in prompt.weights] + [
        name for name in prompt.names if not name.isalpha()
    ]
    others = (text for text in texts[1:] if not text.isascii() or _has_any(text.lower(), beginnings))
    return [texts[0], *others]


def _has_any(text: str, beginnings: Sequence[str]) -> bool:
    return any(beginning in text for beginning in beginnings)


def _passages(note: Text, texts: Sequence[str], wanted: frozenset[str]) -> list[_Passage]:
    """Passages of a note; of their pairs those of wanted words."""
    title = _stems(note.title)
    files = [re.sub(r"\.\w+$", "", basename(path)) for path in note.files]
    of_files = {word for name in files for word in _stems(name)}
    names = _names(note.title) | {name.lower() for name in files}
    pairs = _pairs(title, wanted)
    title_words = frozenset((*title, *_joined(_names(note.title))))
    rejected = _rejected(note.title)
    found = []
    for text in texts:
        words, own_names = _stems(_EXTENSION.sub(" ", text)), _names(text)
        has = frozenset((*title_words, *words, *of_files, *_joined(own_names)))
        against = frozenset() if note.is_record else rejected | _rejected(text)
        found.append(_Passage(title_words, has, pairs | _pairs(words, wanted), names | own_names, against))
    return found


def _joined(names: Iterable[str]) -> frozenset[str]:
    """Names of several parts as one word: swiftdata for SwiftData, timeout for time-out."""
    joined = (re.sub(r"[-_]", "", name) for name in names)
    return frozenset(stem(name) for name in joined if name.isalpha())


def _rejected(text: str) -> frozenset[str]:
    """The words for what a text decides against, or says not to do: those after one that denies."""
    return frozenset(
        word
        for denied in _AGAINST.findall(text)
        for word in (*_stems(denied)[:_MOST_REJECTED], *_joined(_names(denied)))
    )


def _is_chore(prompt: Part, passages: Sequence[_Passage]) -> bool:
    """Whether a prompt begins with a mechanical edit, of which the note says nothing: a name is changed, or a warning
    of a linter is fixed, whatever was decided about the code."""
    asked = filter(_is_of_chore, prompt.words[:_CHORE_WORDS])
    return any(all(word not in passage.words for passage in passages) for word in asked)


def _score(part: Part, passage: _Passage) -> Relevance:
    weights = part.weights
    shared = tuple(word for word in weights if word in passage.words)
    score = sum(weights[word] * (_TITLE if word in passage.title else 1.0) for word in shared)
    score += sum(_pair_weight(*pair, weights) for pair in part.pairs & passage.pairs)
    rejected = [weights[word] for word in shared if word in passage.rejected]
    score += _REJECTED * sum(rejected)
    names = part.names & passage.names
    score += _NAME * len(names)
    lacking = sum(weight for word, weight in weights.items() if word not in passage.words)
    score -= min(_MOST_LACKING, _LACKING * lacking) + _WORDS * log(max(len(weights) / _USUAL_WORDS, 1.0))
    return Relevance(score, shared, names, max(rejected, default=0.0) >= _ENOUGH_REJECTED)


def _pair_weight(one: str, other: str, weights: dict[str, float]) -> float:
    both = weights.get(one, 0.0), weights.get(other, 0.0)
    return min(both) or (_HALF_PAIR if any(both) else 0.0)


def _lacking_names(prompt: Part, passages: Sequence[_Passage]) -> float:
    """What is taken away for the names in a prompt that a record does not have: Denver, when a trip elsewhere is
    recorded."""
    names = [word for word in prompt.capitalized if word in prompt.weights]
    return _LACKING_NAME * sum(not any(word in passage.words for passage in passages) for word in names)


def _pairs(words: Sequence[str], wanted: frozenset[str] | None = None) -> frozenset[tuple[str, str]]:
    """Pairs of different words, all or the wanted ones, that stand near each other in either order; none with stop
    words and numbers, which stand beside anything."""
    return frozenset(
        (min(one, other), max(one, other))
        for distance in range(1, _NEAR + 1)
        for one, other in zip(words, words[distance:], strict=False)
        if (wanted is None or (one in wanted and other in wanted)) and one != other
        if not (_is_filler(one) or _is_filler(other))
    )


def _is_filler(word: str) -> bool:
    return is_stop_word(word) or (word.isdecimal() and not weight_of(word))


def _split(text: str) -> list[str]:
    """The words of a text; the parts of `SnapshotEncoder` are words, and `64MiB` is a number and its unit."""
    return split_words(_UNIT.sub(r"\1 ", _INSIDE_NAME.sub(" ", text)))


def _stems(text: str) -> tuple[str, ...]:
    return tuple(map(stem, _split(text)))


def _names(text: str) -> frozenset[str]:
    named: Iterable[str] = (re.sub(r"[ /]", "-", name.lower()) for name in _NAMES.findall(text))
    return frozenset((*named, *_VERSION.findall(text)))
