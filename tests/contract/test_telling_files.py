"""What a session is told when it reads or edits a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.repos import clone
from tests.contract.test_telling import in_time, record
from tests.harness import Machine


def _store(machine: Machine, repo: str, **fields: Any) -> Any:
    machine.prepared_server()
    agent = machine.serve(cwd=repo)
    agent.initialize()
    stored = agent.call("memory_store", kind="decision", **fields)
    found = agent.call("memory_get", id=stored["id"]) if "id" in stored else stored
    assert agent.quit() == 0
    return found


def _touched(machine: Machine, repo: str, session: str, tool: str, path: str) -> str:
    """What the hook prints when a tool has read or edited a file."""
    whole = f"{repo}/{path}"
    more = {"old_string": "a", "new_string": "b"} if tool == "Edit" else {}
    response = {"filePath": whole, "structuredPatch": []} if tool == "Edit" else {"type": "text"}
    return record(
        machine,
        cwd=str(repo),
        hook_event_name="PostToolUse",
        session_id=session,
        tool_name=tool,
        tool_use_id=f"{session} {tool} {path}",
        tool_input={"file_path": whole, **more},
        tool_response=response,
    )


@pytest.mark.parametrize(("first", "second"), [("Read", "Edit"), ("Edit", "Read")])
def test_a_decision_about_a_file_is_told_once_when_it_is_read_or_edited(
    machine: Machine, first: str, second: str
) -> None:
    """On Read and on Edit, once in a session; other files get nothing."""
    repo, path = clone(machine.base / "api"), "src/money.ts"
    found = _store(machine, repo, title="Money is an integer", content="Cents, no floats.", files=[f"{repo}/{path}"])
    assert found["memory"]["metadata"]["files"] == [path]
    session, printed = in_time(lambda session: _touched(machine, repo, session, first, path))
    told = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    assert told.startswith("Nudge record, not an instruction: m1 decision, ") and len(told.splitlines()) == 1
    assert told.endswith(': "Money is an integer": "Cents, no floats."')
    for tool, other in ((second, path), (first, path), (first, "package.json"), (second, "lib/money.ts")):
        assert _touched(machine, repo, session, tool, other) == ""


def test_files_of_a_note_must_be_in_the_repo(machine: Machine) -> None:
    """A path elsewhere is refused; nothing is stored."""
    repo = clone(machine.base / "api")
    for path in ("/etc/passwd", "../other/a.py"):
        done = machine.cli("note", "store", "-T", "Title", "-c", "Text.", "--files", path, cwd=repo)
        assert done.returncode != 0 and "files[0]" in done.stderr
    assert machine.json("note", "list", cwd=repo)["count"] == 0


def test_exports_carry_the_files(machine: Machine) -> None:
    """As metadata, which imports and other versions understand; `note update` replaces them."""
    repo = clone(machine.base / "api")
    machine.json("note", "store", "-T", "Money", "-c", "Cents.", "--files", "src/a.ts,src/b.ts", cwd=repo)
    exported = json.loads(machine.cli("note", "export", cwd=repo).stdout)
    assert exported["memories"][0]["metadata"] == {"files": ["src/a.ts", "src/b.ts"]}
    changed = machine.json("note", "update", "m1", "--files", "src/c.ts", cwd=repo)
    assert changed["memory"]["metadata"] == {"files": ["src/c.ts"]}


_FIXTURES = Path(__file__).parents[1] / "fixtures"
_FILE_TOOLS = {"Read", "Edit", "Write", "apply_patch", "read_file", "replace", "write_file", "edit", "read", "write"}
_CURSOR = (
    {"tool_name": "Read", "tool_input": {"target_file": "/home/u/proj/a.txt"}},
    {"tool_name": "StrReplace", "tool_input": {"file_path": "/home/u/proj/a.txt"}},
    {"tool_name": "Write", "tool_input": {"file_path": "/home/u/proj/a.txt", "contents": "x"}},
)


def _file_events(client: str) -> list[dict[str, Any]]:
    """What a client reports after it has read, edited or written a file, as it was recorded; Cursor's as documented.
    Codex reads by commands."""
    if client == "cursor":
        event = {"hook_event_name": "postToolUse", "conversation_id": "c", "cwd": "/home/u/proj", "tool_output": "{}"}
        return [{**event, **call} for call in _CURSOR]
    (fixture,) = _FIXTURES.glob(f"{client}_[0-9]*.jsonl")
    events = map(json.loads, fixture.read_text("utf-8").splitlines())
    read = {"hook_event_name": "PostToolUse", "turn_id": "t", "cwd": "/home/u/proj", "tool_name": "Bash"}
    reads = (
        [{**read, "tool_input": {"command": "sed -n '1,200p' a.txt"}, "tool_response": "x"}]
        if client == "codex"
        else []
    )
    return reads + [
        event
        for event in events
        if event.get("hook_event_name") in ("PostToolUse", "AfterTool")
        and event["tool_name"] in _FILE_TOOLS
        and not (isinstance(event.get("tool_response"), dict) and event["tool_response"].get("error"))
    ]


@pytest.mark.parametrize("client", ["claude_code", "codex", "gemini", "opencode", "cursor"])
def test_every_client_is_told_about_the_files_that_it_reads_and_changes(machine: Machine, client: str) -> None:
    """By each tool that reads or changes a file, in the form that the client hands to its model."""
    repo = clone(machine.base / "api")
    _store(machine, repo, title="Texts end with a line feed", content="Always.", files=["a.txt", "new.txt"])
    events = _file_events(client)
    assert len(events) >= 3
    session_name = "conversation_id" if client == "cursor" else "session_id"
    for number, event in enumerate(events):
        here = json.loads(json.dumps(event).replace("/home/u/proj", str(repo)))

        def touched(session: str, number: int = number, here: dict[str, Any] = here) -> str:
            own = f"{session}-{number}"
            return record(machine, **{**here, session_name: own, "tool_use_id": f"{own} call"})

        _, printed = in_time(touched)
        assert "m1 decision" in printed and "Texts end with a line feed" in printed
        assert printed.startswith("Nudge record") == (client == "opencode")


def _edit(machine: Machine, repo: str, session: str, *paths: str) -> None:
    for path in paths:
        _touched(machine, repo, session, "Edit", path)


def _store_in(machine: Machine, repo: str, session: str, **fields: Any) -> Any:
    agent = machine.serve(cwd=repo, CLAUDE_CODE_SESSION_ID=session)
    agent.initialize()
    stored = agent.call("memory_store", **{"kind": "decision", "content": "Always.", **fields})
    found = agent.call("memory_get", id=stored["id"])["memory"]
    assert agent.quit() == 0
    assert stored.get("files", []) == (found.get("metadata", {}).get("files", []) if "files" not in fields else [])
    return found


def _files(note: Any) -> list[str]:
    return list(note.get("metadata", {}).get("files", []))


def test_a_decision_that_is_stored_after_edits_is_about_the_edited_files(machine: Machine) -> None:
    """Those that its text names, else the last ones; not what every change touches, nor what another session changed.
    Files that were given stand alone, and a note that is stored again keeps its own."""
    machine.prepared_server()
    repo = clone(machine.base / "api")
    _edit(machine, repo, "other", "src/theirs.ts")
    _edit(machine, repo, "mine", "package.json", "src/tax.ts", "src/money.ts", "README.md", "pnpm-lock.yaml")
    assert _files(_store_in(machine, repo, "mine", title="Cents only")) == ["src/money.ts", "src/tax.ts"]
    assert _files(_store_in(machine, repo, "mine", title="tax.ts rounds half up")) == ["src/tax.ts"]
    assert _files(_store_in(machine, repo, "mine", title="No dependency in package.json")) == ["package.json"]
    assert _files(_store_in(machine, repo, "mine", title="Given", files=["src/a.ts"])) == ["src/a.ts"]
    assert _files(_store_in(machine, repo, "mine", title="A remark", kind="note")) == []
    assert _files(_store_in(machine, repo, "mine", title="Everywhere", namespace="global")) == []
    assert _files(_store_in(machine, repo, "fresh", title="Nothing was changed")) == []
    _edit(machine, repo, "mine", "src/late.ts")
    assert _files(_store_in(machine, repo, "mine", title="Cents only")) == ["src/money.ts", "src/tax.ts"]
    _, printed = in_time(lambda session: _touched(machine, repo, session, "Read", "src/money.ts"))
    assert "Cents only" in printed and "Given" not in printed
