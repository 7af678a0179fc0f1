"""What a failure and the success after it teach, and what teaches nothing."""

from __future__ import annotations

import pytest

from nudge.history.problems import CALL, MODULE, OPTION, PATH, PROGRAM, LessonFinder, Outcome, find_problem
from nudge.history.shell import split_commands


def ok(command: str) -> Outcome:
    return Outcome(command)


def failed(command: str, error: str) -> Outcome:
    return Outcome(command, f"Exit code 1\n{error}")


NO_PYTEST = failed("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest")
NO_FILE = failed(
    "pytest tests/test_domain_python.py", "ERROR: file or directory not found: tests/test_domain_python.py"
)


def lessons(*outcomes: Outcome) -> list[tuple[str, str, str]]:
    trail = LessonFinder()
    learned = [
        lesson
        for outcome in outcomes
        for lesson in trail.add(outcome, find_problem(outcome), split_commands(outcome.command))
    ]
    return [(*lesson.problem.key, lesson.answer) for lesson in learned]


def test_another_invocation_of_the_same_tool() -> None:
    """`python -m pytest` has no pytest, `pytest` works."""
    assert lessons(NO_PYTEST, ok("which pytest"), ok("pytest tests/a.py")) == [
        (MODULE, "/usr/bin/python3 -m pytest", "pytest")
    ]


def test_a_tool_that_ran_and_found_failures_works() -> None:
    """Tests that fail are the tests' matter: the invocation is right."""
    assert lessons(NO_PYTEST, failed("pytest tests/a.py", "1 failed in 0.03s")) == [
        (MODULE, "/usr/bin/python3 -m pytest", "pytest")
    ]


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


def test_an_install_first() -> None:
    """The same invocation after an install: the install is the answer."""
    missing = failed("tox -e py311", "bash: line 1: tox: command not found")
    assert lessons(missing, ok("pip install tox"), ok("tox -e py311")) == [(PROGRAM, "tox", "pip install tox")]


@pytest.mark.parametrize(
    ("install", "learned"),
    [
        (".venv/bin/pip install -q mypy==1.13.0", []),
        (".venv/bin/python -m pip install mypy", []),
        ("pip install mypy", [".venv/bin/mypy"]),
        (".venv/bin/pip install types-requests", [".venv/bin/mypy"]),
    ],
)
def test_a_module_that_was_installed_is_not_missing(install: str, learned: list[str]) -> None:
    """After an install into that very interpreter, the first invocation works as well as any other."""
    missing = failed(".venv/bin/python -m mypy src", "/a/.venv/bin/python: No module named mypy")
    assert [answer for *_, answer in lessons(missing, ok(install), ok(".venv/bin/mypy src"))] == learned


@pytest.mark.parametrize("right", ["tests/test_domain_py.py", "sphinx/tests/test_domain_python.py"])
def test_another_path_of_the_same_name(right: str) -> None:
    """Nearly the same name in the directory, or the same name in another."""
    assert lessons(NO_FILE, ok("ls tests"), ok(f"pytest {right}::test_x")) == [
        (PATH, "tests/test_domain_python.py", right)
    ]


def test_an_option_that_is_not_known() -> None:
    """The same command without it."""
    unknown = failed("pytest -n 4 tests", "pytest: error: unrecognized arguments: -n 4")
    assert lessons(unknown, ok("pytest tests")) == [(OPTION, "pytest -n", "pytest tests")]


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
        ok("make test"),
    ],
)
def test_silence_is_the_default(outcome: Outcome) -> None:
    """Failed tests, the agent's own scripts, linters, empty searches, timeouts and scratch files teach nothing."""
    assert find_problem(outcome) is None


def test_what_the_agent_made_itself_is_no_fact() -> None:
    """A path that it creates later was not missing, and one that it created is no answer."""
    assert lessons(NO_FILE, ok("touch tests/test_domain_python.py"), ok("pytest tests/test_domain_py.py")) == []
    assert lessons(NO_FILE, ok("cp x tests/test_domain_py.py"), ok("pytest tests/test_domain_py.py")) == []


def test_a_fix_is_looked_for_only_nearby() -> None:
    """What is run a hundred commands later has nothing to do with the failure."""
    assert lessons(NO_PYTEST, *[ok("ls")] * 20, ok("pytest tests/a.py")) == []


def test_nothing_is_learned_from_redacted_values() -> None:
    """A command that is not whole teaches nothing, and is no answer."""
    hidden = failed("TOKEN=[REDACTED:token] tox -e py", "bash: line 1: tox: command not found")
    assert lessons(hidden, ok("python -m tox -e py")) == []
    missing = failed("tox -e py", "bash: line 1: tox: command not found")
    assert lessons(missing, ok("TOKEN=[REDACTED:token] python -m tox -e py")) == []


def test_a_failure_behind_a_pipe_is_a_failure() -> None:
    """Its error is what was printed; the exit code was that of `tail`."""
    hidden = Outcome("/usr/bin/python3 -m pytest tests | tail -5", "/usr/bin/python3: No module named pytest")
    assert lessons(hidden, ok("pytest tests | tail -5")) == [(MODULE, "/usr/bin/python3 -m pytest", "pytest")]


@pytest.mark.parametrize("right", ["DOCKER=1 make test", "cd web && make test"])
def test_a_variable_or_a_directory(right: str) -> None:
    """The same words end well soon after, with a variable or behind `cd`."""
    failing = failed("make test", "make: *** No rule to make target 'test'.  Stop.")
    assert lessons(failing, ok("ls"), ok(right)) == [(CALL, "make test", right)]
    assert lessons(failing, ok("vi a"), ok("vi b"), ok("vi c"), ok(right)) == []
    assert lessons(failing, ok(f"{right} && echo done")) == []
    assert lessons(failing, failed(right, "1 failed")) == []
