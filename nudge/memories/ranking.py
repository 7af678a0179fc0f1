"""How notes are ranked: for a query, by a score, and for a prompt, by whether they are about it.

What is recalled is ordered by the text; everything else decides between near equals. The text score of the best match
is `BASE`, that of the others in proportion. The other factors have the weights of the six-factor formula in relation to
each other, scaled so that together they move a note by less than a tenth of `BASE`: with random priorities and tiers on
every note, the answer to a question must still come first. Two weigh more: a note of the caller's own repo comes before
one of another repo whose text matches up to a tenth better, and a note that was resolved in favor of another, which
leaves it a confidence of 0.1, must not come before that one.

The score says which note is best, never whether it is any good, and a prompt that no note is about must get none. So
for a prompt a note is measured by the prompt's own words: each weighs by how rare it is among the notes, and a note
must have words of much weight that are much of the prompt. `tests/bench/prompts.py` measures the threshold.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from nudge import limits
from nudge.memories.claims import claims_of, may_contradict, negations
from nudge.memories.note import ATTEMPT, LONG, MID, Note
from nudge.memories.retrieval import (
    Condition,
    Words,
    best_matches,
    count_matches,
    count_notes,
    text_scores,
    titles_about,
    words_in,
)
from nudge.memories.store import LIVE, SOUND, NoteFilter, SqlConnection, find_winners, get_many, placeholders
from nudge.words import STOP_WORDS, content_words

COMPONENTS = (
    *("base", "recency", "kind_bonus", "semantic_boost", "priority", "access", "confidence", "tier", "namespace"),
)
"""The parts of a score, in the order in which they are shown."""
BASE = 10.0
_SIMILAR_TITLES = 5  # notes that a new one may contradict
_SCALE = 0.05
_PRIORITY, _ACCESS, _CONFIDENCE, _RECENCY = 0.5 * _SCALE, 0.1 * _SCALE, 2.0 * _SCALE, 1.0 * _SCALE
_MOST_ACCESSES = 50
_TIER = {LONG: 3.0 * _SCALE, MID: 1.0 * _SCALE}
_NAMESPACE = 0.1 * BASE  # for a note of the caller's own namespace
_KIND = {"decision": 1.0 * _SCALE, "lesson": 1.0 * _SCALE, "bugfix": 0.5 * _SCALE, "discovery": 0.5 * _SCALE}
_DOUBT = BASE  # what each point of confidence below that takes away
_DAY = 86_400.0
_CORRECTED_WORDS = 3  # of a query, up to which each decides what is found
_RERANKED = 20  # best matches by text that the other factors may reorder: each is a page of a large file


# Scores


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of one note's score for one query; `semantic_boost` stays null until there is a second retriever."""

    components: Mapping[str, float | None]

    @property
    def total(self) -> float:
        return sum(part for part in self.components.values() if part is not None)


class Factors(NamedTuple):
    """What of a note, beside its text, its score depends on."""

    updated_at: float
    kind: str
    priority: int
    access_count: int
    confidence: float
    tier: str
    namespace: str

    @classmethod
    def of(cls, note: Note) -> Self:
        draft = note.draft
        return cls(
            note.updated_at,
            draft.kind,
            draft.priority,
            note.access_count,
            draft.confidence,
            draft.tier,
            draft.namespace,
        )


def score(factors: Factors, now: float, *, text: float | None, with_tier: bool = True, here: str | None) -> Score:
    """Score a note. `text`: its text score in relation to the best of the query's matches, 0 to 1; None without a
    query. `here`: the caller's namespace, None where it is not known."""
    base, recency, kind, priority, access, confidence, tier, namespace = _score_parts(
        factors, now, text or 0.0, with_tier, here
    )
    parts = (None if text is None else base, recency, kind, None, priority, access, confidence, tier, namespace)
    return Score(dict(zip(COMPONENTS, parts, strict=True)))


def _total(factors: Factors, now: float, *, text: float, with_tier: bool, here: str | None) -> float:
    """`score(...).total`, in a third of the time: most of what is ranked is not returned."""
    return sum(_score_parts(factors, now, text, with_tier, here))


def _score_parts(factors: Factors, now: float, text: float, with_tier: bool, here: str | None) -> tuple[float, ...]:
    """In the order of the components: their sum depends on it, in the last bit."""
    updated_at, kind, priority, access_count, confidence, tier, namespace = factors
    age = max(now - updated_at, 0.0) / _DAY
    doubt = _DOUBT * (limits.DOUBTFUL_CONFIDENCE - confidence) if confidence < limits.DOUBTFUL_CONFIDENCE else 0.0
    return (
        BASE * text,
        _RECENCY / (1.0 + 0.1 * age),
        _KIND.get(kind, 0.0),
        _PRIORITY * priority,
        _ACCESS * min(access_count, _MOST_ACCESSES),
        _CONFIDENCE * confidence - doubt,
        _TIER.get(tier, 0.0) if with_tier else 0.0,
        _NAMESPACE if namespace == here else 0.0,
    )


