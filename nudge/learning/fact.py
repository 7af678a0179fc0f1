"""One fact: a cure with the sessions that it rests on, and the lines that tell it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import lru_cache

from nudge.core import limits
from nudge.core.branches import holds_on
from nudge.core.clock import last_time
from nudge.core.programs import TEST_RUNNERS
from nudge.core.text import quote, quote_command
from nudge.learning import availability
from nudge.learning.command import CUT_OFF
from nudge.learning.cure import DIRECTORY, LAUNCHER, MISSING, PATH, RUNNER, STEP, Cure
from nudge.learning.jobs import TEST, job_of
from nudge.learning.moved_paths import is_path
from nudge.learning.shell import parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nudge.learning.command import SimpleCommand

Key = tuple[str, str, str]
"""Kind, subject and answer of a fact."""

INVOCATIONS = (LAUNCHER, RUNNER)
"""Kinds of facts whose answer is run in place of what failed."""
RARE = 12  # sessions in which the answer ran, for each session with the failure


@dataclass(frozen=True, slots=True)
class Evidence:
    """One session in which the failure was met and the answer worked."""

    failure_id: int
    success_id: int
    timestamp: float
    exit_codes: tuple[int | None, int | None] = (None, 0)
    """Of the failure and of the success."""
    branch: str = ""
    credit: tuple[int, int] = (0, 0)
    """How often somebody reported since that the answer worked, and that it failed."""

    @property
    def ids(self) -> tuple[int, int]:
        return self.failure_id, self.success_id

    def text(self) -> str:
        """What was observed: `it failed (exit code 127, #2), and this worked (exit code 0, #3)`."""
        codes = [f"exit code {code}, " if code is not None else "" for code in self.exit_codes]
        return f"it failed ({codes[0]}#{self.failure_id}), and this worked ({codes[1]}#{self.success_id})"


@dataclass(slots=True)
class Fact:
    cure: Cure
    support: dict[str, Evidence] = field(default_factory=dict)
    """By session."""
    also: tuple[str, ...] = ()
    """Other subjects that have the same answer; only where facts are told together."""
    ran: tuple[int, float] = (0, 0.0)
    """In how many sessions the answer ran, with or without the failure, and when last."""

    @property
    def key(self) -> Key:
        return self.cure.kind, self.cure.subject, self.cure.answer

    @property
    def subject(self) -> str:
        return self.cure.subject

    @property
    def answer(self) -> str:
        return self.cure.answer

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that fail and that are run in their place, of a fact about a whole command."""
        command = command_of(self.answer) if self.cure.kind in INVOCATIONS else None
        return (self.cure.tool, command.tool) if command is not None else ()

    @property
    def answer_words(self) -> tuple[str, ...]:
        """The words of its last command, as those of a call."""
        command = command_of(self.answer)
        words = tuple(map(str, command.words)) if command is not None else ()
        return (words[0].removeprefix("./"), *words[1:]) if words else ()

    @property
    def name(self) -> str:
        """Its name in the ledger."""
        return f"fact {self.subject}"

    @property
    def uses(self) -> tuple[tuple[str, str], ...]:
        """What shows that a session used it, for the ledger: a command that it ran, an id that it looked up."""
        return (("command", self.answer.removesuffix(CUT_OFF)), ("id", f"#{self.latest.success_id}"))

    @property
    def latest(self) -> Evidence:
        return max(self.support.values(), key=lambda evidence: (evidence.timestamp, evidence.success_id))

    @property
    def timestamp(self) -> float:
        return self.latest.timestamp

    @property
    def successes(self) -> int:
        """How often the answer worked: in its sessions, and by what was reported since."""
        return len(self.support) + sum(evidence.credit[0] for evidence in self.support.values())

    @property
    def failures(self) -> int:
        """How often somebody reported that the answer failed."""
        return sum(evidence.credit[1] for evidence in self.support.values())

    def credited(self, delta: int, now: float) -> tuple[str, Evidence]:
        """Return the latest session with what it rests on after a report that the answer worked, or with a negative
        number that it failed."""
        session, latest = max(self.support.items(), key=lambda item: (item[1].timestamp, item[1].success_id))
        worked, failed = latest.credit
        credit = (min(worked + max(delta, 0), limits.MAX_USE_COUNT), min(failed + max(-delta, 0), limits.MAX_USE_COUNT))
        timestamp = max(latest.timestamp, now) if delta > 0 else latest.timestamp
        return session, replace(latest, credit=credit, timestamp=timestamp)

    @property
    def is_confirmed(self) -> bool:
        """Whether it worked in enough sessions to be told."""
        return bool(self.cure.sessions) and len(self.support) >= self.cure.sessions

    def ran_lately(self, now: float) -> bool:
        """Whether the answer ran here recently: then its program is on the PATH of the sessions, if not on the PATH of
        this process."""
        return now - max(self.timestamp, self.ran[1]) <= limits.TRUSTED_RUN_SECONDS

    def is_recent(self, now: float) -> bool:
        return now - self.timestamp <= limits.FACT_SECONDS

    def is_of_branch(self, branch: str | None) -> bool:
        """Whether it can be told on a branch: what one branch alone taught may need the files of that branch."""
        branches = {evidence.branch for evidence in self.support.values()}
        return len(branches) > 1 or any(holds_on(made_on, branch) for made_on in branches)

    def is_rarely_met(self, count_told: Callable[[str], int]) -> bool:
        """Whether nearly every session runs the answer without being told. `count_told` returns how many sessions were
        told about a subject."""
        most = RARE * len(self.support)
        return self.ran[0] > most and self.ran[0] - count_told(self.subject) > most

    @property
    def subject_words(self) -> list[tuple[str, ...]]:
        """The words of each command that it says fails."""
        return [words for text in (self.subject, *self.also) if (words := words_of(text))]

    def contradicts(self, command: str) -> bool:
        """Whether it says that a command fails that another line recommends. What is missing fails with any
        arguments."""
        recommended = words_of(command)
        if not recommended or command == self.answer:
            return False
        is_missing = self.cure.kind != PATH and self.cure.family in ("tool", "module")
        return any(
            words == (recommended[: len(words)] if is_missing and self.cure.detail in words else recommended)
            for words in self.subject_words
        )

    def add_causes(self, causes: tuple[str, ...]) -> None:
        """Know the failure by the lines of another session as well."""
        if new := [cause for cause in causes if cause not in self.cure.causes]:
            self.cure = replace(self.cure, causes=(*self.cure.causes, *new)[: limits.MAX_CAUSES])

    # Text

    def text(self, now: float) -> str:
        """One line to answer a failure; empty when a command cannot be shown as it ran. A line that is too long is told
        without its error."""
        if not self.answer or not self._can_be_shown:
            return ""
        worked = f"{self._what} in {_sessions(len(self.support))}, {last_time(now - self.timestamp)}"
        worked += f": {quote_command(self.answer)}{self._reference}"
        whole = f"{self._failed}{self._error}; {worked}"
        return whole if len(whole) <= limits.MAX_TOLD_CHARS else f"{self._failed}; {worked}"

    def start_text(self, now: float) -> str:
        """One line for a session that has not failed: what fails, how often it did, and what to run; empty when a
        command cannot be shown as it ran."""
        if not self._can_be_shown:
            return ""
        number, last = len(self.support), max(self.timestamp, self.ran[1])
        if self.cure.kind == MISSING:
            return f"{quote_command(self.subject)} is not installed here ({_sessions(number)} tried it)"
        works = f"{quote_command(self.answer)} {self._verb} ({last_time(now - last)}{self._reference})"
        if self.cure.kind == PATH:
            return f"{self._failed} ({_sessions(number)} looked for {self._it}); {works}"
        cost = f", {number} sessions lost a step to {self._it}" if number > 1 else ""
        whole = f"{self._failed} ({quote(self.cure.error, limits.MAX_TOLD_ERROR)}{cost}); {works}"
        return whole if len(whole) <= limits.MAX_TOLD_CHARS else f"{self._failed}; {works}"

    def reason(self) -> str:
        """Why the answer is the answer for its job: the most detailed text that is short enough for a hint's reason."""
        failure = f"failed #{self.latest.failure_id}"
        worked = f"worked in {_sessions(len(self.support))} #{self.latest.success_id}"
        where = f"{worked}, where {quote(self.subject, limits.MAX_TOLD_COMMAND)} {failure}"
        whole = f"{where} ({quote(self.cure.error, limits.MAX_TOLD_ERROR)})"
        texts = (whole, where, f"{worked}, where another {failure}")
        return next(text for text in texts if len(text) <= limits.INJECTED_REASON_CHARS)

    @property
    def _what(self) -> str:
        return "what helped, run before it," if self.cure.kind == STEP else "what worked"

    @property
    def _can_be_shown(self) -> bool:
        commands = (self.subject, *self.also, *([self.answer] if self.answer else []))
        return all(quote_command(text) and len(text) <= limits.MAX_TOLD_COMMAND for text in commands)

    @property
    def _verb(self) -> str:
        """What the answer does; a step runs before what fails, not in place of it."""
        if self.cure.kind == PATH:
            return "does"
        if self.cure.kind == STEP:
            return "helped"
        is_test = self.cure.job == TEST and (self.cure.tool in TEST_RUNNERS or self.cure.kind == RUNNER)
        return "runs the tests" if is_test else "works"

    @property
    def _reference(self) -> str:
        number = self.latest.success_id
        return f" #{number}" if number else ""

    @property
    def _error(self) -> str:
        return "" if self.cure.kind == PATH else f" ({quote(self.cure.error, limits.MAX_TOLD_ERROR)})"

    @property
    def _it(self) -> str:
        return "them" if self.also else "it"

    @property
    def _failed(self) -> str:
        verbs = ("do not exist", "fail") if self.also else ("does not exist", "fails")
        return f"{self._subjects} {verbs[self.cure.kind != PATH]} here"

    @property
    def _subjects(self) -> str:
        return " and ".join(map(quote_command, (self.subject, *self.also)))

    def joined(self, other: Fact) -> Fact:
        """This fact with the subject of another that has the same answer, if it fits."""
        both = (*self.also, other.subject)
        if sum(map(len, (self.subject, *both))) > limits.MAX_TOLD_COMMAND or other.subject in (
            self.subject,
            *self.also,
        ):
            return self
        return Fact(self.cure, {**other.support, **self.support}, both, max(self.ran, other.ran))


