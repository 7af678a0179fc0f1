"""Every payload has one meaning, found by rules."""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.context import Context
from nudge.core.errors import Invalid
from nudge.history import observations
from nudge.history.event import Event
from nudge.history.extract import locate
from nudge.history.observations import TYPES
from tests.unit.history.payloads import CLAUDE_CODE, CODEX, GEMINI, OPENCODE, bash, extract, failure, payload, tool

NOW = 1_800_000_000.7

# Line by line what the recorded payloads are; None for those that are not worth keeping.
CLAUDE_CODE_TYPES = (
    "session_start",
    None,
    "user_prompt",
    None,
    "command",
    None,
    None,
    "command_error",
    None,
    None,
    "file_write",
    None,
    None,
    "file_read",
    None,
    None,
    "file_edit",
    None,
    None,
    "mcp_call",
    None,
    None,
    "session_stop",
    "session_end",
    "session_start",
    None,
    None,
    "task_spawn",
    None,
    "session_stop",
    "command",
    None,
    "command",
    None,
    "session_stop",
    "session_start",
    "session_stop",
    "session_start",
    None,
    None,
    None,
    "session_start",
    "session_compact",
    None,
    "session_start",
    "session_stop",
)
CODEX_TYPES = (
    "session_start",
    "user_prompt",
    None,
    None,
    "command",
    None,
    None,
    "command",
    None,
    None,
    "mcp_call",
    None,
    "session_stop",
    "session_end",
    "file_write",
    "file_edit",
)
GEMINI_TYPES = (
    "session_start",
    "user_prompt",
    "command",
    "command_error",
    "command_error",
    "command",
    "file_write",
    "file_edit",
    "tool_other",
    "file_read",
    "mcp_call",
    "mcp_call",
    "search",
    "search",
    "search",
    "command",
    "session_end",
    "session_start",
    "user_prompt",
)
OPENCODE_TYPES = (
    "session_start",
    "user_prompt",
    "command",
    "command_error",
    "command_error",
    "command",
    "file_write",
    "file_edit",
    "tool_other",
    "file_read",
    "mcp_call",
    "mcp_call",
    "session_end",
)
CLIENTS = (
    ("claude", CLAUDE_CODE, CLAUDE_CODE_TYPES),
    ("codex", CODEX, CODEX_TYPES),
    ("gemini", GEMINI, GEMINI_TYPES),
    ("opencode", OPENCODE, OPENCODE_TYPES),
)
RECORDED = [
    (f"{client}-{n}", told, kind)
    for client, payloads, kinds in CLIENTS
    for n, (told, kind) in enumerate(zip(payloads, kinds, strict=True))
]


def event_of(told: dict[str, Any], **environ: str) -> dict[str, Any]:
    event = extract(told, now=NOW, **environ)
    assert event is not None
    return event


def test_all_recorded_payloads_are_here() -> None:
    """46 of Claude Code, 16 of Codex, 19 of Gemini CLI, 13 of OpenCode."""
    assert [len(payloads) for _, payloads, _ in CLIENTS] == [46, 16, 19, 13]


@pytest.mark.parametrize(("told", "kind"), [pytest.param(told, kind, id=name) for name, told, kind in RECORDED])
def test_a_recorded_payload_is_classified(told: dict[str, Any], kind: str | None) -> None:
    """What a real client sent is the type in the table, or nothing."""
    event = extract(told, now=NOW)
    assert (event and event["type"]) == kind


@pytest.mark.parametrize(("told", "kind"), [pytest.param(told, kind, id=name) for name, told, kind in RECORDED if kind])
def test_what_is_told_can_be_stored(told: dict[str, Any], kind: str) -> None:
    """An event is exactly what the store takes."""
    event = Event(event_of(told))
    assert (event.type, event.session_id, event.timestamp) == (kind, told["session_id"], 1_800_000_000)


def test_no_two_recorded_events_are_one() -> None:
    """Two resumes of one session in the same seconds are two events."""
    events = [event for _, row, _ in RECORDED if (event := extract(row, now=NOW))]
    assert len({event["event_id"] for event in events}) == len(events) == sum(bool(kind) for _, _, kind in RECORDED)


def test_an_unknown_event_is_ignored() -> None:
    """A newer client has events that we do not know."""
    assert extract(payload("SomethingNew", prompt="x"), now=NOW) is None


@pytest.mark.parametrize("field", ["session_id", "cwd", "hook_event_name"])
@pytest.mark.parametrize("value", [None, "", 7, ["x"]])
def test_a_required_field_is_required(field: str, value: object) -> None:
    """Also of an event that would be ignored: a hook that is wired wrong should say so."""
    for row in (bash("ls"), payload("Stop")):
        with pytest.raises(Invalid, match=field):
            extract({**row, field: value}, now=NOW)


