"""What a command's exit code says about a prediction in words."""

from __future__ import annotations

import pytest

from nudge.journal.predictions import judge
from nudge.learning.outcome import Outcome

TOKEN = "[REDACTED:github-token]"


@pytest.mark.parametrize(
    ("prediction", "command", "code", "expected"),
    [
        # Quoted, with more options than were predicted, and whichever way the tool is run
        ("`pytest tests/a.py` passes", "pytest tests/a.py", 0, True),
        ("`pytest tests/a.py` passes", ".venv/bin/python -m pytest -q tests/a.py", 0, True),
        ("`pytest tests/a.py` passes", "pytest tests/a.py", 1, False),
        ('"make test" is what I run', "make test", 0, True),
        ("`make test` passes", "make test JOBS=2", 0, True),
        # By its words
        ("make test passes", "make test", 0, True),
        ("then make test will succeed.", "cd api && make test", 2, False),
        ("make sure that it works", "make test", 0, None),
        ("I make test data", "make test", 0, None),
        ("pytest passes", "pytest -q", 0, True),
        # By a test's name
        ("test_login passes after the change", "pytest -q tests/test_auth.py::test_login", 0, True),
        ("tests/test_auth.py::test_login fails", "pytest tests/test_auth.py::test_login", 1, True),
        ("test_login passes", "pytest tests/test_auth.py::test_logout", 0, None),
        # Expected to fail, or with a code
        ("`make test` still fails", "make test", 2, True),
        ("`make test` still fails", "make test", 0, False),
        ("`make test` no longer fails", "make test", 0, True),
        ("`make test` doesn't fail any more", "make test", 2, False),
        ("`make lint` reports no errors", "make lint", 0, True),
        ("`make test` does not pass yet", "make test", 2, True),
        ("`./check` exits with code 3", "./check", 3, True),
        ("`./check` exits with code 3", "./check", 1, False),
        ("`make test` fails before the fix and passes after it", "make test", 0, None),
        # What covers more or less than predicted
        ("`pytest` passes", "pytest tests/a.py", 0, None),
        ("`pytest` passes", "pytest tests/a.py", 1, False),
        ("`pytest tests/a.py` passes", "pytest tests/a.py tests/b.py", 0, True),
        ("`pytest tests/a.py` passes", "pytest tests/a.py tests/b.py", 1, None),
        ("`python -m unittest` passes", "python -m unittest tests.a", 1, False),
        ("`pylint` passes", "pylint src", 1, False),
        ("`make` passes", "make clean", 0, None),
        ("`pytest -k slow tests` passes", "pytest tests", 0, None),
        # An exit code that is another command's
        ("`make test` passes", "make test | tail -5", 0, None),
        ("`make test` passes", "make test || true", 0, None),
        ("`make test` passes", "make test; echo done", 0, None),
        ("`make test` passes", "make test &", 0, None),
        ("`make test` passes", "make build && make test && make lint", 0, True),
        ("`make test` passes", "make build && make test && make lint", 2, None),
        ("`make test` passes", "make build && make test", 2, None),
        ("`make test` passes", ". ./env && make test", 2, False),
        # Nothing of it is said
        ("`make test` passes", "ls", 0, None),
        ("the cache is the cause", "make test", 0, None),
        ("`make test` passes", "", 0, None),
        # A secret teaches nothing
        (f"`deploy --token {TOKEN}` works", f"deploy --token {TOKEN}", 0, None),
    ],
)
def test_a_prediction_is_judged_by_the_command_it_names(
    prediction: str, command: str, code: int, expected: bool | None
) -> None:
    """Confirmed, falsified, or nothing where it is not clear that the command, its exit code and the words agree."""
    assert judge(prediction, Outcome(command, exit_code=code)) is expected
