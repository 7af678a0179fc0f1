"""Notes: what storing, recalling and explaining cost among 100,000 of them, and what an answer costs as TOON.

Words follow Zipf's law, as real ones do: a few are everywhere, most are rare. Queries have words that are neither.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from statistics import median
from typing import Any

from nudge.core.passages import index_passages
from nudge.notes import ranking
from nudge.notes.store import NoteFilter
from nudge.notes.toon import COMPACT_TOON_FIELDS, TOON_FIELDS, dump_toon
from nudge.storage import migrations
from nudge.storage.sqlite import open_readonly, open_writable
from tests.bench.report import Row
from tests.bench.timing import ratio, take_turns
from tests.harness import Machine

FLAT = 2.0  # x what it takes among few
RECALL = 1.5  # x the plain FTS5 query of the same words in the same store
SLOWEST = 60.0  # milliseconds of any recall
RECALL_MCP = 1.5  # x `nudge_query` of the same words
TOON_SAVES = 40.0  # % of the tokens of compact JSON with the same fields; the format's own claim is 40 to 60

FEW, MANY = 1_000, 100_000
_NAMESPACES = tuple(f"github.com/acme/{name}" for name in ("api", "web", "worker", "docs", "infra"))
_VOCABULARY, _STOP = 50_000, 200  # words; the most frequent ones, which nobody asks for
_NOTE_WORDS, _QUERY_WORDS = 40, 4
_ROUNDS, _CALLS = 45, 10
_ANSWERS = 100
_PLAIN = "SELECT rowid FROM notes_fts WHERE notes_fts MATCH ? ORDER BY rank LIMIT 10"
_PIECES = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,3}|[^A-Za-z0-9\s]|\s+")


class Words:
    """Words and queries, the same for everyone who begins with the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = [f"{_spell(number)}" for number in range(_VOCABULARY)]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
        self._telling = list(itertools.accumulate(1 / rank for rank in range(_STOP, _VOCABULARY)))

    def text(self, count: int = _NOTE_WORDS) -> str:
        return " ".join(self._chance.choices(self._words, cum_weights=self._weights, k=count))

    def query(self) -> str:
        return " ".join(self._chance.choices(self._words[_STOP:], cum_weights=self._telling, k=_QUERY_WORDS))

    def pick(self, *choices: Any) -> Any:
        return self._chance.choice(choices)


def _spell(number: int) -> str:
    """A pronounceable word that stemming leaves alone."""
    syllables = [f"{consonant}{vowel}" for consonant in "bdfgklmnprtvz" for vowel in "aou"]
    word = ""
    while number or not word:
        number, rest = divmod(number, len(syllables))
        word += syllables[rest]
    return f"{word}k"


def fill(path: str, count: int) -> None:
    """A database with so many notes."""
    words = Words(count)
    with closing(open_writable(path)) as database:
        migrations.migrate(database)
        database.execute("BEGIN")
        database.executemany(
            "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source,"
            " created_at, updated_at, metadata, origin) VALUES (?, 'long', ?, 'note', ?, ?, '[]', ?, 1.0, 'api', ?, ?,"
            " '{}', '{}')",
            (
                (
                    f"{number:024x}",
                    _NAMESPACES[number % len(_NAMESPACES)],
                    f"{words.text(5)} {number}",
                    words.text(),
                    words.pick(3, 5, 7),
                    *(1.7e9 + number,) * 2,
                )
                for number in range(count)
            ),
        )
        for note_id, title, content in database.execute("SELECT id, title, content FROM notes").fetchall():
            index_passages(database, note_id, title, content)
        database.execute("COMMIT")


@dataclass
class _Caller:
    """One operation over a connection of its own, with other parameters each time: seconds a call."""

    link: socket.socket
    operation: str
    params: Callable[[], dict[str, Any]]

    def __call__(self) -> float:
        lines = [self._line() for _ in range(_CALLS)]
        took = []
        for line in lines:
            began = time.perf_counter()
            answer = _ask(self.link, line)
            took.append(time.perf_counter() - began)
            assert b'"result"' in answer[:200], answer[:500]
        return median(took)

    def _line(self) -> bytes:
        return json.dumps({"id": 1, "op": self.operation, "params": self.params()}).encode()


def flat(machine: Machine) -> Iterator[Row]:
    """The same calls to two servers that take turns, one with few notes and one with many."""
    other = Machine()
    try:
        callers = {f"{name} {FEW}": call for name, call in _callers(machine, FEW).items()}
        callers |= {f"{name} {MANY}": call for name, call in _callers(other, MANY).items()}
        samples = take_turns(callers, _ROUNDS)
        yield from _recall_rows(other, samples[f"recall {MANY}"])
        # An explanation looks at every match once more; a store must not become slower.
        for name, few, many in (
            ("store", f"store {FEW}", f"store {MANY}"),
            ("explain, against recall,", f"recall {MANY}", f"explain {MANY}"),
        ):
            yield Row(
                "notes",
                f"{name} among {MANY:,}",
                ratio(samples, many, few),
                FLAT,
                "x",
                f"{few} {median(samples[few]) * 1e3:.1f} ms",
                f"{median(samples[many]) * 1e3:.1f} ms",
            )
    finally:
        other.close()


