"""How a command for a nested directory is typed at the root, whatever that directory is called."""

from __future__ import annotations

import re
import shlex

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*")


def argument(path: str) -> str:
    """`path` as one word of a command line that no tool takes for an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def within(rel: str, cmd: str) -> str:
    """For tools with no directory switch of their own."""
    return f"cd {argument(rel)} && {cmd}" if rel else cmd


def is_plain_word(text: object) -> bool:
    """A name that a manifest gives (a session, a service, a package) and that needs no quoting."""
    return isinstance(text, str) and _PLAIN_WORD.fullmatch(text) is not None
