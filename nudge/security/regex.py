"""Regular expressions that users write. RE2 runs them: it never backtracks, so the time is linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from nudge import limits
from nudge.errors import Invalid
from nudge.security.secrets import redact

_TOO_LARGE = (
    "is too large for a search; write ranges such as [a-z] for classes such as \\pL, count lower in {n,m}, "
    "or search for less"
)


# `\A` and `\z` mean the whole text whatever the flags; a flag group may take the multi-line flag away.
_BEYOND_LINES = re.compile(r"\\[AzQC]|\(\?[a-zA-Z]*-")


class Regex:
    """A pattern that is searched for anywhere in a text."""

    __slots__ = ("_lines", "_program", "pattern")

    def __init__(self, pattern: str, program: Any, lines: Any) -> None:
        self.pattern, self._program, self._lines = pattern, program, lines

    def search(self, text: str) -> bool:
        """Whether the pattern occurs in the text. A lone surrogate counts as a question mark."""
        return self._program.search(text.encode("utf-8", "replace")) is not None

    def candidates(self, blobs: Sequence[bytes]) -> Iterator[int]:
        """Yield the indexes of the blobs that may contain a match; the others contain none. A blob is UTF-8, one text
        per line. All are searched in one call: a call of RE2 takes 4 us before it reads a byte."""
        if self._lines is None:
            yield from range(len(blobs))
            return
        text = b"\n".join(blobs)
        match = self._lines.search(text)
        if match is None:
            return
        starts = list(accumulate((len(blob) + 1 for blob in blobs), initial=0))
        while match is not None:
            number = min(bisect_right(starts, match.start()), len(blobs)) - 1
            yield number
            start = starts[number + 1]
            match = self._lines.search(text, start) if start <= len(text) else None

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


def compile_regex(pattern: str, field: str) -> Regex:
    """Compile a user's pattern. Raises Invalid, which names the field, for one that is malformed or too expensive."""
    import re2  # late: 14 ms to import, and few callers search by regex

    if len(pattern) > limits.MAX_PATTERN_CHARS:
        raise Invalid(f"must be at most {limits.MAX_PATTERN_CHARS} characters", field=field)
    options = re2.Options()
    options.log_errors = False  # stderr belongs to the client's terminal
    options.max_mem = limits.MAX_REGEX_MEMORY_BYTES
    options.never_capture = True
    try:
        program = re2.compile(pattern, options)
        lines = None if _BEYOND_LINES.search(pattern) else re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        raise Invalid(f"not a regular expression that RE2 can compile: {_message(error)}", field=field) from None
    except UnicodeEncodeError:
        raise Invalid("must be valid Unicode text", field=field) from None
    if program.programsize > limits.MAX_REGEX_PROGRAM:
        raise Invalid(_TOO_LARGE, field=field)
    return Regex(pattern, program, lines)


def _message(error: Exception) -> str:
    """Return RE2's message, redacted: it quotes a part of the pattern, which may contain a credential."""
    reason = error.args[0] if error.args else "unknown"
    return redact(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))
