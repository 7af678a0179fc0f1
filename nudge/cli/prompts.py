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

yes_option = option("--yes", is_flag=True, help="Go ahead without asking for confirmation.")


def ask(question: str, *, yes: bool) -> bool:
    """Return the answer of the user; True without asking if `yes`. Raise Usage when stdin is not a terminal."""
    if yes:
        return True
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        raise Usage("cannot ask for confirmation: stdin is not a terminal", "add --yes to go ahead")
    return click.confirm(question, default=False, prompt_suffix=" ", err=True)


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