def test_an_endless_session_id_is_refused() -> None:
    """It is a key in the store, not a text."""
    with pytest.raises(Invalid, match="session_id"):
        extract(bash("ls", session_id="x" * 300), now=NOW)


def test_an_event_says_who_where_and_when() -> None:
    """Whole seconds, the client's own ids, and the directory that it names."""
    event = event_of(bash("ls", prompt_id="p-1", agent_id="a-1", unknown_field={"x": 1}), CLAUDECODE="1")
    assert event.keys() == {
        "event_id",
        "session_id",
        "client",
        "cwd",
        "repo",
        "project",
        "timestamp",
        "source_event",
        "prompt_id",
        "agent_id",
        "type",
        "tool_name",
        "file_path",
        "content",
        "metadata",
        "start_source",
    }
    assert (event["session_id"], event["prompt_id"], event["agent_id"]) == ("s-1", "p-1", "a-1")
    assert (event["client"], event["cwd"], event["timestamp"]) == ("claude-code", "/home/u/proj", 1_800_000_000)
    assert (event["source_event"], event["tool_name"], event["start_source"]) == ("PostToolUse", "Bash", None)


def test_repo_and_project_come_from_the_directory() -> None:
    """The hook resolves them, and they are redacted like everything else."""
    token = "gh" + "p_" + "a1B2c3D4e5" * 4
    event = locate(event_of(bash("ls")), Context(repo="git:org/app", project=token))
    assert (event["repo"], event["project"]) == ("git:org/app", "[REDACTED:github-token]")


# Commands


@pytest.mark.parametrize(
    ("error", "code"),
    [("Exit code 127", 127), ("\n Exit code 2\nno", 2), ("Exit code 1: no", 1), ("Exit code 999999999", 999_999_999)]
    + [
        (text, None)
        for text in ("Exit code x", "Exit code 1x", "Exit code 1_", "Exit code  1", "no\nExit code 1", "no")
    ]
    + [("Exit code 1234567890", None), ("Exit code 12345678901", None)],
)
def test_the_exit_code_that_an_error_begins_with(error: str, code: int | None) -> None:
    """A whole number of up to nine digits, behind exactly these words."""
    event = event_of(failure("Bash", {"command": "make"}, error))
    assert event["metadata"]["exit_code"] == code


COMMANDS = [
    (bash("make test", "ok"), "command", "make test", {"exit_code": 0}),
    (bash("x" * 900), "command", "x" * 500, {"exit_code": 0}),
    (
        failure("Bash", {"command": "make"}, "Exit code 2\nno"),
        "command_error",
        "make",
        {"exit_code": 2, "error": "Exit code 2\nno", "command": "make"},
    ),
    (
        failure("Bash", {"command": "x"}, "killed", is_interrupt=True),
        "command_error",
        "x",
        {"exit_code": None, "error": "killed", "interrupted": True, "command": "x"},
    ),
    (
        tool("Bash", {"command": "sleep 9"}, {"stdout": "", "interrupted": True}),
        "command",
        "sleep 9",
        {"exit_code": None, "interrupted": True},
    ),
    (
        tool("Bash", {"command": "grep x y"}, {"stdout": "", "returnCodeInterpretation": "No matches found"}),
        "command",
        "grep x y",
        {"exit_code": None},
    ),
    (
        tool("Bash", {"command": "serve"}, {"stdout": "", "backgroundTaskId": "b1"}),
        "command",
        "serve",
        {"exit_code": None},
    ),
    (tool("Bash", {"command": "exit 3"}, ""), "command", "exit 3", {"exit_code": None}),
    (
        tool("shell", {"command": ["bash", "-lc", "go build"]}, {"output": "", "exit_code": 0}),
        "command",
        "go build",
        {"exit_code": 0},
    ),
    (
        tool("shell", {"command": ["go", "vet"]}, {"output": "bad", "exit_code": 1}),
        "command_error",
        "go vet",
        {"exit_code": 1, "error": "bad", "command": "go vet"},
    ),
]


@pytest.mark.parametrize(("told", "kind", "content", "metadata"), COMMANDS)
def test_a_command(told: dict[str, Any], kind: str, content: str, metadata: dict[str, Any]) -> None:
    """Its line, how it ended as far as the client says, and of its output nothing but the ends of an error."""
    event = event_of(told)
    assert (event["type"], event["content"], event["metadata"]) == (kind, content, metadata)


