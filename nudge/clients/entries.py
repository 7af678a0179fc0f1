"""The servers, hooks and plugins in a client's configuration, ours and others', for `nudge doctor` and `nudge
disconnect`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from nudge import files
from nudge.clients import json_edit
from nudge.clients.text_edit import Malformed
from nudge.limits import MAX_CONFIG_BYTES

SERVER, HOOK, PLUGIN = "server", "hook", "plugin"
OUR_NAMES = ("nudge", "nudge-mcp")


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One server, hook or plugin. `remove` is the command that removes it; empty when the user has to edit the file."""

    kind: str
    name: str
    command: str
    file: str
    remove: str = ""


def is_our_plugin(entry: ConfigEntry) -> bool:
    return entry.kind == PLUGIN and entry.name.partition("@")[0] in OUR_NAMES


def read(path: str) -> dict[str, Any]:
    """Return the document in a configuration file; empty when it cannot be read, which the client itself reports."""
    try:
        text = files.read_regular(path, MAX_CONFIG_BYTES).decode()
        document = tomllib.loads(text) if path.endswith(".toml") else json_edit.load(text)
    except (OSError, ValueError, Malformed, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def servers(path: str, entries: Mapping[str, Any], remove: str) -> Iterator[ConfigEntry]:
    """Yield the servers of one table; `remove` is a command with {name} in it."""
    for name, server in entries.items():
        if isinstance(server, dict):
            words = [*_words(server.get("command")), *_words(server.get("args")), *_words(server.get("url"))]
            yield ConfigEntry(SERVER, name, " ".join(words), path, remove.format(name=quote(name)))


def hooks(path: str, document: Mapping[str, Any]) -> Iterator[ConfigEntry]:
    """Yield the hooks of a document: `{"hooks": {EVENT: [{"hooks": [{"command": ...}]}]}}`, or without the groups."""
    for event, groups in table(document, "hooks").items():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks", [group]) if isinstance(group, dict) else []
            for handler in handlers if isinstance(handlers, list) else ():
                if isinstance(handler, dict) and isinstance(handler.get("command"), str):
                    words = [handler["command"], *_words(handler.get("args"))]
                    yield ConfigEntry(HOOK, event, " ".join(words), path)


def _words(value: object) -> list[str]:
    words = value if isinstance(value, list) else [value]
    return [word for word in words if isinstance(word, str)]
