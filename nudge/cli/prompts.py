"""Questions and progress bars. Both go to stderr, since stdout is for the result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat

import click

from nudge.cli.output import Console, Usage
from nudge.cli.params import option

_TICK = 1.0  # seconds
_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}

yes_option = option("--yes", is_flag=True, help="Go ahead without asking for confirmation.")


def can_ask() -> bool:
    """Return whether stdin is a terminal, so that somebody can answer a question."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def ask(question: str, *, yes: bool) -> bool:
    """Return the answer of the user; True without asking if `yes`. Raise Usage when stdin is not a terminal.

    A verb that is told no says that nothing was changed or deleted, and exits with EXIT_REFUSED."""
    if yes:
        return True
    if not can_ask():
        raise Usage("cannot ask for confirmation: stdin is not a terminal", "add --yes to go ahead")
    while True:
        answer = click.prompt(f"{question} [y/N]", default="", show_default=False, prompt_suffix=" ", err=True)
        if answer.strip().lower() in _ANSWERS:
            return _ANSWERS[answer.strip().lower()]
        click.echo("answer y or n", err=True)


@contextmanager
def progress(console: Console, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, and yield the function that advances it. A `total` of None is not known in
    advance; 0 shows no bar."""
    if console.as_json or total == 0 or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
    elif total is None:
        with click.progressbar(repeat(None), label=label, show_pos=True, file=sys.stderr) as endless:
            yield endless.update
    else:
        with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
            yield bar.update


@contextmanager
def waiting(console: Console, label: str) -> Iterator[None]:
    """Show a bar that counts seconds while a single long call runs."""
    done = threading.Event()
    with progress(console, label, None) as advance:

        def tick() -> None:
            while not done.wait(_TICK):
                advance(1)

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
