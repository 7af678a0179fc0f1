"""Facts learned from the outcomes of commands: which command, path or option does not work in a project, and what does.

`Facts` is the PRIMARY's in-memory state, so that an offer needs no database read. The functions at the end store it in
the tables `facts` (one row for each answer and session) and `invocations`.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from nudge import limits
from nudge.history.failed_tests import REPORTING_PROGRAMS, TEST, BrokenTest, BrokenTests
from nudge.history.lessons import LessonFinder, call_of, invocation
from nudge.history.offers import INVOCATIONS, RARE, Fact, Key, Offer, Support, is_usable
from nudge.history.problems import (
    CALL,
    MODULE,
    OPTION,
    PATH,
    PROGRAM,
    TARGET,
    Outcome,
    Problem,
    error_line,
    find_problem,
    has_findings,
    is_same_error,
    name_of,
)
from nudge.history.shell import (
    SOURCE,
    SimpleCommand,
    edited_files,
    is_install,
    parse_call,
    succeeded_commands,
    without_filters,
)
from nudge.programs import INTERPRETERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from nudge.history.event import SqlConnection

_COLUMNS = "project, kind, subject, tool, error, answer, session_id, failure_id, success_id, timestamp"
_LEAST_SESSIONS = {PROGRAM: 1, MODULE: 1}  # sessions before a fact is told at a session's start; 2 for other kinds
# Tools that fail when a path among their arguments does not exist.
_OPENERS = frozenset(
    (
        *("cat", "head", "tail", "less", "nl", "wc", "sed", "awk", "diff", "ls", "stat", "cd", "jq"),
        *(*SOURCE, *INTERPRETERS, "python", "pytest", "chmod"),
    )
)


@dataclass(slots=True)
class FactChanges:
    """The changes that one command makes to the tables."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    invocations: list[tuple[Any, ...]] = field(default_factory=list)
    withdrawn: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    """Project, kind, subject, and the answer, or None for all answers."""
    tests: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of tests that failed."""
    withdrawn_tests: list[tuple[str, str, str, str | None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.invocations or self.withdrawn or self.tests or self.withdrawn_tests)


@dataclass(slots=True)
class _WatchedSession:
    trail: LessonFinder = field(default_factory=LessonFinder)
    offered_keys: set[Key] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    installed: set[str] = field(default_factory=set)
    """Installs that ended well."""
    cwd: str | None = None
    """The directory in which the next command begins. Clients report the one in which a command ended, which differs
    after `cd web && make`."""

    def locate(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the directory in which its command began, if that is in the same clone."""
        is_inside = self.cwd is not None and f"{self.cwd}/".startswith(f"{outcome.root or outcome.cwd}/")
        return replace(outcome, cwd=self.cwd) if is_inside else outcome


