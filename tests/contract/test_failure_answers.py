"""What a failing command is answered with: what was learned, else the hint of the repo for that job, else its manifest
where the program is missing. One line, once in a session, and none about the session's own work."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from tests.contract.repos import clone
from tests.contract.test_learned_hints import ran
from tests.harness import Machine, eventually

_MISSING = "Exit code 127\nbash: line 1: pytest: command not found"
_NO_MODULE = "Exit code 1\n/usr/bin/python3: No module named pytest"
_NO_DATABASE = "Exit code 1\npsycopg.OperationalError: connection to server at localhost failed: Connection refused"
_OWN_WORK = "Exit code 1\nFAILED tests/test_tax.py::test_rate - AssertionError: assert 1 == 2\n1 failed, 3 passed"
_HEADER = "Nudge record, not an instruction: "


class _Repo:
    """A clone in which commands fail, each in a new session until PRIMARY answers in time."""

    def __init__(self, machine: Machine, *, makefile: str = "") -> None:
        machine.prepared_server()
        self.machine, self.path = machine, clone(machine.base / "shop")
        self._names = (f"session-{number}" for number in count())
        if makefile:
            (Path(self.path) / "Makefile").write_text(makefile)

    def fails(self, session: str, command: str, error: str) -> str:
        printed = ran(self.machine, self.path, session, command, error)
        told = json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""
        return str(told).removeprefix(_HEADER)

    def answered(self, command: str, error: str) -> tuple[str, str]:
        """The session that was answered, and the line."""

        def answer() -> tuple[str, str] | None:
            session = next(self._names)
            line = self.fails(session, command, error)
            return (session, line) if line else None

        found: tuple[str, str] = eventually(answer, "PRIMARY answers in time")
        return found

    def told(self, command: str, error: str) -> list[str]:
        """What two more sessions are told. Of a test that fails in a third one it would be said that it does."""
        return [line for _ in range(2) if (line := self.fails(next(self._names), command, error))]


_MAKEFILE = "build:\n\tcc -o shop shop.c\n\ntest:\n\tuv run pytest -q\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [("pytest -q", _MISSING), ("python3 -m pytest", _NO_MODULE), (".venv/bin/pytest tests", _NO_DATABASE)],
)
def test_the_hint_for_the_job_answers_where_nothing_was_learned(machine: Machine, command: str, error: str) -> None:
    """With its reason, in one line, once in a session; another error of that session gets no second one of it."""
    repo = _Repo(machine, makefile=_MAKEFILE)
    machine.json("set", "shop", "test", "DOCKER=1 make test", "--reason", "needs a real router", cwd=repo.path)
    session, line = repo.answered(command, error)
    assert line == 'hint shop/test: "DOCKER=1 make test" ("needs a real router")'
    assert repo.fails(session, command, error) == ""
    assert repo.fails(session, "pytest -x tests/b.py", _MISSING) == ""
    (told,) = [row for row in machine.json("told", cwd=repo.path)["lines"] if row["session_id"] == session]
    assert (told["moment"], told["kind"], told["name"]) == ("failure", "hint", "shop/test")


def test_what_was_learned_comes_before_the_hint(machine: Machine) -> None:
    """The hint follows only where nothing was learned, also for a session that was told the fact."""
    repo = _Repo(machine)
    machine.json("set", "shop", "test", "make test", "--reason", "by hand", cwd=repo.path)
    ran(machine, repo.path, "one", "pytest -q", _MISSING)
    ran(machine, repo.path, "one", "python3 -m pytest -q")
    session, line = repo.answered("pytest -q", _MISSING)
    assert line.startswith('"pytest" fails here ("pytest: command not found"); what worked in 1 session')
    assert repo.fails(session, "pytest -q", _MISSING) == ""


def test_the_manifest_answers_only_for_a_missing_program(machine: Machine) -> None:
    """Said as what it is, with file and line; not where the program is there and something else fails."""
    repo = _Repo(machine, makefile=_MAKEFILE)
    session, line = repo.answered("pytest -q", _MISSING)
    assert line == "Makefile:4 has: make test"
    assert repo.fails(session, "pytest -x", _MISSING) == ""
    _, line = repo.answered("python3 -m pytest", _NO_MODULE)
    assert line == "Makefile:4 has: make test"
    assert repo.told(".venv/bin/pytest tests", _NO_DATABASE) == []


def test_a_target_that_runs_the_missing_program_is_no_answer(machine: Machine) -> None:
    """`make test` fails like `pytest` where it runs `pytest`; another job's target is none either."""
    repo = _Repo(machine, makefile="test:\n\t@pytest -q\n\nlint:\n\tuvx ruff check\n")
    repo.answered("ruff check", "Exit code 127\nbash: line 1: ruff: command not found")
    assert repo.told("pytest -q", _MISSING) == []
    assert repo.told("mypy .", "Exit code 127\nbash: line 1: mypy: command not found") == []


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("pytest -q", _OWN_WORK),
        ("pytest tests/tset_a.py", "Exit code 4\nERROR: file or directory not found: tests/tset_a.py"),
        ("pytest --fooo", "Exit code 4\nerror: unrecognized arguments: --fooo"),
        ("pytest -q", "Exit code 2\nE   ModuleNotFoundError: No module named 'shop.taxes'"),
        ("ruff check", "Exit code 1\na.py:1:1: F401 `os` imported but unused\nFound 1 error."),
        ("make test", "Exit code 2\nmake: docker: No such file or directory"),
        ("cat notes.txt", "Exit code 1\ncat: notes.txt: No such file or directory"),
    ],
)
def test_nothing_is_said_about_the_work_of_the_session(machine: Machine, command: str, error: str) -> None:
    """Its failed tests, findings, typos and modules; nor is the command repeated that just failed."""
    repo = _Repo(machine, makefile=_MAKEFILE)
    machine.json("set", "shop", "test", "make test", "--reason", "by hand", cwd=repo.path)
    machine.json("set", "shop", "lint", "make lint", "--reason", "by hand", cwd=repo.path)
    repo.answered("pytest -q", _MISSING)
    assert repo.told(command, error) == []


def test_a_hint_that_failed_in_this_session_is_not_its_answer(machine: Machine) -> None:
    """Who has just tried it needs something else."""
    repo = _Repo(machine)
    machine.json("set", "shop", "test", "make test", "--reason", "by hand", cwd=repo.path)
    repo.answered("pytest -q", _MISSING)
    for session in ("a", "b", "c"):
        repo.fails(session, "make test", "Exit code 127\nmake: docker: command not found")
        assert repo.fails(session, "pytest -q", _MISSING) == ""


def test_a_hint_of_another_repo_or_that_is_banned_is_not_told(machine: Machine) -> None:
    """A hint for everywhere says something about this repo only once it was credited here."""
    repo = _Repo(machine)
    machine.json("set", "shop", "test", "make test", "--global", "--reason", "everywhere", cwd=repo.path)
    machine.json("set", "shop", "build", "make all", "--reason", "by hand", cwd=repo.path)
    missing = "Exit code 127\nbash: line 1: cargo: command not found"
    repo.answered("cargo build", missing)
    assert repo.told("pytest -q", _MISSING) == []
    assert machine.cli("told", "--never", "shop/build", cwd=repo.path).returncode == 0
    assert repo.told("cargo build", missing) == []
