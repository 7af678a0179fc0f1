"""What a model costs: memory, and the time of a recall in relation to one by words."""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

from nudge.meaning.embedder import open_embedder
from nudge.notes import ranking
from nudge.notes.store import NoteFilter
from tests.bench import retrieval
from tests.bench.decisions import NOW
from tests.harness import Machine, eventually
from tests.meaning.stores import Cached, EmbeddedStore

_ROUNDS = 3

_STARTS = 13  # the clock of a process counts in steps of 10 ms, and a start takes 30 of them
_QUESTION = "where was the trip that I told you about"


@dataclass(frozen=True, slots=True)
class ServerCost:
    """Of a server that has just started, the processor time in seconds and the resident megabytes; and the megabytes
    after it has answered a recall, where what is mapped and was read counts."""

    start: float
    started: float
    asked: float


def servers(directory: Path, scratch: Path, texts: int) -> tuple[ServerCost, ServerCost]:
    """The cost of a server without a model and of one with it, of the same notes; each starts some times in turn."""
    sessions = [session for question in retrieval.questions() for session in question.sessions]
    file = scratch / "notes.json"
    notes = [{"title": f"note {number}", "content": session[:500]} for number, session in enumerate(sessions[:texts])]
    file.write_text(json.dumps({"memories": notes}))
    with closing(Machine()) as plain, closing(Machine()) as meant:
        for machine in (plain, meant):
            machine.json("note", "import", str(file))
        meant.json("semantic", "on", str(directory))
        eventually(lambda: _waiting(meant) == 0, "every note is embedded", 120)
        costs: tuple[list[ServerCost], list[ServerCost]] = [], []
        for _ in range(_STARTS):
            for machine, measured in zip((plain, meant), costs, strict=True):
                measured.append(_of_server(machine))
    return _median(costs[0]), _median(costs[1])


def _waiting(machine: Machine) -> int:
    waiting: int = machine.json("semantic", "status")["semantic"]["waiting"]
    return waiting


def _of_server(machine: Machine) -> ServerCost:
    machine.cli("stop", "--force")
    eventually(machine.lock_is_free, "the former server is gone")
    pid = machine.http_only().pid
    start, started = _processor_time(pid), _resident(pid)
    for _ in range(3):
        machine.json("note", "recall", _QUESTION)
    return ServerCost(start, started, _resident(pid))


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _median(costs: Sequence[ServerCost]) -> ServerCost:
    return ServerCost(*(statistics.median(column) for column in zip(*map(astuple, costs), strict=True)))


@dataclass(frozen=True, slots=True)
class Latency:
    """Median milliseconds of processor time of a recall by words, and with the meaning."""

    words: float
    meaning: float
    vectors: int

    @property
    def ratio(self) -> float:
        return self.meaning / self.words


def latency(directory: Path, notes: int = 10_000) -> Latency:
    """In one store, each question asked both ways in turn. The vector of the question is part of the time."""
    embedder, asked = open_embedder(str(directory)), retrieval.questions()
    chance = random.Random(7)
    words = " ".join(session for question in asked for session in question.sessions).split()
    texts = [" ".join(chance.choices(words, k=40)) for _ in range(notes)]
    with closing(retrieval.filled(texts, None)) as connection:
        store = EmbeddedStore(connection, Cached(embedder))
        plain, fused = [], []
        for _ in range(_ROUNDS):
            for question in asked[:80]:
                began = time.process_time()
                ranking.recall(connection, question.text, NoteFilter(), 10, NOW)
                between = time.process_time()
                asking = store.ask_by(embedder, question.text)
                ranking.recall(connection, question.text, NoteFilter(), 10, NOW, asking)
                fused.append(time.process_time() - between)
                plain.append(between - began)
        vectors = connection.execute("SELECT count(*) FROM passage_vectors").fetchone()[0]
    return Latency(1e3 * statistics.median(plain), 1e3 * statistics.median(fused), vectors)