class Facts:
    """The facts of all projects, and the sessions that are being watched."""

    def __init__(self) -> None:
        self._projects: dict[str, dict[Key, Fact]] = {}
        self._invocations: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
        """The sessions in which an invocation of a tool ran, and when, by project and tool; only for test runners and
        for tools that a fact is about."""
        self._sessions: OrderedDict[str, _WatchedSession] = OrderedDict()
        self.tests = BrokenTests()

    # Learning

    def observe(self, project: str, session: str, outcome: Outcome, timestamp: float) -> FactChanges:
        """Learn from a command's outcome; return the changes to store."""
        learned = FactChanges()
        watched = self._session(session)
        located = watched.locate(outcome)
        watched.cwd = outcome.cwd
        if len(outcome.command) > limits.MAX_LEARNED_COMMAND:
            return learned
        outcome, commands = located, located.commands()
        problem = find_problem(outcome, commands)
        self._withdraw(project, watched, outcome, commands, problem, learned)
        for lesson in watched.trail.add(outcome, problem, commands):
            fact = self._add_fact(project, lesson.problem, learned)
            ids = (lesson.failure_id, lesson.success_id)
            fact.answers.setdefault(lesson.answer, Support()).add(session, *ids, timestamp)
            learned.rows.append(
                (project, *fact.key, fact.tool, fact.error, lesson.answer, session, *ids, int(timestamp))
            )
        if outcome.succeeded and (call := parse_call(commands, outcome.cwd)) and is_install(call.command):
            watched.installed.add(call.text())
        self._count_invocations(project, session, outcome, commands, problem, int(timestamp), learned)
        self._observe_tests(project, session, outcome, commands, timestamp, learned)
        return learned

    def note_edit(self, session: str, path: str) -> None:
        """Remember that the session changed a file: failures of its tests, and later successes, may be due to that."""
        watched = self._session(session)
        watched.trail.note_edit()
        if len(watched.edited) < limits.MAX_EDITED_FILES:
            watched.edited.add(path)

    def _observe_tests(
        self,
        project: str,
        session: str,
        outcome: Outcome,
        commands: list[SimpleCommand],
        timestamp: float,
        learned: FactChanges,
    ) -> None:
        watched = self._session(session)
        for path in edited_files(commands):
            if len(watched.edited) < limits.MAX_EDITED_FILES:
                watched.edited.add(path)
        if not outcome.error:
            passed = self.tests.withdraw(project, commands)
            learned.withdrawn_tests += [(project, TEST, name, None) for name in passed]
            return
        for test in self.tests.observe(project, session, outcome, watched.edited, timestamp):
            row = (project, TEST, test.id, test.runner, test.reason, "", session, outcome.id, 0, int(timestamp))
            learned.tests.append(row)

    def _session(self, session: str) -> _WatchedSession:
        watched = self._sessions.setdefault(session, _WatchedSession())
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return watched

    def _add_fact(self, project: str, problem: Problem, learned: FactChanges) -> Fact:
        facts = self._projects.setdefault(project, {})
        held = facts.get(problem.key)
        if held is not None and problem.kind == CALL and not is_same_error(held.error, problem.error):
            del facts[problem.key]  # it now fails for another reason
            learned.withdrawn.append((project, *problem.key, None))
        if problem.key not in facts and len(facts) >= limits.MAX_FACTS:
            del facts[min(facts, key=lambda key: max(support.timestamp for support in facts[key].answers.values()))]
        return facts.setdefault(problem.key, Fact(*problem.key, problem.tool, problem.error))

    def _withdraw(
        self,
        project: str,
        watched: _WatchedSession,
        outcome: Outcome,
        commands: list[SimpleCommand],
        problem: Problem | None,
        learned: FactChanges,
    ) -> None:
        """Remove a fact when what it calls broken works, and an answer when it fails itself or does not help."""
        facts = self._projects.get(project, {})
        failed = _failed_call(outcome, commands)
        about = self._fact_about(project, outcome, commands, problem)
        for key, fact in list(facts.items()):
            failing = {problem.key[1], *_missing_calls(problem, outcome, commands)} if problem is not None else set()
            if fact.kind not in _LEAST_SESSIONS or not fact.runs_tool(failed):
                failing |= {failed} if _is_blamed(fact, outcome) else set()
            if fact is about:
                failing |= watched.installed
            for answer in failing.intersection(fact.answers):
                del fact.answers[answer]
                learned.withdrawn.append((project, *key, answer))
            was_repaired = not watched.installed.isdisjoint(fact.answers)
            if not fact.answers or (outcome.succeeded and not was_repaired and _works(fact, outcome, commands)):
                del facts[key]
                learned.withdrawn.append((project, *key, None))

    def _count_invocations(
        self,
        project: str,
        session: str,
        outcome: Outcome,
        commands: list[SimpleCommand],
        problem: Problem | None,
        timestamp: int,
        learned: FactChanges,
    ) -> None:
        facts = self._projects.get(project, {}).values()
        tools = REPORTING_PROGRAMS.union(fact.tool for fact in facts if fact.kind in _LEAST_SESSIONS)
        for at, command in enumerate(commands):
            if command.tool not in tools or (problem is not None and problem.head == command.head):
                continue
            head = invocation(commands[:at], command, outcome.cwd)
            sessions = self._invocations.setdefault((project, command.tool), {}).setdefault(head, {})
            if session not in sessions:
                sessions[session] = timestamp
                learned.invocations.append((project, command.tool, head, session, timestamp))

    # Telling

    def offer(self, project: str, session: str, outcome: Outcome, now: float, cwd: str | None) -> Offer | None:
        """Return the answer to this failure, once in a session; None when there is none that is usable in `cwd`."""
        if len(outcome.command) > limits.MAX_LEARNED_COMMAND:
            return None
        watched = self._session(session)
        outcome = watched.locate(outcome)
        commands = outcome.commands()
        fact = self._fact_about(project, outcome, commands, find_problem(outcome, commands))
        if fact is None or fact.key in watched.offered_keys:
            return None
        offer = self._best(project, fact, now)
        here = cwd and (outcome.cwd or cwd)
        if offer is None or offer.answer in watched.installed or not is_usable(offer, here, now):
            return None
        watched.offered_keys.add(fact.key)
        return offer

    def broken_test(self, project: str, session: str, outcome: Outcome, now: float) -> BrokenTest | None:
        """Return a test of this failure that failed in earlier sessions, too; each once in a session."""
        watched = self._session(session)
        for test in self.tests.find(project, session, outcome, watched.edited, now):
            if (TEST, test.id) not in watched.offered_keys:
                watched.offered_keys.add((TEST, test.id))
                return test
        return None

    def _fact_about(
        self, project: str, outcome: Outcome, commands: list[SimpleCommand], problem: Problem | None
    ) -> Fact | None:
        """Return the fact about this error."""
        facts = self._projects.get(project)
        if not facts or not outcome.error:
            return None
        if problem is not None and problem.key in facts:
            return facts[problem.key]
        call = parse_call(without_filters(commands), outcome.cwd)
        if call is None or call.directory or call.setup:
            return None
        fact = facts.get((CALL, call_of(call.command)))
        return fact if fact is not None and is_same_error(fact.error, error_line(outcome.error)) else None

    def at_start(
        self, project: str, now: float, cwd: str | None, count_told: Callable[[str], int] = lambda _subject: 0
    ) -> list[Offer]:
        """Return the MAX_START_FACTS facts to tell a session at its start, those of most sessions first; facts with the
        same answer are one. `count_told` returns how many sessions were told about a subject."""
        groups: dict[tuple[str, bool], Offer] = {}
        for offer in self._confirmed(project, now):
            if is_usable(offer, cwd, now):
                group = (offer.answer, offer.fact.kind == PATH)
                groups[group] = groups[group].joined(offer) if group in groups else offer
        offers = [offer for offer in groups.values() if not offer.is_rarely_met(count_told)]
        return sorted(offers, key=lambda offer: -len(offer.support.sessions))[: limits.MAX_START_FACTS]

    def why_not_at_start(
        self, project: str, now: float, cwd: str | None, count_told: Callable[[str], int]
    ) -> dict[Key, str]:
        """Return for each fact that `at_start` leaves out the reason; a fact that only gives way to others has none."""
        included = self.at_start(project, now, cwd, count_told)
        subjects = {subject for offer in included for subject in (offer.fact.subject, *offer.also)}
        reasons = {}
        for _, offer in self.list_offers(project, now):
            least = _LEAST_SESSIONS.get(offer.fact.kind, 2)
            if offer.fact.subject in subjects:
                continue
            if len(offer.support.sessions) < least:
                reasons[offer.fact.key] = f"needs {least} sessions"
            elif not is_usable(offer, cwd, now):
                reasons[offer.fact.key] = "the answer does not run here, or what failed works here now"
            elif offer.is_rarely_met(count_told):
                reasons[offer.fact.key] = f"fewer than 1 session in {RARE} tries it"
        return reasons

    def invocations(self, project: str, now: float) -> list[Offer]:
        """Return what to run in place of commands that do not work, those of most sessions first."""
        return [offer for offer in self._confirmed(project, now) if offer.fact.kind in INVOCATIONS]

    def _confirmed(self, project: str, now: float) -> list[Offer]:
        """Return what was seen in enough sessions to tell a session that has not failed, those of most sessions
        first."""
        facts = self._projects.get(project, {}).values()
        offers = [offer for fact in facts if (offer := self._best(project, fact, now))]
        enough = [offer for offer in offers if len(offer.support.sessions) >= _LEAST_SESSIONS.get(offer.fact.kind, 2)]
        return sorted(enough, key=lambda offer: -len(offer.support.sessions))

    def list_offers(self, project: str | None, now: float) -> list[tuple[str, Offer]]:
        """Return every fact of one project, or of all, for `nudge learned`."""
        names = [project] if project is not None else sorted(self._projects)
        return [
            (name, offer)
            for name in names
            for fact in self._projects.get(name, {}).values()
            if (offer := self._best(name, fact, now))
        ]

    def _best(self, project: str, fact: Fact, now: float) -> Offer | None:
        """Return the offer of the invocation that ran in most sessions, where invocations of the tool are counted, else
        of the answer that helped in most."""
        recent = {
            answer: support
            for answer, support in fact.answers.items()
            if now - support.timestamp <= limits.FACT_SECONDS
        }
        if not recent:
            return None
        ran = self._invocations.get((project, fact.tool), {}) if fact.kind in _LEAST_SESSIONS else {}
        answer = max(recent, key=lambda text: (len(recent[text].sessions), recent[text].timestamp))
        others = {head: len(sessions) for head, sessions in ran.items() if head != fact.subject}
        if answer in others:
            common = max(others, key=lambda head: (others[head], -len(head)))
            if others[common] > others[answer]:
                merged = Support(set().union(*(support.sessions for support in recent.values())))
                newest = max(recent.values(), key=lambda support: support.timestamp)
                merged.failure_id, merged.success_id = newest.failure_id, newest.success_id
                merged.timestamp = newest.timestamp
                return Offer(fact, common, recent.get(common, merged), ran=_count_runs(ran[common]))
        return Offer(fact, answer, recent[answer], ran=_count_runs(ran.get(answer, {})))

    # Loading

    def add_row(self, row: Iterable[Any]) -> None:
        project, kind, subject, tool, error, answer, session, failure_id, success_id, timestamp = row
        if kind == TEST:
            self.tests.add_row(project, subject, tool, error, session, failure_id, timestamp)
            return
        fact = self._projects.setdefault(project, {}).setdefault((kind, subject), Fact(kind, subject, tool, error))
        fact.answers.setdefault(answer, Support()).add(session, failure_id, success_id, timestamp)

    def add_invocation(self, project: str, tool: str, head: str, session: str, timestamp: float) -> None:
        self._invocations.setdefault((project, tool), {}).setdefault(head, {})[session] = timestamp