@pytest.mark.parametrize("blank", [" ", "\n", "\t \n"])
def test_text_behind_blanks_is_recorded(blank: str) -> None:
    """However many blanks are in front of a command, a commit or a prompt: what is kept begins at the first word."""
    blanks = blank * 20 * limits.KIB
    assert event_of(bash(blanks + "make test"))["content"] == "make test"
    failed = event_of(failure("Bash", {"command": blanks + "make test"}, "Exit code 2"))
    assert failed["content"] == failed["metadata"]["command"] == "make test"
    assert event_of(bash(blanks + "git commit -m x", "[main abc1234] x"))["type"] == "git_commit"
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": blanks + "hello"}
    assert event_of(prompt)["content"] == "hello"


@pytest.mark.parametrize(
    "text", ["<local-command-stdout>Set model to opus</local-command-stdout>", "\n<bash-input>ls</bash-input>"]
)
def test_what_a_client_printed_is_no_prompt(text: str) -> None:
    """The output of a command of the client itself stands in the place of a prompt; nobody typed it."""
    result = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": text}
    assert extract(result, now=NOW) is None


def test_a_command_keeps_its_description_and_duration() -> None:
    """Milliseconds, as the client counted them."""
    event = event_of(
        tool("Bash", {"command": "ls", "description": "list " + "x" * 300}, {"stdout": ""}, duration_ms=24.6)
    )
    assert event["metadata"] == {"exit_code": 0, "description": ("list " + "x" * 300)[:200], "duration_ms": 24}


def test_a_long_error_keeps_its_ends() -> None:
    """2,000 characters in all, also of megabytes."""
    for size in (3_000, 300_000):
        error = event_of(failure("Bash", {"command": "x"}, "Exit code 1\nHEAD" + "word " * size + "TAIL"))["metadata"][
            "error"
        ]
        assert len(error) <= limits.MAX_ERROR_CHARS
        assert error.startswith("Exit code 1\nHEAD") and error.endswith("TAIL") and "[...]" in error


def test_the_line_that_names_the_cause_is_kept() -> None:
    """Of a long error, when it is in neither of the ends; redacted like them, and without private parts."""
    cause = "ModuleNotFoundError: No module named 'flask'"
    long = "collecting tests\n" * 200 + f"E   {cause}\n" + "summary of tests\n" * 200
    metadata = event_of(failure("Bash", {"command": "x"}, long))["metadata"]
    assert cause not in metadata["error"] and metadata["cause"] == f"E   {cause}"
    hidden = long.replace("E   ", "<private>").replace("'flask'", "</private>")
    assert "cause" not in event_of(failure("Bash", {"command": "x"}, hidden))["metadata"]
    assert "cause" not in event_of(failure("Bash", {"command": "x"}, cause))["metadata"]


@pytest.mark.parametrize(
    ("command", "printed", "is_failure"),
    [
        ("pytest tests | tail", "x\nFAILED tests/a.py::test_b - AssertionError\n1 failed in 0.1s", True),
        ("pytest tests | tail -1", "==== 1 failed, 2 passed in 0.12s ====", True),
        ("npx jest | tail", "x\nFAIL src/a.test.js", True),
        ("go test ./... | tail", "--- FAIL: TestLogin (0.00s)", True),
        ("cargo test | tail", "test result: ok. 3 passed; 0 failed; 0 ignored", False),
        ("pytest tests | tail -1", "2 passed in 0.12s", False),
        ("cat report", "FAILED", False),
    ],
)
def test_tests_that_failed_before_a_pipe_are_an_error(command: str, printed: str, is_failure: bool) -> None:
    """The pipe ended well, so the exit code is 0; the end of the output is kept as that of an error. Without a pipe the
    exit code says what came of the tests."""
    event = event_of(bash(command, printed))
    assert (event["type"], event["metadata"]["exit_code"]) == ("command", 0)
    assert event["metadata"].get("error") == (printed if is_failure else None)


COMMIT = "[main abc1234] Fix the login\n 2 files changed, 10 insertions(+), 3 deletions(-)\n"
COMMITTED = {
    "commit": "abc1234",
    "subject": "Fix the login",
    "branch": "main",
    "files_changed": 2,
    "insertions": 10,
    "deletions": 3,
}
PUSHED = "To github.com:o/r.git\n   1234567..89abcde  main -> main\n"

