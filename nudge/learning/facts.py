"""The facts of all projects in memory: what does not work, and what does.

`Facts.observe` takes the outcome of a command, returns what answers its failure, and learns from it. Everything is
plain values, so that it can run on a worker thread; `store` keeps the changes.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field, replace

from nudge.core import limits
from nudge.learning.broken_tests import REPORTING_PROGRAMS, TEST, BrokenTest, BrokenTests, edited_files
from nudge.learning.command import CUT_OFF
from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, MISSING, PATH, RUNNER, STEP, VARIABLE, Cure
from nudge.learning.fact import (
    INVOCATIONS,
    RARE,
    Evidence,
    Fact,
    FailingCommands,
    Key,
    command_of,
    invocation_of,
    is_usable,
)
from nudge.learning.failures import CHANCE, diagnose, likeness, shares_other_cause, tells_apart
from nudge.learning.index import FactIndex
from nudge.learning.job_answers import answers_for_jobs
from nudge.learning.jobs import EVERYDAY, job_of
from nudge.learning.matching import matches, moved_path
from nudge.learning.moved_paths import is_path
from nudge.learning.origin import is_named
from nudge.learning.refutation import refuted_facts
from nudge.learning.scripts import has_script, package_scripts
from nudge.learning.shared_failures import with_shared_failures
from nudge.learning.trail import Lesson, Trail, about
from nudge.learning.unanswered import Unanswered, error_of, unanswered_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nudge.learning.failures import Failure
    from nudge.learning.job_answers import JobAnswer
    from nudge.learning.outcome import Call, Outcome

_AT_START = 2  # sessions that met a failure, before it is told at a session's start
_SAME_ERROR = 0.7


@dataclass(slots=True)
class Changes:
    """What one command changes in the tables."""

    learned: list[tuple[str, str, Fact]] = field(default_factory=list)
    """Project, session, fact."""
    withdrawn: list[tuple[str, Key]] = field(default_factory=list)
    broken_tests: list[tuple[str, str, BrokenTest]] = field(default_factory=list)
    """Project, session, test."""
    passed_tests: list[tuple[str, str]] = field(default_factory=list)
    """Project, id of the test."""
    runs: list[tuple[str, str, str, str, int]] = field(default_factory=list)
    """Project, tool, the invocation that ran, session, time."""

    def __bool__(self) -> bool:
        return bool(self.learned or self.withdrawn or self.broken_tests or self.passed_tests or self.runs)


class _Session:
    __slots__ = ("answered", "cwd", "edited", "told", "trail")

    def __init__(self) -> None:
        self.trail = Trail()
        self.told: set[tuple[str, ...]] = set()
        self.answered: set[tuple[str, str]] = set()
        """The errors about which it was told something."""
        self.edited: set[str] = set()
        self.cwd: str | None = None
        """The directory in which the next command begins. Clients report the one in which a command ended, which
        differs after `cd web && make`."""

    def note_edits(self, paths: Iterable[str]) -> None:
        for path in paths:
            if len(self.edited) < limits.MAX_EDITED_FILES:
                self.edited.add(path)

    def locate(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the directory in which its command began, if that is in the same clone."""
        is_inside = self.cwd is not None and f"{self.cwd}/".startswith(f"{outcome.root or outcome.cwd}/")
        return replace(outcome, cwd=self.cwd) if is_inside and self.cwd != outcome.cwd else outcome


