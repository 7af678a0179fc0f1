"""Facts and offers: what does not work in a project, its best answer, and the text that tells it, after the failure or
at a session's start."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from nudge import limits
from nudge.clock import last_time
from nudge.history import availability
from nudge.history.failed_tests import REPORTING_PROGRAMS
from nudge.history.problems import CALL, MODULE, PATH, PROGRAM, TARGET, is_same_tool
from nudge.history.shell import is_install, split_commands
from nudge.text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Key = tuple[str, str]
"""Kind and subject of a fact."""

INVOCATIONS = (PROGRAM, MODULE, TARGET, CALL)
"""Kinds of facts about a whole command."""

RARE = 12  # sessions in which the answer ran, for each session with the failure


@dataclass(slots=True)
class Support:
    """The sessions in which an answer worked."""

    sessions: set[str] = field(default_factory=set)
    failure_id: int = 0
    success_id: int = 0
    timestamp: float = 0.0

    def add(self, session: str, failure_id: int, success_id: int, timestamp: float) -> None:
        self.sessions.add(session)
        if timestamp >= self.timestamp:
            self.failure_id, self.success_id, self.timestamp = failure_id, success_id, timestamp


@dataclass(slots=True)
class Fact:
    """Something that does not work in a project, and the answers to it."""

    kind: str
    subject: str
    tool: str
    error: str
    answers: dict[str, Support] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.kind, self.subject

    def runs_tool(self, line: str) -> bool:
        """Whether a line runs what the fact is about; an install is run before it."""
        return any(is_same_tool(command.tool, self.tool) for command in split_commands(line))


@dataclass(frozen=True, slots=True)
class Offer:
    """A fact with its best answer, as it is told."""

    fact: Fact
    answer: str
    support: Support
    also: tuple[str, ...] = ()
    """Other subjects that have the same answer."""
    ran: tuple[int, float] = (0, 0.0)
    """In how many sessions the answer ran, with or without the failure, and when last."""

    def text(self, now: float) -> str:
        """One line to answer a failure; empty when a command would have to be cut. A line that is too long is told
        without its error."""
        if self._is_too_long:
            return ""
        worked = f"what worked in {_sessions(len(self.support.sessions))}, {last_time(now - self.support.timestamp)}"
        worked += f": {quote(self.answer, limits.MAX_TOLD_COMMAND)}{self._reference}"
        whole = f"{self._failed}{self._error}; {worked}"
        return whole if len(whole) <= limits.MAX_TOLD_CHARS else f"{self._failed}; {worked}"

    def start_text(self, now: float) -> str:
        """One line for a session that has not failed: what fails, how often it did, and what to run; empty when a
        command would have to be cut."""
        if self._is_too_long:
            return ""
        number, last = len(self.support.sessions), max(self.support.timestamp, self.ran[1])
        works = f"{quote(self.answer, limits.MAX_TOLD_COMMAND)} {self._verb} ({last_time(now - last)}{self._reference})"
        if self.fact.kind == PATH:
            return f"{self._failed} ({_sessions(number)} looked for {self._it}); {works}"
        cost = f", {number} sessions lost a step to {self._it}" if number > 1 else ""
        whole = f"{self._failed} ({quote(self.fact.error, limits.MAX_TOLD_ERROR)}{cost}); {works}"
        return whole if len(whole) <= limits.MAX_TOLD_CHARS else f"{self._failed}; {works}"

    def hint_reason(self) -> str:
        """The reason of a hint that is made of the answer: the most detailed one that a session's start shows uncut."""
        failure = f"failed #{self.support.failure_id}"
        worked = f"worked in {_sessions(len(self.support.sessions))} #{self.support.success_id}"
        where = f"{worked}, where {quote(self.fact.subject, limits.MAX_TOLD_COMMAND)} {failure}"
        whole = f"{where} ({quote(self.fact.error, limits.MAX_TOLD_ERROR)})"
        texts = (whole, where, f"{worked}, where another {failure}")
        return next(text for text in texts if len(text) <= limits.INJECTED_REASON_CHARS)

    def is_rarely_met(self, count_told: Callable[[str], int]) -> bool:
        """Whether nearly every session runs the answer without being told. `count_told` returns how many sessions were
        told about a subject."""
        most = RARE * len(self.support.sessions)
        return self.ran[0] > most and self.ran[0] - count_told(self.fact.subject) > most

    @property
    def _is_too_long(self) -> bool:
        return max(len(self.fact.subject), len(self.answer)) > limits.MAX_TOLD_COMMAND

    @property
    def _verb(self) -> str:
        """What the answer does; an install runs before what fails, not in place of it."""
        if self.fact.kind == PATH:
            return "does"
        if not self.fact.runs_tool(self.answer) or any(map(is_install, split_commands(self.answer))):
            return "helped"
        if self.fact.kind == TARGET:
            return "runs the tests" if self.fact.subject.split(" ")[-1] in ("test", "tests") else "works"
        return "runs the tests" if self.fact.kind in INVOCATIONS and self.fact.tool in REPORTING_PROGRAMS else "works"

    @property
    def _reference(self) -> str:
        return f" #{self.support.success_id}" if self.support.success_id else ""

    @property
    def _error(self) -> str:
        return "" if self.fact.kind == PATH else f" ({quote(self.fact.error, limits.MAX_TOLD_ERROR)})"

    @property
    def _it(self) -> str:
        return "them" if self.also else "it"

    @property
    def _failed(self) -> str:
        verbs = ("do not exist", "fail") if self.also else ("does not exist", "fails")
        return f"{self._subjects} {verbs[self.fact.kind != PATH]} here"

    @property
    def _subjects(self) -> str:
        return " and ".join(quote(text, limits.MAX_TOLD_COMMAND) for text in (self.fact.subject, *self.also))

    def joined(self, other: Offer) -> Offer:
        """This offer with the subject of another that has the same answer, if it fits."""
        both = (*self.also, other.fact.subject)
        if sum(map(len, (self.fact.subject, *both))) > limits.MAX_TOLD_COMMAND:
            return self
        newest = max(self.support, other.support, key=lambda support: support.timestamp)
        sessions = self.support.sessions | other.support.sessions
        return replace(self, support=replace(newest, sessions=sessions), also=both, ran=max(self.ran, other.ran))


def _sessions(number: int) -> str:
    return "1 session" if number == 1 else f"{number} sessions"


def is_usable(offer: Offer, cwd: str | None, now: float) -> bool:
    """Whether the answer exists in `cwd` and what it replaces does not. An answer with a path in another clone is not
    usable."""
    if cwd is None or not availability.is_known(cwd):
        return True
    if availability.names_other_clone(offer.answer, cwd):
        return False
    if offer.fact.kind == PATH:
        return os.path.exists(os.path.join(cwd, offer.answer)) and not os.path.exists(
            os.path.join(cwd, offer.fact.subject)
        )
    if offer.fact.kind == MODULE and any(
        availability.has_module(command.program, command.tool, cwd) for command in split_commands(offer.fact.subject)
    ):
        return False
    if is_recent(offer, now):
        return availability.can_run(offer.answer, cwd, availability.trust)
    return availability.can_run(offer.answer, cwd)


def is_recent(offer: Offer, now: float) -> bool:
    """Whether the answer ran here recently: then its program is on the PATH of the sessions, if not on the PATH of this
    process."""
    return now - max(offer.support.timestamp, offer.ran[1]) <= limits.TRUSTED_RUN_SECONDS
