"""The commands of one session in order: which failed, and what then did the same thing and worked."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from nudge.learning.attempt import Attempt, Step
from nudge.learning.cure import LAUNCHER, RUNNER, Cure
from nudge.learning.cures import does_same, find_cure
from nudge.learning.failures import CHANCE, OWN_WORK, likeness
from nudge.learning.families import family_of
from nudge.learning.jobs import START, is_looking, same_ecosystem, step_of
from nudge.learning.moved_paths import is_temporary
from nudge.security.secrets import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nudge.learning.failures import Failure
    from nudge.learning.outcome import Call, Outcome

_SOON = 12  # commands in which a success must follow
_JUST_NOW = 4  # commands in which what was started may not be up yet
_MOST_OPEN = 8  # failures that are looked at at once
_MOST_STEPS = 12
_SAME_ERROR = 0.8
_OF_ENVIRONMENT = frozenset(("tool", "module"))
"""Families that code of the session's own can fail with, and still tell something about the surroundings."""
_EDITING_GIT = frozenset(
    ("apply", "am", "checkout", "switch", "restore", "reset", "stash", "merge", "rebase", "revert")
)


@dataclass(frozen=True, slots=True)
class Lesson:
    cure: Cure
    failed: Outcome
    worked: Outcome


@dataclass(slots=True)
class OpenFailure:
    outcome: Outcome
    failure: Failure
    calls: tuple[Call, ...]
    steps: list[Step] = field(default_factory=list)
    is_edited: bool = False
    is_after_edit: bool = False
    """Whether the session edited files shortly before it."""
    left: int = _SOON
    repeats: list[OpenFailure] = field(default_factory=list)
    """The earlier failures of the same call with the same error."""


class Trail:
    """What a session did so far, as far as later commands may explain it."""

    def __init__(self) -> None:
        self.open: list[OpenFailure] = []
        self.written: set[str] = set()
        """Paths that the session wrote."""
        self.exported: set[str] = set()
        """Names of variables that the session set for the commands after it."""
        self.ran_steps: set[str] = set()
        """The texts of the calls that worked."""
        self._started = self._edited = 0
        """In how many more commands what was started, or edited, is taken to be new."""
        self.is_activated = False
        """Whether an environment was activated."""

    def note_edit(self, path: str = "") -> None:
        self._edited = _SOON
        for entry in self.open:
            entry.is_edited = True
        if path:
            self.written.add(path)

    def add(self, outcome: Outcome, scripts: Mapping[str, str]) -> list[Lesson]:
        """Take the next command; return what it taught about the failures before it."""
        self._started, self._edited = max(0, self._started - 1), max(0, self._edited - 1)
        for entry in self.open:
            entry.left -= 1
        self.open = [entry for entry in self.open if entry.left >= 0][-_MOST_OPEN:]
        still_open = {id(entry) for entry in self.open}
        for entry in self.open:  # the others are kept by nothing: a session may repeat a failure a hundred times
            entry.repeats = [one for one in entry.repeats if id(one) in still_open]
        is_proof = outcome.shows_no_failure or outcome.found_own_work
        lessons = list(self._resolve(outcome, scripts)) if is_proof else []
        if outcome.succeeded:
            self._note_success(outcome)
        elif (failure := outcome.failure) is not None and outcome.exit_code != 0:
            self._note_failure(outcome, failure)
        self._note_writes(outcome)
        if any(_starts(call) for call in outcome.calls):
            self._started = _JUST_NOW
        return lessons

    def repeats(self, outcome: Outcome) -> Iterator[tuple[OpenFailure, Failure]]:
        """Yield the failures that this one repeats with the same error."""
        failure = outcome.failure
        if failure is None or outcome.exit_code == 0:
            return
        for entry in self.open:
            if _is_same_call(entry, outcome) and likeness(entry.failure, failure) >= _SAME_ERROR:
                yield entry, failure

    # Success

    def _resolve(self, outcome: Outcome, scripts: Mapping[str, str]) -> Iterator[Lesson]:
        for entry in list(reversed(self.open)):
            if not any(entry is one for one in self.open):
                continue  # repeated by one that is resolved
            if not outcome.succeeded and not family_of(entry.failure.family).is_proved_by_run:
                continue
            found = _find(entry, outcome, scripts)
            if found is None:
                continue
            is_detour = _is_detour(entry, self.open[: self.open.index(entry)], found.worked)
            self.open.remove(entry)
            if found.cure is not None and not is_detour:
                self.open = [one for one in self.open if not any(one is repeated for repeated in entry.repeats)]
                yield Lesson(found.cure, entry.outcome, outcome)

    def _note_success(self, outcome: Outcome) -> None:
        for call in outcome.calls:
            if call.tool == "export":
                self.exported |= {word.partition("=")[0] for word in call.command.arguments}
            self.is_activated |= call.tool in ("source", ".", "nvm", "conda", "eval")
            text = call.command.text
            self.ran_steps.add(text)
            if not is_looking(call.command):
                for entry in self.open:
                    entry.steps = [*entry.steps, Step(call, outcome)][-_MOST_STEPS:]
        for command in outcome.commands:
            if command.tool == "export":
                self.exported |= {word.partition("=")[0] for word in command.arguments}

    # Failure

    def _note_failure(self, outcome: Outcome, failure: Failure) -> None:
        repeated = [entry for entry, _ in self.repeats(outcome)]
        for entry in repeated:
            entry.steps.clear()  # what ran between them did not help
        if failure.nature == CHANCE or REDACTED in outcome.line:
            return
        calls = tuple(call for call in about(outcome, failure) if not self.is_own_code(call, outcome, failure))
        if failure.family == "timeout":
            calls = tuple(call for call in calls if not is_looking(call.command))  # it may only have waited
        if self._started and failure.family in ("connection", ""):
            return  # what the session started just now is not up yet
        if calls:
            entry = OpenFailure(outcome, failure, calls, is_after_edit=self._edited > 0)
            known = {id(one) for earlier in repeated for one in (earlier, *earlier.repeats)}
            entry.repeats = [one for one in self.open if id(one) in known]
            self.open.append(entry)

    def is_own_code(self, call: Call, outcome: Outcome, failure: Failure) -> bool:
        """Whether a call runs code that the session wrote itself, so that its failure is its own."""
        if failure.family in _OF_ENVIRONMENT:
            return False
        command = call.command
        if any(is_temporary(word, outcome.root) and word in outcome.printed for word in call.words[1:]):
            return True
        if not command.is_anonymous and "/" not in command.launched_program:
            return False
        if command.reads_here_document or any(word in ("-c", "-e", "-") for word in command.arguments[:2]):
            return command.is_anonymous and failure.nature == OWN_WORK
        script = next((str(word) for word in command.words[-len(call.words) :] if "/" in word or "." in word), "")
        path = posixpath.normpath(posixpath.join(outcome.cwd or "", call.directory, script))
        return is_temporary(script, outcome.root) or path in self.written or script in self.written

    def _note_writes(self, outcome: Outcome) -> None:
        for command in outcome.commands:
            for path in command.outputs:
                if not path.isdigit() and not path.startswith("/dev/"):
                    self.written.add(str(path))
                    if not is_temporary(path, outcome.root):
                        self.note_edit()
            is_git_edit = command.tool == "git" and not is_looking(command) and command.arguments[0] in _EDITING_GIT
            in_place = command.tool in ("sed", "perl") and any(word.startswith("-i") for word in command.arguments)
            if is_git_edit or in_place or command.tool in ("patch", "ed", "mv", "rm"):
                self.note_edit()


