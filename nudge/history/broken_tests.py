"""Tests that fail in one session after the other, whoever works there: the failure is not the work of this session.

They are rows of the table `facts` with the kind `test`. Nothing is recommended: there is no fix to tell. A test counts
for a session when it was not edited in it before it failed, and is forgotten once it passes. Only pytest's ids are
read: `tests/a.py::test_b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nudge import limits
from nudge.clock import ago
from nudge.text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nudge.history.problems import Outcome
    from nudge.history.shell import Simple

TEST = "test"
_LEAST_SESSIONS = 2  # earlier ones in which it failed, before it is told
_FAILED = re.compile(r"^FAILED (\S+?\.py::\S+)", re.MULTILINE)
_RUNNERS = ("pytest", "py.test")
_SELECTING = frozenset(("-k", "-m", "--lf", "--last-failed", "--deselect", "--ignore", "--sw", "--stepwise"))


@dataclass(slots=True)
class BrokenTest:
    """A test, and the sessions in which it failed: each with the time and the id of the latest failure."""

    id: str
    sessions: dict[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def latest(self) -> tuple[float, int]:
        return max(self.sessions.values(), default=(0.0, 0))

    def before(self, session: str) -> BrokenTest:
        """The same without what this session saw of it."""
        return BrokenTest(self.id, {name: failure for name, failure in self.sessions.items() if name != session})

    def text(self, now: float) -> str:
        """One line, or nothing when the test's name is too long to be told whole."""
        if len(self.id) > limits.MAX_TOLD_COMMAND:
            return ""
        timestamp, failure_id = self.latest
        name = quote(self.id, limits.MAX_TOLD_COMMAND)
        return f"{name} failed in {len(self.sessions)} earlier sessions too, last {ago(now - timestamp)} #{failure_id}"


class BrokenTests:
    """The tests of all projects that failed and did not pass since."""

    def __init__(self) -> None:
        self._projects: dict[str, dict[str, BrokenTest]] = {}

    def observe(
        self, project: str, session: str, outcome: Outcome, edited: set[str], timestamp: float
    ) -> list[BrokenTest]:
        """Take in a command that failed; return the tests that are new in this session."""
        tests = self._projects.setdefault(project, {})
        added = []
        for name in _failed_tests(outcome, edited):
            test = tests.setdefault(name, BrokenTest(name))
            if session not in test.sessions:
                added.append(test)
            test.sessions[session] = (timestamp, outcome.id)
        while len(tests) > limits.MAX_BROKEN_TESTS:
            del tests[min(tests, key=lambda name: tests[name].latest)]
        return added

    def withdraw(self, project: str, commands: list[Simple]) -> list[str]:
        """Forget the tests that commands which ended well ran, and return them."""
        tests = self._projects.get(project, {})
        passed = [name for name in tests if any(_covers(command, name) for command in commands)]
        for name in passed:
            del tests[name]
        return passed

    def find(self, project: str, session: str, outcome: Outcome, edited: set[str], now: float) -> list[BrokenTest]:
        """The tests of a failure that failed in enough earlier sessions, those of most sessions first."""
        tests = self._projects.get(project, {})
        found = [tests[name].before(session) for name in _failed_tests(outcome, edited) if name in tests]
        recent = [test for test in found if now - test.latest[0] <= limits.FACT_SECONDS]
        known = [test for test in recent if len(test.sessions) >= _LEAST_SESSIONS]
        return sorted(known, key=lambda test: -len(test.sessions))

    def known(self) -> list[tuple[str, BrokenTest]]:
        """Those that failed in several sessions, each with its project."""
        return [
            (project, test)
            for project, tests in sorted(self._projects.items())
            for test in tests.values()
            if len(test.sessions) >= _LEAST_SESSIONS
        ]

    def add_row(self, project: str, name: str, session: str, failure_id: int, timestamp: float) -> None:
        test = self._projects.setdefault(project, {}).setdefault(name, BrokenTest(name))
        test.sessions[session] = (timestamp, failure_id)


def edited_files(commands: list[Simple]) -> Iterator[str]:
    """The files that commands write or edit in place."""
    for command in commands:
        yield from command.outputs
        if command.tool == "sed" and any(argument.startswith("-i") for argument in command.arguments):
            yield from command.arguments


def _failed_tests(outcome: Outcome, edited: set[str]) -> list[str]:
    """The tests that a command reports as failed, without those of scratch files and those edited in this session."""
    names = dict.fromkeys(_FAILED.findall(outcome.error))
    return [name for name in names if _is_of_repo(name) and not _is_edited(name.split("::")[0], edited)]


def _is_of_repo(name: str) -> bool:
    path = name.split("::")[0]
    return "/" in path and not path.startswith(("/", "../"))


def _is_edited(path: str, edited: set[str]) -> bool:
    return any(file == path or file.endswith(f"/{path}") for file in edited)


def _covers(command: Simple, name: str) -> bool:
    """Whether a run of pytest includes a test. A pipe hides its exit code, and options may leave the test out."""
    if command.tool not in _RUNNERS or command.piped or not _SELECTING.isdisjoint(_option_names(command)):
        return False
    targets = [argument.removeprefix("./").rstrip("/") for argument in command.arguments if argument[:1] != "-"]
    return not targets or any(name == target or name.startswith((f"{target}/", f"{target}::")) for target in targets)


def _option_names(command: Simple) -> set[str]:
    return {argument.split("=")[0] for argument in command.arguments}
