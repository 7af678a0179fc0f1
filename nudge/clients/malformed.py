"""A configuration that we do not understand well enough to touch."""

from __future__ import annotations


class Malformed(ValueError):
    """`line` counts from 1; None when the whole of it is meant."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
