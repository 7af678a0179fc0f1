"""What is shown as a command is a part of a line that ran, byte for byte: on a failure, at a start, as a hint, in the
lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.learning.command import CUT_OFF
from nudge.learning.shell import parse_commands
from nudge.storage import spool
from tests.contract.repos import clone
from tests.harness import Machine, eventually

_NO_PYTEST = "Exit code 127\n/bin/bash: line 1: pytest: command not found"
_NO_MODULE = "Exit code 1\n/usr/bin/python3: No module named pytest"
# What failed, why, what worked, and what an earlier version made of that.
CASES = {
    "a quoted operator": (
        "rg --hiden '->' src",
        "Exit code 2\nerror: unrecognized flag --hiden",
        "rg '->' src",
        "rg -> src",
    ),
    "a command in a variable": (
        "pytest",
        _NO_PYTEST,
        "MSG='done; rm -rf ~/build' uv run pytest",
        "MSG=done; rm -rf ~/build uv",
    ),
    "options in a variable": (
        "/usr/bin/python3 -m pytest",
        _NO_MODULE,
        "PYTEST_ADDOPTS='-x --tb=short' python3 -m pytest",
        "PYTEST_ADDOPTS=-x --tb=short python3",
    ),
    "a variable behind a target": (
        "make deploy",
        "Exit code 2\nmake: *** No rule to make target 'deploy'.  Stop.",
        "make deploy-staging DRY_RUN=1",
        'make deploy-staging"',
    ),
    "a file before a target": (
        "make check",
        "Exit code 2\nmake: *** No rule to make target 'check'.  Stop.",
        "make -f ci/tests.mk check",
        'make -f ci/tests.mk"',
    ),
    "a part of a line": (
        "make test",
        "Exit code 2\nmake: *** No rule to make target 'test'.  Stop.",
        "cd web && FOO='a b' make test 2>&1 | tail -5",
        "FOO=a b make",
    ),
    "an exported variable": (
        "make test",
        "Exit code 1\nDATABASE_URL is not set",
        "export DATABASE_URL='sqlite:///a b.db' && make test",
        "\"DATABASE_URL='sqlite:///a b.db' make test",
    ),
    "spaces and quotes": (
        "pytest 'tests/a b.py'",
        _NO_PYTEST,
        'uv  run "pytest" \'tests/a b.py\' -k "x or y"',
        "uv run pytest",
    ),
}


def _record(machine: Machine, session: str, cwd: str, command: str, error: str = "") -> str:
    event: dict[str, Any] = {
        "session_id": session,
        "cwd": cwd,
        "tool_name": "Bash",
        "tool_use_id": f"{session} {command}",
        "tool_input": {"command": command},
        "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
        **({"error": error} if error else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}),
    }
    done = machine.cli("record", stdin=json.dumps(event))
    assert done.returncode == 0, done.stderr
    eventually(lambda: not spool.pending(machine.runtime), "the event is stored")
    return done.stdout


def _repo(machine: Machine) -> str:
    """A clone in which the commands of the cases exist."""
    repo = Path(clone(machine.base / "api"))
    for folder in ("web", "ci", "src", "tests"):
        (repo / folder).mkdir()
    return str(repo)


def _everything_told(machine: Machine, repo: str, failed: str, error: str) -> str:
    """All that a person or an agent reads about what was learned."""
    told = "".join(_record(machine, f"later-{number}", repo, failed, error) for number in range(3))
    for command in (("inject",), ("learned", "--all-projects"), ("ls",), ("get", "api", "test"), ("told",), ("stats",)):
        told += machine.cli(*command, cwd=repo).stdout
    return told


def _words(line: str) -> list[tuple[str, ...]]:
    return [(*command.variables, *command.words) for command in parse_commands(line)]


def assert_is_part(told: str, line: str) -> None:
    """What is told stands in the line, and each of its commands is one of the line, or the beginning of one."""
    text = told.removesuffix(CUT_OFF)
    assert text in line
    *whole, last = _words(text)
    assert all(words in _words(line) for words in whole)
    assert any(words[: len(last)] == last for words in _words(line)), told
    assert last in _words(line) or told.endswith(CUT_OFF), told


@pytest.mark.parametrize("case", CASES)
def test_a_command_is_told_as_it_ran(machine: Machine, case: str) -> None:
    """Or not at all: with its quotes, its variables and all that stands between its first word and its last."""
    failed, error, worked, mangled = CASES[case]
    repo = _repo(machine)
    machine.prepared_server()
    for session in ("s1", "s2"):
        _record(machine, session, repo, failed, error)
        _record(machine, session, repo, worked)
    for fact in machine.json("learned", "--all-projects")["facts"]:
        assert_is_part(fact["answer"], worked)
        assert_is_part(fact["subject"] + CUT_OFF, failed)
    for hint in machine.json("query", "--component", "api", cwd=repo)["hints"]:
        assert_is_part(hint["hint"]["value"]["cmd"] + CUT_OFF, worked)
    assert mangled not in _everything_told(machine, repo, failed, error)


@pytest.mark.parametrize(
    ("worked", "told"),
    [
        ("make deploy-staging DRY_RUN=1", "make deploy-staging DRY_RUN=1"),
        ("make deploy-staging -j 2 services/api", "make deploy-staging -j 2 …"),
        ("make deploy-staging DRY_RUN=1 services/api", "make deploy-staging DRY_RUN=1 …"),
    ],
)
def test_an_argument_that_changes_what_is_done_is_told(machine: Machine, worked: str, told: str) -> None:
    """Only paths and the choice of tests are left out, and only at the end: without `DRY_RUN=1` it would deploy."""
    repo = _repo(machine)
    machine.prepared_server()
    error = "Exit code 2\nmake: *** No rule to make target 'deploy'.  Stop."
    for session in ("s1", "s2"):
        _record(machine, session, repo, "make deploy", error)
        _record(machine, session, repo, worked)
    assert (
        f'"{told}"'
        in json.loads(_record(machine, "s3", repo, "make deploy", error))["hookSpecificOutput"]["additionalContext"]
    )
    assert machine.json("get", "api", "deploy", cwd=repo)["hint"]["value"]["cmd"] == told.removesuffix(CUT_OFF)


def test_a_command_with_an_absolute_path_is_told_as_it_ran(machine: Machine) -> None:
    """The path is not made relative: that command never ran."""
    repo = _repo(machine)
    machine.prepared_server()
    worked = f"cd {repo}/web && {repo}/.venv/bin/pytest tests/a.py"
    for session in ("s1", "s2"):
        _record(machine, session, repo, "pytest tests/a.py", _NO_PYTEST)
        _record(machine, session, repo, worked)
    for fact in machine.json("learned", "--all-projects")["facts"]:
        assert_is_part(fact["answer"], worked)
    assert '"cd web && ' not in _everything_told(machine, repo, "pytest tests/a.py", _NO_PYTEST)


def test_a_command_with_a_secret_is_not_told(machine: Machine) -> None:
    """Neither with what stands for the secret, nor without it."""
    repo = _repo(machine)
    machine.prepared_server()
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for session in ("s1", "s2"):
        _record(machine, session, repo, "make publish", "Exit code 1\nGH_TOKEN is not set")
        _record(machine, session, repo, f"GH_TOKEN={token} make publish")
    told = _everything_told(machine, repo, "make publish", "Exit code 1\nGH_TOKEN is not set")
    assert "GH_TOKEN=" not in told and token not in told


def test_a_start_does_not_contradict_itself(machine: Machine) -> None:
    """What a later session found to fail is not recommended beside that: neither as what works instead of something
    else, nor as a hint."""
    repo = _repo(machine)
    (Path(repo) / "pytest.ini").write_text("[pytest]\n")
    machine.cli("scan", cwd=repo)
    for session in ("s1", "s2"):
        _record(machine, session, repo, "pytest", _NO_PYTEST)
        _record(machine, session, repo, "python3 -m pytest")
    for session in ("s3", "s4"):
        _record(
            machine, session, repo, "python3 -m pytest", "Exit code 1\npsycopg.OperationalError: connection refused"
        )
        _record(machine, session, repo, "uv run pytest")
    lines = machine.cli("inject", cwd=repo).stdout.splitlines()
    failing = [line for line in lines if '"python3 -m pytest" fails here' in line]
    recommended = [line for line in lines if '"python3 -m pytest" runs' in line or ': "python3 -m pytest' in line]
    assert len(failing) == 1 and recommended == []
    assert '"uv run pytest" runs the tests' in failing[0]