GIT = [
    (bash("git commit -m 'Fix the login'", COMMIT), "git_commit", COMMITTED),
    (bash("cd app && git add -A && git -C . -c user.name='A B' commit -am x", COMMIT), "git_commit", COMMITTED),
    (bash("git commit -m \"$(cat <<'EOF'\nFix the login\nEOF\n)\"", COMMIT), "git_commit", COMMITTED),
    (tool("Bash", {"command": "git commit -m x"}, COMMIT), "git_commit", COMMITTED),
    (tool("Bash", {"command": "git commit -m x"}, "nothing to commit"), "command", {}),
    (bash("git commit -qm x"), "git_commit", {"subject": "x"}),
    (
        bash("git commit -m x", "[main (root-commit) 1234567] x\n 1 file changed, 1 insertion(+)\n"),
        "git_commit",
        {"commit": "1234567", "subject": "x", "branch": "main", "files_changed": 1, "insertions": 1},
    ),
    (bash("git commit -m x", "[detached HEAD 1234567] x\n"), "git_commit", {"commit": "1234567", "subject": "x"}),
    (
        bash("git commit -m x", f"[feat/a-1 {'9f' * 20}] x\n"),
        "git_commit",
        {"commit": "9f" * 6, "subject": "x", "branch": "feat/a-1"},
    ),
    (bash("git commit -m x && git push", COMMIT + PUSHED), "git_commit", {**COMMITTED, "pushed": True}),
    (bash("git push origin main", PUSHED), "git_push", {"branch": "main", "commit": "89abcde"}),
    (bash("git push -u origin new", " * [new branch]      new -> new\n"), "git_push", {"branch": "new"}),
    (bash("git push", "Everything up-to-date"), "git_push", {"up_to_date": True}),
    (bash("git push -q"), "git_push", {}),
    (tool("Bash", {"command": "git push"}, "error: failed to push some refs"), "command", {}),
    (
        bash("git commit -qm x && git push", PUSHED),
        "git_commit",
        {"subject": "x", "commit": "89abcde", "branch": "main", "pushed": True},
    ),
    (bash("bash -c 'git commit -qm x'"), "git_commit", {"subject": "x"}),
    (bash('sh -lc "cd app && git commit -m x"', COMMIT), "git_commit", COMMITTED),
    (bash("bash -c 'git push'", PUSHED), "git_push", {"branch": "main", "commit": "89abcde"}),
    (bash("git commit -m q || true", "On branch main\nnothing to commit, working tree clean\n"), "command", {}),
    (bash("git commit -m q || true"), "command", {}),
    (bash("git commit -m q || true", COMMIT), "git_commit", COMMITTED),
    (
        bash("git commit -m q; true", 'no changes added to commit (use "git add" and/or "git commit -a")\n'),
        "command",
        {},
    ),
    (bash("git push; true", "error: failed to push some refs to 'o/r'\n"), "command", {}),
    (bash("git push; true", "To o/r\n ! [rejected]        main -> main (fetch first)\n"), "command", {}),
    (bash("git commit --dry-run -m x", "On branch main\nChanges to be committed:\n"), "command", {}),
    (bash("git commit -m x --dry-run && ls"), "command", {}),
    (bash("git push --dry-run", PUSHED), "command", {}),
    (bash("git push -n origin main", PUSHED), "command", {}),
    (bash("git commit -n -m x", COMMIT), "git_commit", COMMITTED),
    (bash("git commit -qm 'add a --dry-run flag'"), "git_commit", {"subject": "add a --dry-run flag"}),
    (bash("git commit -qm x && git push --dry-run", PUSHED), "git_commit", {"subject": "x"}),
    (bash("git log --oneline"), "command", {}),
    (bash("git commit-tree abc"), "command", {}),
    (bash("echo 'how to git commit'"), "command", {}),
    (bash("cat > doc <<EOF\ngit commit -m x\nEOF"), "command", {}),
    (bash("echo 'run; git commit'"), "command", {}),
    (bash('gh pr create --body "git commit; git push"'), "command", {}),
    (bash('gh pr create --body "say \\"git\\"; git push"'), "command", {}),
    (bash("git pull # then; git push", PUSHED), "command", {}),
    (bash("# don't wait\ngit commit -m 'x'", COMMIT), "git_commit", COMMITTED),
    (bash("bash -c \"git commit -qm 'x; git push'\" && git fetch", PUSHED), "git_commit", {"subject": "x; git push"}),
    (bash("git commit --short"), "command", {}),
    (bash("git commit --long"), "command", {}),
    (bash("git commit --porcelain"), "command", {}),
    (bash("/usr/bin/git commit -qm x"), "git_commit", {"subject": "x"}),
    (bash('GIT_AUTHOR_NAME="a b" git commit -qm x'), "git_commit", {"subject": "x"}),
    (bash("env A=1 git commit -qm x"), "git_commit", {"subject": "x"}),
    (bash("env -i A=1 git commit -qm x"), "git_commit", {"subject": "x"}),
    (bash("sudo -u me git commit -qm x"), "git_commit", {"subject": "x"}),
    (bash("sudo -E git push", PUSHED), "git_push", {"branch": "main", "commit": "89abcde"}),
    (bash('out="$(git push 2>&1)"; echo "$out"', PUSHED), "git_push", {"branch": "main", "commit": "89abcde"}),
    (
        failure("Bash", {"command": "git commit -m x && make"}, "Exit code 2\n[main abc1234] x\nmake: no rule"),
        "command_error",
        {
            "error": "Exit code 2\n[main abc1234] x\nmake: no rule",
            "commit": "abc1234",
            "subject": "x",
            "branch": "main",
        },
    ),
    (
        failure("Bash", {"command": "git commit -m x"}, "Exit code 1\nhook failed"),
        "command_error",
        {"error": "Exit code 1\nhook failed"},
    ),
]


