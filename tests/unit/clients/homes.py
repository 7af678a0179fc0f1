"""A home with nothing in it, and an installed `nudge` that is a file and nothing more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def only_nudge_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one directory on PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    script(directory / "nudge", "exit 0")
    return directory


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def tree(directory: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every directory, every link."""
    result: dict[str, bytes | None] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        result[name] = (
            os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        )
    return result
