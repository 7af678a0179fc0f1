"""What a model costs: memory, and the time of a recall in relation to one by words."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nudge.meaning.embedder import open_embedder
from nudge.notes import ranking
from nudge.notes.store import NoteFilter
from tests.bench import retrieval
from tests.bench.decisions import NOW
from tests.meaning.stores import Cached, EmbeddedStore

_ROUNDS = 3

# Run by itself, so that nothing else is in its memory. What is mapped and was read counts.
_MEMORY = """
import json, os, sys
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
import nudge.process.primary
before = resident()
from nudge.meaning.embedder import open_embedder
from nudge.meaning.index import VectorIndex
embedder = open_embedder(sys.argv[1])
texts = json.load(open(sys.argv[2]))
for start in range(0, len(texts), embedder.batch):
    embedder.encode(texts[start : start + embedder.batch])
print(resident() - before)
"""


def memory(directory: Path, scratch: Path, texts: int) -> float:
    """Megabytes that a loaded model adds to a server that has embedded some texts."""
    sessions = [session for question in retrieval.questions() for session in question.sessions]
    file = scratch / "texts.json"
    file.write_text(json.dumps([session[:500] for session in sessions[:texts]]))
    command = [sys.executable, "-c", _MEMORY, str(directory), str(file)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1e6


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
