"""Which notes a prompt is about, and how sure that is: a prompt that no note is about must get none.

The score of recall says which note is best, never whether it is any good. Here a note is measured by the prompt's own
words: each weighs by how rare it is among the notes, and a note must have words of much weight that are much of the
prompt. `tests/bench/prompts.py` measures the threshold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nudge.memories import store
from nudge.memories.note import Note
from nudge.memories.retrieval import Words, count_matches, count_notes, words_in
from nudge.memories.store import NoteFilter, SqlConnection
from nudge.words import STOP_WORDS, content_words

THRESHOLD = 10.0
_SENTENCE_THRESHOLD = 1.25 * THRESHOLD  # for one sentence of a longer prompt, which has fewer words to disagree
_LEAST_SHARE = 0.3  # of the prompt's weight
_LEAST_WORDS, _LEAST_SENTENCE_WORDS = 2, 3
_SENTENCES = 4
_CANDIDATES = 3  # of one recall
_MOST_WORDS = 32
_OTHER_NOTES = 50  # assumed beside those there are: in a store of three notes every word would be frequent
_MOST_COUNTED = 2_000  # notes with a word: beyond, its weight is next to nothing
_USUAL_LENGTH, _SHORTEST = 200, 30  # words of a note; a long one has more words of any prompt by chance
_TITLE = 0.25  # what a word weighs more when it is in the title

# Words in which things are asked or ordered, whatever they are about.
_ASKING = """
add advice again ago also another anything back best better change changed conversation create current currently day
days discussed during ever find first fix found get getting go going good got happen happened hello help hi idea ideas
implement interesting know last let lets like ll long look looks made make making many maybe mentioned month months move
moved moving much need needed new often ok okay old one past please previous previously put re really recent recently
recommend recommendation recommendations recommended remember remind replace run running said see set show since someone
something spend spent start started still suggest suggested suggestion suggestions sure switch take takes talked tell
thank thanks thing things think thinking thought three time times tip tips told took total try two use used using ve
want wanted way week weeks while work working works write wrong year years yes
"""
_GENERIC_WORDS = STOP_WORDS | frozenset(_ASKING.split())
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class RelevantNote:
    """A note that a prompt is about; `words` are those of the prompt that it has, or that the note which it supersedes
    has."""

    note: Note
    score: float
    words: tuple[str, ...]
    supersedes: Note | None = None


def relevant_notes(
    connection: SqlConnection, prompt: str, where: NoteFilter, limit: int, now: float
) -> list[RelevantNote]:
    """The notes that the prompt, or a sentence of it, is about, best first; mostly none. A note that was resolved in
    favor of another is not among them: the other one takes its place, since the prompt may be about to repeat it."""
    weigh = _Weights(connection, where.namespaces)
    best: dict[int, RelevantNote] = {}
    for words, least_words, threshold in _parts(prompt):
        for match in store.recall(connection, " ".join(words), where, _CANDIDATES, now):
            candidate = weigh.relevance(match.note, words)
            if candidate.score < threshold or len(candidate.words) < least_words:
                continue
            if match.note.id not in best or best[match.note.id].score < candidate.score:
                best[match.note.id] = candidate
    for note_id, winner in store.find_winners(connection, best, now).items():
        candidate = best.pop(note_id)
        if winner is not None and (where.namespaces is None or winner.draft.namespace in where.namespaces):
            best.setdefault(winner.id, replace(candidate, note=winner, supersedes=candidate.note))
    return sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.note.id))[:limit]


def subject_words(text: str) -> tuple[str, ...]:
    """The words of a text that say what it is about."""
    words = (word for word in content_words(text) if word not in _GENERIC_WORDS)
    return tuple(word for word in words if not (word.isdecimal() and len(word) < 3))[:_MOST_WORDS]


def _parts(prompt: str) -> Iterator[tuple[tuple[str, ...], int, float]]:
    """The words of the whole prompt, then of its first sentences, each with what it takes to be about them."""
    whole = subject_words(prompt)
    if len(whole) >= _LEAST_WORDS:
        yield whole, _LEAST_WORDS, THRESHOLD
    sentences = [words for part in _SENTENCE_END.split(prompt) if (words := subject_words(part)) != whole]
    long_enough = [words for words in sentences if len(words) >= _LEAST_SENTENCE_WORDS]
    for words in long_enough[:_SENTENCES]:
        yield words, _LEAST_SENTENCE_WORDS, _SENTENCE_THRESHOLD


class _Weights:
    """How much words weigh among the notes of some namespaces: the rarer, the more."""

    def __init__(self, connection: SqlConnection, namespaces: tuple[str, ...] | None) -> None:
        self._connection, self._namespaces = connection, namespaces
        self._notes = count_notes(connection, namespaces, _MOST_COUNTED) + _OTHER_NOTES
        self._word_weights: dict[str, float] = {}

    def relevance(self, note: Note, words: tuple[str, ...]) -> RelevantNote:
        """The weight of the words that the note has, times their share of the prompt's."""
        query = Words(words, all_needed=False)
        matched = words_in(self._connection, query, [note.id])[note.id]
        in_title = words_in(self._connection, query, [note.id], column="title")[note.id]
        whole = sum(map(self._weight, words))
        weight = sum(self._weight(word) * (1 + _TITLE * (word in in_title)) for word in matched)
        share = min(weight / whole, 1.0)
        length = max(len(note.draft.content.split()), _SHORTEST)
        score = weight * share * (_USUAL_LENGTH / length) ** 0.25 if share >= _LEAST_SHARE else 0.0
        return RelevantNote(note, score, tuple(matched))

    def _weight(self, word: str) -> float:
        if word not in self._word_weights:
            count = count_matches(self._connection, word, self._namespaces, _MOST_COUNTED)
            self._word_weights[word] = math.log(1 + (self._notes - count + 0.5) / (count + 0.5))
        return self._word_weights[word]