# Notes for a query

_FACTOR_COLUMNS = tuple(f"n.{name}" for name in Factors._fields)


@dataclass(frozen=True, slots=True)
class Match:
    """A note that a query found, with the score that ranked it."""

    note: Note
    score: Score


def search(connection: SqlConnection, text: str, where: NoteFilter, limit: int, now: float) -> list[Match]:
    """Return the notes that have all the words, ranked without regard to their tier."""
    return _ranked(connection, query_words(connection, text, all_needed=True), where, limit, now)


def recall(connection: SqlConnection, text: str, where: NoteFilter, limit: int, now: float) -> list[Match]:
    """Return the notes that have any of the words, ranked. The caller calls `touch` for those that it returns."""
    return _ranked(connection, query_words(connection, text), where, limit, now)


def query_words(connection: SqlConnection, text: str, *, all_needed: bool = False) -> Words:
    """The words that `search` or `recall` looks for: a word that no note has stands for one that is nearly the same. A
    question of many words is found by the others."""
    field = "query" if all_needed else "context"
    words = Words.parse(text, all_needed=all_needed, field=field)
    return words.corrected(connection) if all_needed or len(words.words) <= _CORRECTED_WORDS else words


def scores_of(
    connection: SqlConnection,
    text: str | None,
    notes: Sequence[Note],
    words_by_note: Mapping[int, Sequence[str]],
    matches: Sequence[Match],
    now: float,
    where: NoteFilter,
) -> dict[int, Score]:
    """Return the scores that recall would give to notes beside `matches`, the results of the same query. The words are
    those that `matched_words` returns: a note without any needs no look at its text."""
    if text is None:
        return {note.id: score(Factors.of(note), now, text=None, here=where.here) for note in notes}
    words = query_words(connection, text)
    texts = {}
    if any(words_by_note[note.id] for note in notes):
        texts = text_scores(connection, words, where.namespaces, [note.id for note in notes])
    # The best match of the query, and not of its words: what does not meet the filter explains no better.
    best = texts.get(matches[0].note.id, 0.0) if matches else 0.0
    if matches and best:
        best *= BASE / (matches[0].score.components["base"] or BASE)

    def relative(note: Note) -> float:
        raw = texts.get(note.id, 0.0)
        return min(raw / (best or raw), 1.0) if raw else 0.0

    return {note.id: score(Factors.of(note), now, text=relative(note), here=where.here) for note in notes}


def matched_words(connection: SqlConnection, text: str | None, notes: Iterable[Note]) -> dict[int, list[str]]:
    """Return the words of a query that are in each of the notes, as they were written."""
    texts = {note.id: "\n".join((note.draft.title, note.draft.content, *note.draft.tags)).lower() for note in notes}
    if text is None:
        return {note_id: [] for note_id in texts}
    return words_in(connection, query_words(connection, text), texts.keys(), texts=texts)


def similar_titles(connection: SqlConnection, note: Note, now: float) -> list[int]:
    """Return the ids of notes in the namespace whose titles may contradict this one's, or repeat it, the newest first;
    no attempts."""
    claims = claims_of(note.draft.title)
    alike = titles_about(connection, [claim.words for claim in claims], negations(), note.draft.namespace)
    # With a plus: by the ids, not by the index of namespaces.
    titles = connection.execute(
        f"SELECT n.id, n.title FROM notes n WHERE n.id IN ({placeholders(alike)}) AND {LIVE} AND n.id <> ?"
        f" AND n.kind <> '{ATTEMPT}' AND +n.namespace = ? ORDER BY n.id DESC",
        (*alike, now, note.id, note.draft.namespace),
    )
    return [note_id for note_id, title in titles if may_contradict(claims, claims_of(title))][:_SIMILAR_TITLES]


def _ranked(connection: SqlConnection, words: Words, where: NoteFilter, limit: int, now: float) -> list[Match]:
    parts, values = where.where(now)
    condition = Condition([*parts, SOUND], values, where.namespaces, columns=_FACTOR_COLUMNS)
    matches = best_matches(connection, words, condition, limit=max(_RERANKED, limit))
    if not matches:
        return []
    best = matches[0][1] or 1.0
    candidates = {note_id: (text / best, Factors(*columns)) for note_id, text, columns in matches}
    with_tier = not words.all_needed
    order = {
        note_id: (-_total(factors, now, text=text, with_tier=with_tier, here=where.here), -factors.updated_at, note_id)
        for note_id, (text, factors) in candidates.items()
    }
    first = sorted(order, key=order.__getitem__)[:limit]
    notes = get_many(connection, first, now)
    return [
        Match(notes[note_id], score(factors, now, text=text, with_tier=with_tier, here=where.here))
        for note_id in first
        for text, factors in (candidates[note_id],)
    ]


