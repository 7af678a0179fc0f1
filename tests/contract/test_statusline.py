"""`nudge statusline` as Claude Code runs it: one line, or nothing, and never an error."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.contract.repos import clone
from tests.contract.scripted import Agent
from tests.harness import Machine, eventually

BROKEN, ANSWER = "/usr/bin/python3 -m pytest tests/a.py", "pytest tests/a.py"
ERROR = "Exit code 1\n/usr/bin/python3: No module named pytest"


def _payload(session: str, cwd: str) -> dict[str, Any]:
    """What Claude Code documents that it sends."""
    return {
        "hook_event_name": "Status",
        "session_id": session,
        "transcript_path": f"/home/me/.claude/projects/x/{session}.jsonl",
        "cwd": cwd,
        "model": {"id": "claude-opus-4-1", "display_name": "Opus"},
        "workspace": {"current_dir": cwd, "project_dir": cwd},
        "version": "2.1.325",
        "output_style": {"name": "default"},
        "cost": {"total_cost_usd": 0.01, "total_duration_ms": 45_000, "total_lines_added": 156},
        "context_window": {"context_window_size": 200_000, "current_usage": None},
    }


def _shown(machine: Machine, session: str, cwd: str, **environ: str) -> str:
    """What it prints; its exit code is always 0, and it says nothing on stderr."""
    done = machine.cli("statusline", cwd=str(machine.base), stdin=json.dumps(_payload(session, cwd)), **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_it_counts_what_the_session_was_told_and_who_is_at_work(machine: Machine) -> None:
    """The session's own lines, and other sessions in this clone that acted lately; neither those of another clone, nor
    those that only began, nor those that ended."""
    repo, other = clone(machine.base / "api"), clone(machine.base / "web")
    machine.prepared_server()
    assert _shown(machine, "s2", repo) == "", "there is nothing to say"
    first = Agent(machine, "s1", repo)
    first.fails(BROKEN, ERROR)
    first.runs(ANSWER)
    Agent(machine, "elsewhere", other).runs("make")
    Agent(machine, "idle", repo).start()
    assert _shown(machine, "s2", repo) == "nudge: 1 other at work here\n"
    assert _shown(machine, "s1", repo) == ""
    agent = Agent(machine, "s2", repo)
    assert agent.fails(BROKEN, ERROR)
    line = "nudge: told 1, used {}; 1 other at work here\n"
    eventually(lambda: _shown(machine, "s2", repo) == line.format(0), "the line is in the ledger")
    agent.runs(ANSWER)
    eventually(lambda: _shown(machine, "s2", f"{repo}/") == line.format(1), "its use is, too")
    first.ends()
    assert _shown(machine, "s2", repo) == "nudge: told 1, used 1\n"


@pytest.mark.parametrize("stdin", ["", "{", "[]", "{}", '{"workspace": 7, "session_id": {}}', "\xff" * 100])
def test_it_says_nothing_about_what_it_does_not_understand(machine: Machine, stdin: str) -> None:
    """Whatever is on stdin: an error would be shown in place of the line."""
    machine.prepared_server()
    done = machine.cli("statusline", stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_empty_without_a_server(machine: Machine) -> None:
    """It starts none, makes no directory, and does not wait for one that is suspended."""
    repo = clone(machine.base / "api")
    machine.store_settings({})
    before = sorted(Path(machine.runtime).rglob("*"))
    assert _shown(machine, "s1", repo) == ""
    assert sorted(Path(machine.runtime).rglob("*")) == before
    server = machine.http_only()
    Agent(machine, "s2", repo).runs("make")
    assert _shown(machine, "s1", repo) == "nudge: 1 other at work here\n"
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert _shown(machine, "s1", repo) == ""
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert _shown(machine, "s1", repo, NUDGE_OFF="1") == ""
    machine.cli("off", cwd=repo)
    assert _shown(machine, "s1", repo) == ""
