"""A shell on a `Machine`, with `nudge` on its PATH: commands as a person types them."""

from __future__ import annotations

import contextlib
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.harness import TIMEOUT, Machine

_DONE = "\x1e"
# The exit code of a command is still there for the one after it, which may be `echo $?`.
_PRELUDE = f"done_with_it() {{ local code=$?; printf '{_DONE}'; return $code; }}\n"
_PLAIN = {"NO_COLOR": "1", "COLUMNS": "200"}
# A hook that waits for a busy machine: what it put into the spool instead would come later than what was typed after
# it.
_NUDGE = (
    "import sys; from nudge.core import limits; from nudge.__main__ import main; "
    f"limits.HOOK_TIMEOUT = limits.INJECT_TIMEOUT = {TIMEOUT}; sys.exit(main())"
)


def environ_with_nudge(machine: Machine) -> dict[str, str]:
    """The machine's environment, and the interpreter that runs the tests behind the command's name."""
    machine.store_settings(machine.environ)
    folder = machine.base / "bin"
    folder.mkdir(exist_ok=True)
    command = folder / "nudge"
    command.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-P", "-c", _NUDGE])} "$@"\n')
    command.chmod(0o755)
    return {**machine.environ, "PATH": f"{folder}:{machine.environ['PATH']}"}


def run_in_bash(commands: Sequence[str], folder: Path, environ: Mapping[str, str]) -> list[str]:
    """What each command of one session prints on a terminal, both streams."""
    script = _PRELUDE + "".join(f"{command}\ndone_with_it\n" for command in commands)
    screen, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env={**environ, **_PLAIN},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b"".join(_read(screen)).decode()
    os.close(screen)
    shell.wait(TIMEOUT)
    return shown.replace("\r\n", "\n").split(_DONE)[:-1]


def _read(screen: int) -> Iterator[bytes]:
    """All that is shown, until the last of those who could show more has gone, which Linux reports as an error."""
    with contextlib.suppress(OSError):
        while shown := os.read(screen, 65_536):
            yield shown