@pytest.mark.parametrize(("told", "kind", "facts"), GIT)
def test_a_commit_or_a_push_is_one_when_git_did_it(told: dict[str, Any], kind: str, facts: dict[str, Any]) -> None:
    """Known from what git printed; from success alone only where the words cannot be part of a text."""
    event = event_of(told)
    metadata = {name: value for name, value in event["metadata"].items() if name not in ("exit_code", "command")}
    assert (event["type"], metadata) == (kind, facts)


def test_a_hostile_command_line_costs_nothing() -> None:
    """Options without end, quotes without end: the search for git stays linear."""
    options = ("git " + "-c " * 20_000, "git -c '" * 8_000, "git " + "-c x=' " * 9_000, "A=1 " * 15_000)
    wrapped = ("sh -c '" * 9_000, "sudo -a sudo " * 2_000, "; A=1" * 3_000, "/a" * 8_000, ";/a" * 5_000)
    quoted = ('"' + '\\"' * 8_000, "sh -c '\"" * 2_000, "# '" * 5_000, "'\"" * 8_000)
    for command in (*options, *wrapped, *quoted):
        assert event_of(bash("git; " + command))["type"] == "command"
    for command in ("git commit '" * 6_000, 'git push "' + "x' " * 9_000, "git commit " + "'a'" * 9_000):
        assert event_of(bash(command))["type"].startswith("git_")


# Other tools

MARK = "TEXT OF A FILE"
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n-x\n+y\n*** Add File: b.py\n+" + MARK + "\n*** End Patch"
TOOLS = [
    (
        tool("Read", {"file_path": "/p/a.py"}, {"type": "text", "file": {"content": MARK, "numLines": 2}}),
        "file_read",
        "/p/a.py",
        "/p/a.py",
    ),
    (tool("Read", {"file_path": "../x/./a.py"}), "file_read", "/home/u/x/a.py", "/home/u/x/a.py"),
    (
        tool("Write", {"file_path": "a", "content": MARK}, {"type": "create", "content": MARK}),
        "file_write",
        "/home/u/proj/a",
        "/home/u/proj/a",
    ),
    (
        tool("Edit", {"file_path": "/p/a", "old_string": MARK, "new_string": MARK}, {"originalFile": MARK}),
        "file_edit",
        "/p/a",
        "/p/a",
    ),
    (tool("MultiEdit", {"file_path": "/p/a.py", "edits": [{"old_string": MARK}]}), "file_edit", "/p/a.py", "/p/a.py"),
    (
        tool("NotebookEdit", {"notebook_path": "/p/a.ipynb", "new_source": MARK}),
        "file_edit",
        "/p/a.ipynb",
        "/p/a.ipynb",
    ),
    (
        tool("apply_patch", {"command": PATCH}),
        "file_edit",
        "/home/u/proj/src/a.py\n/home/u/proj/b.py",
        "/home/u/proj/src/a.py",
    ),
    (tool("Grep", {"pattern": "def x", "path": "src"}, {"content": MARK}), "search", "def x in /home/u/proj/src", None),
    (tool("Glob", {"pattern": "**/*.py"}, {"filenames": [MARK]}), "search", "**/*.py", None),
    (tool("LS", {"path": "/p"}, MARK), "search", "/p", None),
    (tool("Task", {"description": "look", "prompt": "p" * 600}), "task_spawn", "look: " + "p" * 500, None),
    (
        tool("WebFetch", {"url": "https://x.dev/a", "prompt": "read"}, {"result": MARK}),
        "web_fetch",
        "https://x.dev/a",
        None,
    ),
    (tool("WebSearch", {"query": "sqlite wal"}, {"results": [MARK]}), "web_search", "sqlite wal", None),
    (tool("TodoWrite", {"todos": [1, 2]}, MARK), "tool_other", "TodoWrite todos=[2]", None),
    (failure("Edit", {"file_path": "/p/a.py", "old_string": MARK}, "no match"), "tool_other", "/p/a.py", "/p/a.py"),
    (failure("WebFetch", {"url": "https://x.dev"}, "404"), "web_fetch", "https://x.dev", None),
    (tool("", {}), "tool_other", "", None),
]


