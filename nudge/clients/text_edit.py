"""Edits of a text that another program owns, recorded so that exactly our changes can be undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Undo = tuple[int, int, str]  # position in the edited text, number of characters to remove, text to put there


class Malformed(ValueError):
    """A configuration file that cannot be edited safely. `line` counts from 1; None means the whole file."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    origin: int | None  # position in the original; None for text that was added


class EditBuffer:
    """A text that is being edited, as pieces that know their position in the original."""

    def __init__(self, original: str) -> None:
        self._original = original
        self._pieces = [_Piece(original, 0)]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self._pieces)

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a part; positions are those in the current text."""
        self._pieces = [*self._before(start), _Piece(text, None), *self._after(end)]

    def insert(self, at: int, text: str) -> None:
        self.replace(at, at, text)

    def delete(self, start: int, end: int) -> None:
        self.replace(start, end, "")

    def undo(self) -> list[Undo]:
        """Return the steps from the current text back to the original; they contain only those parts of the original
        that were replaced."""
        steps: list[Undo] = []
        here = added = resumes = 0
        for piece in [*self._pieces, _Piece("", len(self._original))]:
            if piece.origin is None:
                added += len(piece.text)
            else:
                removed = self._original[resumes : piece.origin]
                if added or removed:
                    steps.append((here - added, added, removed))
                added, resumes = 0, piece.origin + len(piece.text)
            here += len(piece.text)
        return steps

    def _before(self, end: int) -> list[_Piece]:
        kept, here = [], 0
        for piece in self._pieces:
            part = piece.text[: max(end - here, 0)]
            if part:
                kept.append(_Piece(part, piece.origin))
            here += len(piece.text)
        return kept

    def _after(self, start: int) -> list[_Piece]:
        kept, here = [], 0
        for piece in self._pieces:
            skipped = min(max(start - here, 0), len(piece.text))
            if skipped < len(piece.text):
                kept.append(_Piece(piece.text[skipped:], None if piece.origin is None else piece.origin + skipped))
            here += len(piece.text)
        return kept


def undo(text: str, steps: Iterable[Undo]) -> str:
    """Apply the steps, the last one first, so that the positions of the earlier ones stay valid."""
    for at, length, restored in reversed(list(steps)):
        text = text[:at] + restored + text[at + length :]
    return text
