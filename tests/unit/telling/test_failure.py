"""The answer to a failure that nothing was learned about."""

from __future__ import annotations

from typing import Any

import pytest

from nudge.learning.facts import Facts
from nudge.learning.outcome import Outcome
from nudge.learning.unanswered import Unanswered
from nudge.telling.failure import hint_answer, manifest_answer
from nudge.telling.hint_selection import GUESSED, SCANNED

MISSING = "Exit code 127\nbash: line 1: {}: command not found"


def failed(line: str, error: str = "", *before: tuple[str, str], code: int = 127) -> Unanswered | None:
    """The failure of a line after others of the session; by default its program is missing."""
    facts = Facts()
    for number, (command, printed) in enumerate(before, 1):
        facts.observe("api", "s", Outcome(command, printed, 1 if printed else 0, number), 0, 0)
    return facts.unanswered(
        "s", Outcome(line, error or MISSING.format(line.split()[0]), code, 9, "/x/api/web", "/x/api")
    )


def hint(value: str, name: str = "api/test", origin: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "origin": origin, "reason": "", "is_used": False, "stale": None, **fields}


def answer(line: str, *hints: dict[str, Any], error: str = "") -> str | None:
    unanswered = failed(line, error)
    assert unanswered is not None
    told = hint_answer(unanswered, hints, "example.com/org/api")
    return told.name if told is not None else None


@pytest.mark.parametrize(
    ("line", "error", "code"),
    [
        ("pytest", "Exit code 1\nFAILED tests/a.py::b - assert 1 == 2", 1),
        ("pytest", "Exit code 4\nerror: unrecognized arguments: --foo", 1),
        ("pytest", "Exit code 124\ntimed out", 124),
        ("npm install", "Exit code 1\nnpm ERR! code ECONNRESET", 1),
        ("ls web", "Exit code 2\nls: cannot access 'web': No such file or directory", 2),
        ("pytest", "Exit code 2\nModuleNotFoundError: No module named 'api.taxes'", 2),
        ("pytest | tail", MISSING.format("pytest"), 0),
    ],
)
def test_what_no_other_way_helps_is_left_alone(line: str, error: str, code: int) -> None:
    """Own work, options, chance, commands without a job, modules that no manifest names, and what did not fail."""
    assert failed(line, error, code=code) is None


def test_a_missing_program_is_told_from_what_it_lacks() -> None:
    """`python3 -m pytest` lacks its program, `pytest` its database."""
    for line, error, is_missing in (
        ("pytest -q", MISSING.format("pytest"), True),
        ("python3 -m pytest", "Exit code 1\n/usr/bin/python3: No module named pytest", True),
        ("pytest", "Exit code 1\nredis.exceptions.ConnectionError: Connection refused", False),
        ("make test", MISSING.format("docker"), False),
    ):
        unanswered = failed(line, error)
        assert unanswered is not None and unanswered.is_missing is is_missing, line


def test_an_error_is_answered_once() -> None:
    """Not by another line either; another error may be, by a line that is new."""
    facts = Facts()
    one, other = failed("pytest"), failed("tox -e test")
    assert one is not None and other is not None
    assert facts.claim("s", "api/test", one)
    assert not facts.claim("s", "api/other", one) and not facts.claim("s", "api/test", other)
    assert facts.claim("s", "api/other", other) and facts.claim("t", "api/test", one)


def test_a_hint_that_somebody_set_or_that_worked_is_told() -> None:
    """What scan found is told as what the manifest says, or not at all."""
    assert answer("pytest", hint("make test")) == "api/test"
    assert answer("pytest", hint("make test", origin=SCANNED)) is None
    assert answer("pytest", hint("make test", origin=SCANNED, is_used=True)) == "api/test"
    assert answer("pytest", hint("pytest -q", origin=GUESSED, is_used=True)) is None


def test_a_hint_that_just_failed_is_not_told() -> None:
    """Whether it is what failed now or shortly before; with a variable it is another command."""
    assert answer("pytest -q tests", hint("pytest")) is None
    assert answer("pytest", hint("DB=1 pytest")) == "api/test"
    unanswered = failed("pytest", "", ("make test", "Exit code 2\nmake: docker: command not found"))
    assert unanswered is not None and hint_answer(unanswered, [hint("make test")], "api") is None


def test_of_several_components_the_one_at_hand_is_meant() -> None:
    """That of the directory, else that of the repo; where neither is known, nothing is told."""
    web, api = hint("npm test", "web/test"), hint("make test")
    other, third = hint("go test ./...", "worker/test"), hint("cargo test", "cli/test")
    assert answer("pytest", other, web, api) == "web/test"
    assert answer("pytest", other, api) == "api/test"
    assert answer("pytest", other, third) is None
    assert answer("pytest", third) == "cli/test"


def test_linters_do_not_stand_in_for_each_other() -> None:
    """A target or a script may run the one that is missing, another linter does not."""
    assert answer("mypy src", hint("uvx ruff check", "api/lint")) is None
    assert answer("mypy src", hint("make lint", "api/lint")) == "api/lint"
    assert answer("ruff check", hint("uvx ruff check", "api/lint")) == "api/lint"


def test_a_secret_and_a_long_value_are_not_told() -> None:
    """The line has the command that prints them."""
    unanswered = failed("pytest")
    assert unanswered is not None
    told = hint_answer(unanswered, [{**hint("x"), "value": None}], "api")
    assert told is not None and told.text == "hint api/test: a secret; read it with: nudge get api test --value-only"
    told = hint_answer(unanswered, [hint("make " + "x" * 300)], "api")
    assert told is not None and told.text == "hint api/test: long; read it with: nudge get api test"


@pytest.mark.parametrize(
    ("line", "command", "recipe", "is_plain", "told"),
    [
        ("pytest", "make test", "test:\n\tuv run pytest", True, "Makefile:4 has: make test"),
        ("pytest", "make test", "test:\n\t@pytest -q", True, None),
        ("jest", "npm run test", '"test": "jest"', False, "Makefile:4 has: npm run test"),
        ("pytest", "pytest -q", "", False, None),
        ("pytest", "uv run pytest -k 'a and b'", "", False, "Makefile:4 has: \"uv run pytest -k 'a and b'\""),
        ("ruff check", "make lint", "lint:\n\tuvx ruff check", True, "Makefile:4 has: make lint"),
        ("mypy src", "make lint", "lint:\n\tuvx ruff check", True, None),
    ],
)
def test_a_manifest_is_told_as_what_it_is(
    line: str, command: str, recipe: str, is_plain: bool, told: str | None
) -> None:
    """With file and line; not where it needs the program that is missing, or runs another linter."""
    unanswered = failed(line)
    assert unanswered is not None
    found = manifest_answer(unanswered, command, "Makefile:4", recipe, is_plain=is_plain)
    assert (found and found.text) == told
