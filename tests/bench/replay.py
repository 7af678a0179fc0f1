"""What agents are told in real work: 135 runs of a coding agent, recorded one after the other by a real PRIMARY.

Of all failures in these runs, read by hand, `replay_useful.json` names those whose fix was in the history before them.
An offer is the line that answers a failure. It is right first when its answer is what then worked in that run. A
session is told in vain when it neither meets a failure or a broken test that it was told of nor runs a command that it
was told.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from nudge.clients import registry
from nudge.core.context import resolve
from nudge.history.extract import extract, locate
from nudge.learning.command import CUT_OFF
from nudge.learning.outcome import analyse
from nudge.process.client import Client
from nudge.settings import config
from nudge.storage.sqlite import open_readonly
from tests.bench.report import Row
from tests.harness import Machine

DATA = Path(__file__).parent / "data"
COVERED = 100 * 11 / 12  # % of the useful failures that are answered, at least
RIGHT_FIRST = 100 * 10 / 11  # % of the offers, at least
OFFER_TOKENS = 60.0  # of the longest offer
PREEMPTED = 100 * 9 / 12  # % of the useful failures, at least
IN_VAIN = 20.0  # % of all sessions

_CHARS_PER_TOKEN = 4
_FACTS = (
    # In the answer to a failure, and at a session's start.
    re.compile(
        r'"(?P<subjects>.+?)" (?:fails?|(?:does|do) not exist) here.*?; what worked in .+?: "(?P<answer>.+)"(?: #\d+)?$'
    ),
    re.compile(
        r'^- "(?P<subjects>.+?)" (?:fails?|(?:does|do) not exist) here(?: \(.+?\))?; '
        r'"(?P<answer>.+?)" (?:runs the tests|works|helped|does) \('
    ),
)
_BROKEN_TESTS = re.compile(r"known to fail here: (.+) \(failed in \d+ earlier sessions")

Failure = tuple[str, int]
"""The name of a run, and the number of its command."""


@dataclass(slots=True)
class _Offer:
    session: str
    subject: str
    answer: str
    text: str


@dataclass(slots=True)
class Measures:
    useful: frozenset[Failure]
    sessions: int = 0
    told: int = 0  # sessions that were told a fact at their start
    in_vain: int = 0
    facts: int = 0  # distinct, of all projects
    right: int = 0
    offers: list[_Offer] = field(default_factory=list)
    covered: set[Failure] = field(default_factory=set)
    preempted: set[Failure] = field(default_factory=set)
    broken_tests: int = 0  # failures that were answered with a test that fails in earlier sessions, too


def telling(machine: Machine) -> Iterator[Row]:
    """Rows for what is told on failure and at a session's start."""
    measured = _replay(machine)
    useful, sessions, offers = len(measured.useful), measured.sessions, len(measured.offers)
    longest = max((len(offer.text) / _CHARS_PER_TOKEN for offer in measured.offers), default=0.0)
    mean = sum(len(offer.text) for offer in measured.offers) / _CHARS_PER_TOKEN / max(offers, 1)
    covered, preempted = len(measured.covered), len(measured.preempted)

    def share(part: int, whole: int) -> float:
        return 100 * part / max(whole, 1)

    note = f"{covered} of {useful}; {measured.facts} distinct facts; {measured.broken_tests} times a broken test"
    yield Row("replay", "useful failures answered", share(covered, useful), COVERED, "%", note=note, at_least=True)
    note = f"{measured.right} of {offers}; {offers / max(sessions, 1):.2f} offers a session"
    yield Row("replay", "right first", share(measured.right, offers), RIGHT_FIRST, "%", note=note, at_least=True)
    yield Row("replay", "longest offer", longest, OFFER_TOKENS, "tokens", note=f"{mean:.0f} tokens on average")
    note = f"{preempted} of {useful}; {measured.told} of {sessions} sessions told"
    yield Row("replay", "pre-empted at the start", share(preempted, useful), PREEMPTED, "%", note=note, at_least=True)
    note = f"{measured.in_vain} of {sessions} sessions"
    yield Row("replay", "told in vain", share(measured.in_vain, sessions), IN_VAIN, "%", note=note)


