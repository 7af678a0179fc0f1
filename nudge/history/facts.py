"""What is known about a project from outcomes: which command, path or option does not work here, and what does.

`Facts` is PRIMARY's memory of them: an offer is made without a look at the database. The functions at the end keep them
in the tables `facts` (one row for each answer and session) and `invocations`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from nudge import limits
from nudge.history.broken_tests import TEST, BrokenTest, BrokenTests, edited_files
from nudge.history.offers import INVOCATIONS, TEST_RUNNERS, Fact, Key, Offer, Support, is_usable
from nudge.history.problems import CALL, MODULE, PATH, PROGRAM, LessonFinder, Outcome, Problem, call_of, find_problem
from nudge.history.shell import Simple, split_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from nudge.history.event import Connection

_COLUMNS = "project, kind, subject, tool, error, answer, session_id, failure_id, success_id, timestamp"
_LEAST_SESSIONS = {PROGRAM: 1, MODULE: 1}  # before a fact is told at a session's start; 2 for the others


@dataclass(slots=True)
class FactChanges:
    """What one command changes in the tables."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    invocations: list[tuple[Any, ...]] = field(default_factory=list)
    withdrawn: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    """Project, kind, subject, and the answer; None: all of them."""
    tests: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of tests that failed."""
    withdrawn_tests: list[tuple[str, str, str, str | None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.invocations or self.withdrawn or self.tests or self.withdrawn_tests)


@dataclass(slots=True)
class _Session:
    trail: LessonFinder = field(default_factory=LessonFinder)
    offered_keys: set[Key] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)


class Facts:
    """The facts of all projects, and the sessions that are being watched."""

    def __init__(self) -> None:
        self._projects: dict[str, dict[Key, Fact]] = {}
        self._invocations: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
        """Sessions in which an invocation of a tool ran, and when, by project and tool; only of test runners and of
        tools that a fact is about."""
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self.tests = BrokenTests()

    # Learning

    def observe(self, project: str, session: str, outcome: Outcome, timestamp: float) -> FactChanges:
        """Take in a command's outcome, and return what is to be stored."""
        learned = FactChanges()
        if len(outcome.command) > limits.MAX_LEARNED_COMMAND:
            return learned
        commands = split_commands(outcome.command)
        problem = find_problem(outcome, commands)
        self._withdraw(project, commands, problem, learned, succeeded=not outcome.error)
        for lesson in self._session(session).trail.add(outcome, problem, commands):
            fact = self._add_fact(project, lesson.problem)
            ids = (lesson.failure_id, lesson.success_id)
            fact.answers.setdefault(lesson.answer, Support()).add(session, *ids, timestamp)
            learned.rows.append(
                (project, *fact.key, fact.tool, fact.error, lesson.answer, session, *ids, int(timestamp))
            )
        self._count_invocations(project, session, commands, problem, int(timestamp), learned)
        self._observe_tests(project, session, outcome, commands, timestamp, learned)
        return learned

    def note_edit(self, session: str, path: str) -> None:
        """A file that the session changed: what its tests say is the session's own doing."""
        edited = self._session(session).edited
        if len(edited) < limits.MAX_EDITED_FILES:
            edited.add(path)

    def _observe_tests(
        self,
        project: str,
        session: str,
        outcome: Outcome,
        commands: list[Simple],
        timestamp: float,
        learned: FactChanges,
    ) -> None:
        for path in edited_files(commands):
            self.note_edit(session, path)
        if not outcome.error:
            passed = self.tests.withdraw(project, commands)
            learned.withdrawn_tests += [(project, TEST, name, None) for name in passed]
            return
        edited = self._session(session).edited
        for test in self.tests.observe(project, session, outcome, edited, timestamp):
            row = (project, TEST, test.id, test.runner, test.reason, "", session, outcome.id, 0, int(timestamp))
            learned.tests.append(row)

    def _session(self, session: str) -> _Session:
        watched = self._sessions.setdefault(session, _Session())
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return watched

    def _add_fact(self, project: str, problem: Problem) -> Fact:
        facts = self._projects.setdefault(project, {})
        if problem.key not in facts and len(facts) >= limits.MAX_FACTS:
            del facts[min(facts, key=lambda key: max(support.timestamp for support in facts[key].answers.values()))]
        return facts.setdefault(problem.key, Fact(*problem.key, problem.tool, problem.error))

    def _withdraw(
        self, project: str, commands: list[Simple], problem: Problem | None, learned: FactChanges, *, succeeded: bool
    ) -> None:
        """A fact goes when what it calls broken works, an answer when it fails for such a reason itself."""
        facts = self._projects.get(project, {})
        for key, fact in list(facts.items()):
            if problem is not None and problem.key[1] in fact.answers:
                del fact.answers[problem.key[1]]
                learned.withdrawn.append((project, *key, problem.key[1]))
            alone = fact.kind != CALL or len(commands) == 1
            if not fact.answers or (succeeded and alone and any(_runs(fact, command) for command in commands)):
                del facts[key]
                learned.withdrawn.append((project, *key, None))

    def _count_invocations(
        self,
        project: str,
        session: str,
        commands: list[Simple],
        problem: Problem | None,
        timestamp: int,
        learned: FactChanges,
    ) -> None:
        facts = self._projects.get(project, {}).values()
        tools = TEST_RUNNERS.union(fact.tool for fact in facts if fact.kind in _LEAST_SESSIONS)
        for command in commands:
            if command.tool not in tools or (problem is not None and problem.head == command.head):
                continue
            sessions = self._invocations.setdefault((project, command.tool), {}).setdefault(command.head, {})
            if session not in sessions:
                sessions[session] = timestamp
                learned.invocations.append((project, command.tool, command.head, session, timestamp))

    # Telling

    def offer(self, project: str, session: str, outcome: Outcome, now: float, cwd: str | None) -> Offer | None:
        """What is known about this very failure; once in a session."""
        if len(outcome.command) > limits.MAX_LEARNED_COMMAND:
            return None
        fact = self._fact_about(project, outcome)
        offered_keys = self._session(session).offered_keys
        if fact is None or fact.key in offered_keys:
            return None
        offer = self._best(project, fact, now)
        if offer is None or not is_usable(offer, cwd):
            return None
        offered_keys.add(fact.key)
        return offer

    def broken_test(self, project: str, session: str, outcome: Outcome, now: float) -> BrokenTest | None:
        """A test of this failure that failed in earlier sessions, too; each once in a session."""
        watched = self._session(session)
        for test in self.tests.find(project, session, outcome, watched.edited, now):
            if (TEST, test.id) not in watched.offered_keys:
                watched.offered_keys.add((TEST, test.id))
                return test
        return None

    def _fact_about(self, project: str, outcome: Outcome) -> Fact | None:
        facts = self._projects.get(project)
        if not facts or not outcome.error:
            return None
        commands = split_commands(outcome.command)
        problem = find_problem(outcome, commands)
        if problem is not None:
            return facts.get(problem.key)
        return facts.get((CALL, call_of(commands[0]))) if len(commands) == 1 else None

    def at_start(self, project: str, now: float, cwd: str | None) -> list[Offer]:
        """The few facts that a session should know before it starts, those of most sessions first; those with the same
        answer are one."""
        groups: dict[tuple[str, bool], Offer] = {}
        for offer in self._confirmed(project, now):
            if is_usable(offer, cwd):
                group = (offer.answer, offer.fact.kind == PATH)
                groups[group] = groups[group].joined(offer) if group in groups else offer
        return sorted(groups.values(), key=lambda offer: -len(offer.support.sessions))[: limits.MAX_START_FACTS]

    def invocations(self, project: str, now: float) -> list[Offer]:
        """What to run in the place of a command that does not work, those of most sessions first."""
        return [offer for offer in self._confirmed(project, now) if offer.fact.kind in INVOCATIONS]

    def _confirmed(self, project: str, now: float) -> list[Offer]:
        """What was seen in enough sessions to be told to one that did not fail, those of most sessions first."""
        facts = self._projects.get(project, {}).values()
        offers = [offer for fact in facts if (offer := self._best(project, fact, now))]
        enough = [offer for offer in offers if len(offer.support.sessions) >= _LEAST_SESSIONS.get(offer.fact.kind, 2)]
        return sorted(enough, key=lambda offer: -len(offer.support.sessions))

    def list_offers(self, project: str | None, now: float) -> list[tuple[str, Offer]]:
        """Every fact, for people: of one project, or of all."""
        names = [project] if project is not None else sorted(self._projects)
        return [
            (name, offer)
            for name in names
            for fact in self._projects.get(name, {}).values()
            if (offer := self._best(name, fact, now))
        ]

    def _best(self, project: str, fact: Fact, now: float) -> Offer | None:
        """Of several invocations of a tool the one that ran in most sessions, else the answer that helped in most."""
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
    """How many, and the time of the latest."""
    return len(sessions), max(sessions.values(), default=0.0)