# Notes for a prompt

_PROMPT_THRESHOLD = 10.0
_SENTENCE_THRESHOLD = 1.25 * _PROMPT_THRESHOLD  # for one sentence of a longer prompt, which has fewer words to disagree
_LEAST_SHARE = 0.3  # of the prompt's weight
_LEAST_WORDS, _LEAST_SENTENCE_WORDS = 2, 3
_SENTENCES = 4
_RECALLED_NOTES = 3  # of one recall
_MOST_WORDS = 32
_OTHER_NOTES = 50  # assumed beside those there are: in a store of three notes every word would be frequent
_MOST_COUNTED = 2_000  # notes with a word: beyond, its weight is next to nothing
_USUAL_LENGTH, _SHORTEST = 200, 30  # words of a note; a long one has more words of any prompt by chance
_TITLE_WEIGHT = 0.25  # what a word weighs more when it is in the title

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
    weigh = _WordWeights(connection, where.namespaces)
    best: dict[int, RelevantNote] = {}
    for words, least_words, threshold in _parts_of_prompt(prompt):
        for match in recall(connection, " ".join(words), where, _RECALLED_NOTES, now):
            candidate = weigh.relevance(match.note, words)
            if candidate.score < threshold or len(candidate.words) < least_words:
                continue
            if match.note.id not in best or best[match.note.id].score < candidate.score:
                best[match.note.id] = candidate
    current = _without_losers(connection, best, where, now)
    return sorted(current, key=lambda candidate: (-candidate.score, candidate.note.id))[:limit]


def best_notes(
    connection: SqlConnection, question: str, where: NoteFilter, limit: int, now: float
) -> list[RelevantNote]:
    """The notes that recall finds for a question, in its order. A note that was resolved in favor of another is
    replaced by that one."""
    if not content_words(question):
        return []
    matches = recall(connection, question, where, limit, now)
    words = matched_words(connection, question, [match.note for match in matches])
    found = {
        match.note.id: RelevantNote(match.note, match.score.total, tuple(words[match.note.id])) for match in matches
    }
    current = _without_losers(connection, found, where, now)
    return sorted(current, key=lambda candidate: -candidate.score)


def _without_losers(
    connection: SqlConnection, found: dict[int, RelevantNote], where: NoteFilter, now: float
) -> list[RelevantNote]:
    for note_id, winner in find_winners(connection, found, now).items():
        candidate = found.pop(note_id)
        if winner is not None and _is_in(winner.draft.namespace, where):
            found.setdefault(winner.id, replace(candidate, note=winner, supersedes=candidate.note))
    return list(found.values())


def _is_in(namespace: str, where: NoteFilter) -> bool:
    return namespace not in where.hidden and (where.namespaces is None or namespace in where.namespaces)


def subject_words(text: str) -> tuple[str, ...]:
    """The words of a text that say what it is about."""
    words = (word for word in content_words(text) if word not in _GENERIC_WORDS)
    return tuple(word for word in words if not (word.isdecimal() and len(word) < 3))[:_MOST_WORDS]


def _parts_of_prompt(prompt: str) -> Iterator[tuple[tuple[str, ...], int, float]]:
    """The words of the whole prompt, then of its first sentences, each with what it takes to be about them."""
    whole = subject_words(prompt)
    if len(whole) >= _LEAST_WORDS:
        yield whole, _LEAST_WORDS, _PROMPT_THRESHOLD
    sentences = [words for part in _SENTENCE_END.split(prompt) if (words := subject_words(part)) != whole]
    long_enough = [words for words in sentences if len(words) >= _LEAST_SENTENCE_WORDS]
    for words in long_enough[:_SENTENCES]:
        yield words, _LEAST_SENTENCE_WORDS, _SENTENCE_THRESHOLD


class _WordWeights:
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
        weight = sum(self._weight(word) * (1 + _TITLE_WEIGHT * (word in in_title)) for word in matched)
        share = min(weight / whole, 1.0)
        length = max(len(note.draft.content.split()), _SHORTEST)
        value = weight * share * (_USUAL_LENGTH / length) ** 0.25 if share >= _LEAST_SHARE else 0.0
        return RelevantNote(note, value, tuple(matched))

    def _weight(self, word: str) -> float:
        if word not in self._word_weights:
            count = count_matches(self._connection, word, self._namespaces, _MOST_COUNTED)
            self._word_weights[word] = math.log(1 + (self._notes - count + 0.5) / (count + 0.5))
        return self._word_weights[word]
