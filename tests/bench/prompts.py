"""When a prompt is answered with a note: where a note is about it, and not where none is.

Stores of 48 sessions of LongMemEval are asked the question whose answer they hold, a question whose answer they do not
hold, and the prompts of the replayed runs, which are about other things. Beside them a store of our own decisions,
asked prompts that touch them and small talk.

The rule is made for decisions of a few sentences (`decisions`). These stores have conversations of one person each:
where the answer is absent, another conversation about the same trip or gift is often told.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from nudge.notes import store
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes
from nudge.notes.store import NoteFilter
from nudge.telling.prompt_notes import RelevantNote, relevant_notes
from tests.bench.report import Row
from tests.bench.retrieval import STORE_SIZE, Question, filled, questions
from tests.harness import Machine

DATA = Path(__file__).parent / "data"
PRESENT, RIGHT_FIRST, ABSENT, REPLAY = 75.0, 92.0, 13.0, 2.0  # %
OWN, SMALL_TALK = 60.0, 0.0

_NOW = 1_800_000_000.0


def answers(_: Machine) -> Iterator[Row]:
    asked, replayed, own = questions(), _replayed_prompts(), json.loads((DATA / "prompts.json").read_text("utf-8"))
    began = time.perf_counter()
    present, absent, others = _in_stores(asked, replayed)
    took = 1e3 * (time.perf_counter() - began) / (len(present) + len(absent) + len(others))
    fired = [right for right in present if right is not None]
    yield _least("fired, answer present", len(fired), len(present), PRESENT, f"{took:.1f} ms a prompt with its store")
    yield _least("right first, answer present", sum(fired), len(fired), RIGHT_FIRST)
    yield _most("fired, answer absent", sum(absent), len(absent), ABSENT)
    yield _most("fired, prompts of the replay", sum(others), len(others), REPLAY)
    with closing(_decided(own["decisions"])) as notes:
        first = [_first(notes, decision["prompt"]) for decision in own["decisions"]]
        right = [
            found.note.draft.title == decision["title"]
            for found, decision in zip(first, own["decisions"], strict=True)
            if found is not None
        ]
        yield _least("fired, decisions", len(right), len(first), OWN)
        yield _least("right first, decisions", sum(right), len(right), RIGHT_FIRST)
        yield _most("fired, small talk", *_count(notes, own["small_talk"]), SMALL_TALK)
        yield _most("fired, replay among decisions", *_count(notes, replayed), REPLAY)


def _in_stores(asked: list[Question], replayed: list[str]) -> tuple[list[bool | None], list[bool], list[bool]]:
    """For each question whether the first note that was told is right (None: nothing was told), whether anything was
    told without its answer in the store, and the same for a replayed prompt there."""
    chance = random.Random(0)
    present: list[bool | None] = []
    absent, others = [], []
    for number, question in enumerate(asked):
        foreign = [session for other in asked for session in other.sessions if session not in question.sessions]
        sampled = chance.sample(foreign, STORE_SIZE - len(question.sessions))
        with closing(filled([*question.sessions, *sampled], None)) as notes:
            found = _first(notes, question.text)
            present.append(None if found is None else found.note.draft.content in question.sessions)
        with closing(filled([*sampled, *chance.sample(foreign, len(question.sessions))], None)) as notes:
            absent.append(_first(notes, question.text) is not None)
            if number < len(replayed):
                others.append(_first(notes, replayed[number]) is not None)
    return present, absent, others


def _first(notes: sqlite3.Connection, prompt: str) -> RelevantNote | None:
    return next(iter(relevant_notes(notes, prompt, NoteFilter(), None, _NOW + 1)), None)


def _count(notes: sqlite3.Connection, prompts: Iterable[str]) -> tuple[int, int]:
    fired = [_first(notes, prompt) is not None for prompt in prompts]
    return sum(fired), len(fired)


def _decided(decisions: Iterable[dict[str, Any]]) -> sqlite3.Connection:
    notes = filled([], None)
    for decision in decisions:
        draft = Draft(title=decision["title"], content=decision["content"], kind=decision["kind"])
        store.store(notes, draft, _NOW, Lifetimes())
    return notes


def _replayed_prompts() -> list[str]:
    lines = gzip.decompress((DATA / "replay.jsonl.gz").read_bytes()).decode().splitlines()
    events = (json.loads(line) for line in lines if '"UserPromptSubmit"' in line)
    return [event["prompt"] for event in events if event["hook_event_name"] == "UserPromptSubmit"]


def _least(what: str, count: int, of: int, budget: float, note: str = "") -> Row:
    return Row("prompts", what, 100 * count / of, budget, "%", f"{count} of {of}", note, at_least=True)


def _most(what: str, count: int, of: int, budget: float) -> Row:
    return Row("prompts", what, 100 * count / of, budget, "%", f"{count} of {of}")
