"""What can be run in a directory, by its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.learning.availability import as_typed, can_run


def only(*programs: str) -> dict[str, str]:
    """A PATH with these."""
    return {program: f"/usr/bin/{program}" for program in programs}


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """A repo with an environment that has ruff and the module build."""
    for path in (".venv/bin/ruff", ".venv/bin/python", ".venv/lib/python3.12/site-packages/build/x", "web/run.sh"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return str(tmp_path)


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("make test", "make test"),
        ("ruff check .", ".venv/bin/ruff check ."),
        ("python -m build", ".venv/bin/python -m build"),
        ("python -m unittest", ".venv/bin/python -m unittest"),
        ("python -m tox", None),
        ("httpx", None),
        ("cd web && ./run.sh", "cd web && ./run.sh"),
        ("cd web && ./gone.sh", None),
    ],
)
def test_a_command_is_typed_as_it_can_be_run(repo: str, line: str, typed: str | None) -> None:
    """With the path of the project's environment where PATH does not have it; not at all where nothing has it."""
    assert as_typed(line, repo, only("make").get) == typed


def test_a_program_is_looked_for_where_its_line_goes(repo: str) -> None:
    """Behind `cd`, and only there."""
    assert can_run("cd web && ./run.sh", repo) and not can_run("./run.sh", repo) and not can_run("", repo)
