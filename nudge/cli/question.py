"""A question that only a person at a terminal can answer."""

from __future__ import annotations

import sys

from nudge.cli.parsing import Usage


def somebody_is_there() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def agreed(question: str, *, yes: bool = False) -> bool:
    """`--yes` answers it; without it and without a terminal nothing goes ahead. Asked on stderr: stdout is the
    result's."""
    if yes:
        return True
    if not somebody_is_there():
        raise Usage("there is nobody to ask, stdin is no terminal", "add --yes to go ahead")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
