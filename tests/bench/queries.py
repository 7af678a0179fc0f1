"""`nudge.query` among as many hints as a store may have, against `nudge.get_hint` over the same connection."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from nudge.core import limits
from tests.bench import budgets, hints
from tests.bench.report import Row
from tests.bench.timing import ratio, take_turns
from tests.harness import Machine

_ROUNDS, _CALLS = 15, 20
_BASELINE = "get_hint"
_QUERIES: dict[str, tuple[dict[str, Any], float]] = {
    "component": ({"component": hints.COMPONENT}, budgets.QUERY_BY_INDEX),
    "a tag that few have": ({"tags": ["team-7"]}, budgets.QUERY_BY_INDEX),
    "a tag that all have": ({"tags": ["test"]}, budgets.QUERY_BY_INDEX),
    "keys": ({"keys": ["key-7", "key-8"]}, budgets.QUERY_BY_INDEX),
    "context alone": ({}, budgets.QUERY_BY_INDEX),
    "words that all have": ({"text": "pytest"}, budgets.QUERY_BY_INDEX),
    "words that one has": ({"text": "service 4999"}, budgets.QUERY_BY_INDEX),
    "words that none has": ({"text": "no such thing"}, budgets.QUERY_BY_INDEX),
    "a question of words that all have": ({"text": "how do I run the tests with docker"}, budgets.QUERY_BY_QUESTION),
    "a question with a word that one has": ({"text": "docker compose run 4999"}, budgets.QUERY_BY_QUESTION),
    "a prefix": ({"text": "py*"}, budgets.QUERY_BY_QUESTION),
    "a phrase that all have": ({"text": '"docker compose run"'}, budgets.QUERY_BY_QUESTION),
    "a phrase that one has": ({"text": '"service 4999"'}, budgets.QUERY_BY_QUESTION),
    "a regex that all match": ({"regex": "py(test|unit)"}, budgets.QUERY_BY_REGEX),
    "a regex that one matches": ({"regex": "service-4999 "}, budgets.QUERY_BY_REGEX),
    "a regex that none matches": ({"regex": "(?i)no such .* text$"}, budgets.QUERY_BY_REGEX),
}


@dataclass
class _Caller:
    """One operation, called a number of times over a connection of its own: seconds a call."""

    link: socket.socket
    line: bytes

    def __call__(self) -> float:
        began = time.perf_counter()
        for _ in range(_CALLS):
            _ask(self.link, self.line)
        return (time.perf_counter() - began) / _CALLS


def by_index(machine: Machine) -> Iterator[Row]:
    published = machine.http_only()
    assert (
        machine.json("import", "-", stdin=json.dumps(hints.payload(limits.MAX_HINTS)))["imported"] == limits.MAX_HINTS
    )
    assert published.socket is not None
    get = {"component": hints.COMPONENT, "key": hints.KEY}
    callers = {_BASELINE: _connect(published.socket, "nudge.get_hint", get)}
    callers |= {what: _connect(published.socket, "nudge.query", params) for what, (params, _) in _QUERIES.items()}
    samples = take_turns(callers, _ROUNDS)
    for what, (_, budget) in _QUERIES.items():
        yield Row(
            "query",
            f"query by {what} among {limits.MAX_HINTS:,}",
            ratio(samples, what, _BASELINE),
            budget,
            "x",
            f"get_hint {median(samples[_BASELINE]) * 1e3:.2f} ms",
            f"{median(samples[what]) * 1e3:.2f} ms",
        )


def _connect(path: str, operation: str, params: dict[str, Any]) -> _Caller:
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    _ask(link, json.dumps({"hello": 1, "client": "bench"}).encode())
    call = {"id": 1, "op": operation, "params": {**params, "context": hints.CONTEXT}}
    line = json.dumps(call).encode()
    assert b'"result"' in _ask(link, line)
    return _Caller(link, line)


def _ask(link: socket.socket, line: bytes) -> bytes:
    link.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += link.recv(65_536)
    return answer