@pytest.mark.parametrize(("told", "kind", "content", "path"), TOOLS)
def test_a_tool_call(told: dict[str, Any], kind: str, content: str, path: str | None) -> None:
    """What was asked for, by its absolute path where there is one; never the text of a file, and never a result."""
    event = event_of(told)
    assert (event["type"], event["content"], event["file_path"]) == (kind, content, path)
    assert MARK not in json.dumps(event)


def test_the_size_of_a_change_is_kept() -> None:
    """Lines, not text."""
    edits = [
        row
        for row in CLAUDE_CODE
        if row["hook_event_name"] == "PostToolUse" and row["tool_name"] in ("Read", "Write", "Edit")
    ]
    written, read, edited = (event_of(row)["metadata"] for row in edits)
    assert written == {"lines": 1, "created": False, "duration_ms": 13}
    assert read == {"lines": {"startLine": 1, "numLines": 2, "totalLines": 2}, "duration_ms": 7}
    assert edited == {"added": 1, "removed": 1, "duration_ms": 25}


def test_a_patch_names_its_files() -> None:
    """A patch that only adds is a write."""
    assert event_of(tool("apply_patch", {"command": PATCH}))["metadata"] == {
        "files": ["/home/u/proj/src/a.py", "/home/u/proj/b.py"]
    }
    moved = event_of(
        tool("apply_patch", {"command": "*** Update File: a.py\n*** Move to: ../b.py\n-x\n*** Delete File: a.py"})
    )
    assert (moved["type"], moved["metadata"]) == ("file_edit", {"files": ["/home/u/proj/a.py", "/home/u/b.py"]})
    assert event_of(tool("apply_patch", {"command": "*** Add File: n.py\n+x"}))["type"] == "file_write"
    assert event_of(tool("apply_patch", {"command": "no headers"}))["type"] == "tool_other"


def test_a_patch_of_very_many_files() -> None:
    """As many are named as there is room for."""
    patch = "\n".join(f"*** Update File: {'d' * 60}/{number}.py" for number in range(1_000))
    event = event_of(tool("apply_patch", {"command": patch}))
    assert 20 < len(event["metadata"]["files"]) < 1_000
    assert event["content"].split("\n") == event["metadata"]["files"] == Event(event).content.split("\n")


def test_an_mcp_call_keeps_short_arguments() -> None:
    """Server, tool, names and short values; lists and objects by their size; the result not at all."""
    arguments = {
        "component": "api",
        "limit": 5,
        "deep": {"a": MARK},
        "all": [MARK, MARK],
        "text": "x" * 500,
        "password": "hunter2" + "2",
    }
    event = event_of(
        tool("mcp__plugin_nudge_nudge__get_hint", arguments, {"content": MARK}, mcp_server={"name": "nudge"})
    )
    assert event["content"].startswith("nudge/get_hint component=api limit=5 deep={1} all=[2] text=xxx")
    assert event["metadata"]["arguments"] == {
        "component": "api",
        "limit": 5,
        "deep": "{1}",
        "all": "[2]",
        "text": "x" * 100,
        "password": "[REDACTED:password]",
    }
    assert (event["metadata"]["server"], event["metadata"]["tool"]) == ("nudge", "get_hint")
    assert MARK not in json.dumps(event) and "hunter2" not in json.dumps(event)


def test_metadata_fits_the_store() -> None:
    """Whatever is said in characters that take twelve bytes in JSON, the store takes it."""
    result = failure("mcp__s__t", {f"{n}" + "😀" * 50: "😀" * 500 for n in range(50)}, "😀" * 9_000)
    event = event_of(result)
    assert Event(event).type == "mcp_call"
    assert len(json.dumps(event).encode()) <= limits.MAX_EVENT_BYTES


# Prompts and sessions


def test_a_prompt_is_cut_at_2000_characters() -> None:
    """Enough to know what was wanted."""
    assert event_of(payload("UserPromptSubmit", prompt="p" * 3_000))["content"] == "p" * 2_000


