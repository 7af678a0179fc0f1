"""Facts: which are told and when, when they are withdrawn, and that the tables keep them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nudge.core import limits
from nudge.learning import store
from nudge.learning.fact import Fact
from nudge.learning.facts import Changes, Facts
from nudge.learning.outcome import Outcome, analyse
from nudge.storage.migrations import migrate

NOW = 1_700_000_000.0
PROJECT = "github.com/x/api"
BROKEN = Outcome("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest", 1, 1)
WORKING = Outcome("pytest tests/a.py", id=2)


def learn(known: Facts, session: str, *outcomes: Outcome, now: float = NOW) -> list[Changes]:
    return [known.observe(PROJECT, session, outcome, now, now)[1] for outcome in outcomes]


def told(known: Facts, session: str, outcome: Outcome = BROKEN, project: str = PROJECT, now: float = NOW) -> str:
    answer, _ = known.observe(project, session, outcome, now, now)
    return answer.text(now) if answer else ""


@pytest.fixture
def known() -> Facts:
    facts = Facts()
    learn(facts, "s1", BROKEN, WORKING)
    return facts


def test_once_in_a_session(known: Facts) -> None:
    """The same failure again in one session is met with silence; another project is not told."""
    assert told(known, "s2") and not told(known, "s2")
    assert told(known, "s3")
    assert not told(known, "s4", project="github.com/y/api")


def test_nobody_is_told_by_an_event_that_no_hook_waits_for(known: Facts) -> None:
    """It teaches; the session's next failure is answered."""
    answer, _ = known.observe(PROJECT, "s2", BROKEN, NOW, NOW, can_tell=False)
    assert answer is None and told(known, "s2")


def test_it_says_how_many_sessions_it_rests_on(known: Facts) -> None:
    """With the latest time, and the id of what worked."""
    learn(known, "s2", BROKEN, replace(WORKING, id=9))
    assert told(known, "s3").endswith('what worked in 2 sessions, just now: "pytest …" #9')


def test_what_works_again_is_no_fact(known: Facts) -> None:
    """The invocation that was broken ends well."""
    learn(known, "s2", replace(BROKEN, printed="", exit_code=0))
    assert not told(known, "s3")


def test_an_answer_that_fails_is_withdrawn(known: Facts) -> None:
    """For reasons of the surroundings; a failed test says nothing about it."""
    learn(known, "s2", replace(WORKING, printed="FAILED tests/a.py::t - assert 0\n1 failed", exit_code=1))
    assert told(known, "s3")
    learn(known, "s4", replace(WORKING, printed="bash: pytest: command not found", exit_code=127))
    assert not told(known, "s5")


def test_a_step_that_did_not_help_is_withdrawn() -> None:
    """The same failure came again after it."""
    known, failed = Facts(), Outcome("npm run build", "Error: Cannot find module 'sharp'", 1, 1)
    install, worked = Outcome("npm ci", id=2), Outcome("npm run build", id=3)
    learn(known, "s1", failed, install, worked)
    assert "npm ci" in told(known, "s2", failed)
    learn(known, "s3", failed, install, failed)
    assert not told(known, "s4", failed)


def test_a_fact_that_nobody_confirms_ages_out(known: Facts) -> None:
    """After 90 days."""
    assert not told(known, "s2", now=NOW + limits.FACT_SECONDS + 1)


def test_a_fact_of_one_branch_is_told_on_it() -> None:
    """Until another branch, or the one that all share, has it."""
    known = Facts()
    here = [replace(one, branch="spike/rocks") for one in (BROKEN, WORKING)]
    learn(known, "s1", *here)
    assert told(known, "s2", here[0]) and not told(known, "s3", replace(BROKEN, branch="main"))
    learn(known, "s4", *(replace(one, branch="main") for one in (BROKEN, WORKING)))
    assert told(known, "s5", replace(BROKEN, branch="topic"))


