"""Which client sent a hook's payload, what it means in the words of Claude Code, and what clients say about the caller
of a tool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nudge.clients import claude_code, opencode, registry
from nudge.clients.client import AgentClient
from nudge.clients.executable import Executable
from nudge.clients.registry import call_directory, call_session, note_source
from nudge.core import limits
from tests.unit.history.payloads import CODEX, FIXTURES, GEMINI, OPENCODE, extract, payload
from tools import client_index

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


AS_GEMINI = {
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
    (AS_GEMINI, "PreCompress", {"trigger": "auto"}, "session_compact", "auto"),
    (AS_GEMINI, "SessionStart", {"source": "resume"}, "session_start", "resume"),
    (AS_GEMINI, "BeforeTool", {"tool_name": "write_file"}, None, None),
    (AS_GEMINI, "AfterModel", {}, None, None),
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
    assert (event["cwd"], event["client"]) == ("/p", "gemini" if common is AS_GEMINI else "cursor")
    assert MARK not in json.dumps(event) and "u@x.dev" not in json.dumps(event)


def test_each_client_has_the_name_that_it_is_listed_under() -> None:
    """A name on the command line, in an event and in the database means one client."""
    assert [client.name for client in registry.all_clients()] == list(registry.names())
    assert [registry.get(name).name for name in registry.names()] == list(registry.names())


def test_the_index_of_clients_is_that_of_the_code() -> None:
    """A module with a client is all that a client needs: `make handshake` finds it."""
    assert client_index.FILE.read_text() == client_index.text()


@pytest.mark.parametrize(
    ("client", "name", "arguments", "kind", "content"),
    [
        ("opencode", "read", {"filePath": "/p/a"}, "file_read", "/p/a"),
        ("opencode", "apply_patch", {"patchText": "*** Begin Patch\n*** Add File: a\n+x"}, "file_write", "/p/a"),
        ("gemini", "invoke_agent", {"agent_name": "a", "prompt": "do it"}, "task_spawn", "do it"),
        ("cursor", "Read", {"target_file": "/p/a"}, "file_read", "/p/a"),
        ("cursor", "Glob", {"glob_pattern": "*.py", "target_directory": "/p"}, "search", "*.py in /p"),
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


def test_the_end_of_a_session_has_the_last_words_of_claude_code(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("client", "action", "words"),
    [
        (
            claude_code.CLIENT,
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
            lambda text: {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
        ),
        (
            registry.get("codex"),
            {"type": "response_item", "payload": {"type": "function_call"}},
            lambda text: {
                "type": "response_item",
                "payload": {"type": "message", "role": "assistant", "content": [{"text": text}]},
            },
        ),
        (
            registry.get("gemini"),
            {"type": "gemini", "content": "", "toolCalls": [{"name": "run_shell_command"}]},
            lambda text: {"type": "gemini", "content": text},
        ),
    ],
    ids=["claude-code", "codex", "gemini"],
)
def test_an_answer_to_thanks_is_not_the_last_word(
    client: AgentClient, action: dict[str, Any], words: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    """What was said after the last thing that was done; what was said last where nothing was done."""
    end = {"hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": str(tmp_path / "t.jsonl")}
    talk = [words("All tests pass."), words("Glad to help.")]
    for lines, expected in (([action, *talk], "All tests pass."), (talk, "Glad to help.")):
        (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))
        assert client.translate(end)["last_assistant_message"] == expected


def with_transcript(source: dict[str, Any], home: Path) -> dict[str, Any]:
    """A recorded payload in a home in which its client has kept a transcript."""
    client = registry.detect(source, {})
    path = home / client.folder / "transcript.jsonl"
    path.parent.mkdir(exist_ok=True)
    shutil.copy(FIXTURES / f"{client.name}_transcript.jsonl", path)
    return {**source, "transcript_path": str(path)}


@pytest.mark.parametrize("recorded", [CODEX, GEMINI], ids=["codex", "gemini"])
def test_the_end_of_a_session_has_the_last_words(recorded: list[dict[str, Any]], tmp_path: Path) -> None:
    """As their transcripts have them; without one there are none."""
    (end,) = (source for source in recorded if source["hook_event_name"] == "SessionEnd")
    event = extract(with_transcript(end, tmp_path))
    assert event is not None and event["metadata"] == {"last_words": "The tests pass with the other command."}
    without = extract(end)
    assert without is not None and without["metadata"] == {}


def test_the_plugin_of_opencode_sends_the_last_words() -> None:
    """OpenCode has no transcript: the plugin keeps what was said last."""
    event = extract(OPENCODE[-1])
    assert event is not None and event["metadata"]["last_words"] == "The tests pass with the other command."


_CONVERSATION = """
const plugin = await Nudge({ directory: "/p" })
const tell = (type, part) => plugin.event({ event: { type, properties: { sessionID: "s", part } } })
const say = (text) => tell("message.part.updated", { type: "text", text, time: { end: 1 } })
await tell("session.created")
await say("I will run the tests.")
await tell("message.part.updated", { type: "tool", state: { status: "completed" } })
await say("All tests pass.")
await say("Glad to help.")
await tell("session.deleted")
"""
_NODE = shutil.which("node")


@pytest.mark.skipif(_NODE is None, reason="needs node")
def test_the_plugin_of_opencode_keeps_no_answer_to_thanks(tmp_path: Path) -> None:
    """What was said after the last thing that was done is what the session's end sends."""
    program, script, sent = tmp_path / "nudge", tmp_path / "plugin.mjs", tmp_path / "sent"
    sent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > '{sent}'/$$\n")  # two may run at once
    program.chmod(0o755)
    script.write_text(opencode.plugin_text(Executable(str(program))) + _CONVERSATION)
    subprocess.run([str(_NODE), str(script)], check=True, timeout=60, env={"PATH": os.defpath})
    events = [json.loads(path.read_text()) for path in sent.iterdir()]
    (end,) = (event for event in events if event["hook_event_name"] == "SessionEnd")
    assert end["last_assistant_message"] == "All tests pass."


