"""The verb `nudge note shell`: verbs of notes, typed at a prompt of its own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from nudge.cli import app
from nudge.cli.app import verb
from nudge.cli.output import EXIT_BROKEN_PIPE, EXIT_OK
from nudge.cli.plain import Invocation
from nudge.cli.verbs import NOTES

_SHELL_PROMPT = "note> "
_SHELL_HELP = (
    ("recall WORDS", "find notes with any of the words"),
    ("search WORDS", "find notes with all of the words"),
    ("list [REPO]", "list notes"),
    ("get ID", "show a note in full"),
    ("stats", "count notes"),
    ("repos", "list the repos that have notes"),
    ("delete ID", "delete a note permanently"),
    ("help", "show this"),
    ("quit", "leave; so does Ctrl-D"),
)
_SHELL_VERBS = ("recall", "search", "list", "get", "stats", "repos", "namespaces", "delete")


@verb(
    "note shell",
    "nudge note shell",
    "printf 'recall sqlite\\nstats\\n' | nudge note shell",
    group=NOTES,
    summary="browse notes at a prompt",
)
def shell(invocation: Invocation) -> int:
    """Each line is a command: recall, search, list, get, stats, repos, delete, help or quit. They take the options of
    `nudge note COMMAND`. Reads lines from stdin when it is not a terminal."""
    global_options = ["--json"] if invocation.as_json else []
    global_options += ["--port", str(invocation.port)] if invocation.port is not None else []
    for line in _read_lines():
        command, *rest = line.split()
        if command in ("quit", "exit"):
            break
        if command == "help":
            width = max(len(name) for name, _ in _SHELL_HELP)
            invocation.console.show(f"{name.ljust(width)}  {meaning}" for name, meaning in _SHELL_HELP)
        elif command not in _SHELL_VERBS:
            invocation.console.note(f"unknown command {command!a}; try: help")
        elif app.main([*global_options, "note", command, *_verb_arguments(command, rest)]) == EXIT_BROKEN_PIPE:
            return EXIT_BROKEN_PIPE
    return EXIT_OK


def _verb_arguments(command: str, rest: list[str]) -> list[str]:
    """Return the arguments of the verb: `list REPO` is the one command that differs from it."""
    if command == "list" and rest and not rest[0].startswith("-"):
        return ["--repo", *rest]
    return rest


def _read_lines() -> Iterator[str]:
    """Yield the lines of stdin that are not empty; at a terminal with a prompt, line editing and history."""
    if sys.stdin is None or sys.stdin.closed:
        return
    if not sys.stdin.isatty():
        yield from (line for line in sys.stdin if line.strip())
        return
    with contextlib.suppress(ImportError):  # not in every build of Python; `input` uses it when it is loaded
        import readline  # noqa: F401
    while True:
        try:
            line = input(_SHELL_PROMPT)
        except KeyboardInterrupt:
            print()
            continue
        except EOFError:
            print()
            return
        if line.strip():
            yield line
