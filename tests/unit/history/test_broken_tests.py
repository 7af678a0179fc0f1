"""Tests that are broken whoever works there: when they are told, and when that is forgotten."""

from __future__ import annotations

import sqlite3

from nudge import limits
from nudge.history import facts
from nudge.history.broken_tests import start_text
from nudge.history.facts import Facts
from nudge.history.problems import Outcome
from nudge.storage.migrations import migrate

NOW = 1_700_000_000.0
DAY = 86_400.0
PROJECT = "github.com/x/api"
NAME = "tests/test_io.py::test_symlinks[True]"


def failed(
    command: str = "pytest tests", name: str = NAME, identity: int = 7, reason: str = "AssertionError"
) -> Outcome:
    return Outcome(command, f"Exit code 1\nFAILED {name} - {reason}\n1 failed, 40 passed", identity)


def told(known: Facts, session: str, outcome: Outcome, now: float = NOW) -> str | None:
    test = known.broken_test(PROJECT, session, outcome, now)
    known.observe(PROJECT, session, outcome, now)
    return test.text(now) if test else None


def broken_in(*sessions: str) -> Facts:
    known = Facts()
    for session in sessions:
        known.observe(PROJECT, session, failed(), NOW - 2 * DAY)
    return known


def test_told_after_two_earlier_sessions() -> None:
    """With their number, the age and the id of the latest failure; once in a session."""
    known = broken_in("s1")
    assert told(known, "s2", failed(identity=8), NOW - DAY) is None
    line = f'"{NAME}" failed in 2 earlier sessions too, last 1d ago #8'
    assert told(known, "s3", failed(identity=9)) == line
    assert told(known, "s3", failed()) is None


def at_start(known: Facts, now: float = NOW) -> list[str]:
    return [start_text(tests, now) for tests in known.tests.at_start(PROJECT, now).values()]


def test_told_at_the_start_after_two_sessions() -> None:
    """Variants of one test by its name; only those that failed in most sessions, two of them by name."""
    known = broken_in("s1")
    assert at_start(known) == []
    known.observe(PROJECT, "s2", failed(identity=8), NOW - DAY)
    assert at_start(known) == [f'known to fail here: "{NAME}" (failed in 2 earlier sessions, last 1d ago #8)']
    for session in ("s3", "s4", "s5"):
        for name in ("tests/a.py::test_a[1]", "tests/a.py::test_a[2]", "tests/b.py::test_b", "tests/c.py::test_c"):
            known.observe(PROJECT, session, failed(name=name, identity=9), NOW)
    names = '"tests/a.py::test_a[...]" and "tests/b.py::test_b" and 1 more'
    assert at_start(known) == [f"known to fail here: {names} (failed in 3 earlier sessions, just now #9)"]
    assert at_start(known, NOW + 90 * DAY + 1) == []