class Facts:
    """The facts of all projects, and the sessions that are being watched."""

    def __init__(self) -> None:
        self._projects: dict[str, FactIndex] = defaultdict(FactIndex)
        self._runs: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
        """The sessions in which an invocation of a tool ran, and when, by project and tool; only for test runners and
        for tools that a fact is about."""
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self.tests = BrokenTests()

    def prepare(self) -> None:
        """Do what the first failing command would wait for: index the facts, compile the patterns of `diagnose`."""
        for index in self._projects.values():
            index.prepare()
        diagnose("a failure of no family", None)

    # Learning

    def observe(
        self, project: str, session: str, outcome: Outcome, timestamp: float, now: float, *, can_tell: bool = True
    ) -> tuple[Fact | BrokenTest | None, Changes]:
        """Return what answers the outcome, if it is a failure that is known and the session was not told of it yet,
        and what the outcome taught. Without `can_tell` nobody waits for an answer."""
        changes = Changes()
        watched = self._session(session)
        located = watched.locate(outcome)
        watched.cwd = outcome.cwd
        if len(outcome.line) > limits.MAX_LEARNED_COMMAND:
            return None, changes
        answer: Fact | BrokenTest | None = None
        if can_tell:
            answer = self._answer(project, watched, located, now) or self._broken_test(project, session, located, now)
        self._withdraw(project, watched, located, changes)
        scripts = package_scripts(located.root) if watched.trail.open else {}
        for lesson in watched.trail.add(located, scripts):
            self._learn(project, session, lesson, timestamp, changes)
        self._note_missing(project, session, located, timestamp, changes)
        self._count_runs(project, session, located, timestamp, changes)
        self._observe_tests(project, session, located, timestamp, changes)
        return answer, changes

    def unanswered(self, session: str, outcome: Outcome) -> Unanswered | None:
        """Return the failure in an outcome that `observe` has not seen yet, if another way to do its job may help."""
        watched = self._session(session)
        located = watched.locate(outcome)
        failure = located.failure
        if failure is None or len(outcome.line) > limits.MAX_LEARNED_COMMAND:
            return None
        if error_of(failure) in watched.answered:
            return None
        calls = [call for call in about(located, failure) if not watched.trail.is_own_code(call, located, failure)]
        return unanswered_failure(located, calls, (entry.outcome.line for entry in watched.trail.open))

    def claim(self, session: str, name: str, unanswered: Unanswered) -> bool:
        """Return whether a line is new to the session, and no other was told about the same error. It counts as told
        then."""
        watched = self._session(session)
        if (name,) in watched.told or unanswered.error in watched.answered:
            return False
        watched.told.add((name,))
        watched.answered.add(unanswered.error)
        return True

    def _observe_tests(self, project: str, session: str, outcome: Outcome, timestamp: float, changes: Changes) -> None:
        watched = self._session(session)
        watched.note_edits(path for command in outcome.commands for path in edited_files(command))
        if not outcome.printed:
            changes.passed_tests += [(project, name) for name in self.tests.withdraw(project, outcome.commands)]
            return
        for test in self.tests.observe(project, session, outcome, watched.edited, timestamp):
            changes.broken_tests.append((project, session, test))

    def _broken_test(self, project: str, session: str, outcome: Outcome, now: float) -> BrokenTest | None:
        """Return a test of this failure that failed in earlier sessions, too; each once in a session."""
        watched = self._session(session)
        for test in self.tests.find(project, session, outcome, watched.edited, now):
            if (TEST, test.id) not in watched.told:
                watched.told.add((TEST, test.id))
                return test
        return None

    def _count_runs(self, project: str, session: str, outcome: Outcome, timestamp: float, changes: Changes) -> None:
        if outcome.failure is not None and outcome.failure.family in ("tool", "module"):
            return
        index = self._projects[project]
        for call in outcome.calls:
            if call.tool in REPORTING_PROGRAMS or index.is_about(call.tool):
                head = invocation_of(call.command)
                sessions = self._runs.setdefault((project, call.tool), {}).setdefault(head, {})
                if session not in sessions:
                    sessions[session] = timestamp
                    changes.runs.append((project, call.tool, head, session, int(timestamp)))

    def note_edit(self, session: str, path: str) -> None:
        """Remember that the session changed a file: later successes may be due to that."""
        watched = self._session(session)
        watched.trail.note_edit(path)
        watched.note_edits((path,))

    def _session(self, session: str) -> _Session:
        watched = self._sessions.setdefault(session, _Session())
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return watched

    def _learn(self, project: str, session: str, lesson: Lesson, timestamp: float, changes: Changes) -> None:
        cure, index = lesson.cure, self._projects[project]
        if not cure.sessions:
            return
        fact = _held(index, cure)
        if fact is None:
            if len(index.facts) >= limits.MAX_FACTS:
                oldest = min(index.facts.values(), key=lambda held: (bool(held.answer), held.timestamp))
                index.remove(oldest.key)
                changes.withdrawn.append((project, oldest.key))
            fact = index.add(Fact(cure))
        fact.add_causes(cure.causes)
        codes = (lesson.failed.exit_code, lesson.worked.exit_code)
        credit = fact.support[session].credit if session in fact.support else (0, 0)
        fact.support[session] = Evidence(
            lesson.failed.id, lesson.worked.id, timestamp, codes, lesson.worked.branch or "", credit
        )
        changes.learned.append((project, session, fact))

    def _note_missing(self, project: str, session: str, outcome: Outcome, timestamp: float, changes: Changes) -> None:
        """Count the sessions in which a program is missing."""
        failure = outcome.failure
        if failure is None or failure.family != "tool" or outcome.exit_code != 127 or "/" in failure.detail:
            return
        calls = [call for call in outcome.calls if call.words[:1] == (failure.detail,)]
        if not calls or _is_misspelled(failure.detail):
            return
        cure = Cure(
            *(MISSING, failure.detail, "", calls[0].tool, "", failure.detail, job_of(calls[0].command)),
            *(failure.nature, failure.family, failure.detail, failure.line, failure.causes, failure.sign),
        )
        lesson = Lesson(cure, outcome, replace(outcome, exit_code=None, id=0))
        self._learn(project, session, lesson, timestamp, changes)

    # Withdrawing

    def _withdraw(self, project: str, watched: _Session, outcome: Outcome, changes: Changes) -> None:
        """Remove the facts that an outcome refutes."""
        index = self._projects[project]
        if not index.facts:
            return
        for fact in refuted_facts(index, watched.trail, outcome):
            if index.remove(fact.key):
                changes.withdrawn.append((project, fact.key))

    # Telling

    def _answer(self, project: str, watched: _Session, outcome: Outcome, now: float) -> Fact | None:
        """Return the best fact about a failure that is usable where it happened; each once in a session."""
        failure, index = outcome.failure, self._projects[project]
        if not index.facts or failure is None or outcome.exit_code == 0 or failure.nature == CHANCE:
            return None
        best: tuple[float, Fact] | None = None
        for call in about(outcome, failure):
            if watched.trail.is_own_code(call, outcome, failure):
                continue
            job = job_of(call.command)
            for fact in index.alike(failure, (call,)):
                score = self._score(fact, call, failure, job, watched, outcome, now)
                if score and (best is None or score > best[0]) and is_usable(fact, outcome.cwd, now):
                    best = score, fact
            if best is not None:
                break
        if best is None or best[1].key in watched.told:
            return None
        watched.told.add(best[1].key)
        watched.answered.add(error_of(failure))
        return self._as_usual(project, best[1])

    def _as_usual(self, project: str, fact: Fact) -> Fact:
        """The fact with the invocation of its tool that most sessions run, if that is another one."""
        cure = fact.cure
        is_missing = cure.kind == LAUNCHER and cure.family in ("tool", "module")
        command = command_of(fact.answer) if is_missing else None
        if command is None or command.tool != cure.tool:
            return fact
        runs = self._runs.get((project, cure.tool), {})
        others = {
            head: len(sessions) for head, sessions in runs.items() if head != cure.subject and _PLAIN.fullmatch(head)
        }
        usual = max(others, key=lambda head: (others[head], -len(head)), default="")
        if not usual or others[usual] <= others.get(invocation_of(command), 0):
            return fact
        told = replace(fact, cure=replace(cure, answer=f"{usual}{CUT_OFF}"))
        return replace(told, ran=self._ran(project, told))

    def _score(
        self, fact: Fact, call: Call, failure: Failure, job: str, watched: _Session, outcome: Outcome, now: float
    ) -> float:
        cure = fact.cure
        if not cure.answer or not fact.is_confirmed or not fact.is_recent(now) or not fact.is_of_branch(outcome.branch):
            return 0.0
        if cure.kind == STEP and cure.answer in watched.trail.ran_steps:
            return 0.0
        if _is_of_unknown_module(cure, failure, outcome):
            return 0.0
        match = matches(cure, call, failure, job)
        if not match or (cure.kind in (DIRECTORY, FLAG) and not has_script(cure, failure, outcome)):
            return 0.0
        if (
            cure.kind == PATH
            and match < 1
            and is_path(cure.subject)
            and not _exists(moved_path(cure, call), outcome.cwd)
        ):
            return 0.0
        is_close = cure.subcommand == call.subcommand and job == cure.job
        return match + 0.2 * len(fact.support) + 0.15 * is_close + fact.timestamp / (now + 1) * 0.05

    def at_start(
        self,
        project: str,
        now: float,
        cwd: str | None,
        count_told: Callable[[str], int] = lambda _subject: 0,
        branch: str | None = None,
        count_sessions: Callable[[], int] = lambda: 0,
    ) -> list[Fact]:
        """Return the MAX_START_FACTS facts to tell a session at its start, those of most sessions first; facts with the
        same answer are one. `count_told` returns how many sessions were told about a subject, `count_sessions` how many
        there were lately: what is no everyday job is told if half of them met it. Who meets another is told then."""
        groups: dict[tuple[str, bool], Fact] = {}
        for fact in _foremost(self._confirmed(project, now)):
            if is_usable(fact, cwd, now) and fact.is_of_branch(branch):
                group = (fact.answer or fact.subject, fact.cure.kind == PATH)
                groups[group] = groups[group].joined(fact) if group in groups else fact
        half = count_sessions() / 2 if any(not _is_everyday(fact) for fact in groups.values()) else 0.0
        often = (fact for fact in groups.values() if _is_everyday(fact) or len(fact.support) >= half)
        told = _consistent([fact for fact in often if not fact.is_rarely_met(count_told)])
        return sorted(told, key=lambda fact: -len(fact.support))[: limits.MAX_START_FACTS]

    def _confirmed(self, project: str, now: float) -> list[Fact]:
        """Return what was seen in enough sessions to tell a session that has not failed, those of most sessions
        first."""
        facts = with_shared_failures([self._as_usual(project, fact) for fact in self.of(project, now)])
        answered = {fact.cure.detail for fact in facts if fact.answer and fact.cure.family == "tool"}
        enough = [
            fact
            for fact in facts
            if fact.is_confirmed and _is_frequent(fact) and not (fact.cure.kind == MISSING and fact.subject in answered)
        ]
        return sorted(enough, key=lambda fact: -len(fact.support))

    def of(self, project: str, now: float) -> list[Fact]:
        """Return the facts of a project that are not too old, with the number of sessions that ran their answer."""
        facts = self._projects[project].facts.values() if project in self._projects else ()
        return [replace(fact, ran=self._ran(project, fact)) for fact in facts if fact.is_recent(now)]

    def _ran(self, project: str, fact: Fact) -> tuple[int, float]:
        command = command_of(fact.answer) if fact.cure.kind in INVOCATIONS else None
        if command is None:
            return 0, 0.0
        sessions = self._runs.get((project, command.tool), {}).get(invocation_of(command), {})
        return len(sessions), max(sessions.values(), default=0.0)

    def listed(self, project: str | None, now: float) -> list[tuple[str, Fact]]:
        """Return every fact with an answer of one project, or of all, for `nudge learned`."""
        names = [project] if project is not None else sorted(self._projects)
        return [(name, fact) for name in names for fact in self.of(name, now) if fact.answer]

    def invocations(self, project: str, now: float) -> list[Fact]:
        """Return what to run in place of commands that do not work, those of most sessions first."""
        facts = [fact for fact in self.of(project, now) if fact.cure.kind in INVOCATIONS and fact.is_confirmed]
        return sorted(facts, key=lambda fact: -len(fact.support))

    def for_jobs(
        self, project: str, now: float, cwd: str | None, branch: str | None, is_banned: Callable[[Fact], bool]
    ) -> list[JobAnswer]:
        """Return what was learned for each job of a project."""
        return answers_for_jobs(
            self.of(project, now), cwd, branch, now, is_banned, lambda fact: self._as_usual(project, fact)
        )

    def has_any(self, project: str) -> bool:
        return project in self._projects and bool(self._projects[project].facts)

    def why_not_at_start(
        self, project: str, now: float, cwd: str | None, count_told: Callable[[str], int]
    ) -> dict[Key, str]:
        """Return for each fact that `at_start` leaves out the reason; a fact that only gives way to others has none."""
        included = self.at_start(project, now, cwd, count_told)
        subjects = {subject for fact in included for subject in (fact.subject, *fact.also)}
        reasons = {}
        for fact in self.of(project, now):
            least = max(_AT_START, fact.cure.sessions)
            if fact.subject in subjects:
                continue
            if not _is_frequent(fact):
                reasons[fact.key] = f"needs {least} sessions"
            elif not is_usable(fact, cwd, now):
                reasons[fact.key] = "the answer does not run here, or what failed works here now"
            elif fact.is_rarely_met(count_told):
                reasons[fact.key] = f"fewer than 1 session in {RARE} tries it"
            elif any(fact.contradicts(other.answer) or other.contradicts(fact.answer) for other in included):
                reasons[fact.key] = "a later fact says otherwise"
        return reasons

    # Loading

    def put_evidence(self, project: str, key: Key, session: str, evidence: Evidence) -> None:
        """Replace what a session says about a fact, if there is still such a fact."""
        fact = self._projects[project].facts.get(key) if project in self._projects else None
        if fact is not None:
            fact.support[session] = evidence

    def get(self, project: str, key: Key) -> Fact | None:
        return self._projects[project].facts.get(key)

    def add(self, project: str, fact: Fact) -> None:
        """Add what is stored about one session."""
        held = self._projects[project].add(fact)
        held.support |= fact.support
        held.add_causes(fact.cure.causes)

    def add_run(self, project: str, tool: str, head: str, session: str, timestamp: float) -> None:
        self._runs.setdefault((project, tool), {}).setdefault(head, {})[session] = timestamp


