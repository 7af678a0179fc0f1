"""Broken tests: tests that fail in one session after the other, so that the failure is not due to the current session.

They are rows of the table `facts` with the kind `test`. A failure counts for a session if the session did not edit the
test before; a test is dropped once it passes. There is no fix to recommend.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from nudge import limits
from nudge.clock import last_time
from nudge.history.failed_tests import FailedTest, covers, find_failed, is_edited
from nudge.text import quote, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nudge.history.problems import Outcome
    from nudge.history.shell import SimpleCommand

TEST = "test"
# Reasons that say nothing: assertions without their values, redacted ones, and those that the runner cut too short.
_UNTOLD = re.compile(r"^Assertion|^assert\b|\[REDACTED|^.{0,20}\.\.\.$")
_NAMED = 2  # tests in one line
_LEAST_SESSIONS = 2  # earlier sessions in which it failed, before it is told


@dataclass(slots=True)
class BrokenTest:
    """A test, and the sessions in which it failed: each with the time and the id of the latest failure."""

    id: str
    runner: str
    sessions: dict[str, tuple[float, int]] = field(default_factory=dict)
    reason: str = ""
    """The reason of the latest failure; empty where `_UNTOLD` matches."""

    @property
    def latest(self) -> tuple[float, int]:
        return max(self.sessions.values(), default=(0.0, 0))

    def before(self, session: str) -> BrokenTest:
        """Return the test without the failures in this session."""
        others = {name: failure for name, failure in self.sessions.items() if name != session}
        return replace(self, sessions=others)

    def text(self, now: float) -> str:
        """One line to tell after a failure; empty when the test's name is too long to be told uncut."""
        if len(self.id) > limits.MAX_TOLD_COMMAND:
            return ""
        timestamp, failure_id = self.latest
        name = quote(self.id, limits.MAX_TOLD_COMMAND)
        return f"{name} failed in {len(self.sessions)} earlier sessions too, {last_time(now - timestamp)} #{failure_id}"


class BrokenTests:
    """The tests of all projects that failed and did not pass since."""

    def __init__(self) -> None:
        self._projects: dict[str, dict[str, BrokenTest]] = {}

    def observe(
        self, project: str, session: str, outcome: Outcome, edited: set[str], timestamp: float
    ) -> list[BrokenTest]:
        """Add the failed tests of a command; return those that are new in this session."""
        tests = self._projects.setdefault(project, {})
        added = []
        for failed in _failed_tests(outcome, edited):
            test = tests.setdefault(failed.id, BrokenTest(failed.id, failed.runner))
            if session not in test.sessions:
                added.append(test)
            test.sessions[session] = (timestamp, outcome.id)
            test.reason = "" if _UNTOLD.search(failed.reason) else single_line(failed.reason, limits.MAX_TOLD_ERROR)
        while len(tests) > limits.MAX_BROKEN_TESTS:
            del tests[min(tests, key=lambda name: tests[name].latest)]
        return added

    def withdraw(self, project: str, commands: list[SimpleCommand]) -> list[str]:
        """Drop the tests that were run by commands which succeeded; return their ids."""
        tests = self._projects.get(project, {})
        passed = [
            name for name, test in tests.items() if any(covers(command, test.runner, name) for command in commands)
        ]
        for name in passed:
            del tests[name]
        return passed

    def find(self, project: str, session: str, outcome: Outcome, edited: set[str], now: float) -> list[BrokenTest]:
        """Return the tests of a failure that failed in enough earlier sessions, those of most sessions first."""
        tests = self._projects.get(project, {})
        candidates = [
            tests[failed.id].before(session) for failed in _failed_tests(outcome, edited) if failed.id in tests
        ]
        recent = [test for test in candidates if now - test.latest[0] <= limits.FACT_SECONDS]
        frequent = [test for test in recent if len(test.sessions) >= _LEAST_SESSIONS]
        return sorted(frequent, key=lambda test: -len(test.sessions))

    def list_frequent(self) -> list[tuple[str, BrokenTest]]:
        """Return the tests that failed in several sessions, each with its project."""
        return [
            (project, test)
            for project, tests in sorted(self._projects.items())
            for test in tests.values()
            if len(test.sessions) >= _LEAST_SESSIONS
        ]

    def at_start(self, project: str, now: float) -> dict[str, list[BrokenTest]]:
        """Return the tests to tell a session at its start: of each runner, those that failed in most sessions."""
        tests = self._projects.get(project, {}).values()
        recent = [test for test in tests if now - test.latest[0] <= limits.FACT_SECONDS]
        runners: dict[str, list[BrokenTest]] = {}
        for test in sorted(recent, key=lambda test: -len(test.sessions)):
            worst = runners.setdefault(test.runner, [])
            if len(test.sessions) >= max(_LEAST_SESSIONS, len(worst[0].sessions) if worst else 0):
                worst.append(test)
        return {runner: worst for runner, worst in runners.items() if worst}

    def add_row(
        self, project: str, name: str, runner: str, reason: str, session: str, failure_id: int, timestamp: float
    ) -> None:
        test = self._projects.setdefault(project, {}).setdefault(name, BrokenTest(name, runner))
        if (timestamp, failure_id) >= test.latest:
            test.reason = reason
        test.sessions[session] = (timestamp, failure_id)


def start_text(tests: Sequence[BrokenTest], now: float) -> str:
    """One line about tests that failed in the same number of sessions; empty when their names are too long."""
    variants: dict[str, list[BrokenTest]] = {}
    for test in tests:
        variants.setdefault(test.id.partition("[")[0], []).append(test)
    names = [(same[0].id if len(same) == 1 else f"{name}[...]", same[0].reason) for name, same in variants.items()]
    labels = [_named(name, reason) for name, reason in names if len(name) <= limits.MAX_TOLD_COMMAND]
    if not labels:
        return ""
    left = len(names) - len(labels[:_NAMED])
    others = f" and {left} more" if left else ""
    timestamp, failure_id = max(test.latest for test in tests)
    seen = f"failed in {len(tests[0].sessions)} earlier sessions, {last_time(now - timestamp)}"
    return f"known to fail here: {' and '.join(labels[:_NAMED])}{others} ({seen} #{failure_id})"


def _named(name: str, reason: str) -> str:
    return quote(name, limits.MAX_TOLD_COMMAND) + (f" ({quote(reason, limits.MAX_TOLD_ERROR)})" if reason else "")


def edited_files(commands: list[SimpleCommand]) -> Iterator[str]:
    """Yield the files that commands write or edit in place."""
    for command in commands:
        yield from command.outputs
        if command.tool == "sed" and any(argument.startswith("-i") for argument in command.arguments):
            yield from command.arguments


def _failed_tests(outcome: Outcome, edited: set[str]) -> list[FailedTest]:
    """The tests that a command reports as failed, without those edited in this session."""
    return [test for test in find_failed(outcome.error) if not is_edited(test, edited)]
