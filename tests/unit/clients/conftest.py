"""A home with nothing in it, and an installed `nudge` that is a file and nothing more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nudge.cli import app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "NUDGE_DB",
        "NUDGE_CONFIG",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.chdir(home)
    return home


@pytest.fixture(autouse=True)
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that is on PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    script(directory / "nudge", "exit 0")
    return directory


@pytest.fixture
def executable(bin_directory: Path) -> str:
    return str(bin_directory / "nudge")


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def nudge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`nudge connect` and `nudge disconnect`, run in this process."""

    def run(name: str, *words: str) -> Outcome:
        capsys.readouterr()
        code = app.main([name, *words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What somebody at a terminal will type, line by line."""
    typed: list[str] = []

    class Keyboard:
        closed = False

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed.pop(0) + "\n"

    monkeypatch.setattr("sys.stdin", Keyboard())
    return typed


def tree(directory: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every directory, every link."""
    found: dict[str, bytes | None] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found
