"""Whether recall finds the note that answers a question: the questions of LongMemEval through the product's own store.

A note's text is a session, its title the beginning of that text; no id is in either. A hit is a note that holds a
session of the question. Small stores have the sessions of one question and others up to 48; the pooled one has all.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from nudge.core import limits
from nudge.history import store as observations
from nudge.history.search import search_observations
from nudge.notes import ranking, retrieval, store
from nudge.notes.fields import TIERS, Draft
from nudge.notes.note import Lifetimes
from nudge.notes.store import NoteFilter
from nudge.storage import migrations
from tests.bench.report import Row
from tests.harness import Machine

DATA = Path(__file__).parent / "data" / "longmemeval_half.json.gz"
SMALL, POOLED = 95.0, 89.5  # % of the questions with a hit among the first five
SEARCHED = 89.0  # the same of the history, pooled; it scores no passages
LOST = 1.0  # points that scoring the passages of the best hundred only may cost
RANDOM = 1.0  # points that random tiers and priorities may cost
STORE_SIZE = 48

_NOW = 1_800_000_000.0
_TITLE_WORDS = 8
_NOISE, _NOISE_WORDS = 25_000, 40
_LIFETIMES = Lifetimes()


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    sessions: list[str]


@dataclass(frozen=True, slots=True)
class Result:
    """Percentages over all questions, and milliseconds for each."""

    any_1: float
    any_5: float
    any_10: float
    all_5: float
    mrr: float
    ms: float

    def __str__(self) -> str:
        return (
            f"any@1 {self.any_1:.1f}, any@10 {self.any_10:.1f}, all@5 {self.all_5:.1f}, MRR {self.mrr:.1f}, "
            f"{self.ms:.1f} ms a query"
        )


def questions() -> list[Question]:
    found = json.loads(gzip.decompress(DATA.read_bytes()))
    return [
        Question(
            question["question"],
            ["\n".join(turn["content"] for turn in session["turns"]) for session in question["sessions"]],
        )
        for question in found
    ]


def recall(_: Machine) -> Iterator[Row]:
    """Rows for both sizes of store, and for the same with random tiers and priorities on every note."""
    asked = questions()
    plain_small, plain_pooled = small(asked), pooled(asked)
    yield Row("retrieval", "any@5, 48 notes", plain_small.any_5, SMALL, "%", note=str(plain_small), at_least=True)
    yield Row("retrieval", "any@5, pooled", plain_pooled.any_5, POOLED, "%", note=str(plain_pooled), at_least=True)
    for what, plain, scattered in (
        ("48 notes", plain_small, small(asked, random.Random(3))),
        ("pooled", plain_pooled, pooled(asked, random.Random(3))),
    ):
        lost = plain.any_5 - scattered.any_5
        yield Row(
            "retrieval", f"lost by random tiers and priorities, {what}", lost, RANDOM, "points", note=str(scattered)
        )


def large(_: Machine) -> Iterator[Row]:
    """What a store above the exact limit loses: all sessions among thousands of notes made of their own words."""
    asked = questions()
    chance = random.Random(5)
    with closing(filled([session for question in asked for session in question.sessions], None)) as notes:
        words = " ".join(session for question in asked for session in question.sessions).split()
        for number in range(_NOISE):
            draft = Draft(title=f"noise {number}", content=" ".join(chance.choices(words, k=_NOISE_WORDS)))
            store.store(notes, draft, _NOW, _LIFETIMES)
        result = _result([_ranks(notes, question) for question in asked])
        with _exact():
            exact = _result([_ranks(notes, question) for question in asked])
    lost = exact.any_5 - result.any_5
    yield Row(
        "retrieval", f"any@5 lost among {_NOISE:,}", lost, LOST, "points", f"exact {exact.any_5:.1f}", str(result)
    )


@contextmanager
def _exact() -> Iterator[None]:
    limit, retrieval._EXACT_NOTES = retrieval._EXACT_NOTES, sys.maxsize
    try:
        yield
    finally:
        retrieval._EXACT_NOTES = limit


def search(_: Machine) -> Iterator[Row]:
    """The same questions through `search` in the history, where each session is one long prompt."""
    asked = questions()
    for what, result, budget in (
        ("48 sessions", _result([_found(*filled_with) for filled_with in small_stores(asked)]), SMALL),
        ("pooled", _pooled_search(asked), SEARCHED),
    ):
        yield Row("search-questions", f"any@5, {what}", result.any_5, budget, "%", note=str(result), at_least=True)


def small(asked: list[Question], scatter: random.Random | None = None) -> Result:
    """One store for each question."""
    ranks = []
    for question, sessions in small_stores(asked):
        with closing(filled(sessions, scatter)) as notes:
            ranks.append(_ranks(notes, question))
    return _result(ranks)


def small_stores(asked: list[Question], seed: int = 0) -> Iterator[tuple[Question, list[str]]]:
    """Each question with its own sessions and others."""
    chance = random.Random(seed)
    for question in asked:
        others = [session for other in asked if other is not question for session in other.sessions]
        yield question, [*question.sessions, *chance.sample(others, STORE_SIZE - len(question.sessions))]


def pooled(asked: list[Question], scatter: random.Random | None = None) -> Result:
    """One store with the sessions of all questions."""
    with closing(filled([session for question in asked for session in question.sessions], scatter)) as notes:
        return _result([_ranks(notes, question) for question in asked])


def _found(question: Question, sessions: Iterable[str]) -> tuple[list[int], int, float]:
    with closing(_history(sessions)) as history:
        return _searched(history, question)


def _pooled_search(asked: list[Question]) -> Result:
    with closing(_history(session for question in asked for session in question.sessions)) as history:
        return _result([_searched(history, question) for question in asked])


def _history(sessions: Iterable[str]) -> sqlite3.Connection:
    history = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(history)
    for number, session in enumerate(dict.fromkeys(sessions)):
        event = {"event_id": str(number), "session_id": str(number), "timestamp": number, "type": "user_prompt"}
        observations.insert_event(history, {**event, "content": session, "metadata": {}})
    return history


def _searched(history: sqlite3.Connection, question: Question) -> tuple[list[int], int, float]:
    began = time.perf_counter()
    rows = search_observations(history, question.text, limit=10, full=True)
    took = time.perf_counter() - began
    own = {session[: limits.MAX_PROMPT_CHARS] for session in question.sessions}
    hits = [rank for rank, row in enumerate(rows, 1) if row["content"] in own]
    return hits, len(own), took


def filled(sessions: Iterable[str], scatter: random.Random | None) -> sqlite3.Connection:
    """A store with a note for each session; with `scatter`, of random tier and priority."""
    notes = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(notes)
    titles: set[str] = set()
    for session in dict.fromkeys(sessions):  # some questions share a session
        draft = Draft(
            title=_title(session, titles),
            content=session,
            tier=scatter.choice(TIERS) if scatter else "mid",
            priority=scatter.randint(1, 10) if scatter else 5,
        )
        store.store(notes, draft, _NOW, _LIFETIMES)
    return notes


def _title(session: str, taken: set[str]) -> str:
    words = session.split()
    titles = (" ".join(words[:count]) for count in range(_TITLE_WORDS, len(words) + 1))
    title = next((title for title in titles if title not in taken), session)
    taken.add(title)
    return title


def _ranks(notes: sqlite3.Connection, question: Question) -> tuple[list[int], int, float]:
    """The ranks of the question's sessions, how many it has, and the seconds it took."""
    began = time.perf_counter()
    matches = ranking.recall(notes, question.text, NoteFilter(), 10, _NOW + 1)
    took = time.perf_counter() - began
    hits = [rank for rank, match in enumerate(matches, 1) if match.note.draft.content in question.sessions]
    return hits, len(set(question.sessions)), took


def _result(ranks: list[tuple[list[int], int, float]]) -> Result:
    def percent(values: Iterable[float]) -> float:
        return 100 * sum(values) / len(ranks)

    return Result(
        any_1=percent(1 in hits for hits, _, _ in ranks),
        any_5=percent(any(rank <= 5 for rank in hits) for hits, _, _ in ranks),
        any_10=percent(bool(hits) for hits, _, _ in ranks),
        all_5=percent(sum(rank <= 5 for rank in hits) >= min(count, 5) for hits, count, _ in ranks),
        mrr=percent(1 / hits[0] if hits else 0.0 for hits, _, _ in ranks),
        ms=1e3 * sum(took for _, _, took in ranks) / len(ranks),
    )
