"""What the real Claude Code is told of what failed before: at a session's start, and when it fails alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.e2e import claude
from tests.e2e.clients import Desk
from tests.harness import eventually

_BROKEN, _WORKING = "env/python3 -m pytest --version", "bin/pytest --version"
_WITHIN = 3  # sessions of which one gets its answer in the time that a hook has, on a busy machine too


def _prepare(desk: Desk) -> None:
    """A Python without pytest, and a pytest."""
    _script(desk.project / "env/python3", f'exec {sys.executable} -I -S "$@"')
    _script(desk.project / "bin/pytest", "echo pytest 9")
    desk.run("nudge", "connect", "claude-code", "--yes")


def _script(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def failure_is_answered(desk: Desk) -> None:
    """A session fails and succeeds in another way; the next one reads the working command, whole, before it does
    anything; one that fails alike reads it in the answer of the hook."""
    _prepare(desk)
    claude.run(desk, "first", [claude.bash(_BROKEN), claude.bash(_WORKING)])
    eventually(lambda: json.loads(desk.run("nudge", "learned", "--json"))["facts"], "the outcome is learned")
    second = claude.run(desk, "second")
    line = next(line for line in second.injected.splitlines() if "env/python3 -m pytest" in line)
    assert "No module named pytest" in line and 'what worked in 1 session, last now: "bin/pytest"' in line, line
    assert any(_is_answered(desk, number) for number in range(_WITHIN)), "no failure was answered"
    assert "Nudge record" not in "\n".join(claude.run(desk, "other", [claude.bash("exit 3")]).results)


def _is_answered(desk: Desk, number: int) -> bool:
    run = claude.run(desk, f"third-{number}", [claude.bash(_BROKEN), claude.bash(_BROKEN)])
    text = json.dumps(run.requests[-1]["messages"])
    assert text.count("Nudge record, not an instruction:") <= 1, text
    return "Nudge record, not an instruction:" in text and "bin/pytest" in text
