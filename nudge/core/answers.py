"""The answers of recent writes, for calls that are repeated."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from nudge.core import limits
from nudge.core.errors import Invalid


class Answer(NamedTuple):
    when: float
    result: str
    fingerprint: str | None


class Answers:
    """Results of recent writes by their request id: a repeated call gets the first one's answer.

    Results are kept as JSON text, which takes a third of the memory: at most MAX_ANSWERS of them, and MAX_ANSWER_BYTES
    in all. The oldest go first.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, Answer] = {}
        self._size = 0

    def __contains__(self, request_id: str | None) -> bool:
        return request_id in self._by_key

    def get(self, request_id: str, fingerprint: str | None) -> Any:
        """The result kept under `request_id`; raises Invalid when the key belongs to another call."""
        answer = self._by_key[request_id]
        check_fingerprint(answer.fingerprint, fingerprint)
        return json.loads(answer.result)

    def remember(self, now: float, request_id: str, result: Any, fingerprint: str | None = None) -> None:
        self._forget(request_id)
        self._by_key[request_id] = answer = Answer(now, json.dumps(result), fingerprint)
        self._size += len(answer.result)
        while len(self._by_key) > limits.MAX_ANSWERS or self._size > limits.MAX_ANSWER_BYTES:
            self._forget(next(iter(self._by_key)))

    def _forget(self, request_id: str) -> None:
        if (answer := self._by_key.pop(request_id, None)) is not None:
            self._size -= len(answer.result)

    def forget_old(self, now: float) -> None:
        for request_id, answer in list(self._by_key.items()):
            if now - answer.when <= limits.REQUEST_ID_KEPT:
                return  # insertion order is time order
            self._forget(request_id)

    def items(self) -> list[tuple[str, Answer]]:
        return list(self._by_key.items())


def check_fingerprint(first: str | None, repeated: str | None) -> None:
    """Raise Invalid when two calls with one request id are not the same call; None: not known."""
    if None not in (first, repeated) and first != repeated:
        raise Invalid("was used for another call; make a new one for each", field="once")
