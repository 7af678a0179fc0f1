"""`nudge memory shell`: a prompt for browsing notes. Each line is run as the verb of the same name."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from nudge.cli import app
from nudge.cli.app import verb
from nudge.cli.output import EXIT_BROKEN_PIPE, EXIT_OK
from nudge.cli.plain import Invocation

_PROMPT = "memory> "
_HELP = (
    ("recall WORDS", "find notes with any of the words"),
    ("search WORDS", "find notes with all of the words"),
    ("list [NAMESPACE]", "list notes"),
    ("get ID", "show a note in full"),
    ("stats", "count notes"),
    ("namespaces", "list namespaces"),
    ("delete ID", "delete a note permanently"),
    ("help", "show this"),
    ("quit", "leave; so does Ctrl-D"),
)
_VERBS = ("recall", "search", "list", "get", "stats", "namespaces", "delete")


@verb("memory shell", "nudge memory shell", "printf 'recall sqlite\\nstats\\n' | nudge memory shell")
def shell(invocation: Invocation) -> int:
    """Commands: recall, search, list, get, stats, namespaces, delete, help, quit. They take the options of their
    verbs."""
    before = ["--json"] if invocation.as_json else []
    before += ["--port", str(invocation.port)] if invocation.port is not None else []
    for line in _lines():
        command, *rest = line.split()
        if command in ("quit", "exit"):
            break
        if command == "help":
            width = max(len(name) for name, _ in _HELP)
            invocation.console.show(f"{name.ljust(width)}  {meaning}" for name, meaning in _HELP)
        elif command not in _VERBS:
            invocation.console.note(f"unknown command {command!a}; try: help")
        elif app.main([*before, "memory", command, *_arguments(command, rest)]) == EXIT_BROKEN_PIPE:
            return EXIT_BROKEN_PIPE
    return EXIT_OK


def _arguments(command: str, rest: list[str]) -> list[str]:
    """`list NAMESPACE` is the one command that differs from its verb."""
    if command == "list" and rest and not rest[0].startswith("-"):
        return ["--namespace", *rest]
    return rest


def _lines() -> Iterator[str]:
    """The lines that are typed, with history and editing at a terminal, until the end of stdin; none is empty."""
    if sys.stdin is None or sys.stdin.closed:
        return
    if not sys.stdin.isatty():
        yield from (line for line in sys.stdin if line.strip())
        return
    with contextlib.suppress(ImportError):  # not in every build of Python; `input` uses it when it is loaded
        import readline  # noqa: F401
    while True:
        try:
            line = input(_PROMPT)
        except KeyboardInterrupt:
            print()
            continue
        except EOFError:
            print()
            return
        if line.strip():
            yield line