def _count_runs(sessions: Mapping[str, float]) -> tuple[int, float]:
    """Return the number of sessions, and the time of the latest run."""
    return len(sessions), max(sessions.values(), default=0.0)


def _failed_call(outcome: Outcome, commands: list[SimpleCommand]) -> str:
    """Return the whole call of a line that failed, in the form of an answer; empty without one."""
    call = parse_call(without_filters(commands), outcome.cwd) if outcome.error else None
    return call.text() if call is not None else ""


def _missing_calls(problem: Problem, outcome: Outcome, commands: list[SimpleCommand]) -> list[str]:
    """Return the invocations of a line whose program or module is missing."""
    if problem.kind not in _LEAST_SESSIONS:
        return []
    lacking = [at for at, command in enumerate(commands) if command.head == problem.head]
    return [invocation(commands[:at], commands[at], outcome.cwd) for at in lacking]


def _is_blamed(fact: Fact, outcome: Outcome) -> bool:
    """Whether the failure of an answer counts against it; failed tests do only if the answer was to fix them."""
    return not has_findings(outcome.error) or is_same_error(fact.error, error_line(outcome.error))


def _works(fact: Fact, outcome: Outcome, commands: list[SimpleCommand]) -> bool:
    """Whether a line that succeeded shows that what the fact calls broken works."""
    if fact.kind == CALL:
        call = parse_call(commands, outcome.cwd)
        is_plain = call is not None and not (call.directory or call.setup or call.command.variables)
        return call is not None and is_plain and call_of(call.command) == fact.subject
    if fact.kind in _LEAST_SESSIONS and any(command.tool in (*SOURCE, "export") for command in commands):
        return False  # in another environment
    return any(_runs(fact, outcome, command) for command in succeeded_commands(commands))