def _sessions(number: int) -> str:
    return "1 session" if number == 1 else f"{number} sessions"


def command_of(text: str) -> SimpleCommand | None:
    """The last command of an answer."""
    commands = parse_known(text.removesuffix(CUT_OFF))
    return commands[-1] if commands else None


def words_of(text: str) -> tuple[str, ...]:
    """The variables and words of a single command; empty for several, which begin elsewhere or prepare something."""
    commands = parse_known(text.removesuffix(CUT_OFF))
    return (*commands[0].variables, *commands[0].words) if len(commands) == 1 else ()


def is_usable(fact: Fact, cwd: str | None, now: float) -> bool:
    """Whether the answer exists in `cwd` and what it replaces does not. An answer with a path in another clone is not
    usable."""
    if cwd is None or not availability.is_known(cwd):
        return True
    cure = fact.cure
    if cure.kind == MISSING:
        return availability.locate_program(fact.subject, cwd) is None
    if availability.names_other_clone(fact.answer, cwd):
        return False
    if cure.kind == PATH:
        return not is_path(fact.subject) or (_exists(fact.answer, cwd) and not _exists(fact.subject, cwd))
    if cure.kind == DIRECTORY and not os.path.isdir(os.path.join(cwd, cure.directory)):
        return False
    if cure.kind == LAUNCHER and cure.family == "module" and _has_module(fact, cwd):
        return False
    which = availability.trust if fact.ran_lately(now) else None
    failing = command_of(fact.subject)
    program = failing.program if failing is not None else ""
    return _can_run(fact.answer, cwd, which, program, has_script=not cure.keeps_arguments)