def _replay(machine: Machine) -> Measures:
    useful = json.loads((DATA / "replay_useful.json").read_text(encoding="utf-8"))
    measured = Measures(frozenset((failure["run"], failure["n"]) for failure in useful))
    machine.http_only()
    client, database = Client(environ=machine.environ), config.database_file(machine.environ)
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as lines:
        for _, events in groupby(map(json.loads, lines), key=lambda event: event["_bench"]["run"]):
            before = len(measured.offers)
            _Run(client, measured).replay(events)
            measured.right += _count_right(database, measured.offers[before:])
    learned = client.call("nudge.learned", {})["facts"]
    measured.facts = sum(fact["answer"] is not None for fact in learned)
    return measured


class _Run:
    """One session, from its start to its last command."""

    def __init__(self, client: Client, measured: Measures) -> None:
        self._client, self._measured = client, measured
        self._told: list[tuple[str, str]] = []
        self._told_tests: list[str] = []
        self._was_useful = False

    def replay(self, events: Iterator[dict[str, Any]]) -> None:
        for payload in events:
            self._record(payload, payload.pop("_bench"))
        self._measured.sessions += 1
        is_told = bool(self._told or self._told_tests)
        self._measured.told += is_told
        self._measured.in_vain += is_told and not self._was_useful

    def _record(self, payload: dict[str, Any], bench: Mapping[str, Any]) -> None:
        event = extract(registry.detect(payload, {}).translate(payload), now=time.time())
        if event is None:
            return
        context = resolve(payload["cwd"])
        if event["type"] == "session_start":
            params = {"session_id": event["session_id"], "source": "startup", "context": context.to_json()}
            text = self._client.call("nudge.inject", params)["text"]
            self._told, self._told_tests = list(_facts_in(text)), _broken_tests_in(text)
        result = self._client.call("nudge.record", {"event": locate(event, context)})
        if bench.get("n") is not None:
            self._judge(event, (bench["run"], bench["n"]), result.get("tell"))

    def _judge(self, event: dict[str, Any], command: Failure, line: str | None) -> None:
        outcome, measured = analyse(event, 0), self._measured
        failure = outcome.failure if outcome is not None else None
        for subject, answer in self._told:
            is_met = failure is not None and failure.is_known and outcome is not None and subject in outcome.line
            self._was_useful |= is_met or (outcome is not None and answer.removesuffix(CUT_OFF) in outcome.line)
            if is_met and command in measured.useful:
                measured.preempted.add(command)
        self._was_useful |= outcome is not None and any(test in outcome.printed for test in self._told_tests)
        measured.broken_tests += "earlier sessions too" in (line or "")
        for subject, answer in _facts_in(line or ""):
            measured.offers.append(_Offer(event["session_id"], subject, answer, line or ""))
            if command in measured.useful:
                measured.covered.add(command)


def _facts_in(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        for match in filter(None, (pattern.search(line) for pattern in _FACTS)):
            for subject in match["subjects"].split('" and "'):
                yield subject, match["answer"]


def _broken_tests_in(text: str) -> list[str]:
    """The tests that a start names, without the parameters that it leaves out."""
    names = [name for tests in _BROKEN_TESTS.findall(text) for name in re.findall(r'"([^" ]+::[^"]+)"', tests)]
    return [name.removesuffix("[...]") for name in names]


def _count_right(database: str, offers: list[_Offer]) -> int:
    """How many of a session's offers name what then worked in it."""
    sql = "SELECT 1 FROM facts WHERE session_id = ? AND subject = ? AND answer = ?"
    with closing(open_readonly(database)) as connection:
        found = [connection.execute(sql, (offer.session, offer.subject, offer.answer)).fetchone() for offer in offers]
    return sum(row is not None for row in found)
