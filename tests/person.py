"""A person at a terminal: a command on a pseudo-terminal of its own, below no agent, wherever the tests run."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tests.harness import NUDGE, TIMEOUT, Machine

# The process that starts the command ends at once, so that nothing of the tests is above the command.
_LAUNCHER = """
import fcntl, os, sys, termios
terminal = int(sys.argv[1])
if os.fork():
    os._exit(0)
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for stream in range(3):
    os.dup2(terminal, stream)
while os.getppid() == int(sys.argv[2]):
    pass
os.execvp(sys.argv[3], sys.argv[3:])
"""
_END = "ended with "


class Person:
    """Runs one command of nudge, reads the screen and types."""

    def __init__(self, machine: Machine, *arguments: str, cwd: str, environ: Mapping[str, str] | None = None) -> None:
        self._run(machine, shlex.join([*NUDGE, *arguments]), cwd, environ or {})

    @classmethod
    def of_shell(cls, machine: Machine, line: str, *, cwd: str, environ: Mapping[str, str] | None = None) -> Self:
        """What happens when this line is typed into a shell."""
        person = cls.__new__(cls)
        person._run(machine, line, cwd, environ or {})
        return person

    def _run(self, machine: Machine, line: str, cwd: str, environ: Mapping[str, str]) -> None:
        machine.store_settings({})
        command = ["/bin/sh", "-c", f'{line}; echo "{_END}$?"']
        self.screen = ""
        self._master, slave = os.openpty()
        launcher = "import os, sys\nsys.argv.insert(2, str(os.getpid()))\n" + _LAUNCHER
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", launcher, str(slave), *command],
            env={**machine.environ, "TERM": "dumb", **environ},
            cwd=cwd,
            pass_fds=[slave],
            check=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._master)

    def sees(self, text: str) -> str:
        """Wait until the text is on the screen behind what was seen before; return everything up to there."""
        until = time.monotonic() + TIMEOUT
        while text not in self.screen:
            assert self._read(until), f"{text!r} is not on the screen:\n{self.screen}"
        seen, mark, self.screen = self.screen.partition(text)
        return seen + mark

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def answers(self, question: str, answer: str) -> str:
        """Wait for a question, then type the answer and Enter."""
        seen = self.sees(question)
        seen += self.sees("]")
        self.types(f"{answer}\n")
        return seen

    def ends(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was on the screen."""
        seen = self.sees(_END).removesuffix(_END)
        return int(self.sees("\n").strip()), seen

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(until - time.monotonic(), 0))
        data = b""
        if ready:
            with contextlib.suppress(OSError):  # the last process has closed the terminal
                data = os.read(self._master, 65_536)
        self.screen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
