"""The standard streams of a process whose starter closed them, filled their disk, or stopped reading them. Standard
library only."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def note(line: str) -> bool:
    """Print a line to stderr; drop it when stderr is closed or cannot be written. Return False when its reader is
    gone."""
    stream = sys.stderr
    if stream is None or stream.closed:  # `print` would take stdout for None
        return True
    try:
        print(line, file=stream, flush=True)
    except OSError as error:
        silence(stream)
        return not isinstance(error, BrokenPipeError)
    return True


def silence(stream: TextIO | None) -> None:
    """Drop what the stream has buffered and gets from now on: an error while the interpreter flushes it at exit would
    change the exit code."""
    if stream is None:
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except OSError:  # there is no descriptor behind the stream, or none is free
        pass


def open_missing() -> None:
    """Open the null device for each standard descriptor that is closed. The next file that is opened would get its
    number: a client's pipe, or a lock, would then be what a child process or a library writes its errors to."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
