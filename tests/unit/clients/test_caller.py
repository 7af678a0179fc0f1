"""What clients say about the caller of a tool: its directory and its session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nudge import limits
from nudge.clients.caller import note_source, project_directory, session


def codex(workspaces: Any) -> dict[str, Any]:
    return {"x-codex-turn-metadata": {"turn_id": "t", "workspaces": workspaces}}


CLAUDE = {"CLAUDE_PROJECT_DIR": "/from/claude"}
SILENT_TURNS: list[Any] = [None, 3, [], "not json", "[" * 100_000, "3"]
SILENT_WORKSPACES: list[Any] = [None, 3, [], {}, ["relative"], [[[[["/too/deep"]]]]]]


def test_a_call_is_nearer_than_the_environment() -> None:
    """Codex names its project with each call; a server that Claude Code started has it in a variable."""
    assert project_directory(CLAUDE, codex({"/from/codex": {}})) == "/from/codex"
    assert project_directory(CLAUDE, None) == "/from/claude"
    assert project_directory({}, None) is None


@pytest.mark.parametrize(
    "workspaces",
    [
        {"/w/one": {"latest_git_commit_hash": "abc"}, "/w/two": {}},
        ["/w/one", "/w/two"],
        ["relative", {"path": "/w/one"}],
        [{"name": "x", "root": "/w/one"}],
        {"main": {"path": "/w/one"}},
        "/w/one",
    ],
)
def test_codex_workspaces_in_any_shape(workspaces: Any) -> None:
    """The first absolute path is the project; the metadata may also be JSON text."""
    meta = codex(workspaces)
    assert project_directory({}, meta) == "/w/one"
    assert project_directory({}, {name: json.dumps(value) for name, value in meta.items()}) == "/w/one"


@pytest.mark.parametrize(
    "meta",
    [["x"], *({"x-codex-turn-metadata": turn} for turn in SILENT_TURNS), *map(codex, SILENT_WORKSPACES)],
)
def test_metadata_that_says_nothing_is_ignored(meta: Any) -> None:
    """A client may send `_meta` of any JSON type; any other shape falls through to the next source."""
    assert project_directory(CLAUDE, meta) == "/from/claude"
    assert session(meta) is None


def test_a_relative_project_dir_is_ignored() -> None:
    """A variable that is no absolute path cannot say where the caller is."""
    assert project_directory({"CLAUDE_PROJECT_DIR": "."}, None) is None


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"sessionId": "s-1"}, "s-1"),
        ({"x-codex-turn-metadata": {"session_id": "s-2"}}, "s-2"),
        ({"sessionId": "", "x-codex-turn-metadata": '{"session_id": "s-2"}'}, "s-2"),
        ({"sessionId": "x" * (limits.MAX_SESSION_ID_CHARS + 1)}, None),
        ({"sessionId": "a\nb"}, None),
        ({"sessionId": 7}, None),
    ],
)
def test_the_session_of_a_call(meta: Any, expected: str | None) -> None:
    """Codex names it beside the metadata of the turn, and in it; what cannot be an id is ignored."""
    assert session(meta) == expected


@pytest.mark.parametrize(
    ("client", "source"),
    [("claude-code", "claude"), ("Claude-AI", "claude"), ("codex-mcp-client", "agent"), ("", "agent"), (None, "agent")],
)
def test_the_source_of_a_clients_notes(client: str | None, source: str) -> None:
    """Every client of Anthropic is Claude, whatever it adds to the name; the others are agents."""
    assert note_source(client) == source
