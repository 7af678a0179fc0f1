"""Which hints of scan and of learning a session is told, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.history import store
from nudge.learning.fact import Fact
from nudge.learning.facts import Facts
from nudge.learning.outcome import Outcome
from nudge.telling import hint_selection
from nudge.telling.hint_selection import (
    GUESSED,
    SCANNED,
    add_last_runs,
    drop_covered,
    drop_explained,
    drop_unused,
    keep_runnable,
)
from tests.unit.history.stored import DAY, NOW, empty, event

PROJECT = "app"
TESTS_FAILED = "Exit code 1\nFAILED tests/test_io.py::test_links - AssertionError"


def hint(value: str | None, origin: str | None = GUESSED) -> dict[str, Any]:
    return {"name": "app/lint", "value": value, "reason": "", "reasons": [], "score": 0.5, "origin": origin}


def learned(*outcomes: Outcome) -> list[Fact]:
    known = Facts()
    for outcome in outcomes:
        known.observe(PROJECT, "s1", outcome, NOW, NOW)
    return known.invocations(PROJECT, NOW)


def told(hints: list[dict[str, Any]], known: list[Fact] | None = None, cwd: str | None = None) -> list[str | None]:
    return [hint["value"] for hint in keep_runnable(hints, known or [], cwd, NOW)]


NO_RUFF = Outcome("ruff check", "bash: line 1: ruff: command not found", 127, 1)


def test_a_command_of_scan_whose_program_fails_here_is_not_told() -> None:
    """Nor with another program put in its place, which nobody ran: the fact says what works. What a person set is told
    as it is."""
    known = learned(NO_RUFF, Outcome(".venv/bin/ruff check", id=2))
    for origin, expected in ((GUESSED, []), (SCANNED, []), (None, ["ruff check ."])):
        assert told([hint("ruff check .", origin)], known) == expected
    assert told([hint("ruffle run")], known) == ["ruffle run"]


def test_a_guess_that_is_known_to_fail_is_not_told() -> None:
    """Where another program does its job: the fact says more than the guess."""
    known = learned(NO_RUFF, Outcome("make lint", id=2))
    assert told([hint("ruff check .")], known) == []
    assert told([hint("ruff check .", SCANNED)], known) == ["ruff check ."]


def test_a_guess_is_told_only_where_its_program_is(tmp_path: Path) -> None:
    """Of a directory that is not on this machine nothing is known."""
    guess = [hint("no-such-program-at-all run")]
    assert told(guess, cwd=str(tmp_path)) == []
    assert told(guess, cwd="/nowhere") == told(guess) == ["no-such-program-at-all run"]
    assert told([hint("no-such-program-at-all run", SCANNED)], cwd=str(tmp_path)), "the repo says so itself"


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
        ([("npm test", "Exit code 2\nsrc/a.ts(3,7): error TS2322: Type 'string' is not assignable")], None),
        ([("npm test && git push", "Exit code 1\nrejected")], None),
        ([("npm testing", "Exit code 1")], None),
        ([("echo npm test", "Exit code 1")], None),
    ],
)
def test_a_hint_says_that_its_last_run_failed(runs: list[tuple[str, str]], outcome: str | None) -> None:
    """Unless what failed were tests or the session's own code; a run with arguments or into a pipe is a run."""
    connection = empty()
    for number, (command, error) in enumerate(runs):
        kind, metadata = ("command_error", {"error": error}) if error else ("command", {"exit_code": 0})
        age = DAY + 60 - number
        store.insert_event(connection, event(kind, command, NOW - age, metadata=metadata))
    (found,) = add_last_runs(connection, PROJECT, [hint("npm test", None)], NOW)
    assert found.get("outcome") == outcome, json.dumps(runs)


def test_hints_that_failed_come_last() -> None:
    """Behind those that did not, which keep their order."""
    connection = empty()
    store.insert_event(connection, event("command_error", "make lint", NOW - DAY, metadata={"error": "Exit code 2"}))
    hints = [hint(value, None) for value in ("make lint", "make test", "make build")]
    found = [row["value"] for row in hint_selection.add_last_runs(connection, PROJECT, hints, NOW)]
    assert found == ["make test", "make build", "make lint"]


# What scan made


def after_runs(*runs: tuple[str, str], key: str = "test", **fields: Any) -> list[dict[str, Any]]:
    """The scanned hint `npm test` as it is told after command lines with their errors, a minute apart."""
    connection = empty()
    for number, (command, error) in enumerate(runs):
        kind, metadata = ("command_error", {"error": error}) if error else ("command", {"exit_code": 0})
        store.insert_event(connection, event(kind, command, NOW - DAY - 60 * (10 - number), metadata=metadata))
    row = {**hint("npm test", SCANNED), "name": f"app/{key}", **fields}
    return add_last_runs(connection, PROJECT, [row], NOW)


NO_CONFIG = "Exit code 2\nno config"
FAILED_TWICE = (("npm test", NO_CONFIG), ("npm test", NO_CONFIG))


@pytest.mark.parametrize("key", ["test", "build", "lint", "run", "install"])
def test_an_unused_hint_of_scan_is_told_for_tests_builds_and_lint_only(key: str) -> None:
    """One that was used, and one that somebody set, is told whatever it is for."""
    is_told = key in ("test", "build", "lint")
    for origin in (SCANNED, GUESSED):
        row = {**hint("make x", origin), "name": f"app/{key}"}
        assert bool(drop_unused([row])) is is_told
        assert drop_unused([{**row, "is_used": True}])
    assert drop_unused([{**hint("make x", None), "name": f"app/{key}"}])


