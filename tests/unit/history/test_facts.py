"""Facts: which are told, when they are withdrawn, and that the tables keep them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nudge import limits
from nudge.history import availability, facts
from nudge.history.facts import FactChanges, Facts
from nudge.history.problems import Outcome
from nudge.storage.migrations import migrate

NOW = 1_700_000_000.0
PROJECT = "github.com/x/api"
BROKEN = Outcome("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest", 1)
WORKING = Outcome("pytest tests/a.py", "", 2)
NO_FILE = Outcome("pytest tests/test_ab.py", "ERROR: file or directory not found: tests/test_ab.py", 3)
FILE = Outcome("pytest tests/test_abc.py", "", 4)


def observe(
    known: Facts, session: str, *outcomes: Outcome, project: str = PROJECT, now: float = NOW
) -> list[FactChanges]:
    return [known.observe(project, session, outcome, now) for outcome in outcomes]


def told(known: Facts, session: str, outcome: Outcome, *, project: str = PROJECT, now: float = NOW) -> str | None:
    offer = known.offer(project, session, outcome, now, None)
    return offer.text(now) if offer else None


def test_once_in_a_session() -> None:
    """The same failure again in one session is met with silence."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN)
    assert told(known, "s2", BROKEN) is None
    assert told(known, "s3", BROKEN)


def test_a_fact_belongs_to_its_project() -> None:
    """Another project is not told."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN, project="github.com/y/api") is None


def test_one_later_failure_of_the_answer_withdraws_it() -> None:
    """What was recommended and is missing itself is not recommended again."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    (learned,) = observe(known, "s2", Outcome("pytest tests", "bash: line 1: pytest: command not found", 9))
    assert learned.withdrawn == [
        (PROJECT, "module", "/usr/bin/python3 -m pytest", answer) for answer in ("pytest", None)
    ]
    assert told(known, "s3", BROKEN) is None


def test_what_works_again_is_no_fact() -> None:
    """The invocation that was broken ends well: the fact is gone."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    observe(known, "s2", Outcome(BROKEN.command, "", 9))
    assert told(known, "s3", BROKEN) is None


def test_a_fact_that_nobody_confirms_ages_out() -> None:
    """After 90 days it is neither told nor kept."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN, now=NOW + limits.FACT_SECONDS + 1) is None


def test_at_the_start_a_path_needs_two_sessions() -> None:
    """A missing module is told after one session, a path after two; at most three, the most confirmed first."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING, NO_FILE, FILE)
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, None)] == ["pytest"]
    observe(known, "s2", NO_FILE, FILE)
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, None)] == ["tests/test_abc.py", "pytest"]
    assert len(known.at_start(PROJECT, NOW, None)) <= limits.MAX_START_FACTS


def test_facts_with_the_same_answer_are_one_line() -> None:
    """So that another fact has its place."""
    known = Facts()
    observe(known, "s1", BROKEN, Outcome("pytest", "bash: pytest: command not found", 2), Outcome(".venv/bin/pytest"))
    observe(known, "s2", Outcome("ruff check", "bash: ruff: command not found", 3), Outcome(".venv/bin/ruff check"))
    first, second = known.at_start(PROJECT, NOW, None)
    assert (first.start_text(NOW), second.start_text(NOW)) == (
        '".venv/bin/pytest" runs the tests here (in 1 session, just now); '
        '"/usr/bin/python3 -m pytest" and "pytest" fail (No module named pytest)',
        '".venv/bin/ruff" works here (in 1 session, just now); "ruff" fails (ruff: command not found)',
    )


def test_a_module_that_is_there_now_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """The environment of the interpreter has it. A module with a similar name, or a program, is something else."""
    known = Facts()
    missing = Outcome(".venv/bin/python -m mypy", "/a/.venv/bin/python: No module named mypy", 1)
    observe(known, "s1", missing, Outcome("tools/mypy", "", 2))
    packages = tmp_path / ".venv/lib/python3.12/site-packages"
    for folder in (packages / "mypy_extensions", tmp_path / ".venv/bin", tmp_path / "tools"):
        folder.mkdir(parents=True)
    for program in ("tools/mypy", ".venv/bin/mypy"):
        (tmp_path / program).touch()
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, str(tmp_path))] == ["tools/mypy"]
    (packages / "mypy").mkdir()
    assert known.at_start(PROJECT, NOW, str(tmp_path)) == []


def test_the_usual_invocation_is_recommended() -> None:
    """Of several that worked, the one that ran in most sessions."""
    known = Facts()
    observe(known, "s1", BROKEN, Outcome("python3 -m pytest tests", "", 5))
    for session in ("s2", "s3"):
        observe(known, session, WORKING)
    offer = known.offer(PROJECT, "s4", BROKEN, NOW, None)
    assert offer is not None and offer.answer == "pytest"


def test_a_path_is_told_only_where_it_exists(tmp_path: Path) -> None:
    """The recommended path exists here and the other does not; elsewhere there is silence."""
    known = Facts()
    observe(known, "s1", NO_FILE, FILE)
    assert known.offer(PROJECT, "s2", NO_FILE, NOW, str(tmp_path)) is None
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_abc.py").touch()
    assert known.offer(PROJECT, "s2", NO_FILE, NOW, str(tmp_path)) is not None
    (tmp_path / "tests/test_ab.py").touch()
    assert known.offer(PROJECT, "s3", NO_FILE, NOW, str(tmp_path)) is None


def test_a_program_is_told_only_where_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PATH, or in an environment of the project."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    monkeypatch.setattr(availability.can_run, "__defaults__", (lambda _: None,))
    assert known.offer(PROJECT, "s2", BROKEN, NOW, str(tmp_path)) is None
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/pytest").touch()
    assert known.offer(PROJECT, "s2", BROKEN, NOW, str(tmp_path)) is not None


def test_a_call_that_needs_a_variable() -> None:
    """Told when the same words fail again; gone when they end well without it."""
    known, failing = Facts(), Outcome("make test", "Exit code 2\nno docker", 1)
    observe(known, "s1", failing, Outcome("DOCKER=1 make test", "", 2))
    text = told(known, "s2", failing)
    assert text == '"make test" fails here (no docker); what worked in 1 session, just now: "DOCKER=1 make test" #2'
    observe(known, "s3", Outcome("DOCKER=1 make test", "", 3))
    assert told(known, "s4", failing)
    observe(known, "s3", Outcome("make test", "", 4))
    assert told(known, "s5", failing) is None


def test_the_tables_keep_what_was_learned() -> None:
    """What is loaded says the same; what is withdrawn or purged is gone."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = Facts()
    for learned in (*observe(known, "s1", BROKEN, WORKING), *observe(known, "s2", BROKEN, WORKING)):
        facts.store(connection, learned)
    loaded = facts.load(connection, PROJECT)
    assert told(loaded, "s3", BROKEN) == told(known, "s3", BROKEN)
    connection.execute("INSERT INTO sessions (id, client, started_at) VALUES ('s1', 'x', 0)")
    connection.execute(
        "INSERT INTO observations (id, session_id, timestamp, obs_type, content) VALUES (2, 's1', 0, 'command', '')"
    )
    connection.execute("DELETE FROM observations WHERE id = 2")
    assert told(facts.load(connection), "s3", BROKEN) is None
    for learned in observe(known, "s4", BROKEN, WORKING):
        facts.store(connection, learned)
    assert facts.delete_old(connection, NOW + limits.FACT_SECONDS + 1) == 1
    assert told(facts.load(connection), "s3", BROKEN) is None
