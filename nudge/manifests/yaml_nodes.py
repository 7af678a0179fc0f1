"""YAML from untrusted files: parsed in bounded time, with the line that each node is on.

PyYAML takes as long to import as all the other modules of a scan: `formats.parse_yaml` imports this one late.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from nudge import limits

_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)


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
            node = node.fields.get(name, _ABSENT)
        return node

    def texts(self) -> Iterator[str]:
        """Yield every scalar in this node, keys excluded."""
        if isinstance(self.value, str):
            yield self.value
        for child in self.items or self.fields.values():
            yield from child.texts()


_ABSENT = YamlNode("", 0)


def parse(text: str) -> YamlNode:
    """Parse the first document of a YAML file, or raise ValueError when it is malformed or exceeds the limits."""
    # libyaml compares each %TAG directive with all before it: 20,000 of them take 0.65 s.
    if _TAG_DIRECTIVE.search(text):
        raise ValueError("tag directives are not supported")
    try:
        return _Reader(text).read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"not valid YAML, line {mark.line + 1}" if mark else "not valid YAML") from None


class _Reader:
    """Builds nodes from parser events, not with `yaml.compose`: that recurses without limit on nested collections."""

    def __init__(self, text: str) -> None:
        self._events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._anchors: dict[str, YamlNode] = {}
        self._size = 0

    def read(self) -> YamlNode:
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                return self._node(event, 0)
        return _ABSENT

    def _node(self, event: Any, depth: int) -> YamlNode:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            # An anchor is stored when its node is complete: an alias inside its own node is unknown here.
            node = self._anchors.get(str(event.anchor))
            if node is None:
                raise ValueError(f"unknown or recursive alias, line {line}")
            self._check_limits(node.size, depth + node.height)
            return node
        self._check_limits(1, depth)
        if isinstance(event, yaml.CollectionStartEvent):
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
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value = self._mapping(depth + 1) if is_mapping else self._sequence(depth + 1)
        children = list(value.values()) if isinstance(value, dict) else value
        height = 1 + max((child.height for child in children), default=0)
        return YamlNode(value, line, 1 + sum(child.size for child in children), height)

    def _sequence(self, depth: int) -> list[YamlNode]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth))
        return items

    def _mapping(self, depth: int) -> dict[str, YamlNode]:
        fields: dict[str, YamlNode] = {}
        merged: list[YamlNode] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
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
