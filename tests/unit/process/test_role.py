"""The role of a server at a terminal: what it tells the user to type."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nudge.process import role


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in the current directory, as in a fresh checkout, and an empty PATH."""
    program = tmp_path / "checkout/.venv/bin/nudge"
    program.parent.mkdir(parents=True)
    _make_executable(program)
    monkeypatch.setattr(sys, "executable", str(program.parent / "python"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path / "checkout")
    return program


def _make_executable(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_program_that_is_not_on_the_path(installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by its path: relative below the current directory, else absolute."""
    assert role._command() == ".venv/bin/nudge"
    monkeypatch.chdir(tmp_path / "bin")
    assert role._command() == str(installation)


def test_another_installation_on_the_path(installation: Path, tmp_path: Path) -> None:
    """`nudge` would start that one."""
    assert installation.exists()
    _make_executable(tmp_path / "bin/nudge")
    assert role._command() == ".venv/bin/nudge"


def test_this_installation_on_the_path(installation: Path, tmp_path: Path) -> None:
    """A link on PATH, as pipx makes one, is this installation."""
    (tmp_path / "bin/nudge").symlink_to(installation)
    assert role._command() == "nudge"


def test_an_installation_without_a_program_beside_python(installation: Path) -> None:
    """`pip install --user` puts the program elsewhere."""
    installation.unlink()
    assert role._command() == "nudge"
