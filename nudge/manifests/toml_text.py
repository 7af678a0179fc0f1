"""TOML from strangers: parsed by the standard library, after the one shape that it needs quadratic time for is
refused."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from nudge import limits
from nudge.manifests.tree import line_of

_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_KEY_PART}){{{limits.MAX_TOML_KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    if _DEEP_KEY.search(text):
        raise ValueError("keys nested too deep")
    return tomllib.loads(text)


def table(document: Any, *path: str) -> dict[str, Any]:
    """The table at `path`; an empty one when anything on the way is missing or is no table."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def header_line(text: str, *path: str) -> int:
    """The line of `[a.b]`, or of the first table below it."""
    return line_of(text, _header(path))


def _header(path: tuple[str, ...]) -> str:
    dotted = r"[ \t]*\.[ \t]*".join(rf"[\"']?{re.escape(name)}[\"']?" for name in path)
    return rf"^[ \t]*\[{{1,2}}[ \t]*{dotted}[ \t]*[\].]"


def key_line(text: str, key: str, *path: str) -> int:
    """The line of `key =` in the table at `path`, which may be an inline one; the table's own when it is written some
    other way."""
    if path and not re.search(_header(path), text, re.MULTILINE):
        return key_line(text, path[-1], *path[:-1])
    header = header_line(text, *path) if path else 1
    for number, line in enumerate(text.split("\n")[header - 1 :], header):
        if re.match(rf"[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.]", line):
            return number
        if number > header and line.lstrip().startswith("["):
            break
    return header
