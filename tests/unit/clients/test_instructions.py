"""Which files of a repo each client reads by itself when a session starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.clients.instructions import read_instructions


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {
        ".git/HEAD": "ref: refs/heads/main\n",
        "CLAUDE.md": "claude\n@docs/how.md and me@example.org\n@../outside.md\n",
        "docs/how.md": "how\n@../CLAUDE.md\n",
        "AGENTS.md": "agents\n",
        "GEMINI.md": "gemini\n",
        ".cursor/rules/always.mdc": "---\nalwaysApply: true\n---\nalways\n",
        ".cursor/rules/some.mdc": "---\nglobs: '*.py'\n---\nsome\n",
        "web/CLAUDE.md": "web\n",
    }
    for name, text in files.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "outside.md").write_text("outside\n")
    (tmp_path / "CLAUDE.md").write_text("above\n")
    return tmp_path / "shop"


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("claude-code", {"web", "claude", "how"}),
        ("codex", {"agents"}),
        ("gemini", {"gemini"}),
        ("opencode", {"agents", "web"}),
        ("cursor", {"always", "agents"}),
        ("windsurf", set()),
        ("unknown", set()),
        (None, set()),
    ],
)
def test_each_client_reads_its_own_files_up_to_the_top_of_the_repo(
    repo: Path, client: str | None, words: set[str]
) -> None:
    known = {"web", "claude", "how", "agents", "gemini", "always", "some", "outside", "above"}
    assert known & set(read_instructions(client, str(repo / "web")).split()) == words


def test_outside_of_a_repo_and_in_a_directory_that_is_gone_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("text")
    assert read_instructions("claude-code", str(tmp_path / "gone")) == ""
    assert read_instructions("claude-code", None) == ""


def test_a_pipe_in_place_of_a_file_is_passed_by(repo: Path) -> None:
    (repo / "GEMINI.md").unlink()
    os.mkfifo(repo / "GEMINI.md")
    assert read_instructions("gemini", str(repo)) == ""