@pytest.mark.parametrize(("call", "code", "kind"), [("call_1", 0, "command"), ("call_2", 3, "command_error")])
def test_codex_has_exit_codes_in_its_transcript(call: str, code: int, kind: str, tmp_path: Path) -> None:
    """Its hooks get no exit code; without a transcript, or for a call that is not in there, it is unknown."""
    (source,) = (
        source
        for source in CODEX
        if source["hook_event_name"] == "PostToolUse" and (source["tool_name"], source["tool_use_id"]) == ("Bash", call)
    )
    written = with_transcript(source, tmp_path)
    event = extract(written)
    assert event is not None and (event["type"], event["metadata"]["exit_code"]) == (kind, code)
    for unknown in (source, {**written, "tool_use_id": "call_9"}):
        event = extract(unknown)
        assert event is not None and (event["type"], event["metadata"]["exit_code"]) == ("command", None)


def test_a_failed_command_of_gemini_says_what_it_printed() -> None:
    """Without what Gemini CLI writes around it: an error is recognized by the beginning of its line. A command that a
    signal ended has no exit code."""
    metadata = {
        event["content"]: event["metadata"]
        for event in map(extract, GEMINI)
        if event is not None and event["type"] in ("command", "command_error")
    }
    failed = metadata["env/python3 -m pytest --version"]
    assert (failed["exit_code"], failed["error"]) == (1, "/usr/bin/python3: No module named pytest")
    assert (metadata["exit 3"]["exit_code"], metadata["exit 3"]["error"]) == (3, "")
    assert metadata["bin/pytest --version"]["exit_code"] == 0
    assert metadata["sleep 1; kill -9 $$"]["exit_code"] is None


def test_a_prompt_of_gemini_is_what_its_user_typed() -> None:
    """Before it the payload has what our own hook printed at the session's start."""
    event = extract(GEMINI[-1])
    assert event is not None and event["content"] == "move the session tokens from redis into postgres"