def _runs(fact: Fact, outcome: Outcome, command: SimpleCommand) -> bool:
    """Whether a command that succeeded is the one that the fact calls broken."""
    if fact.kind == PATH:
        return fact.subject in command.words and (command.tool in _OPENERS or _exists(fact.subject, outcome.cwd))
    if fact.kind in _LEAST_SESSIONS:
        return command.head == fact.subject
    if fact.kind == TARGET:
        return f"{call_of(command)} ".startswith(f"{fact.subject} ")
    name, _, option = fact.subject.rpartition(" ")
    is_option = fact.kind == OPTION and option in {argument.split("=")[0] for argument in command.arguments}
    return is_option and name_of(command) == name


def _exists(path: str, cwd: str | None) -> bool:
    return cwd is not None and os.path.exists(os.path.join(cwd, path))


# Tables


def load(connection: SqlConnection, project: str | None = None) -> Facts:
    """Return the stored facts, of one project or of all."""
    facts = Facts()
    condition, values = (" WHERE project = ?", (project,)) if project is not None else ("", ())
    for row in connection.execute(f"SELECT {_COLUMNS} FROM facts{condition}", values):  # noqa: S608 - constants
        facts.add_row(row)
    sql = f"SELECT project, tool, head, session_id, timestamp FROM invocations{condition}"  # noqa: S608 - constants
    for row in connection.execute(sql, values):
        facts.add_invocation(*row)
    return facts


