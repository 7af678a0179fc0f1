"""Whether recall finds the note that answers a question: by words, and with each model."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nudge.notes import ranking, store
from nudge.notes.note import Lifetimes
from nudge.notes.store import NoteFilter
from nudge.telling.prompt_notes import best_notes
from tests.bench import decisions, retrieval
from tests.bench.decisions import NOW
from tests.meaning.stores import Both, Cached, EmbeddedStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.fusion import Question

OWN = Path(__file__).parent / "data" / "fieldwork.json"
LISTED = 10


class Asks(Protocol):
    def ask(self, text: str) -> Question: ...


Method = Callable[[sqlite3.Connection], Asks | None]
"""How a store is asked: None for words alone."""


def methods(embedders: Mapping[str, Cached]) -> dict[str, Method]:
    by_model = {name: _by(embedder) for name, embedder in embedders.items()}
    return {"keyword": lambda _: None, **by_model, "both": lambda connection: Both(connection, embedders.values())}


def _by(embedder: Cached) -> Method:
    return lambda connection: EmbeddedStore(connection, embedder)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and the notes that are right, by what `names` calls them."""

    text: str
    right: frozenset[str]


@dataclass(frozen=True, slots=True)
class Figures:
    """Percentages of the questions, and milliseconds for each."""

    any_1: float
    any_3: float
    any_5: float
    any_10: float
    mrr: float
    ms: float
    questions: int


def figures(ranks: Sequence[int | None], seconds: float) -> Figures:
    def share(most: int) -> float:
        return 100 * sum(rank is not None and rank <= most for rank in ranks) / len(ranks)

    mrr = 100 * sum(1 / rank for rank in ranks if rank) / len(ranks)
    ms = 1e3 * seconds / len(ranks)
    return Figures(share(1), share(3), share(5), share(10), mrr, ms, len(ranks))


class Ranks:
    """The ranks of the right notes for the questions of one set."""

    def __init__(self) -> None:
        self.ranks: list[int | None] = []
        self._seconds = 0.0

    def add(self, connection: sqlite3.Connection, asks: Asks | None, text: str, right: Iterable[int]) -> list[int]:
        """Ask, and return what was found, best first."""
        began = time.perf_counter()
        question = None if asks is None else asks.ask(text)
        matches = ranking.recall(connection, text, NoteFilter(), LISTED, NOW + 1, question)
        self._seconds += time.perf_counter() - began
        found = [match.note.id for match in matches]
        wanted = set(right)
        self.ranks.append(next((rank for rank, note in enumerate(found, 1) if note in wanted), None))
        return found

    @property
    def figures(self) -> Figures:
        return figures(self.ranks, self._seconds)


def long_memory(method: Method) -> Iterator[tuple[str, Figures]]:
    """LongMemEval, with a store for each question and with one for all."""
    asked, small, pooled = retrieval.questions(), Ranks(), Ranks()
    for question, sessions in retrieval.small_stores(asked):
        with closing(retrieval.filled(sessions, None)) as connection:
            small.add(connection, method(connection), question.text, _holding(connection, question.sessions))
    with closing(
        retrieval.filled([session for question in asked for session in question.sessions], None)
    ) as connection:
        asks = method(connection)
        for question in asked:
            pooled.add(connection, asks, question.text, _holding(connection, question.sessions))
    yield "LongMemEval, 48 notes", small.figures
    yield "LongMemEval, pooled", pooled.figures


def _holding(connection: sqlite3.Connection, sessions: Sequence[str]) -> list[int]:
    marks = ", ".join("?" * len(sessions))
    rows = connection.execute(f"SELECT id FROM notes WHERE content IN ({marks})", sessions)  # noqa: S608 - marks
    return [note for (note,) in rows]


def decided(method: Method, name: str, file: Path) -> Iterator[tuple[str, Figures]]:
    """The prompts about a note, by kind."""
    by_kind: dict[str, Ranks] = {}
    for repo in json.loads(file.read_text("utf-8")):
        with closing(stored(repo)) as connection:
            ids, asks = decisions.ids_of(connection), method(connection)
            for prompt in repo["prompts"]:
                if prompt["about"]:
                    right = [ids[about] for about in prompt["about"]]
                    by_kind.setdefault(prompt["kind"], Ranks()).add(connection, asks, prompt["prompt"], right)
    for kind, ranks in by_kind.items():
        yield f"{name}, {kind}", ranks.figures


def stored(repo: Mapping[str, Any]) -> sqlite3.Connection:
    rows = [{"files": [], "age_days": 10, "supersedes": None, "branch": None, **row} for row in repo["notes"]]
    return decisions.stored_notes(rows, repo["repo"])


@dataclass(frozen=True, slots=True)
class Amended:
    """Of so many amendments: how many a recall lists before what they replace, of how many the note that they replace
    is named when they are stored, and how many come first in a context once the conflict is resolved."""

    first: int
    named: int
    resolved: int
    of: int


def conversations(method: Method) -> tuple[list[tuple[str, Figures]], Amended]:
    """The conversations and commits that decided what bug reports need, and how often an amendment comes before what
    it replaces."""
    data = json.loads((decisions.DATA / "sde_open.json").read_text("utf-8"))
    found, first, named, resolved, of = [], 0, 0, 0, 0
    for name, documents in documents_of(data).items():
        with closing(decisions._documents(documents)) as connection:
            ids, asks, ranks = decisions.ids_of(connection), method(connection), Ranks()
            for query in data["queries"]:
                if query["store"] != name:
                    continue
                listed = ranks.add(connection, asks, query["query"], [ids[one] for one in query["decides"]])
                if query["superseded"]:
                    of += 1
                    own, old = {ids[one] for one in query["own"]}, {ids[one] for one in query["superseded"]}
                    first += _comes_first(listed, own, old)
                    named += old <= set(_named(connection, asks, min(own)))
                    resolved += _comes_first(_after_resolving(connection, asks, query["query"], own, old), own, old)
            found.append((f"bug reports, {name}", ranks.figures))
    return found, Amended(first, named, resolved, of)


def _comes_first(listed: Sequence[int], own: set[int], old: set[int]) -> bool:
    return next((note in own for note in listed if note in own | old), False)


def _named(connection: sqlite3.Connection, asks: Asks | None, note_id: int) -> list[int]:
    """The notes that storing this one names, since it may contradict them."""
    note = store.get(connection, note_id, NOW)
    question = None if asks is None else asks.ask(f"{note.draft.title}\n{note.draft.content}")
    alike = [] if question is None else ranking.notes_alike(connection, question, note.draft.namespace, NOW)
    return [*ranking.similar_titles(connection, note, NOW), *alike]


def _after_resolving(
    connection: sqlite3.Connection, asks: Asks | None, query: str, own: set[int], old: set[int]
) -> list[int]:
    """What a context lists once somebody has said that the amendment is right; that is taken back."""
    connection.execute("SAVEPOINT resolved")
    store.resolve(connection, min(own), min(old), NOW, Lifetimes())
    question = None if asks is None else asks.ask(query)
    notes = best_notes(connection, query, NoteFilter(), LISTED, NOW + 1, question)
    connection.execute("ROLLBACK TO resolved")
    connection.execute("RELEASE resolved")
    return [one.note.id for one in notes]


def documents_of(data: Mapping[str, Any]) -> dict[str, list[tuple[str, str, str]]]:
    chats = [*data["chats"], *data["decoys"]]
    return {
        "chats": [(one["id"], one["turns"][0][1][:120], "\n".join(text for _, text in one["turns"])) for one in chats],
        "commits": [(one["id"], one["subject"], one["body"]) for one in data["commits"]],
    }