def test_a_fact_whose_answer_somebody_set_with_a_reason_is_told_by_the_hint() -> None:
    """The reason says more than the error; a hint of a tool, or without a reason, gives way to the fact."""
    known = learned(NO_RUFF, Outcome(".venv/bin/ruff check", id=2))
    answer = known[0].answer
    assert drop_explained(known, [{**hint(answer, None), "reason": "the other one is too old"}]) == []
    assert drop_explained(known, [{**hint(answer, None), "reason": ""}]) == known
    assert drop_explained(known, [{**hint(answer, SCANNED), "reason": "Makefile:2"}]) == known


def test_a_guess_whose_program_a_told_fact_names_is_not_told() -> None:
    """The fact says it already. A guess about another program, and what the repo says itself, is told."""
    known = learned(NO_RUFF, Outcome(".venv/bin/ruff check", id=2))
    hints = [hint(".venv/bin/ruff check ."), hint("mypy ."), hint(".venv/bin/ruff check .", SCANNED), hint(None)]
    assert drop_covered(hints, known) == hints[1:]
    assert drop_covered(hints, []) == hints


@pytest.mark.parametrize(
    ("value", "key", "is_told"),
    [
        ("make test", "test", False),
        ("npm run build", "build", False),
        ("go test ./...", "test", False),
        ("npm run unit", "test", True),
        ("make -C api test", "test", True),
        ("CI=1 make test", "test", True),
        ("scripts/test", "test", True),
    ],
)
def test_the_obvious_command_of_a_manifest_is_not_told_where_nobody_runs_it(
    value: str, key: str, is_told: bool
) -> None:
    """After two sessions with other commands. What says more than its manifest's usual command is told."""
    connection = empty()
    row = {**hint(value, SCANNED), "name": f"app/{key}"}
    passed = {"exit_code": 0}
    store.insert_event(connection, event("command", "git status", NOW - DAY, session_id="s1", metadata=passed))
    assert add_last_runs(connection, PROJECT, [row], NOW) == [row]
    store.insert_event(connection, event("command", "pytest -q", NOW - DAY, session_id="s2", metadata=passed))
    assert bool(add_last_runs(connection, PROJECT, [row], NOW)) is is_told
    for told_anyway in ({**row, "stale": "x changed"}, {**row, "is_used": True}, {**row, "origin": None}):
        assert add_last_runs(connection, PROJECT, [told_anyway], NOW) == [told_anyway]


def test_a_guess_is_obvious_unless_it_has_a_path() -> None:
    """`.venv/bin/ruff` says where the program is."""
    connection = empty()
    for session in ("s1", "s2"):
        store.insert_event(connection, event("command", "ls", NOW, session_id=session, metadata={"exit_code": 0}))
    rows = [hint("ruff check ."), hint(".venv/bin/ruff check .")]
    assert add_last_runs(connection, PROJECT, rows, NOW) == rows[1:]


def test_a_scanned_command_says_when_it_ran() -> None:
    """What somebody set is told as it is."""
    assert [row["last_run"] for row in after_runs(("npm test", ""))] == ["ran 1d ago"]
    assert [row.get("last_run") for row in after_runs(("npm test", ""), origin=None)] == [None]


def test_the_obvious_command_is_not_told_beside_a_fact_about_its_job() -> None:
    """Unless it failed, or its manifest changed; a fact about another job says nothing about it."""
    known = learned(NO_RUFF, Outcome(".venv/bin/ruff check", id=2))
    obvious = hint("make lint", SCANNED)
    others = [
        {**obvious, "stale": "x changed"},
        {**obvious, "outcome": "failed 1d ago"},
        hint("scripts/lint", SCANNED),
    ]
    others.append({**hint("make test", SCANNED), "name": "app/test"})
    assert drop_covered([obvious, *others], known) == others


def test_a_scanned_command_that_worked_before_is_told_as_it_is() -> None:
    """Its last failure is about what was being done then."""
    (found,) = after_runs(("npm test", ""), ("npm test", NO_CONFIG))
    (used,) = after_runs(*FAILED_TWICE, is_used=True)
    assert "outcome" not in found and "outcome" not in used


def test_a_scanned_command_whose_only_run_failed_is_not_told() -> None:
    """There is nothing to recommend; failed tests are no failure of it."""
    assert after_runs(("npm test", NO_CONFIG)) == []
    assert len(after_runs(("npm test", TESTS_FAILED))) == 1


@pytest.mark.parametrize(
    ("later", "instead"),
    [
        ([("npm install", ""), ("npm run unit 2>&1 | tail -15", "")], "npm run unit"),
        ([("npm run lint", ""), ("npx borp 'test/a b.js'", "")], "npx borp 'test/a b.js'"),
        ([("npm run test:unit", "")], "npm run test:unit"),
        ([("npm run unit", NO_CONFIG), ("grep -rn unit test", ""), ("npm run build", "")], None),
        ([], None),
    ],
)
def test_a_command_that_only_failed_says_what_worked_instead(later: list[tuple[str, str]], instead: str | None) -> None:
    """A command for the same job, after the failure and in its session, as it was run there."""
    (found,) = after_runs(*FAILED_TWICE, *later)
    assert (found["outcome"], found["instead"]) == ("has only failed here, last 1d ago", instead)


def test_what_worked_before_the_failure_is_not_what_worked_instead() -> None:
    """It shows nothing about how to go on."""
    (found,) = after_runs(("npm run unit", ""), *FAILED_TWICE)
    assert (found["outcome"], found["instead"]) == ("has only failed here, last 1d ago", None)
