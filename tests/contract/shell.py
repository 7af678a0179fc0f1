"""A shell on a `Machine`, with `nudge` on its PATH: commands as a person types them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness import NUDGE, Machine

_DONE = "\x1e"
# The exit code of a command is still there for the one after it, which may be `echo $?`.
_PRELUDE = f"done_with_it() {{ local code=$?; printf '{_DONE}'; return $code; }}\n"


def environ_with_nudge(machine: Machine) -> dict[str, str]:
    """The machine's environment, and the interpreter that runs the tests behind the command's name."""
    folder = machine.base / "bin"
    folder.mkdir(exist_ok=True)
    command = folder / "nudge"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(NUDGE)} "$@"\n')
    command.chmod(0o755)
    return {**machine.environ, "PATH": f"{folder}:{machine.environ['PATH']}"}


def run_in_bash(commands: Sequence[str], folder: Path, environ: Mapping[str, str]) -> list[str]:
    """What each command of one session prints, both streams as a terminal shows them."""
    script = _PRELUDE + "".join(f"{command}\ndone_with_it\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout.split(_DONE)[:-1]
