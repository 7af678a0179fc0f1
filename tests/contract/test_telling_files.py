"""What a session is told when it reads or edits a file."""

from __future__ import annotations

import json
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