def store(connection: SqlConnection, learned: FactChanges) -> None:
    """Apply the changes to the tables. The caller holds the transaction."""
    for project, kind, subject, answer in (*learned.withdrawn, *learned.withdrawn_tests):
        connection.execute(
            "DELETE FROM facts WHERE project = ? AND kind = ? AND subject = ? AND (? IS NULL OR answer = ?)",
            (project, kind, subject, answer, answer),
        )
    connection.executemany(
        f"INSERT OR REPLACE INTO facts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constants
        [*learned.rows, *learned.tests],
    )
    connection.executemany("INSERT OR REPLACE INTO invocations VALUES (?, ?, ?, ?, ?)", learned.invocations)


def forget(connection: SqlConnection, project: str, subject: str) -> int:
    """Delete the facts about a subject; return the number of rows."""
    rows = connection.execute("DELETE FROM facts WHERE project = ? AND subject = ?", (project, subject))
    return int(rows.rowcount)


def delete_old(connection: SqlConnection, now: float) -> int:
    """Delete facts older than FACT_SECONDS; return the number of rows."""
    oldest = int(now - limits.FACT_SECONDS)
    deleted = connection.execute("DELETE FROM facts WHERE timestamp < ?", (oldest,)).rowcount
    connection.execute("DELETE FROM invocations WHERE timestamp < ?", (oldest,))
    return int(deleted)
