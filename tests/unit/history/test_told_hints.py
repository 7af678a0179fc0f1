"""Which hints of scan and of learning a session is told, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.history import store, told_hints
from nudge.history.facts import Facts, Offer
from nudge.history.problems import Outcome
from nudge.history.told_hints import GUESSED, LEARNED, SCANNED, add_last_runs, runnable
from tests.unit.history.stored import DAY, NOW, empty, event

PROJECT = "app"
TESTS_FAILED = "Exit code 1\nFAILED tests/test_io.py::test_links - AssertionError"


def hint(value: str | None, origin: str | None = GUESSED) -> dict[str, Any]:
    return {"name": "app/lint", "value": value, "reason": "", "reasons": [], "score": 0.5, "origin": origin}


def offers(*outcomes: Outcome) -> list[Offer]:
    known = Facts()
    for outcome in outcomes:
        known.observe(PROJECT, "s1", outcome, NOW)
    return known.invocations(PROJECT, NOW)


def told(hints: list[dict[str, Any]], known: list[Offer] | None = None, cwd: str | None = None) -> list[str | None]:
    return [hint["value"] for hint in runnable(hints, known or [], cwd)]


NO_RUFF = Outcome("ruff check", "bash: line 1: ruff: command not found", 1)


def test_a_guess_gets_the_program_that_works_here() -> None:
    """So does what scan read; what a person set is told as it is."""
    known = offers(NO_RUFF, Outcome(".venv/bin/ruff check", "", 2))
    for origin, expected in (
        (GUESSED, ".venv/bin/ruff check ."),
        (SCANNED, ".venv/bin/ruff check ."),
        (None, "ruff check ."),
    ):
        assert told([hint("ruff check .", origin)], known) == [expected]
    assert told([hint("ruffle run")], known) == ["ruffle run"]


def test_a_guess_that_is_known_to_fail_is_not_told() -> None:
    """Where an install is what helped: the fact says more than the guess."""
    known = offers(NO_RUFF, Outcome("pip install ruff", "", 2), Outcome("ruff check", "", 3))
    assert told([hint("ruff check .")], known) == []
    assert told([hint("ruff check .", SCANNED)], known) == ["ruff check ."]


def test_a_guess_is_told_only_where_its_program_is(tmp_path: Path) -> None:
    """Of a directory that is not on this machine nothing is known."""
    guess = [hint("no-such-program-at-all run")]
    assert told(guess, cwd=str(tmp_path)) == []
    assert told(guess, cwd="/nowhere") == told(guess) == ["no-such-program-at-all run"]
    assert told([hint("no-such-program-at-all run", SCANNED)], cwd=str(tmp_path)), "the repo says so itself"


def test_a_learned_command_is_told_only_where_its_path_is(tmp_path: Path) -> None:
    """A second worktree has no environment of its own."""
    learned = [hint(".venv/bin/pytest", LEARNED)]
    assert told(learned, cwd=str(tmp_path)) == []
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/pytest").touch()
    assert told(learned, cwd=str(tmp_path)) == [".venv/bin/pytest"]


def test_a_secret_stays_a_hint() -> None:
    """It has no value to look at."""
    assert told([hint(None)]) == [None]


@pytest.mark.parametrize(
    ("runs", "outcome"),
    [
        ([], None),
        ([("npm test", "")], None),
        ([("npm test", "Exit code 2\nno config")], "failed 1d ago"),
        (
            [("npm test", "Exit code 2\nno config"), ("npm test -- -x", "Exit code 2")],
            "has only failed here, last 1d ago",
        ),
        ([("npm test", "Exit code 2\nno config"), ("npm test 2>&1 | tail -5", "")], None),
        ([("npm test", ""), ("npm test", "Exit code 2\nno config")], "failed 1d ago"),
        ([("npm test", TESTS_FAILED)], None),
        ([("npm test && git push", "Exit code 1\nrejected")], None),
        ([("npm testing", "Exit code 1")], None),
        ([("echo npm test", "Exit code 1")], None),
    ],
)
def test_a_hint_says_that_its_last_run_failed(runs: list[tuple[str, str]], outcome: str | None) -> None:
    """Unless what failed were tests; a run with arguments or into a pipe is a run."""
    connection = empty()
    for number, (command, error) in enumerate(runs):
        kind, metadata = ("command_error", {"error": error}) if error else ("command", {"exit_code": 0})
        age = DAY + 60 - number
        store.record(connection, event(kind, command, NOW - age, metadata=metadata))
    (found,) = add_last_runs(connection, PROJECT, [hint("npm test", SCANNED)], NOW)
    assert found.get("outcome") == outcome, json.dumps(runs)


def test_hints_that_failed_come_last() -> None:
    """Behind those that did not, which keep their order."""
    connection = empty()
    store.record(connection, event("command_error", "make lint", NOW - DAY, metadata={"error": "Exit code 2"}))
    hints = [hint(value, SCANNED) for value in ("make lint", "make test", "make build")]
    found = [row["value"] for row in told_hints.add_last_runs(connection, PROJECT, hints, NOW)]
    assert found == ["make test", "make build", "make lint"]