def _runs(fact: Fact, command: Simple) -> bool:
    """Whether a command that ended well is the one that the fact calls broken."""
    if fact.kind == PATH:
        return fact.subject in command.arguments
    if fact.kind in _LEAST_SESSIONS:
        return command.head == fact.subject
    if fact.kind == CALL:
        return call_of(command) == fact.subject and not command.variables
    tool, _, option = fact.subject.partition(" ")
    return command.tool == tool and option in {argument.split("=")[0] for argument in command.arguments}


def outcome_of(event: Mapping[str, Any], observation_id: int) -> Outcome | None:
    """The command in a recorded event; None when it has none, or when nothing can be learned from it."""
    if event.get("type") not in ("command", "command_error", "git_commit", "git_push"):
        return None
    metadata = event.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    if details.get("interrupted") is True:
        return None
    error = "\n".join(str(details[name]) for name in ("cause", "error") if isinstance(details.get(name), str))
    return Outcome(str(event.get("content") or ""), error, observation_id)


# Tables


def load(connection: Connection, project: str | None = None) -> Facts:
    """The stored facts, of one project or of all."""
    facts = Facts()
    condition, values = (" WHERE project = ?", (project,)) if project is not None else ("", ())
    for row in connection.execute(f"SELECT {_COLUMNS} FROM facts{condition}", values):  # noqa: S608 - constants
        facts.add_row(row)
    sql = f"SELECT project, tool, head, session_id, timestamp FROM invocations{condition}"  # noqa: S608 - constants
    for row in connection.execute(sql, values):
        facts.add_invocation(*row)
    return facts


def store(connection: Connection, learned: FactChanges) -> None:
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


def forget(connection: Connection, project: str, subject: str) -> int:
    """Delete the facts about a subject; return how many rows that were."""
    rows = connection.execute("DELETE FROM facts WHERE project = ? AND subject = ?", (project, subject))
    return int(rows.rowcount)


def delete_old(connection: Connection, now: float) -> int:
    """Delete what is too old to be told."""
    oldest = int(now - limits.FACT_SECONDS)
    deleted = connection.execute("DELETE FROM facts WHERE timestamp < ?", (oldest,)).rowcount
    connection.execute("DELETE FROM invocations WHERE timestamp < ?", (oldest,))
    return int(deleted)
