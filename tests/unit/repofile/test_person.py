"""What shows that an agent, not a person, runs a command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from nudge.clients import registry
from nudge.repofile.person import Process, parents, why_agent

PLAIN = {"PATH": "/bin", "TERM": "xterm"}


def process(name: str, *arguments: str, **environ: str) -> Process:
    return Process(7, 1, name, list(arguments or (name,)), environ)


SHELLS = [process("zsh", "-zsh"), process("gnome-terminal-", "/usr/libexec/gnome-terminal-server"), process("systemd")]


def test_a_person_in_a_shell_is_one() -> None:
    """Also in the terminal of an editor, and with a file that is called like a client."""
    assert why_agent(PLAIN, SHELLS) is None
    assert why_agent(PLAIN, [process("zsh"), process("cursor", "/opt/cursor/cursor"), process("code")]) is None
    assert (
        why_agent(PLAIN, [process("vim", "vim", "claude"), process("bash", "bash", "-c", "less notes/claude")]) is None
    )


@pytest.mark.parametrize("variable", registry.shell_variables())
def test_each_variable_that_clients_set_tells(variable: str) -> None:
    """Its own, or that of any process above: `env -i` clears only the first."""
    assert variable in str(why_agent({**PLAIN, variable: "1"}, SHELLS))
    assert variable in str(
        why_agent(PLAIN, [SHELLS[0], process("script", "script", "-qc", "nudge trust", **{variable: "1"})])
    )


@pytest.mark.parametrize(
    "above",
    [
        process("claude"),
        process("MainThread", "/usr/local/bin/claude", "--print"),
        process("node", "node", "--no-warnings", "/usr/local/bin/gemini"),
        process("bun", "bun", "/home/me/.bun/bin/opencode"),
        process("codex", "/opt/codex", "exec"),
        process("python3.12", "python3.12", "/usr/bin/codex"),
        process("cursor-agent"),
    ],
)
def test_each_client_above_tells(above: Process) -> None:
    assert "an agent runs this" in str(why_agent(PLAIN, [*SHELLS, above]))


def test_the_processes_above_are_read() -> None:
    """With their names, arguments and variables."""
    script = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    shown = (
        "import os\nfrom nudge.repofile.person import parents\n"
        "one = next(parents(os.getpid()))\nprint(one.pid == os.getppid(), one.arguments[1], one.environ['MARK'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, shown],
        capture_output=True,
        text=True,
        check=True,
        env={"MARK": "here", "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if sys.platform == "linux":
        assert done.stdout == "True -c here\n"
    assert next(parents(os.getpid())).pid == os.getppid()
