"""Whether a person is at the terminal: the one who may trust a file. An agent that runs a command is known by the
variables that its client sets, its own or those of a process above, and by the names of the processes above.

This cannot be proof: an agent runs as the same user, and what its client does not mark looks like a person. It keeps an
agent from trusting a file on its way, and a file from being trusted by what it makes an agent run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nudge.clients import registry

TERMINAL = "/dev/tty"
_INTERPRETERS = ("node", "nodejs", "bun", "deno", "python", "sh", "bash", "dash", "zsh")
_CODE = frozenset(("-c", "-e", "-m"))  # options of theirs behind which no script is named
_MOST_PARENTS = 64
_TIMEOUT = 2.0  # seconds for `ps` and `tmux`


class Process(NamedTuple):
    """A running process; `environ` is None where it cannot be read."""

    pid: int
    parent: int
    name: str
    arguments: list[str]
    environ: Mapping[str, str] | None

    def is_named(self, names: frozenset[str]) -> str | None:
        """The name of these under which it runs: its own, or that of the script that an interpreter runs."""
        words = [self.name, *map(os.path.basename, self.arguments[:1])]
        if words[-1].rstrip("0123456789.") in _INTERPRETERS and not _CODE.intersection(self.arguments[1:2]):
            script = next((word for word in self.arguments[1:] if not word.startswith("-")), "")
            words.append(os.path.basename(script))
        return next((word for word in words if word in names), None)


def why_nobody() -> str | None:
    """Why no person can be asked here, or None."""
    if not is_terminal():
        return "stdin and stdout are not a terminal"
    if reason := why_agent(os.environ, [*parents(os.getpid())]):
        return reason
    if (session := os.environ.get("TMUX", "")) and shutil.which("tmux"):
        viewers = [*_tmux_viewers(session)]
        return why_agent({}, viewers) if viewers else "nobody looks at this tmux session"
    return None


def is_terminal() -> bool:
    """Whether both stdin and stdout are a terminal, and this process has one of its own."""
    for stream in (sys.stdin, sys.stdout):
        if stream is None or stream.closed or not stream.isatty():
            return False
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False
    return True


def why_agent(environ: Mapping[str, str], above: list[Process]) -> str | None:
    """Why this looks like a command of an agent, or None."""
    names, variables = registry.process_names(), registry.shell_variables()
    if variable := _set_one(variables, environ):
        return f"an agent runs this: {variable} is set"
    for process in above:
        if variable := _set_one(variables, process.environ or {}):
            return f"an agent runs this: {variable} is set for {process.name} (pid {process.pid}), which started it"
        if name := process.is_named(names):
            return f"an agent runs this: {name} (pid {process.pid}) started it"
    return None


def _set_one(variables: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((name for name in variables if environ.get(name)), None)


# Processes


def parents(pid: int) -> Iterator[Process]:
    """Yield the processes above one, the nearest first."""
    process = _read(pid)
    for _ in range(_MOST_PARENTS):
        process = _read(process.parent) if process is not None and process.parent > 0 else None
        if process is None:
            return
        yield process


def _read(pid: int) -> Process | None:
    return _read_proc(pid) if os.path.isdir("/proc/self") else _ask_ps(pid)


def _read_proc(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            before, _, after = file.read().decode("utf-8", "replace").rpartition(")")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    return Process(pid, int(after.split()[1]), before.partition("(")[2], arguments, _read_environ(pid))


def _read_environ(pid: int) -> Mapping[str, str] | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    return {name: value for name, _, value in (entry.partition("=") for entry in entries)}


def _ask_ps(pid: int) -> Process | None:
    fields = _output("ps", "-o", "ppid=,command=", "-p", str(pid)).split(None, 1)
    if len(fields) < 2 or not fields[0].isdecimal():
        return None
    arguments = fields[1].split()
    return Process(pid, int(fields[0]), os.path.basename(arguments[0]), arguments, None)


# tmux


def _tmux_viewers(session: str) -> Iterator[Process]:
    """Yield the clients of tmux that show the session that `TMUX` names, and what is above each: tmux runs commands
    below its server, wherever the one who looks is."""
    socket, _, number = session.split(",", 2) if session.count(",") >= 2 else (session, "", "")
    target = ("-t", f"${number}") if number else ()
    for line in _output("tmux", "-S", socket, "list-clients", *target, "-F", "#{client_pid}").split():
        if line.isdecimal() and (client := _read(int(line))) is not None:
            yield client
            yield from parents(client.pid)


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
