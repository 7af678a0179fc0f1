"""The examples run as they are, each on a machine of its own, and do what they say."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.shell import environ_with_nudge
from tests.harness import ROOT, Machine

EXAMPLES = ROOT / "examples"
PYTHON = sorted(EXAMPLES.glob("*.py"))


def _run(machine: Machine, *command: str | Path) -> subprocess.CompletedProcess[str]:
    machine.store_settings({})
    return subprocess.run(
        command,
        cwd=machine.base,
        env=environ_with_nudge(machine),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _output(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_needs_nothing_else(path: Path) -> None:
    """An example says what it shows, and imports the standard library and Nudge only."""
    tree = ast.parse(path.read_text())
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert ast.get_docstring(tree)
    assert {name.partition(".")[0] for name in imported} <= {*sys.stdlib_module_names, "nudge"}


def test_two_agents(machine: Machine) -> None:
    """What one agent set, the other one gets, and its credit is seen by the first; both servers end with them."""
    assert _output(_run(machine, sys.executable, "-P", EXAMPLES / "two_agents.py")) == [
        "one learned:  two-agents/test",
        "two was told: DOCKER=1 make test",
        "because:      the suite needs a real router",
        "one sees why: no scope: applies everywhere; recently used (now); worked 1 time, last now",
    ]
    assert machine.pids() == []


def test_http_script(machine: Machine) -> None:
    """A script finds port and token, sets a batch, reads by context, and is told why not."""
    assert _output(_run(machine, sys.executable, "-P", EXAMPLES / "http_script.py")) == [
        "set: v1 v1 v1",
        "on windows: C:\\code\\proxy ['os=windows allowed']",
        "on nothing: E_NOT_FOUND - os unknown, needs darwin",
    ]


def test_history(machine: Machine) -> None:
    """A session that hooks told is found, traced, and gone when it is purged."""
    assert _output(_run(machine, sys.executable, "-P", EXAMPLES / "history.py")) == [
        "failed before: frobnicate --test - exit code 3",
        "it was about:  Make the frobnicator pass its tests",
        "what worked:   FAKE_DEVICE=1 frobnicate --test",
        "cleaned up:    3 observations",
    ]
    assert machine.json("sessions") == []


@pytest.fixture
def pipeline(machine: Machine) -> Callable[..., subprocess.CompletedProcess[str]]:
    return lambda *words: _run(machine, EXAMPLES / "hook_pipeline.sh", *words)


Pipeline = Callable[..., subprocess.CompletedProcess[str]]


def test_hook_pipeline_credits_what_worked(pipeline: Pipeline) -> None:
    """The hint is run, and credited since it worked."""
    assert _output(pipeline()) == ["hello from a hint", "↑ counted a success: worked 1 time, last now"]


def test_hook_pipeline_counts_a_failure(machine: Machine, pipeline: Pipeline) -> None:
    """The failure of the hint is counted, and the pipeline fails as it did."""
    machine.json("set", "api", "test", "exit 7", "--global")
    machine.json("bump", "api", "test", "--delta", "3")
    done = pipeline("api", "test")
    assert done.returncode == 7
    assert done.stdout == "↓ counted a failure: worked 3 times, last now, failed 1 time\n"


def test_hook_pipeline_without_a_hint(pipeline: Pipeline) -> None:
    """No hint: nothing is run, exit 1, and stderr says why."""
    done = pipeline("api", "test")
    assert (done.returncode, done.stdout) == (1, "")
    assert "E_NOT_FOUND" in done.stderr
