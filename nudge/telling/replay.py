"""Earlier work replayed: which failures were known when they were met, what would have been told, and whether that was
what worked.

Facts are learned from the sessions in order of time, as a server does. Nobody was told, so what the session did after a
failure shows whether the answer was right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nudge.history.observations import FILE_CHANGES
from nudge.learning.command import CUT_OFF
from nudge.learning.fact import Fact, Key
from nudge.learning.facts import Facts
from nudge.learning.outcome import Outcome, analyse
from nudge.telling.use import has_worked, runs

SPARED, ANSWERED, MISSED = "spared", "answered", "missed"
"""What Nudge would have done about a known failure: told of it at the start, answered it, or neither."""


@dataclass(slots=True)
class KnownFailure:
    """A failure that an earlier session had got past. `worked`: whether the session got past it with the answer; None
    when it did not get past it. `instead` is what it used otherwise. `saved` is the number of commands that it ran
    until then."""

    kind: str
    session: str
    project: str
    timestamp: float
    failed: str
    subject: str
    answer: str
    worked: bool | None = None
    instead: str | None = None
    saved: int = 0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _Session:
    at_start: frozenset[Key]
    """The facts that it would have been told at its start."""
    met: dict[int, tuple[Key, KnownFailure]] = field(default_factory=dict)
    """Its known failures, by the number of the failed command."""


class Replay:
    """Takes the events of all sessions in order of time."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._sessions: dict[str, _Session] = {}
        self.commands = self.failures = self.lines_at_start = 0

    def add(self, event: Mapping[str, Any]) -> None:
        name, now = str(event["session_id"]), float(event["timestamp"])
        if event.get("type") in FILE_CHANGES:
            self._facts.note_edit(name, str(event.get("file_path") or ""))
            return
        self.commands += 1
        outcome, project = analyse(event, self.commands), str(event.get("project") or "").casefold()
        if outcome is None or not project:
            return
        self.failures += bool(outcome.printed)
        session = self._sessions.get(name) or self._begin(project, name, outcome, now)
        for _, known in session.met.values():
            if has_worked(outcome) and runs(outcome.commands, known.answer.removesuffix(CUT_OFF)):
                known.worked, known.instead = True, None
        answer, changes = self._facts.observe(project, name, outcome, now, now)
        if isinstance(answer, Fact) and answer.answer:
            kind = SPARED if answer.key in session.at_start else ANSWERED
            session.met[outcome.id] = answer.key, _known(kind, event, outcome.line, answer)
        for _, _, fact in changes.learned:
            if fact.answer:
                _note_lesson(session, name, fact, event)

    def _begin(self, project: str, name: str, outcome: Outcome, now: float) -> _Session:
        facts = self._facts.at_start(project, now, None, branch=outcome.branch)
        self.lines_at_start += len(facts)
        self._sessions[name] = session = _Session(frozenset(fact.key for fact in facts))
        return session

    def result(self) -> dict[str, Any]:
        known = sorted(
            (line for session in self._sessions.values() for _, line in session.met.values()),
            key=lambda line: line.timestamp,
        )
        told = [line for line in known if line.kind != MISSED]
        return {
            "sessions": len(self._sessions),
            "commands": self.commands,
            "failures": self.failures,
            "lines_at_start": self.lines_at_start,
            "failures_met_again": len(known),
            "failures_spared": sum(line.kind == SPARED for line in known),
            "failures_answered": sum(line.kind == ANSWERED for line in known),
            "answers_right": sum(line.worked is True for line in told),
            "answers_wrong": sum(line.worked is False for line in told),
            "commands_saved": sum(line.saved for line in told if line.worked),
            "told": [line.to_json() for line in known],
        }


def _known(kind: str, event: Mapping[str, Any], line: str, fact: Fact) -> KnownFailure:
    return KnownFailure(
        kind,
        str(event["session_id"]),
        str(event["project"]),
        float(event["timestamp"]),
        line,
        fact.subject,
        fact.answer,
        saved=int(kind == SPARED),
    )


def _note_lesson(session: _Session, name: str, fact: Fact, event: Mapping[str, Any]) -> None:
    """Take in what the session found by itself: whether it is what it would have been told, and how long that took. A
    failure that others had got past before, and about which it would have been told nothing, was missed."""
    evidence = fact.support[name]
    if evidence.failure_id in session.met:
        key, known = session.met[evidence.failure_id]
        known.saved += evidence.success_id - evidence.failure_id - 1
        if key == fact.key:
            known.worked, known.instead = True, None
        elif known.worked is None:
            known.worked, known.instead = False, fact.answer
    elif len(fact.support) > 1 and not any(key == fact.key for key, _ in session.met.values()):
        missed = _known(MISSED, event, fact.subject, fact)
        session.met[evidence.failure_id] = fact.key, missed
        missed.worked, missed.saved = True, evidence.success_id - evidence.failure_id - 1
