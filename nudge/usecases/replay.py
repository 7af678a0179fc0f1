"""Replay: what Nudge would have told earlier sessions, computed from Claude Code's transcripts. Nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nudge.clients.claude_transcripts import Transcript, entries
from nudge.context import resolve
from nudge.history import problems
from nudge.history.facts import Facts
from nudge.history.observations import FILE_CHANGES
from nudge.history.offers import Key, Offer
from nudge.usecases.backfill import TranscriptFile, extract_event

Event = dict[str, Any]
SPARED, ANSWERED = "spared", "answered"


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure that a line would have prevented (`spared`) or answered. `saved` is the number of commands that the
    session ran until it found the answer itself."""

    kind: str
    session: str
    project: str
    timestamp: float
    subject: str
    answer: str
    saved: int

    def to_wire(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _ReplayedSession:
    """One session: the offers that it would have been told at its start, and its known failures."""

    at_start: dict[Key, Offer]
    offers: list[tuple[str, Event, Offer, int]] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)
    """Number of the failed command -> number of the command that was its answer."""


class Replay:
    """Takes the events of all sessions in order of time, and counts the failures that were known by then."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._sessions: dict[str, _ReplayedSession] = {}
        self.commands = self.failures = self.lines_at_start = 0

    def add(self, event: Event) -> None:
        if event.get("type") in FILE_CHANGES:
            self._facts.note_edit(str(event["session_id"]), str(event.get("file_path") or ""))
            return
        self.commands += 1
        outcome, project = problems.outcome_of(event, self.commands), str(event.get("project") or "").casefold()
        if outcome is None or not project:
            return
        now, name = float(event["timestamp"]), str(event["session_id"])
        self.failures += bool(outcome.error)
        session = self._sessions.get(name)
        if session is None:
            offers = self._facts.at_start(project, now, None)
            session = self._sessions[name] = _ReplayedSession({offer.fact.key: offer for offer in offers})
            self.lines_at_start += len(offers)
        offer = self._facts.offer(project, name, outcome, now, None)
        if offer is not None:
            kind = SPARED if offer.fact.key in session.at_start else ANSWERED
            session.offers.append((kind, event, offer, outcome.id))
        for row in self._facts.observe(project, name, outcome, now).rows:
            session.answers.setdefault(row[7], row[8])

    def result(self) -> dict[str, Any]:
        known_failures = [line for session in self._sessions.values() for line in _known_failures(session)]
        return {
            "sessions": len(self._sessions),
            "commands": self.commands,
            "failures": self.failures,
            "lines_at_start": self.lines_at_start,
            "failures_spared": sum(line.kind == SPARED for line in known_failures),
            "failures_answered": sum(line.kind == ANSWERED for line in known_failures),
            "commands_saved": sum(line.saved for line in known_failures),
            "told": [line.to_wire() for line in sorted(known_failures, key=lambda line: line.timestamp)],
        }


def _known_failures(session: _ReplayedSession) -> Iterator[KnownFailure]:
    for kind, event, offer, number in session.offers:
        answer = session.answers.get(number)
        between = 0 if answer is None else answer - number - 1
        yield KnownFailure(
            kind,
            str(event["session_id"]),
            str(event["project"]),
            float(event["timestamp"]),
            offer.fact.subject,
            offer.answer,
            between + (kind == SPARED),
        )


def replay(files: list[TranscriptFile], progress: Callable[[int], None] = lambda _bytes: None) -> dict[str, Any]:
    """Read the transcripts and replay their commands in order of time. `progress` gets the bytes of each entry."""
    events: list[Event] = []
    resolve_once = lru_cache(maxsize=None)(resolve)
    unreadable = 0
    for file in files:
        try:
            with open(file.path, "rb") as opened:
                transcript = Transcript(set(), from_start=True)
                for start, end, entry in entries(opened, 0):
                    events += _commands(transcript.read(start, entry), resolve_once)
                    progress(end - start)
                events += _commands(transcript.end(time.time()), resolve_once)
        except OSError:
            unreadable += 1
    work = Replay()
    for event in sorted(events, key=lambda event: float(event["timestamp"])):
        work.add(event)
    return {"files": len(files) - unreadable, "unreadable": unreadable, **work.result()}


def _commands(hook_events: Iterator[Any], resolve_once: Callable[[str], Any]) -> Iterator[Event]:
    for hook_event in hook_events:
        result = extract_event(hook_event, resolve_once)
        event = result[0] if result is not None else {}
        if event.get("type") in FILE_CHANGES or problems.outcome_of(event, 0) is not None:
            yield event