def test_at_the_start_after_two_sessions(known: Facts) -> None:
    """And a program that is missing, even without a cure; a misspelled one is not."""
    assert known.at_start(PROJECT, NOW, None) == []
    learn(known, "s2", BROKEN, WORKING)
    for session in ("s3", "s4"):
        learn(known, session, Outcome("hadolint Dockerfile", "bash: hadolint: command not found", 127, 3))
        learn(known, session, Outcome("gti status", "bash: gti: command not found", 127, 4))
    lines = [fact.start_text(NOW) for fact in known.at_start(PROJECT, NOW, None)]
    assert lines == [
        '"/usr/bin/python3 -m pytest" fails here ("/usr/bin/python3: No module named pytest", 2 sessions lost a step'
        ' to it); "pytest …" runs the tests (just now #2)',
        '"hadolint" is not installed here (2 sessions tried it)',
    ]


def test_a_command_with_quotes_is_told_as_it_was_typed() -> None:
    """Byte for byte: no quote gets a backslash."""
    known = Facts()
    failed = Outcome("cargo run", 'task tracing requires RUSTFLAGS="--cfg tokio_unstable"!', 1, 1)
    learn(known, "s1", failed, Outcome('RUSTFLAGS="--cfg tokio_unstable" cargo run', id=2))
    assert '`RUSTFLAGS="--cfg tokio_unstable" cargo run`' in told(known, "s2", failed)


# Tables


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    yield connection
    connection.close()


def test_the_tables_keep_them(connection: sqlite3.Connection) -> None:
    """With all that they are matched by and their evidence; what is withdrawn is deleted."""
    known = Facts()
    for changes in learn(known, "s1", BROKEN, replace(WORKING, branch="main")):
        store.store(connection, changes)
    loaded = store.load(connection)
    (fact,), (stored,) = known.of(PROJECT, NOW), loaded.of(PROJECT, NOW)
    assert stored == fact and stored.latest.exit_codes == (1, 0) and stored.latest.branch == "main"
    assert "pytest" in told(loaded, "s2")
    for changes in learn(loaded, "s3", replace(BROKEN, printed="", exit_code=0)):
        store.store(connection, changes)
    assert store.load(connection).of(PROJECT, NOW) == []


@pytest.mark.parametrize(
    ("kind", "subject", "error", "answer"),
    [
        ("program", "ruff", "ruff: command not found", ".venv/bin/ruff"),
        ("module", "python3 -m pytest", "No module named pytest", "pytest"),
        ("target", "npm run lint", 'Missing script: "lint"', "npm run lint:all"),
        ("call", "make all", "x.h: No such file", "cd sub && make all"),
    ],
)
def test_facts_of_earlier_versions_are_told(
    connection: sqlite3.Connection, kind: str, subject: str, error: str, answer: str
) -> None:
    """They had no details: what they do not say is read from their texts."""
    row = (PROJECT, kind, subject, subject.split(" ")[0], error, answer, "s1", 1, 2, int(NOW))
    connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')", row)
    loaded = store.load(connection)
    (fact,) = loaded.of(PROJECT, NOW)
    assert isinstance(fact, Fact) and (fact.subject, fact.answer) == (subject, answer)


def test_an_old_path_is_still_known(connection: sqlite3.Connection, tmp_path: Path) -> None:
    """What an earlier version learned about a path answers the same failure."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").touch()
    row = (PROJECT, "path", "docs/a.md", "cat", "cat: docs/a.md: No such file", "docs/b.md", "s1", 1, 2, int(NOW))
    connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')", row)
    failed = Outcome("cat docs/a.md", "cat: docs/a.md: No such file or directory", 1, 3, str(tmp_path), str(tmp_path))
    assert '"docs/b.md"' in told(store.load(connection), "s2", failed)


def test_a_long_error_is_read_as_far_as_hooks_send_it() -> None:
    """Both ends of it, whatever another sender sends: reading all of it would take as long as it is."""
    error = f"Exit code 1\nNo module named pytest\n{'x ' * 50_000}\nmake: *** [test] Error 1"
    outcome = analyse({"type": "command_error", "content": "make test", "metadata": {"error": error}}, 1)
    assert outcome is not None and len(outcome.printed) <= limits.MAX_ERROR_CHARS + 1
    assert outcome.printed.startswith("Exit code 1\nNo module") and outcome.printed.endswith("Error 1")