def _foremost(facts: list[Fact]) -> list[Fact]:
    """The START_CANDIDATES facts of most sessions, and of those the latest, in their order."""
    if len(facts) <= limits.START_CANDIDATES:
        return facts
    ranked = sorted(facts, key=lambda fact: (-len(fact.support), -fact.timestamp))[: limits.START_CANDIDATES]
    kept = {fact.key for fact in ranked}
    return [fact for fact in facts if fact.key in kept]


def _consistent(facts: list[Fact]) -> list[Fact]:
    """Drop a fact when another says that its answer fails, unless its answer worked later: then drop the other."""
    failing, outdated = FailingCommands(facts), set()
    for fact in facts:
        for other in failing.contradicting(fact.answer):
            outdated.add(id(fact if other.timestamp >= fact.timestamp else other))
    return [fact for fact in facts if id(fact) not in outdated]


def _is_everyday(fact: Fact) -> bool:
    """Whether it is about what nearly every session does, or about a program or a file that is not there."""
    return fact.cure.kind in (MISSING, PATH) or fact.cure.job in EVERYDAY


def _is_frequent(fact: Fact) -> bool:
    """Whether a session is likely to meet it: several did, or the answer to what is missing is what most run."""
    is_missing = fact.cure.family in ("tool", "module") and fact.cure.kind == LAUNCHER
    return len(fact.support) >= max(_AT_START, fact.cure.sessions) or (is_missing and fact.ran[0] > _AT_START)


