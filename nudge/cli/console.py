"""The two streams: pretty lines or one JSON object on stdout, remarks on stderr."""

from __future__ import annotations

import os
import sys

from nudge.cli.render import Pen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TextIO

_SYMBOLS_NEED = "✔↑↓●○…"


class Console:
    """Where a verb writes. Text that stdout's encoding lacks is escaped, never an error."""

    __slots__ = ("as_json", "is_terminal", "pen")

    def __init__(self, *, as_json: bool, environ: Mapping[str, str] = os.environ) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        self.as_json = as_json
        self.is_terminal = _is_terminal(sys.stdout)
        self.pen = Pen(
            colour=self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
            unicode=_can_encode(sys.stdout),
            width=_width(environ) if self.is_terminal else None,
        )

    def show(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line)

    def remark(self, line: str) -> None:
        print(line, file=sys.stderr)

    def result(self, result: Any, lines: Iterable[str]) -> None:
        """The exact object for a program, or the lines for a person."""
        if self.as_json:
            self.json(result)
        else:
            self.show(lines)

    def json(self, result: Any) -> None:
        print(encoded(result, indent=2 if self.is_terminal else None))


def encoded(result: Any, indent: int | None) -> str:
    """JSON as people read it, or all ASCII when a character in it could steer a terminal or is no Unicode."""
    import json

    separators = None if indent else (",", ":")
    text = json.dumps(result, indent=indent, ensure_ascii=False, separators=separators)
    if text.isascii() or text.replace("\n", "").isprintable():
        return text
    return json.dumps(result, indent=indent, separators=separators)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def _can_encode(stream: TextIO | None) -> bool:
    try:
        _SYMBOLS_NEED.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _width(environ: Mapping[str, str]) -> int | None:
    try:
        return int(environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns) or None
    except (ValueError, OSError):
        return None
