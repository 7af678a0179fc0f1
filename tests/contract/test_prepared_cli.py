"""Commands that tests run in forks of a prepared interpreter do what they do in one of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.harness import NUDGE, Machine

TEXT = "make lint – ünïcode 你好\n"
LINES = {
    "click": ("ls",),
    "the thin front": ("get", "api/test"),
    "JSON": ("query", "nudge", "--json"),
    "an error": ("get", "nowhere", "x"),
    "a usage error": ("get", "--nonsense"),
    "help": ("memory", "--help"),
    "text from stdin": ("import", "-"),
    "text that is not ASCII": ("get", "api", "grüße"),
    "bytes that are no text": ("get", "api", "\udcff"),
    "a hook": ("record",),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Machine]:
    machine = Machine()
    try:
        machine.prepared_server()
        machine.json("set", "api", "test", "-", "--global", stdin=TEXT)
        machine.json("set", "api", "grüße", TEXT, "--global")
        yield machine
    finally:
        machine.close()


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_command_ends_and_prints_alike(server: Machine, line: tuple[str, ...]) -> None:
    """Exit code and both streams."""
    prepared = server.cli(*line, stdin=TEXT)
    own = subprocess.run(
        [*NUDGE, *line], input=TEXT, capture_output=True, text=True, check=False, env=server.environ, cwd=server.base
    )
    assert (prepared.returncode, prepared.stdout, prepared.stderr) == (own.returncode, own.stdout, own.stderr)
