"""Globs of paths that are not recorded, for a hook. The rules are those of `patterns.is_ignored`, without its library:
wcmatch takes 35 ms to import. Loaded only where a setting names a path to ignore."""

from __future__ import annotations

import re
from functools import lru_cache

from nudge.core import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def is_ignored(path: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches the path, as in `.gitignore`: `*` and `?` stay within a name, `**` crosses
    names, a pattern without a leading `/` or `~/` matches at any depth, and one that matches a directory covers its
    content."""
    path = path.replace("\\", "/")
    return any(re.match(_regex(glob, paths.home()), path) for glob in globs if glob.strip("/ "))


@lru_cache
def _regex(glob: str, home: str) -> str:
    """Return one regular expression for a glob; an alternative that names nothing, as in `{a,}`, matches nothing."""
    alternatives = _alternatives(glob.strip().replace("\\", "/"))
    return "|".join(_path_regex(path, home) for path in alternatives if path.strip("/")) or _NOTHING


def _alternatives(glob: str) -> list[str]:
    """Return the globs that `{a,b}` stands for; the innermost braces are expanded first."""
    braces = re.search(r"(?<!\$)\{([^{}]*,[^{}]*)\}", glob)  # `${a,b}` is text, as in a shell
    if braces is None:
        return [glob]
    choices = (glob[: braces.start()] + choice + glob[braces.end() :] for choice in braces[1].split(","))
    return [path for choice in choices for path in _alternatives(choice)]


def _path_regex(glob: str, home: str) -> str:
    glob = _whole_directory(re.sub("/+", "/", glob))
    if glob == "~" or glob.startswith("~/"):
        glob = home.replace("\\", "/") + glob[1:]
    if not glob.startswith("/") and glob[1:2] != ":":
        glob = "**/" + glob
    return "(?s:" + re.sub(_TOKEN, _piece, glob) + r"(?:/.*)?\Z)"


_NOTHING = r"(?!)"
_TOKEN = (
    r"(?s)(?P<any>(?:^|(?<=/))\*\*/)|(?P<rest>(?:^|(?<=/))\*\*\Z)|(?P<name>(?:^|(?<=/))\*+(?=/|\Z))"
    r"|(?P<part>\*+)|(?P<char>\?)"
    r"|(?P<set>\[[!^]?(?:\[:[a-z]+:\]|[^/])(?:\[:[a-z]+:\]|[^\]/])*\])|."
)
_PIECES = {"any": "(?:.*/)?", "rest": ".*", "name": "[^/]+", "part": "[^/]*", "char": "[^/]"}


def _whole_directory(glob: str) -> str:
    """Return `dir` for `dir/**`, which then covers `dir` itself: an event in that directory may have no other path."""
    while (shorter := glob.rstrip("/").removesuffix("/**")) != glob:
        glob = shorter
    return glob


def _piece(token: re.Match[str]) -> str:
    if token.lastgroup == "set":
        return _character_set(token[0])
    return _PIECES[token.lastgroup] if token.lastgroup else re.escape(token[0])


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def _character_set(token: str) -> str:
    """Return the regular expression for `[a-z]`, `[!ab]` or `[[:alpha:]_]`; an invalid set such as `[z-a]` matches
    itself."""
    members = token[2:-1] if token[1] in "!^" else token[1:-1]
    texts = re.split(r"\[:([a-z]+):\]", members)  # each second one is the name of a class
    texts[::2] = [re.escape(text).replace(r"\-", "-") for text in texts[::2]]
    texts[1::2] = [_CLASSES.get(name, "") for name in texts[1::2]]
    characters = ("[^/" if token[1] in "!^" else "[") + "".join(texts) + "]"
    try:
        re.compile(characters)
    except re.error:
        return re.escape(token)
    return characters
