"""A `config.toml` that cannot be used stops no command without a word: it says what to mend, and `doctor` finds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Machine

EVENT = '{"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/tmp", "prompt": "hello"}'


def _too_deep(path: Path) -> None:
    path.write_text("ignore = " + "[" * 50_000)


def _no_days(path: Path) -> None:
    path.write_text('ignore = []\nretention = "command=0"')


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "problem"),
    [(_too_deep, "nested too deep"), (_pipe, "not a regular file"), (_no_days, "days must be a whole number from 1")],
)
def test_settings_that_cannot_be_used(machine: Machine, make: Callable[[Path], None], problem: str) -> None:
    """Commands and hooks end with a sentence that names the file; `doctor` reports it with the command that opens the
    file, or removes what is none, and exits with an error."""
    file = machine.base / "config.toml"
    make(file)
    machine.environ["NUDGE_CONFIG"] = str(file)
    for command in (["ls"], ["set", "a", "b", "c"], ["remember", "x"], ["serve", "--http-only"]):
        refused = machine.cli(*command)
        assert refused.returncode == 3, (command, refused)
        assert problem in refused.stderr and str(file) in refused.stderr
        assert "Traceback" not in refused.stderr
    hook = machine.cli("record", stdin=EVENT)
    assert hook.returncode == 1 and problem in hook.stderr, hook
    found = machine.cli("doctor")
    fix = f"vi}} {file}" if file.is_file() else f"fix: rm {file}"
    assert found.returncode == 3 and problem in found.stdout and fix in found.stdout, found