def _exists(path: str, cwd: str) -> bool:
    return os.path.exists(os.path.join(cwd, path.removesuffix("/...")))


def _has_module(fact: Fact, cwd: str) -> bool:
    commands = parse_known(fact.subject)
    return any(availability.has_module(command.program, command.tool, cwd) for command in commands)


def _can_run(
    answer: str, cwd: str, which: Callable[[str], str | None] | None, failing: str, *, has_script: bool
) -> bool:
    """Whether the programs of an answer, and the files that it names by a path of the repository, exist; what fails is
    there. Without `has_script` the script is that of the failing command."""
    directory = cwd
    for command in parse_known(answer.removesuffix(CUT_OFF)):
        if command.tool == "cd" and command.arguments:
            directory = os.path.join(directory, command.arguments[0])
            if not os.path.isdir(directory):
                return False
        elif command.tool in ("source", ".") and command.arguments:
            if not _has_sourced(str(command.arguments[0]), directory):
                return False
        elif command.words:
            if command.program != failing and not _has_program(command.program, directory, which):
                return False
            if has_script and command.is_anonymous and _lacks_script(command, directory):
                return False
    return True


def _has_sourced(path: str, directory: str) -> bool:
    return path.startswith("~") or os.path.exists(os.path.join(directory, os.path.expanduser(path)))


def _has_program(program: str, directory: str, which: Callable[[str], str | None] | None) -> bool:
    """Whether a program exists. With a `which` that knows another place, a bare name and a path of that place may."""
    if availability.locate_program(program, directory, *([which] if which is not None else [])) is not None:
        return True
    is_elsewhere = program.startswith(("/", "~"))  # it may be in a container
    return which is not None and ("/" not in program or is_elsewhere)


def _lacks_script(command: SimpleCommand, directory: str) -> bool:
    script = next((word for word in command.arguments if not word.startswith("-")), None)
    is_path = script is not None and "/" in script and not script.is_expanded
    return is_path and not os.path.exists(os.path.join(directory, str(script)))


def invocation_of(command: SimpleCommand) -> str:
    """How a program is invoked, without what it is to do: `A=1 uv run pytest`."""
    words = command.words[: command.head_length]
    return " ".join((*command.variables, *words))


def job_of_answer(fact: Fact) -> str:
    return _job_of(fact.answer)


@lru_cache(4_096)
def _job_of(answer: str) -> str:
    command = command_of(answer)
    return job_of(command) if command is not None else ""


class FailingCommands:
    """The commands that some facts say fail, by their words: comparing each answer with each fact would take a second
    among hundreds."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: dict[tuple[str, ...], list[Fact]] = {}
        for fact in facts:
            for words in fact.subject_words:
                self._facts.setdefault(words, []).append(fact)

    def contradicting(self, command: str) -> Iterator[Fact]:
        """Yield the facts that say that a command fails."""
        words = words_of(command)
        for length in range(1, len(words) + 1):
            yield from (fact for fact in self._facts.get(words[:length], ()) if fact.contradicts(command))
