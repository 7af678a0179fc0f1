"""The paths that an event is about, to compare with the user's globs of paths to ignore.

They are read from the translated payload, since the event is cut and redacted. A hook imports this module, and with it
`re`, only when there are such globs.
"""

from __future__ import annotations

import os
import re

from nudge import limits
from nudge.history.observations import PATH_NAMES, ToolCall, command_line, patched_files
from nudge.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_FILE_URL = "file://"
_GLOBS = ("glob", "include")  # arguments of a search: the files that it reads
_NAMES_A_PATH = re.compile(r"(?i)path|file|dir|folder|root|source|destination|uri")
_LOOKS_LIKE_A_PATH = ("/", "~/", "./", "../", _FILE_URL)
_HOME = re.compile(r'"?\$(?:HOME\b|\{HOME\})"?')
_BETWEEN_WORDS = re.compile(r"""[\s"'`=;|&<>(),]+""")
_DEEPEST = 4


def event_paths(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield absolute paths and globs: the working directory, then those in the tool's arguments."""
    call = ToolCall(payload, failed=False)
    yield call.cwd
    arguments = _known_arguments(call) if call.kind not in ("", "mcp") else _any_arguments(call.arguments)
    yield from (os.path.normpath(os.path.join(call.cwd, _expand(path))) for path in arguments)


def _expand(path: str) -> str:
    return os.path.expanduser(path.strip().removeprefix(_FILE_URL))


def _known_arguments(call: ToolCall) -> Iterator[str]:
    """By the names of arguments only: a text that a tool writes may look like a path."""
    names = (*PATH_NAMES, *_GLOBS, *(["pattern"] if call.kind == "find" else []))
    yield from (path for name in names if (path := text_of(call.arguments, name)))
    yield from (path for _, path in patched_files(call))
    yield from _command_words(command_line(call))


def _command_words(command: str) -> Iterator[str]:
    """Any word may be a file in the working directory. Of a long command, take the first words and those with a
    slash."""
    words = dict.fromkeys(_BETWEEN_WORDS.split(_HOME.sub("~", command)))
    for number, word in enumerate(words):
        if "://" not in word and ("/" in word or (word and number < limits.MAX_COMMAND_WORDS)):
            yield word


def _any_arguments(value: object, name: str = "", depth: int = _DEEPEST) -> Iterator[str]:
    """For a tool with unknown arguments: every text whose argument is named like a path, or that looks like one."""
    if isinstance(value, str):
        if "\n" not in value and (_NAMES_A_PATH.search(name) or value.startswith(_LOOKS_LIKE_A_PATH)):
            yield value
    elif depth and isinstance(value, list | dict):
        parts = value.items() if isinstance(value, dict) else ((name, part) for part in value)
        for inner, part in parts:
            yield from _any_arguments(part, inner, depth - 1)
