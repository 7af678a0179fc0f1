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

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Self

from nudge.core import limits
from nudge.meaning.fusion import ALIKE, NEAR, boosts
from nudge.notes.claims import claims_of, may_contradict, negations
from nudge.notes.fields import ATTEMPT, LONG, MID
from nudge.notes.note import Note
from nudge.notes.note_rows import COLUMNS, NAMES, read_note
from nudge.notes.retrieval import (
    Condition,
    Words,
    best_matches,
    meeting,
    text_scores,
    texts_for_fusion,
    titles_about,
    words_in,
)
from nudge.notes.store import LIVE, SOUND, NoteFilter, SqlConnection, placeholders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.fusion import Closeness, Question

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
    """The parts of one note's score for one query; `semantic_boost` is null for a note without vectors."""

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


def score(
    factors: Factors,
    now: float,
    *,
    text: float | None,
    with_tier: bool = True,
    here: str | None,
    boost: float | None = None,
) -> Score:
    """Score a note. `text`: its text score in relation to the best of the query's matches, 0 to 1; None without a
    query. `boost`: what its meaning adds to that, or takes away; None where it is not known. `here`: the caller's
    namespace, None where it is not known."""
    base, recency, kind, priority, access, confidence, tier, namespace = _score_parts(
        factors, now, text or 0.0, with_tier, here
    )
    semantic = None if boost is None else BASE * boost
    parts = (None if text is None else base, recency, kind, semantic, priority, access, confidence, tier, namespace)
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

_FACTORS = itemgetter(*(NAMES.index(name) for name in Factors._fields))


@dataclass(frozen=True, slots=True)
class Match:
    """A note that a query found, with the score that ranked it."""

    note: Note
    score: Score


def search(connection: SqlConnection, text: str, where: NoteFilter, limit: int, now: float) -> list[Match]:
    """Return the notes that have all the words, ranked without regard to their tier."""
    return _ranked(connection, query_words(connection, text, all_needed=True), where, limit, now)


def recall(
    connection: SqlConnection, text: str, where: NoteFilter, limit: int, now: float, question: Question | None = None
) -> list[Match]:
    """Return the notes that have any of the words, or that mean nearly the same as the `question`, ranked. The caller
    calls `touch` for those that it returns."""
    closeness = None if question is None else question.closeness(connection)
    return _ranked(connection, query_words(connection, text), where, limit, now, closeness)


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
    question: Question | None = None,
) -> dict[int, Score]:
    """Return the scores that recall would give to notes beside `matches`, the results of the same query. The words are
    those that `matched_words` returns: a note without any needs no look at its text."""
    if text is None:
        return {note.id: score(Factors.of(note), now, text=None, here=where.here) for note in notes}
    words = query_words(connection, text)
    if question is not None and (closeness := question.closeness(connection)) is not None:
        return _fused_scores(connection, words, notes, where, closeness, now)
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


def _fused_scores(
    connection: SqlConnection, words: Words, notes: Sequence[Note], where: NoteFilter, closeness: Closeness, now: float
) -> dict[int, Score]:
    fused = _fuse(connection, words, where.namespaces, closeness, NEAR, [note.id for note in notes])
    return {
        note.id: score(
            Factors.of(note), now, text=fused.texts.get(note.id, 0.0), here=where.here, boost=fused.boosts.get(note.id)
        )
        for note in notes
    }


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


def notes_alike(connection: SqlConnection, question: Question, namespace: str, now: float) -> list[int]:
    """Return the ids of notes in the namespace that say nearly the same as a text, the closest first; no attempts."""
    closeness = question.closeness(connection)
    if closeness is None:
        return []
    close = {note_id: cosine for note_id, cosine in closeness.cosines().items() if cosine >= ALIKE}
    rows = connection.execute(
        f"SELECT n.id FROM notes n WHERE n.id IN (SELECT value FROM json_each(?)) AND {LIVE}"
        f" AND n.kind <> '{ATTEMPT}' AND +n.namespace = ?",
        (json.dumps(list(close)), now, namespace),
    )
    return sorted((note_id for (note_id,) in rows), key=lambda note_id: -close[note_id])[:_SIMILAR_TITLES]


def _ranked(
    connection: SqlConnection,
    words: Words,
    where: NoteFilter,
    limit: int,
    now: float,
    closeness: Closeness | None = None,
) -> list[Match]:
    parts, values = where.where(now)
    condition = Condition([*parts, SOUND], values, where.namespaces, columns=COLUMNS)
    if closeness is None:
        candidates = _by_words(connection, words, condition, max(_RERANKED, limit))
    else:
        candidates = _by_meaning_too(connection, words, condition, max(_RERANKED, limit), closeness)
    with_tier = not words.all_needed
    order = {
        note_id: (
            -_total(factors, now, text=text + (boost or 0.0), with_tier=with_tier, here=where.here),
            -factors.updated_at,
            note_id,
        )
        for note_id, (text, boost, row) in candidates.items()
        for factors in (Factors(*_FACTORS(row)),)
    }
    first = sorted(order, key=order.__getitem__)[:limit]
    return [
        Match(note, score(Factors.of(note), now, text=text, with_tier=with_tier, here=where.here, boost=boost))
        for note_id in first
        for text, boost, row in (candidates[note_id],)
        for note in (read_note(row),)
    ]


Candidates = dict[int, tuple[float, float | None, tuple[Any, ...]]]
"""The text score of a note, what its meaning adds to it, and its row."""


def _by_words(connection: SqlConnection, words: Words, condition: Condition, limit: int) -> Candidates:
    matches = best_matches(connection, words, condition, limit=limit)
    best = (matches[0][1] if matches else 0.0) or 1.0
    return {note_id: (text / best, None, row) for note_id, text, row in matches}


def _by_meaning_too(
    connection: SqlConnection, words: Words, condition: Condition, limit: int, closeness: Closeness
) -> Candidates:
    """The notes that have words of the query, and those that are near without. Where few of the nearest ones meet the
    condition, all are looked at."""
    for most in (max(NEAR, limit), sys.maxsize):
        fused = _fuse(connection, words, condition.namespaces, closeness, most)
        matches = meeting(connection, fused.totals(), condition, limit)
        if len(matches) >= limit or fused.has_all_near:
            break
    return {note_id: (fused.texts.get(note_id, 0.0), fused.boosts.get(note_id), row) for note_id, _, row in matches}


class _Fused(NamedTuple):
    """Notes by their words and by their meaning; `has_all_near`: no other note is near the question."""

    texts: dict[int, float]
    boosts: dict[int, float]
    has_all_near: bool

    def totals(self) -> list[tuple[int, float]]:
        ids = self.texts.keys() | self.boosts.keys()
        return [(note_id, self.texts.get(note_id, 0.0) + self.boosts.get(note_id, 0.0)) for note_id in ids]


def _fuse(
    connection: SqlConnection,
    words: Words,
    namespaces: tuple[str, ...] | None,
    closeness: Closeness,
    most: int,
    also: Sequence[int] = (),
) -> _Fused:
    near = closeness.nearest(most)
    texts = texts_for_fusion(connection, words, namespaces, [*near, *also])
    known = closeness.of([*texts, *near, *also])
    return _Fused(texts, boosts(known, texts.keys()), len(near) < most)