def _recall_rows(machine: Machine, took: list[float]) -> Iterator[Row]:
    """A recall among many, against what FTS5 alone takes for the ten best of the same words; in one process, since the
    way through a server costs both the same."""
    words = Words(7)
    queries = [words.query() for _ in range(len(took) * _CALLS)]
    with closing(open_readonly(os.path.join(machine.runtime, "nudge.db"))) as database:
        plain, recall = [], []
        for query in queries:
            match = " OR ".join(f'"{word}"' for word in query.split())
            began = time.perf_counter()
            database.execute(_PLAIN, (match,)).fetchall()
            plain.append(time.perf_counter() - began)
            ranking.recall(database, query, NoteFilter(), 10, 1.8e9)
            recall.append(time.perf_counter() - began - plain[-1])
    slower = median(one / other for one, other in zip(recall, plain, strict=True))
    note = f"{median(recall) * 1e3:.1f} ms, {median(took) * 1e3:.1f} ms with the way to a server"
    yield Row("notes", f"recall among {MANY:,}", slower, RECALL, "x", _plain_note(plain), note)
    yield Row("notes", f"slowest recall among {MANY:,}", max(took) * 1e3, SLOWEST, "ms")


def _plain_note(plain: list[float]) -> str:
    return f"FTS5 alone {median(plain) * 1e3:.1f} ms"


def _callers(machine: Machine, count: int) -> dict[str, _Caller]:
    os.makedirs(machine.runtime, mode=0o700, exist_ok=True)
    fill(os.path.join(machine.runtime, "nudge.db"), count)
    path = machine.http_only().socket
    assert path is not None
    words = Words(7)
    fresh = itertools.count()

    def note() -> dict[str, Any]:
        title = f"{words.text(5)} new {next(fresh)}"
        return {"title": title, "content": words.text(), "namespace": _NAMESPACES[0], "tier": "long"}

    return {
        "store": _connect(path, "nudge.memory_store", note),
        "recall": _connect(path, "nudge.memory_recall", lambda: {"context": words.query()}),
        "explain": _connect(path, "nudge.memory_explain", lambda: {"query": words.query(), "ids": [5, 6]}),
    }


def _connect(path: str, operation: str, params: Callable[[], dict[str, Any]]) -> _Caller:
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    _ask(link, json.dumps({"hello": 1, "client": "bench"}).encode())
    return _Caller(link, operation, params)


def _ask(link: socket.socket, line: bytes) -> bytes:
    link.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += link.recv(1 << 20)
    return answer


# Over MCP

_KNOWN = 300  # hints and notes with the same words


def over_mcp(machine: Machine) -> Iterator[Row]:
    """`memory_recall` of an agent against `nudge_query` of the same words, with as many hints as notes."""
    client, words = machine.serve(), Words(11)
    client.initialize()
    for number in range(_KNOWN):
        text = words.text(20)
        client.call("nudge_set_hint", component=f"part{number % 100}", key=f"k{number}", value=text, meta={"scope": {}})
        client.call("memory_store", title=f"note {number}", content=text)
    queries = itertools.cycle([words.query() for _ in range(50)])
    samples = take_turns(
        {
            "recall": lambda: _seconds_of(lambda query: client.call("memory_recall", context=query), queries),
            "query": lambda: _seconds_of(lambda query: client.call("nudge_query", text=query), queries),
        },
        _ROUNDS,
    )
    note = f"{median(samples['recall']) * 1e3:.2f} ms"
    baseline = f"nudge_query {median(samples['query']) * 1e3:.2f} ms"
    yield Row("notes", "recall over MCP", ratio(samples, "recall", "query"), RECALL_MCP, "x", baseline, note)


def _seconds_of(call: Callable[[str], Any], queries: Iterator[str]) -> float:
    took = []
    for query in itertools.islice(queries, _CALLS):
        began = time.perf_counter()
        call(query)
        took.append(time.perf_counter() - began)
    return median(took)


# TOON


def tokens(text: str) -> int:
    """An estimate that depends on no tokenizer: up to six letters, up to three digits, a sign, or blanks are one."""
    return len(_PIECES.findall(text))


def saved(fields: tuple[str, ...]) -> tuple[float, float, float]:
    """Over a hundred answers with 1 to 20 notes: % of tokens saved against compact JSON with the same fields; tokens of
    an answer as JSON and as TOON."""
    words = Words(3)
    sizes = [0, 0]
    for number in range(_ANSWERS):
        rows = [_row(words, number, row) for row in range(number % 20 + 1)]
        answer = {
            "memories": [{name: row[name] for name in fields} for row in rows],
            "count": len(rows),
            "mode": "keyword",
        }
        sizes[0] += tokens(json.dumps(answer, separators=(",", ":")))
        sizes[1] += tokens(dump_toon(answer, fields))
    as_json, as_toon = (size / _ANSWERS for size in sizes)
    return 100 * (1 - as_toon / as_json), as_json, as_toon


def _row(words: Words, number: int, row: int) -> dict[str, Any]:
    return {
        "id": 20 * number + row,
        "title": words.text(6),
        "tier": words.pick("short", "mid", "long"),
        "namespace": words.pick(*_NAMESPACES),
        "priority": words.pick(*range(1, 11)),
        "confidence": words.pick(1.0, 0.8, 0.5),
        "score": round(10.5 / (row + 1), 3),
        "access_count": words.pick(*range(12)),
        "tags": words.text(words.pick(0, 1, 2, 3)).split(),
        "source": words.pick("claude", "user", "cli"),
        "created_at": "2026-04-03T15:00:00+00:00",
        "updated_at": f"2026-04-{words.pick(*range(10, 28))}T15:00:00+00:00",
    }


def toon_tokens(_: Machine) -> Iterator[Row]:
    for what, fields in (("compact", COMPACT_TOON_FIELDS), ("full", TOON_FIELDS)):
        percent, as_json, as_toon = saved(fields)
        note = f"{as_toon:.0f} tokens an answer, estimated"
        yield Row("toon", f"{what}: saved", percent, TOON_SAVES, "%", f"JSON {as_json:.0f} tokens", note, at_least=True)
