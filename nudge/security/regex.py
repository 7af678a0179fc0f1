"""Regular expressions that users write. RE2 runs them: it never backtracks, so time is linear in the text."""

from __future__ import annotations

from typing import Any

from nudge import limits
from nudge.errors import Invalid
from nudge.security.secrets import redact

_TOO_LARGE = (
    "is too large for a search; write ranges such as [a-z] for classes such as \\pL, count lower in {n,m}, "
    "or search for less"
)


class Regex:
    """A pattern that is searched for anywhere in a text."""

    __slots__ = ("_program", "pattern")

    def __init__(self, pattern: str, program: Any) -> None:
        self.pattern, self._program = pattern, program

    def search(self, text: str | bytes) -> bool:
        """Bytes are UTF-8. A lone surrogate in a text becomes a question mark, which a wildcard still matches."""
        encoded = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        return self._program.search(encoded) is not None

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


def compile_regex(pattern: str, field: str) -> Regex:
    import re2  # late: 14 ms to import, and few callers search by regex

    if len(pattern) > limits.MAX_PATTERN_CHARS:
        raise Invalid(f"must be at most {limits.MAX_PATTERN_CHARS} characters", field=field)
    options = re2.Options()
    options.log_errors = False  # stderr belongs to the client's terminal
    options.max_mem = limits.MAX_REGEX_MEMORY_BYTES
    options.never_capture = True
    try:
        program = re2.compile(pattern, options)
    except re2.error as error:
        raise Invalid(f"not a regular expression that RE2 can compile: {_message(error)}", field=field) from None
    except UnicodeEncodeError:
        raise Invalid("must be text that UTF-8 can carry", field=field) from None
    if program.programsize > limits.MAX_REGEX_PROGRAM:
        raise Invalid(_TOO_LARGE, field=field)
    return Regex(pattern, program)


def _message(error: Exception) -> str:
    """RE2 repeats a part of the pattern, which may contain a credential."""
    reason = error.args[0] if error.args else "unknown"
    return redact(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))