@pytest.mark.parametrize(
    "prompt",
    [
        *("", "  \n", "<system-reminder>x</system-reminder>", "\n<system-reminder>x", "<System-Reminder a=1>x"),
        *("<task-notification>a</task-notification>\n", None),
    ],
)
def test_a_prompt_that_no_person_wrote_is_skipped(prompt: str | None) -> None:
    """A client's reminder to its model comes under the user's name."""
    assert extract(payload("UserPromptSubmit", prompt=prompt), now=NOW) is None
    assert extract(payload("UserPromptSubmit", prompt=prompt), now=NOW) is None


def test_a_prompt_that_mentions_a_reminder_is_kept() -> None:
    """A tag alone is a word."""
    assert (
        event_of(payload("UserPromptSubmit", prompt="what is <system-reminder>?"))["content"]
        == "what is <system-reminder>?"
    )
    followed = "what is <system-reminder>? <system-reminder>hidden</system-reminder>"
    assert event_of(payload("UserPromptSubmit", prompt=followed))["content"] == "what is <system-reminder>?"


@pytest.mark.parametrize(
    "prompt",
    [
        "do this <system-reminder>hidden</system-reminder>",
        "<system-reminder>hidden</system-reminder>\ndo this",
        "<task-notification>hidden</task-notification>do <system-reminder>a\nhidden</system-reminder>this",
        'do <system-reminder kind="x">hidden</system-reminder>this',
        "do <System-Reminder>hidden</SYSTEM-REMINDER >this",
        "do <system-reminder>a <system-reminder>hidden</system-reminder> hidden</system-reminder>this",
    ],
)
def test_what_a_client_put_into_a_prompt_is_left_out(prompt: str) -> None:
    """Wherever it stands; the user's words around it stay."""
    assert event_of(payload("UserPromptSubmit", prompt=prompt))["content"] == "do this"


def test_blocks_without_end_cost_nothing() -> None:
    """However many a prompt has."""
    assert event_of(payload("UserPromptSubmit", prompt="x <system-reminder>" * 100_000))["content"].startswith(
        "x <system-reminder>x"
    )
    assert (
        event_of(payload("UserPromptSubmit", prompt="<system-reminder></system-reminder>x" * 100_000))["content"]
        == "x" * 2_000
    )
    assert event_of(payload("UserPromptSubmit", prompt="x <system-reminder " * 100_000))["content"].startswith(
        "x <system-reminder x"
    )
    assert event_of(payload("UserPromptSubmit", prompt="x <private a " * 100_000))["content"].startswith(
        "x <private a x"
    )


def test_a_private_prompt_keeps_its_place() -> None:
    """What follows it belongs to it, and must not be taken for the work of the prompt before."""
    event = event_of(payload("UserPromptSubmit", prompt="<private>my salary</private>", prompt_id="p-1"))
    assert (event["content"], event["prompt_id"]) == ("[private]", "p-1")


def test_session_events_say_why() -> None:
    """The source, reason or trigger that the client gives."""
    start = event_of(payload("SessionStart", source="compact", model="m"))
    assert (start["type"], start["content"], start["start_source"]) == ("session_start", "compact", "compact")
    assert start["metadata"] == {"model": "m"}
    assert event_of(payload("SessionEnd", reason="logout"))["content"] == "logout"
    compact = event_of(payload("PostCompact", trigger="auto", compact_summary=MARK))
    assert (compact["type"], compact["content"]) == ("session_compact", "auto") and MARK not in json.dumps(compact)


# Identity


def test_the_same_call_told_twice_is_one_event() -> None:
    """A plugin and a hook that are both wired tell the same; so does the spool's replay."""
    assert event_of(bash("ls"))["event_id"] == event_of(bash("ls"))["event_id"]
    ids = {
        event_of(row)["event_id"]
        for row in (bash("ls"), bash("ls") | {"tool_use_id": "t-2"}, bash("ls") | {"session_id": "s-2"})
    }
    assert len(ids) == 3


def test_a_call_that_succeeds_after_it_failed_is_another_event() -> None:
    """The event's name is part of it."""
    assert event_of(bash("ls"))["event_id"] != event_of(failure("Bash", {"command": "ls"}, "Exit code 1"))["event_id"]


