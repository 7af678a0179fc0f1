"""The lines about an open attempt of the session: the reminder to update it, and the outcome that a command decides."""

from __future__ import annotations

from collections.abc import Sequence

from nudge.core import limits
from nudge.core.text import quote
from nudge.journal.attempts import Attempt, ObservedOutcome
from nudge.telling.ledger import HEADER, Line
from nudge.telling.use import IDENTITY
from nudge.telling.wording import RESOLVE_OR_ABANDON, expectation_text

_ATTEMPT = "attempt"  # the kind of a line
_SHORTEST_TEXT = 10  # characters of a hypothesis or a prediction


def reminder_line(attempts: Sequence[Attempt], count: int) -> Line:
    """The line that reminds of the latest of the open attempts, after `count` actions without an update."""
    reason = f"{limits.CHECK_IN_ACTIONS} actions without an update"
    return _attempt_line(attempts[0], _reminder_text(attempts, count), reason)


def _reminder_text(attempts: Sequence[Attempt], count: int) -> str:
    """The reminder of the latest attempt. Its hypothesis and its prediction are cut until the line fits."""
    attempt, more = attempts[0], f" ({len(attempts)} are open)" if len(attempts) > 1 else ""
    most, text = limits.INJECTED_NOTE_CHARS, ""
    while not text or (len(HEADER) + len(text) >= limits.PROMPT_CHARS and most > _SHORTEST_TEXT):
        text = (
            f"{_attempt_name(attempt)} is open{more}, {count} actions since its last update; "
            f"{expectation_text(attempt.hypothesis, attempt.prediction, most)}. "
            f"If that has changed: {_update_command(attempt)}; {RESOLVE_OR_ABANDON}"
        )
        most //= 2
    return text


def outcome_line(attempt: Attempt, observed: ObservedOutcome, command: str, *, is_resolved: bool) -> Line:
    """The line about an outcome that a command's exit code decides, or has decided."""
    cause = f"{quote(command, limits.INJECTED_INTENT_CHARS)} exited with {observed.exit_code}"
    name, status = _attempt_name(attempt), observed.status
    if is_resolved:
        text = (
            f"{name} is {status}: {cause}. Add what you learned: resolve_ghap with its id, status {status} and lesson"
        )
    else:
        text = f"{name} looks {status}: it predicted {_prediction(attempt)}, and {cause}. If so: resolve_ghap with "
        text += f"status {status} and what you learned; if not: {_update_command(attempt)}"
    return _attempt_line(attempt, text, "an exit code that the attempt predicted")


def _attempt_name(attempt: Attempt) -> str:
    return f"attempt m{attempt.id} {quote(attempt.note.draft.title, limits.INJECTED_GOAL_CHARS)}"


def _update_command(attempt: Attempt) -> str:
    """At the terminal: update_ghap is not among the tools that are listed to an agent."""
    return f"nudge journal update m{attempt.id} --note TEXT"


def _prediction(attempt: Attempt) -> str:
    return quote(attempt.prediction, limits.INJECTED_NOTE_CHARS)


def _attempt_line(attempt: Attempt, text: str, reason: str) -> Line:
    """A line with the note's name: deleting the note also deletes its lines from the ledger."""
    name = f"m{attempt.id}"
    return Line(name, _ATTEMPT, text, reason, ((IDENTITY, name),))