@dataclass(frozen=True, slots=True)
class _Found:
    cure: Cure | None
    worked: Call


def _find(entry: OpenFailure, outcome: Outcome, scripts: Mapping[str, str]) -> _Found | None:
    """The cure in a success, if it does what failed."""
    met: Call | None = None
    for worked in outcome.worked[:4]:
        for failed in entry.calls:
            attempt = Attempt(
                *(entry.outcome, entry.failure, failed, entry.steps, entry.is_edited, entry.is_after_edit),
                *(bool(entry.repeats), scripts, worked, outcome),
            )
            if not does_same(attempt) or not same_ecosystem(failed.command, worked.command):
                continue
            cure = find_cure(attempt)
            if cure is not None and outcome.printed and not (outcome.ran_tests or cure.kind in (LAUNCHER, RUNNER)):
                continue  # that it failed in another way is no proof
            if cure is not None:
                return _Found(cure, worked)
            if met is None and failed.words == worked.words and outcome.succeeded:
                met = worked
    return _Found(None, met) if met is not None else None


def _is_detour(entry: OpenFailure, before: list[OpenFailure], worked: Call) -> bool:
    """Whether a failure came of words that were only tried after an earlier one, and given up again."""
    failed, kept = entry.calls[0], _typed(worked)
    added = [_typed(failed) - _typed(call) for earlier in before for call in earlier.calls if _is_same(call, failed)]
    return any(words and not words & kept for words in added)


def _typed(call: Call) -> set[str]:
    """Its words and variables."""
    return {*call.words, *(f"{name}={value}" for name, value in call.variables.items())}


def _starts(call: Call) -> bool:
    """Whether a call starts something that takes time to be up."""
    return call.command.followed_by == "&" or step_of(call.command) == START


def about(outcome: Outcome, failure: Failure) -> tuple[Call, ...]:
    """The calls of a line that may have failed, the likeliest first: those that the error names, then the last."""
    calls = [call for call in outcome.calls if call.tool not in ("cd", "export", "source", ".")]
    named = [call for call in calls if failure.detail and failure.detail in (*call.words, call.tool)]
    if failure.family == "tool" and named:
        return tuple(named[:1])
    return tuple(dict.fromkeys([*named, *reversed(calls)]))[:3]


def _is_same_call(entry: OpenFailure, outcome: Outcome) -> bool:
    return any(_is_same(call, failed) for call in outcome.calls for failed in entry.calls)


def _is_same(one: Call, other: Call) -> bool:
    return one.tool == other.tool and one.subcommand == other.subcommand