def _held(index: FactIndex, cure: Cure) -> Fact | None:
    """The fact that a cure confirms: the same one, or one that differs only in what the moment chose."""
    if same := index.facts.get((cure.kind, cure.subject, cure.answer)):
        return same
    if cure.kind in (PATH, MISSING):
        return None
    for fact in index.of_failing_tool(cure.tool):
        held = fact.cure
        is_more = held.kind in (FLAG, VARIABLE) and 0 < len(held.added) <= len({*held.added} & {*cure.added})
        is_same = (held.kind, held.family) == (cure.kind, cure.family) and (is_more or held.added == cure.added)
        is_any_job = held.kind != RUNNER or (held.keeps_arguments and cure.keeps_arguments)
        is_same_job = is_any_job or held.job == cure.job
        is_same_step = held.kind != STEP or held.answer.partition(" ")[0] == cure.answer.partition(" ")[0]
        is_alike = likeness(held.failure, cure.failure) >= _SAME_ERROR
        if is_same and is_same_job and is_same_step and (is_alike or (held.kind == STEP and held.family != "")):
            return fact
    return None


def _exists(path: str, cwd: str | None) -> bool:
    return cwd is not None and os.path.exists(os.path.join(cwd, path))


def _is_of_unknown_module(cure: Cure, failure: Failure, outcome: Outcome) -> bool:
    """Whether another module is missing than the step brought, and no file of the repository names it: it may be the
    session's own."""
    if cure.kind != STEP or cure.family != "module" or not tells_apart(cure.failure, failure):
        return False
    if shares_other_cause(cure.failure, failure):
        return False
    parts = [part for part in re.split(r"[./:]", failure.detail) if part]
    return not any(is_named(part, outcome.root) for part in (failure.detail, *parts[:1]))


def _is_misspelled(program: str) -> bool:
    """Whether a common program was meant: `gti` for `git`."""
    return any(sorted(program) == sorted(name) for name in _COMMON_PROGRAMS if name != program)


_PLAIN = re.compile(r"[\w./@+-]+(?: [\w./@+-]+)*")
"""Words that stand in a line as they are: nothing in them was quoted or expanded."""
_COMMON_PROGRAMS = frozenset(
    ("git", "ls", "cat", "cd", "grep", "npm", "node", "python", "make", "docker", "cargo", "go", "pip", "pnpm", "yarn")
)
