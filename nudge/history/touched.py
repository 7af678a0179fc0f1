"""Which paths an event is about, so that a person may have some of them ignored.

Read from what the client says, not from what is kept of it: that is cut to a size, and redacted. Loaded only where
something is
to be ignored.
"""

from __future__ import annotations

import os
import re

from nudge import limits
from nudge.history import tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_FILE_URL = "file://"
_GLOBS = ("glob", "include")  # of a search: which files it looks into
_NAMES_A_PATH = re.compile(r"(?i)path|file|dir|folder|root|source|destination|uri")
_LOOKS_LIKE_A_PATH = ("/", "~/", "./", "../", _FILE_URL)
_HOME = re.compile(r'"?\$(?:HOME\b|\{HOME\})"?')
_BETWEEN_WORDS = re.compile(r"""[\s"'`=;|&<>(),]+""")
_DEEPEST = 4


def touched(payload: Mapping[str, Any]) -> Iterator[str]:
    """Absolute paths, and globs of them, in a translated payload: the directory it happened in, then what the tool was given."""
    call = tools.ToolCall(payload, failed=False)
    yield call.cwd
    found = _of_known_tool(call) if call.kind not in ("", "mcp") else _of_any(call.arguments)
    yield from (os.path.normpath(os.path.join(call.cwd, _plain(path))) for path in found)


def _plain(path: str) -> str:
    return os.path.expanduser(path.strip().removeprefix(_FILE_URL))


def _of_known_tool(call: tools.ToolCall) -> Iterator[str]:
    """By the names of its arguments alone: a text that it writes may look like anything."""
    names = (*tools.PATH_NAMES, *_GLOBS, *(["pattern"] if call.kind == "find" else []))
    yield from (path for name in names if (path := tools.text_of(call.arguments, name)))
    yield from (path for _, path in tools.patched(call))
    yield from _of_command(tools.command_line(call))


def _of_command(command: str) -> Iterator[str]:
    """Any word may be a file of the directory it runs in; of a command that holds a whole text, the first ones, and
    what has a slash."""
    words = dict.fromkeys(_BETWEEN_WORDS.split(_HOME.sub("~", command)))
    for number, word in enumerate(words):
        if "://" not in word and ("/" in word or (word and number < limits.MAX_COMMAND_WORDS)):
            yield word


def _of_any(value: object, name: str = "", depth: int = _DEEPEST) -> Iterator[str]:
    """Of a tool that somebody else made: what is called a path, or looks like one."""
    if isinstance(value, str):
        if "\n" not in value and (_NAMES_A_PATH.search(name) or value.startswith(_LOOKS_LIKE_A_PATH)):
            yield value
    elif depth and isinstance(value, list | dict):
        parts = value.items() if isinstance(value, dict) else ((name, part) for part in value)
        for inner, part in parts:
            yield from _of_any(part, inner, depth - 1)