def test_the_latest_reason_is_told_at_the_start_unless_it_is_an_assertion() -> None:
    """It is quoted, and the tables keep it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = broken_in("s1")
    reason = 'OSError: no "route"'
    facts.store(connection, known.observe(PROJECT, "s2", failed(identity=8, reason="KeyError: 1"), NOW - DAY))
    facts.store(connection, known.observe(PROJECT, "s3", failed(identity=9, reason=reason), NOW))
    told = rf'known to fail here: "{NAME}" ("OSError: no \"route\"")'
    assert at_start(known) == [f"{told} (failed in 3 earlier sessions, just now #9)"]
    assert at_start(facts.load(connection)) == [f"{told} (failed in 2 earlier sessions, just now #9)"]
    for reason in ("AssertionError: a", "assert 1 == 2", "ValueError: [REDACTED:token]"):
        known.observe(PROJECT, "s4", failed(identity=10, reason=reason), NOW)
        assert at_start(known) == [f'known to fail here: "{NAME}" (failed in 4 earlier sessions, just now #10)']


def test_a_test_whose_name_is_too_long_is_not_told_at_the_start() -> None:
    """It would be cut."""
    known = Facts()
    for session in ("s1", "s2"):
        known.observe(PROJECT, session, failed(name=f"tests/a.py::test_{'x' * limits.MAX_TOLD_COMMAND}"), NOW)
    assert at_start(known) == [""]


def test_an_edit_in_this_session_makes_it_its_own() -> None:
    """By a tool of the client or by a command: whoever changed a test need not be told that it fails."""
    for edit in ("cat > tests/test_io.py <<EOF\nEOF", "sed -i s/a/b/ tests/test_io.py"):
        known = broken_in("s1", "s2")
        known.observe(PROJECT, "s3", Outcome(edit, "", 1), NOW)
        assert told(known, "s3", failed()) is None
    known = broken_in("s1", "s2")
    known.note_edit("s3", "/code/api/tests/test_io.py")
    assert told(known, "s3", failed()) is None
    assert told(known, "s4", failed()) is not None


def test_a_pass_forgets_it() -> None:
    """Of the file, its directory or everything; not of another file, of a selection, or of what a pipe hides."""
    for command in ("pytest", "python -m pytest tests/test_io.py", "pytest -q ./tests/"):
        known = broken_in("s1", "s2")
        assert known.observe(PROJECT, "s3", Outcome(command, "", 1), NOW).withdrawn_tests
        assert told(known, "s4", failed()) is None
    for command in ("pytest tests/test_a.py", "pytest -k other tests", "pytest tests | tail", "ls"):
        known = broken_in("s1", "s2")
        assert not known.observe(PROJECT, "s3", Outcome(command, "", 1), NOW).withdrawn_tests
        assert told(known, "s4", failed()) is not None


def test_scratch_files_are_no_tests_of_the_repo() -> None:
    """Sessions write files of the same name, each with its own content."""
    for name in ("reproduce.py::test_a", "/tmp/x/test_a.py::test_a", "../test_a.py::test_a"):
        known = Facts()
        for session in ("s1", "s2", "s3"):
            assert told(known, session, failed(name=name)) is None


def test_old_failures_are_not_told() -> None:
    """After 90 days nothing is known about a test."""
    assert told(broken_in("s1", "s2"), "s3", failed(), NOW + 90 * DAY) is None


def test_it_is_no_fact_with_an_answer() -> None:
    """Nothing is recommended for it, at a session's start or on failure."""
    known = broken_in("s1", "s2", "s3")
    assert known.at_start(PROJECT, NOW, None) == [] and known.list_offers(PROJECT, NOW) == []
    assert known.offer(PROJECT, "s4", failed(), NOW, None) is None


def test_the_table_keeps_them() -> None:
    """Stored once for each session, loaded again, deleted when one passes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = Facts()
    for session in ("s1", "s2"):
        for identity in (3, 4):
            facts.store(connection, known.observe(PROJECT, session, failed(identity=identity), NOW))
    loaded = facts.load(connection)
    assert [(project, len(test.sessions)) for project, test in loaded.tests.list_frequent()] == [(PROJECT, 2)]
    assert told(loaded, "s3", failed()) is not None
    facts.store(connection, known.observe(PROJECT, "s4", Outcome("pytest", "", 5), NOW))
    assert facts.load(connection).tests.list_frequent() == []
    connection.close()


def test_other_runners_are_known_by_their_reports() -> None:
    """Learned, stored with the runner, told, and forgotten by a run of that runner."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    report = Outcome(
        "npm test", "FAIL src/a.test.js\nExit code 1\nFAIL src/a.test.js\n  ● cart › adds\n\nTests: 1 failed", 7
    )
    for session in ("s1", "s2"):
        facts.store(connection, Facts().observe(PROJECT, session, report, NOW))
    loaded = facts.load(connection)
    assert told(loaded, "s3", report) == '"src/a.test.js › cart › adds" failed in 2 earlier sessions too, just now #7'
    for command, is_forgotten in (("pytest", False), ("npx jest src/b.test.js", False), ("npx jest", True)):
        passed = loaded.observe(PROJECT, "s4", Outcome(command, "", 8), NOW)
        assert bool(passed.withdrawn_tests) is is_forgotten, command
    connection.close()
