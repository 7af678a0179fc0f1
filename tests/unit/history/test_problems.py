"""Which failures say what is missing, and which say nothing."""

from __future__ import annotations

import pytest

from nudge.history.problems import OPTION, Outcome, find_problem


def failed(command: str, error: str) -> Outcome:
    return Outcome(command, f"Exit code 1\n{error}")


NO_PYTEST = failed("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest")


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (NO_PYTEST, "No module named pytest"),
        (failed("pytest", "/bin/bash: line 1: pytest: command not found"), "pytest: command not found"),
        (failed("pytest", "bash: pytest: command not found"), "pytest: command not found"),
        (failed("eslint", "sh: 1: eslint: not found"), "eslint: not found"),
    ],
)
def test_the_error_begins_with_its_cause(outcome: Outcome, cause: str) -> None:
    """Little of it is told: neither the path of the interpreter nor the shell and its line."""
    problem = find_problem(outcome)
    assert problem is not None and problem.error == cause


@pytest.mark.parametrize(
    "outcome",
    [
        failed("pytest tests/a.py", "1 failed, 3 passed in 0.2s"),
        failed("python repro.py", "Traceback ...\nModuleNotFoundError: No module named 'dummy'"),
        failed("python repro.py", "SyntaxError: invalid syntax"),
        failed("pylint a.py", "Your code has been rated at 5.00/10"),
        failed("grep -rn nothing src/", ""),
        failed("sleep 100", "Command timed out after 1m 0s"),
        failed("cat /tmp/debug.log", "cat: /tmp/debug.log: No such file or directory"),
        Outcome("make test"),
    ],
)
def test_silence_is_the_default(outcome: Outcome) -> None:
    """Failed tests, the agent's own scripts, linters, empty searches, timeouts and scratch files teach nothing."""
    assert find_problem(outcome) is None


@pytest.mark.parametrize(
    ("command", "error", "subject"),
    [
        ("cargo test --foo", "error: unexpected argument '--foo' found", "cargo test --foo"),
        ("go test -foo ./...", "flag provided but not defined: -foo", "go test -foo"),
        ("git log --foo", "fatal: unrecognized argument: --foo", "git log --foo"),
        ("git push --foo", "error: unknown option `foo'", "git push --foo"),
        ("npx eslint --ext .ts src", "Invalid option '--ext' - perhaps you meant '-c'?", "eslint --ext"),
        ("npx vitest --foo", "CACError: Unknown option `--foo`", "vitest --foo"),
        ("npx tsc --foo", "error TS5023: Unknown compiler option '--foo'.", "tsc --foo"),
    ],
)
def test_an_option_that_another_tool_does_not_know(command: str, error: str, subject: str) -> None:
    """Each says it in its own words; a subcommand is part of what is called."""
    problem = find_problem(failed(command, error))
    assert problem is not None and problem.key == (OPTION, subject)
