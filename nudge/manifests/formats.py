"""TOML, INI and YAML (`yaml_nodes`) from untrusted files: parsed in bounded time, with the line of each part."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from nudge import limits
from nudge.text import line_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.manifests.yaml_nodes import YamlNode

_TOML_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_TOML_KEY = re.compile(rf"(?<![\w-])(?:{_TOML_KEY_PART}){{{limits.MAX_TOML_KEY_PARTS}}}")


def line_of(text: str, pattern: str) -> int:
    """Return the line where `pattern` matches first (`^` is the start of any line), or 1 when it does not match."""
    match = re.search(pattern, text, re.MULTILINE)
    return line_at(text, match.start()) if match else 1


def parse_toml(text: str) -> dict[str, Any]:
    # tomllib takes quadratic time for a key of many parts.
    if _DEEP_TOML_KEY.search(text):
        raise ValueError("keys nested too deep")
    return tomllib.loads(text)


def table(document: Any, *path: str) -> dict[str, Any]:
    """Return the table at `path`, or an empty one when a part of the path is missing or is not a table."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def header_line(text: str, *path: str) -> int:
    """Return the line of the TOML header `[a.b]`, or of the first table below it."""
    return line_of(text, _header_pattern(path))


def _header_pattern(path: tuple[str, ...]) -> str:
    dotted = r"[ \t]*\.[ \t]*".join(rf"[\"']?{re.escape(name)}[\"']?" for name in path)
    return rf"^[ \t]*\[{{1,2}}[ \t]*{dotted}[ \t]*[\].]"


def key_line(text: str, key: str, *path: str) -> int:
    """Return the line of `key =` in the TOML table at `path`, which may be inline; else the line of the table."""
    if path and not re.search(_header_pattern(path), text, re.MULTILINE):
        return key_line(text, path[-1], *path[:-1])
    header = header_line(text, *path) if path else 1
    for number, line in enumerate(text.split("\n")[header - 1 :], header):
        if re.match(rf"[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.]", line):
            return number
        if number > header and line.lstrip().startswith("["):
            break
    return header


@dataclass(slots=True)
class Section:
    """A section of an INI file. Each value is the list of its lines."""

    line: int
    values: dict[str, list[str]] = field(default_factory=dict)

    def get(self, key: str) -> str:
        return "\n".join(self.values.get(key, ()))


def parse_ini(text: str) -> dict[str, Section]:
    """Parse INI as tox and setuptools write it: repeated sections are joined, indented lines continue a value."""
    sections: dict[str, Section] = {}
    current, value = Section(0), list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith(("#", ";")):
            continue
        if line.startswith("["):
            current = sections.setdefault(content[1:].partition("]")[0], Section(number))
        elif line[0].isspace():
            value.append(content)
        else:
            key, _, first = content.partition("=")
            value = current.values[key.strip()] = [first.strip()]
    return sections


def parse_yaml(text: str) -> YamlNode:
    """Parse the first document of a YAML file, or raise ValueError when it is malformed or exceeds the limits."""
    from nudge.manifests import yaml_nodes  # late: most repositories have no such file

    return yaml_nodes.parse(text)
