"""Which client sent a hook's payload, and what it means in the words of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.clients import claude_code, registry
from tests.unit.history.payloads import extract, payload

MARK = "TEXT OF A FILE"
NOW = 1_800_000_000.7

SHOWN = [
    ({"transcript_path": "/home/u/.claude/projects/x.jsonl"}, {}, "claude-code"),
    ({"transcript_path": "C:\\Users\\u\\.claude\\x.jsonl"}, {}, "claude-code"),
    ({"transcript_path": "/home/u/.codex/sessions/x.jsonl"}, {"CLAUDECODE": "1"}, "codex"),
    ({"turn_id": "t"}, {"CLAUDECODE": "1"}, "codex"),
    ({"transcript_path": "/home/u/.gemini/tmp/x.json"}, {}, "gemini"),
    ({"hook_event_name": "AfterTool"}, {}, "gemini"),
    ({"hook_event_name": "afterFileEdit"}, {}, "cursor"),
    ({"cursor_version": "2"}, {"CLAUDECODE": "1"}, "cursor"),
    ({"client": "opencode"}, {}, "opencode"),
    ({"client": "nobody"}, {}, "unknown"),
    ({}, {"CLAUDECODE": "1"}, "claude-code"),
    ({}, {"AI_AGENT": "claude-code_2-1-325_harness"}, "claude-code"),
    ({}, {"GEMINI_CLI": "1"}, "gemini"),
    ({}, {}, "unknown"),
    ({"transcript_path": "/moved/codex/sessions/x.jsonl"}, {"CODEX_HOME": "/moved/codex", "CLAUDECODE": "1"}, "codex"),
    ({"transcript_path": "/moved/projects/x.jsonl"}, {"CLAUDE_CONFIG_DIR": "/moved"}, "claude-code"),
    ({"transcript_path": "/home/u/.cursor/x.jsonl"}, {"GEMINI_CLI_HOME": "/home/u"}, "cursor"),
]


@pytest.mark.parametrize(("shown", "environ", "client"), SHOWN)
def test_the_client_is_recognized_by_what_it_sends(shown: dict[str, Any], environ: dict[str, str], client: str) -> None:
    """The payload counts before the environment, which an agent that was started by another one inherits."""
    assert registry.detect({**payload("PostToolUse"), **shown}, environ).name == client


GEMINI = {
    "session_id": "g-1",
    "cwd": "/p",
    "transcript_path": "/home/u/.gemini/x.json",
    "timestamp": "2026-01-01T00:00:00Z",
}
CURSOR = {
    "conversation_id": "c-1",
    "generation_id": "g-1",
    "workspace_roots": ["/p"],
    "cursor_version": "2.0",
    "user_email": "u@x.dev",
}
OTHERS = [
    (GEMINI, "BeforeAgent", {"prompt": "hi"}, "user_prompt", "hi"),
    (
        GEMINI,
        "AfterTool",
        {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}, "tool_response": {"llmContent": "x"}},
        "command",
        "ls",
    ),
    (
        GEMINI,
        "AfterTool",
        {
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make"},
            "tool_response": {"llmContent": "Output: bad\nExit Code: 2\nSignal: (none)"},
        },
        "command_error",
        "make",
    ),
    (
        GEMINI,
        "AfterTool",
        {"tool_name": "write_file", "tool_input": {"file_path": "a"}, "tool_response": {"llmContent": "x"}},
        "file_write",
        "/p/a",
    ),
    (
        GEMINI,
        "AfterTool",
        {"tool_name": "replace", "tool_input": {"file_path": "a"}, "tool_response": {"error": {"message": "no"}}},
        "tool_other",
        "/p/a",
    ),
    (
        GEMINI,
        "AfterTool",
        {"tool_name": "search_file_content", "tool_input": {"pattern": "x"}, "tool_response": {}},
        "search",
        "x",
    ),
    (GEMINI, "PreCompress", {"trigger": "auto"}, "session_compact", "auto"),
    (GEMINI, "SessionStart", {"source": "resume"}, "session_start", "resume"),
    (GEMINI, "BeforeTool", {"tool_name": "write_file"}, None, None),
    (GEMINI, "AfterModel", {}, None, None),
    (CURSOR, "sessionStart", {"session_id": "c-1"}, "session_start", "startup"),
    (CURSOR, "beforeSubmitPrompt", {"prompt": "hi"}, "user_prompt", "hi"),
    (
        CURSOR,
        "postToolUse",
        {"tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_output": "x", "duration": 5},
        "command",
        "ls",
    ),
    (
        CURSOR,
        "postToolUseFailure",
        {"tool_name": "Shell", "tool_input": {"command": "ls"}, "error_message": "Exit code 1"},
        "command_error",
        "ls",
    ),
    (CURSOR, "afterShellExecution", {"command": "ls", "output": "x", "duration": 5}, "command", "ls"),
    (CURSOR, "afterFileEdit", {"file_path": "/p/a", "edits": [{"old_string": MARK}]}, "file_edit", "/p/a"),
    (
        CURSOR,
        "afterMCPExecution",
        {"tool_name": "get", "tool_input": '{"a": 1}', "result_json": MARK},
        "mcp_call",
        "get a=1",
    ),
    (CURSOR, "PostToolUse", {"tool_name": "Read", "tool_input": {"file_path": "/p/a"}}, "file_read", "/p/a"),
    (CURSOR, "preCompact", {"trigger": "auto"}, "session_compact", "auto"),
    (CURSOR, "beforeShellExecution", {"command": "ls"}, None, None),
    (CURSOR, "stop", {}, None, None),
]


@pytest.mark.parametrize(("common", "name", "fields", "kind", "content"), OTHERS)
def test_events_of_other_clients_are_translated(
    common: dict[str, Any], name: str, fields: dict[str, Any], kind: str | None, content: str | None
) -> None:
    """As their documentation has it: other names for events and tools, other places for ids."""
    event = extract({**common, "hook_event_name": name, **fields}, now=NOW)
    if kind is None:
        assert event is None
        return
    assert event is not None
    assert (event["type"], event["content"], event["source_event"]) == (kind, content, name)
    assert (event["cwd"], event["client"]) == ("/p", "gemini" if common is GEMINI else "cursor")
    assert MARK not in json.dumps(event) and "u@x.dev" not in json.dumps(event)


def test_each_client_has_the_name_that_it_is_listed_under() -> None:
    """A name on the command line, in an event and in the database means one client."""
    assert [client.name for client in registry.all_clients()] == list(registry.names())
    assert [registry.get(name).name for name in registry.names()] == list(registry.names())


@pytest.mark.parametrize(
    ("client", "name", "arguments", "kind", "content"),
    [
        ("opencode", "read", {"filePath": "/p/a"}, "file_read", "/p/a"),
        ("opencode", "list", {"path": "/p"}, "search", "/p"),
        ("gemini", "read_file", {"absolute_path": "/p/a"}, "file_read", "/p/a"),
        ("cursor", "Read", {"target_file": "/p/a"}, "file_read", "/p/a"),
        ("cursor", "Glob", {"glob_pattern": "*.py", "target_directory": "/p"}, "search", "*.py in /p"),
        ("codex", "exec_command", {"cmd": "ls"}, "command", "ls"),
        ("codex", "apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x"}, "file_write", "/p/a"),
    ],
)
def test_tools_and_arguments_have_other_names(
    client: str, name: str, arguments: dict[str, str], kind: str, content: str
) -> None:
    """Each client calls the same tool, and the same argument, by a name of its own."""
    fields = {"client": client, "cwd": "/p", "tool_name": name, "tool_input": arguments}
    event = extract({**payload("PostToolUse"), **fields}, now=NOW)
    assert event is not None
    assert (event["type"], event["content"], event["tool_name"]) == (kind, content, name)


def test_the_end_of_a_session_has_the_last_words(tmp_path: Path) -> None:
    """Of the session's own assistant, from the end of the transcript; damaged lines and missing files have none."""
    transcript = tmp_path / "t.jsonl"
    said = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "All tests pass."}]}},
        {"type": "assistant", "isSidechain": True, "message": {"content": [{"type": "text", "text": "sub"}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
        {"type": "assistant", "message": "odd"},
    ]
    transcript.write_text("\n".join([*map(json.dumps, said), '{"assistant"']))
    end = {"hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": str(transcript)}
    assert claude_code.CLIENT.translate(end)["last_assistant_message"] == "All tests pass."
    gone = {**end, "transcript_path": str(tmp_path / "gone")}
    assert claude_code.CLIENT.translate(gone)["last_assistant_message"] == ""
