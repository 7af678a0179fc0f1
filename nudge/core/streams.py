"""The standard streams of a process whose starter closed them, filled their disk, or stopped reading them; and waiting
for any descriptor. Standard library only."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO


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
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), stream.fileno())
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


def wait_ready(
    readers: Sequence[Any], writers: Sequence[Any] = (), *, timeout: float | None = None
) -> tuple[list[Any], list[Any]]:
    """Wait until a reader can be read or a writer can be written, and return those that can: descriptors, or objects
    with `fileno`. `timeout` is in seconds; None waits without limit."""
    import select  # late: most commands never wait

    if not hasattr(select, "poll"):  # Windows
        readable, writable, _ = select.select(readers, writers, [], timeout)
        return list(readable), list(writable)
    # Not `select.select`, which takes no descriptor above 1023: a client may leave its servers that many open files.
    poll = select.poll()
    wanted: dict[int, int] = {}
    for sources, event in ((readers, select.POLLIN), (writers, select.POLLOUT)):
        for source in sources:
            wanted[_number(source)] = wanted.get(_number(source), 0) | event
    for number, events in wanted.items():
        poll.register(number, events)
    ready = dict(poll.poll(None if timeout is None else timeout * 1000))
    # An end that is closed or broken (POLLHUP, POLLERR) counts as both: reading or writing it shows what is wrong.
    return (
        [source for source in readers if ready.get(_number(source), 0) & ~select.POLLOUT],
        [source for source in writers if ready.get(_number(source), 0) & ~select.POLLIN],
    )


def _number(source: Any) -> int:
    number: int = source if isinstance(source, int) else source.fileno()
    return number
