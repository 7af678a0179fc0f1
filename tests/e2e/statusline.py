"""The status line in the real Claude Code, at a terminal."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e import claude
from tests.e2e.clients import Desk
from tests.harness import TIMEOUT

_ROWS, _COLUMNS, _REDRAWN_EVERY = 40, 140, 1.0
_ESCAPES = re.compile(rb"\x1b\[[0-9;?>]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?")


def status_line_is_shown(desk: Desk) -> None:
    """`nudge connect claude-code --statusline` puts our line below the prompt: what this session was told at its start;
    then that it used it."""
    _skip_first_questions(desk)
    desk.run("nudge", "connect", "claude-code", "--statusline", "--yes")
    (desk.project / "Makefile").write_text("test:\n\t@echo 5 passed\n")
    desk.run("nudge", "set", "api", "test", "make test", "--scope-cwd-glob", f"{desk.project}/**")
    with _terminal(desk, claude.bash("make test")) as terminal:
        _wait_for(terminal, "nudge: told 1, used 0")
        os.write(terminal, b"run the tests")
        _wait_for(terminal, "run the tests")
        os.write(terminal, b"\r")
        _wait_for(terminal, "nudge: told 1, used 1")


def _skip_first_questions(desk: Desk) -> None:
    """What a user has answered before: the theme, the key, whether to trust this directory and to run the tests."""
    trusted = {str(desk.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    answered = {"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted}
    state = {**answered, "customApiKeyResponses": {"approved": [claude.API_KEY]}}
    (desk.machine.home / ".claude.json").write_text(json.dumps(state))
    settings = {"permissions": {"allow": ["Bash(make test)"]}}
    (desk.machine.home / ".claude").mkdir()
    (desk.machine.home / ".claude/settings.json").write_text(json.dumps(settings))


@contextmanager
def _terminal(desk: Desk, *steps: claude.Step) -> Iterator[int]:
    """The descriptor of a terminal in which Claude Code runs, whose model plays these steps when it is asked."""
    with claude.model(desk.machine.base / "terminal", steps) as port:
        environ = {**desk.environ, **claude.environ_for(port), "TERM": "xterm-256color"}
        pid, descriptor = pty.fork()
        if pid == 0:
            os.chdir(desk.project)
            os.execvpe("claude", ["claude"], environ)  # noqa: S606
        _resize(descriptor, _COLUMNS)
        try:
            yield descriptor
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(descriptor)


def _resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))


def _wait_for(terminal: int, text: str) -> None:
    """Read until the text was drawn. Only what changes is drawn, but for a terminal of another size everything."""
    drawn, until, columns = b"", time.monotonic() + TIMEOUT, itertools.cycle((_COLUMNS - 1, _COLUMNS))
    while text.replace(" ", "") not in re.sub(r"\s", "", _plain(drawn)):
        assert time.monotonic() < until, f"{text!r} was not drawn: {_plain(drawn)[-2_000:]}"
        if select.select([terminal], [], [], _REDRAWN_EVERY)[0]:
            drawn += os.read(terminal, 65_536)
        else:
            _resize(terminal, next(columns))


def _plain(drawn: bytes) -> str:
    return _ESCAPES.sub(b" ", drawn).decode(errors="replace")
