"""Questions to the person at the terminal itself: what is piped or typed ahead is no answer."""

from __future__ import annotations

import os
import sys
from typing import IO, Self

from nudge.repofile.person import TERMINAL

if sys.platform != "win32":
    import termios

_TRIES = 3


class Terminal:
    """The controlling terminal, opened by its name: stdin may be something else by the time of the question."""

    def __enter__(self) -> Self:
        self._file: IO[bytes] = open(TERMINAL, "r+b", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def ask(self, question: str, answers: tuple[str, ...]) -> str:
        """Return one of the answers, in lower case. What was typed before the question is dropped; an empty line, a
        closed terminal and a third answer that is none of them count as an empty line."""
        for _ in range(_TRIES):
            if sys.platform != "win32":
                termios.tcflush(self._file.fileno(), termios.TCIFLUSH)
            self._file.write(f"{question} ".encode(errors="backslashreplace"))
            answer = self._line().strip().lower()
            if answer in answers:
                return answer
            self._file.write(b"that is none of the answers\n")
        return ""

    def _line(self) -> str:
        """One line, of which only the first characters can be an answer."""
        return os.read(self._file.fileno(), 4_096).decode("utf-8", "replace")