def test_prompts_are_told_apart_by_the_clients_id() -> None:
    """And within a turn of Codex, which can be steered, by their text."""

    def prompt(text: str, **fields: str) -> str:
        return str(event_of(payload("UserPromptSubmit", prompt=text, **fields))["event_id"])

    assert prompt("a", prompt_id="1") == prompt("a", prompt_id="1") != prompt("a", prompt_id="2")
    assert prompt("a", turn_id="1") == prompt("a", turn_id="1") != prompt("b", turn_id="1")
    assert event_of(payload("UserPromptSubmit", prompt="a", turn_id="1"))["prompt_id"] == "1"


def test_session_events_are_one_for_ten_seconds() -> None:
    """They have no id of their own, and two hooks that tell the same run at the same time."""
    result = payload("SessionStart", source="startup")

    def at(now: float) -> str:
        event = extract(result, now=now)
        assert event is not None
        return str(event["event_id"])

    assert at(1_000.0) == at(1_009.9) != at(1_010.0)


def test_without_an_id_an_event_is_its_own() -> None:
    """Two that look the same may be two."""
    result = bash("ls") | {"tool_use_id": None}
    assert event_of(result)["event_id"] != event_of(result)["event_id"]


def test_ids_do_not_depend_on_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in digest has two names, and may be missing; a replay under another Python must find the same id."""
    real = builtins.__import__

    def without_builtin(name: str, *rest: Any) -> Any:
        if name in ("_sha2", "_sha256"):
            raise ImportError(name)
        return real(name, *rest)

    quick = event_of(bash("ls"))["event_id"]
    for module in ("_sha2", "_sha256"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(builtins, "__import__", without_builtin)
    session, event = (hashlib.sha256(text).hexdigest() for text in (b"s-1", b"s-1\0t-1\0PostToolUse"))
    assert event_of(bash("ls"))["event_id"] == quick == session[:8] + event[:24]


def test_ids_of_a_session_begin_alike() -> None:
    """The database sorts them: a session's events are written to one page, not to one of all pages each."""
    result = (
        bash("ls"),
        bash("make") | {"tool_use_id": "t-2"},
        bash("ls") | {"tool_use_id": None},
        payload("SessionEnd"),
    )
    ids = [str(event_of(one)["event_id"]) for one in result]
    assert len(set(ids)) == len(result) and {len(identity) for identity in ids} == {32}
    assert len({identity[:8] for identity in ids}) == 1
    assert event_of(bash("ls") | {"session_id": "s-2"})["event_id"][:8] != ids[0][:8]


# Strange input


FIELDS = (
    "tool_name",
    "tool_input",
    "tool_response",
    "tool_use_id",
    "error",
    "duration_ms",
    "prompt",
    "prompt_id",
    "source",
    "mcp_server",
    "transcript_path",
    "agent_id",
    "model",
    "is_interrupt",
    "client",
    "workspace_roots",
)
ARGUMENTS = ("command", "file_path", "content", "pattern", "path", "prompt", "description", "url")
USED = ("Bash", "Read", "Write", "Edit", "Grep", "Task", "mcp__a__b", "apply_patch", "Other")


@pytest.mark.parametrize("junk", [None, 0, True, "", "x", [], ["x", 1], {}, {"a": {"b": []}}, "\ud800\0", 1e300])
@pytest.mark.parametrize(
    "name", ["PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "AfterTool", "afterFileEdit"]
)
def test_no_field_has_to_be_what_it_should(name: str, junk: object) -> None:
    """A client may change what it sends; we say less then, and never fail."""
    response = {
        "structuredPatch": junk,
        "file": junk,
        "stdout": junk,
        "exit_code": junk,
        "error": junk,
        "llmContent": junk,
    }
    calls = [
        {"tool_name": used, "tool_input": dict.fromkeys(ARGUMENTS, junk), "tool_response": response} for used in USED
    ]
    everything: dict[str, Any] = dict.fromkeys(FIELDS, junk)
    for row in (everything, *calls):
        event = extract(payload(name, **row), now=NOW)
        assert event is None or Event(event).type in TYPES
        assert json.dumps(event, ensure_ascii=False).encode()


def test_which_types_are_commands_is_said_once() -> None:
    """The table of types says whose content is a command line; no other module lists them, so that a new type touches
    one file."""
    assert tuple(name for name, kind in TYPES.items() if kind.is_command) == observations.COMMAND_TYPES
    assert set(observations.UNFAILED_COMMANDS) == set(observations.COMMAND_TYPES) - {observations.FAILURE}
    package = Path(observations.__file__).parents[1]
    listed = [
        (path.name, node.lineno)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        and len(node.elts) > 1
        and all(isinstance(one, ast.Constant) and one.value in observations.COMMAND_TYPES for one in node.elts)
    ]
    assert listed == []
