"""TOML, INI and YAML from untrusted files: parsed in bounded time, with the line of each part."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nudge.core import limits
from nudge.core.text import line_at

_TOML_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_TOML_KEY = re.compile(rf"(?<![\w-])(?:{_TOML_KEY_PART}){{{limits.MAX_TOML_KEY_PARTS}}}")
_YAML_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)


def line_of(text: str, pattern: str) -> int:
    """Return the line where `pattern` matches first (`^` is the start of any line), or 1 when it does not match."""
    match = re.search(pattern, text, re.MULTILINE)
    return line_at(text, match.start()) if match else 1


# TOML


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


# INI


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


# YAML


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A part of a YAML document; every scalar is text. `line` is the line of its key, or its own in a list.

    Aliases share nodes. `size` and `height` count as if each alias were a copy, so walking a node is bounded.
    """

    value: str | list[YamlNode] | dict[str, YamlNode]
    line: int
    size: int = 1
    height: int = 0

    @property
    def text(self) -> str:
        """The scalar's text; empty for a collection."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def items(self) -> list[YamlNode]:
        return self.value if isinstance(self.value, list) else []

    @property
    def fields(self) -> dict[str, YamlNode]:
        return self.value if isinstance(self.value, dict) else {}

    def get(self, *path: str) -> YamlNode:
        """Return the node at `path` below this one, or an empty scalar."""
        node = self
        for name in path:
            node = node.fields.get(name, _NO_NODE)
        return node

    def texts(self) -> Iterator[str]:
        """Yield every scalar in this node, keys excluded."""
        if isinstance(self.value, str):
            yield self.value
        for child in self.items or self.fields.values():
            yield from child.texts()


_NO_NODE = YamlNode("", 0)


def parse_yaml(text: str) -> YamlNode:
    """Parse the first document of a YAML file, or raise ValueError when it is malformed or exceeds the limits."""
    # libyaml compares each %TAG directive with all before it: 20,000 of them take 0.65 s.
    if _YAML_TAG_DIRECTIVE.search(text):
        raise ValueError("tag directives are not supported")
    return _YamlReader(text).read()


class _YamlReader:
    """Builds nodes from parser events, not with `yaml.compose`: that recurses without limit on nested collections."""

    def __init__(self, text: str) -> None:
        import yaml  # late: it takes as long to import as the rest of a scan, and most repos have no such file

        self._yaml = yaml
        self._events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._anchors: dict[str, YamlNode] = {}
        self._size = 0

    def read(self) -> YamlNode:
        try:
            for event in self._events:
                if isinstance(event, self._yaml.NodeEvent):
                    return self._node(event, 0)
        except self._yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise ValueError(f"not valid YAML, line {mark.line + 1}" if mark else "not valid YAML") from None
        return _NO_NODE

    def _node(self, event: Any, depth: int) -> YamlNode:
        line = event.start_mark.line + 1
        if isinstance(event, self._yaml.AliasEvent):
            # An anchor is stored when its node is complete: an alias inside its own node is unknown here.
            node = self._anchors.get(str(event.anchor))
            if node is None:
                raise ValueError(f"unknown or recursive alias, line {line}")
            self._check_limits(node.size, depth + node.height)
            return node
        self._check_limits(1, depth)
        if isinstance(event, self._yaml.CollectionStartEvent):
            node = self._collection(event, line, depth)
        else:
            node = YamlNode(event.value.strip(), line)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _check_limits(self, size: int, depth: int) -> None:
        self._size += size
        if self._size > limits.MAX_YAML_NODES:
            raise ValueError(f"more than {limits.MAX_YAML_NODES} nodes, aliases counted as copies")
        if depth > limits.MAX_YAML_DEPTH:
            raise ValueError("nested too deep")

    def _collection(self, event: Any, line: int, depth: int) -> YamlNode:
        is_mapping = isinstance(event, self._yaml.MappingStartEvent)
        value = self._mapping(depth + 1) if is_mapping else self._sequence(depth + 1)
        children = list(value.values()) if isinstance(value, dict) else value
        height = 1 + max((child.height for child in children), default=0)
        return YamlNode(value, line, 1 + sum(child.size for child in children), height)

    def _sequence(self, depth: int) -> list[YamlNode]:
        items = []
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            items.append(self._node(event, depth))
        return items

    def _mapping(self, depth: int) -> dict[str, YamlNode]:
        fields: dict[str, YamlNode] = {}
        merged: list[YamlNode] = []
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            key = self._node(event, depth)
            node = self._node(next(self._events), depth)
            if key.value == "<<":
                merged += node.items or [node]
            elif isinstance(key.value, str):
                fields[key.value] = YamlNode(node.value, key.line, node.size, node.height)
        for source in merged:  # explicit keys win, then the first source
            for name, node in source.fields.items():
                fields.setdefault(name, node)
        return fields