def test_an_unknown_client_may_add_what_any_client_adds() -> None:
    """What a client put into a prompt is not the user's, also when it cannot be told which client that was."""
    blocks = "".join(f"<{name}>hidden</{name}>" for name in ("system-reminder", "task-notification", "hook_context"))
    event = extract(payload("UserPromptSubmit", prompt=f"do {blocks}this"))
    assert event is not None and (event["client"], event["content"]) == ("unknown", "do this")


def test_an_mcp_call_of_gemini_has_server_and_tool() -> None:
    """It joins them with one underscore, and names them beside it."""
    calls = [event for event in map(extract, GEMINI) if event is not None and event["type"] == "mcp_call"]
    assert [(call["metadata"]["server"], call["metadata"]["tool"]) for call in calls] == [
        ("nudge", "nudge_get_hint"),
        ("nudge", "nudge_query"),
    ]
    assert "error" in calls[0]["metadata"] and "error" not in calls[1]["metadata"]


@pytest.mark.parametrize(
    ("client", "event", "is_json"),
    [
        ("claude-code", "SessionStart", False),
        ("claude-code", "PostToolUseFailure", True),
        ("codex", "PostToolUse", True),
        ("gemini", "SessionStart", True),
        ("gemini", "AfterTool", True),
        ("opencode", "PostToolUse", False),
    ],
)
def test_a_hook_prints_what_its_client_reads(client: str, event: str, is_json: bool) -> None:
    """Text, or an object that names the event as the client does."""
    output = registry.get(client).hook_output("line", event)
    context = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "line"}}
    assert (json.loads(output) if is_json else output) == (context if is_json else "line")


# The caller of a tool


def codex_meta(workspaces: Any) -> dict[str, Any]:
    return {"x-codex-turn-metadata": {"turn_id": "t", "workspaces": workspaces}}


CLAUDE_PROJECT = {"CLAUDE_PROJECT_DIR": "/from/claude"}
SILENT_TURNS: list[Any] = [None, 3, [], "not json", "[" * 100_000, "3"]
SILENT_WORKSPACES: list[Any] = [None, 3, [], {}, ["relative"], [[[[["/too/deep"]]]]]]


def test_a_call_is_nearer_than_the_environment() -> None:
    """Codex names its project with each call; a server that Claude Code started has it in a variable."""
    assert call_directory(CLAUDE_PROJECT, codex_meta({"/from/codex": {}})) == "/from/codex"
    assert call_directory(CLAUDE_PROJECT, None) == "/from/claude"
    assert call_directory({}, None) is None


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
    meta = codex_meta(workspaces)
    assert call_directory({}, meta) == "/w/one"
    assert call_directory({}, {name: json.dumps(value) for name, value in meta.items()}) == "/w/one"


@pytest.mark.parametrize(
    "meta",
    [["x"], *({"x-codex-turn-metadata": turn} for turn in SILENT_TURNS), *map(codex_meta, SILENT_WORKSPACES)],
)
def test_metadata_that_says_nothing_is_ignored(meta: Any) -> None:
    """A client may send `_meta` of any JSON type; any other shape falls through to the next source."""
    assert call_directory(CLAUDE_PROJECT, meta) == "/from/claude"
    assert call_session(meta) is None


def test_a_relative_project_dir_is_ignored() -> None:
    """A variable that is no absolute path cannot say where the caller is."""
    assert call_directory({"CLAUDE_PROJECT_DIR": "."}, None) is None


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
    assert call_session(meta) == expected


@pytest.mark.parametrize(
    ("client", "source"),
    [("claude-code", "claude"), ("Claude-AI", "claude"), ("codex-mcp-client", "agent"), ("", "agent"), (None, "agent")],
)
def test_the_source_of_a_clients_notes(client: str | None, source: str) -> None:
    """Every client of Anthropic is Claude, whatever it adds to the name; the others are agents."""
    assert note_source(client) == source
