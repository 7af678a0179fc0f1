"""Clients' configuration files: the kinds of file that connect a client and what is added to each, the entries that a
file has, ours and others', and how such files are read and written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Protocol

from nudge.clients import json_edit, toml_edit
from nudge.clients.executable import is_our_hook, is_our_status_line
from nudge.clients.json_edit import ARRAY, OBJECT, JsonNode
from nudge.clients.text_edit import EditBuffer, Malformed
from nudge.core import files, paths
from nudge.core.errors import Invalid, NudgeError, StorageFailed
from nudge.core.limits import MAX_CONFIG_BYTES

SERVER, HOOKS, STATUS_LINE = "MCP server", "hooks", "status line"  # parts of a connection
PARTS = (SERVER, HOOKS, STATUS_LINE)
SERVER_ENTRY, HOOK_ENTRY, PLUGIN_ENTRY = "server", "hook", "plugin"
OUR_NAMES = ("nudge", "nudge-mcp")

Handlers = Mapping[str, Mapping[str, Any]]  # what to run, by event

_HOOKS_KEY = "hooks"
_VERSION_KEY = "version"
_STATUS_LINE_KEY = "statusLine"


class ConfigFile(Protocol):
    """One configuration file. `text` is its content, `base` the content without entries of Nudge."""

    @property
    def path(self) -> str: ...

    @property
    def parts(self) -> tuple[str, ...]:
        """What is added to it: SERVER, HOOKS, STATUS_LINE."""

    @property
    def servers_key(self) -> str:
        """The key under which the document lists servers; empty when it lists none."""

    def find(self, text: str) -> set[str]:
        """Return those of the parts that the text has, of this installation or another."""

    def is_connected(self, text: str) -> bool:
        """Whether the text has all parts, exactly as `connect` writes them."""

    def connect(self, base: str, old: str) -> EditBuffer:
        """Add all parts to `base`. `old` is the text before: what the user added to our entry is kept."""

    def clean(self, text: str) -> str | None:
        """Return the text without the parts; None when the whole file is ours."""


@dataclass(frozen=True)
class JsonFile:
    """Settings in JSON, with comments or without: an entry for the server, hooks, a status line.

    A status line that is ours is kept, and removed with the rest; `adds_status_line`: one is added where there is none.
    That of another program is never changed.
    """

    path: str
    server_path: Sequence[str] = ()
    server: Mapping[str, Any] = field(default_factory=dict)
    handlers: Handlers = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of a new entry; its owner's to change
    version: int | None = None  # which a file that lists its hooks without groups has to say
    status_line: Mapping[str, Any] = field(default_factory=dict)
    status_line_defaults: Mapping[str, Any] = field(default_factory=dict)
    adds_status_line: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        wanted = ((SERVER, self.server), (HOOKS, self.handlers), (STATUS_LINE, self.adds_status_line))
        return tuple(part for part, is_wanted in wanted if is_wanted)

    @property
    def servers_key(self) -> str:
        return self.server_path[0] if self.server_path else ""

    def find(self, text: str) -> set[str]:
        server = {SERVER} if self.server and self._entry(text) is not None else set()
        hooks = {HOOKS} if self.handlers and _has_hooks(text) else set()
        return server | hooks | ({STATUS_LINE} if self._our_status_line(text) is not None else set())

    def is_connected(self, text: str) -> bool:
        entry = self._entry(text) if self.server else {}
        has_server = isinstance(entry, dict) and all(entry.get(key) == value for key, value in self.server.items())
        has_hooks = not self.handlers or _has_all_hooks(text, self.handlers)
        return has_server and has_hooks and self._has_wanted_status_line(text)

    def _has_wanted_status_line(self, text: str) -> bool:
        """Whether there is nothing to add or to bring up to date; another program's is left alone."""
        ours = self._our_status_line(text)
        if ours is None:
            return not self.adds_status_line or status_line_command(text) is not None
        return all(ours.get(key) == value for key, value in self.status_line.items())

    def connect(self, base: str, old: str) -> EditBuffer:
        buffer = EditBuffer(base)
        if self.server:
            entry = self._entry(old)
            kept = entry if isinstance(entry, dict) else {}
            json_edit.add_member(buffer, self.server_path, {**self.server, **self.defaults, **kept, **self.server})
        if self.version is not None and json_edit.find(buffer.text, (_VERSION_KEY,)) is None:
            json_edit.add_member(buffer, (_VERSION_KEY,), self.version)
        _add_hooks(buffer, self.handlers, grouped=self.version is None)
        ours = self._our_status_line(old)
        if (self.adds_status_line or ours is not None) and status_line_command(base) is None:
            set_before: Mapping[str, Any] = self.status_line_defaults if ours is None else ours
            json_edit.add_member(buffer, (_STATUS_LINE_KEY,), {**self.status_line, **set_before, **self.status_line})
        return buffer

    def clean(self, text: str) -> str | None:
        buffer = EditBuffer(text)
        if self.server:
            json_edit.remove_member(buffer, self.server_path)
        if self.handlers:
            _remove_hooks(buffer)
        if self._our_status_line(text) is not None:
            json_edit.remove_member(buffer, (_STATUS_LINE_KEY,))
        if self.version is not None and json_edit.find(buffer.text, (_HOOKS_KEY,)) is None:
            json_edit.remove_member(buffer, (_VERSION_KEY,))
        return buffer.text

    def _entry(self, text: str) -> Any:
        node = json_edit.find(text, self.server_path)
        return None if node is None else node.value()

    def _our_status_line(self, text: str) -> dict[str, Any] | None:
        command = status_line_command(text) if self.status_line else None
        node = json_edit.find(text, (_STATUS_LINE_KEY,)) if command and is_our_status_line(command) else None
        entry = None if node is None else node.value()
        return entry if isinstance(entry, dict) else None


def status_line_command(text: str) -> str | None:
    """Return the command of the status line in settings as Claude Code has them; empty for one of another shape, None
    when there is none."""
    node = json_edit.find(text, (_STATUS_LINE_KEY,))
    if node is None:
        return None
    entry = node.value()
    command = entry.get("command") if isinstance(entry, dict) else None
    return command if isinstance(command, str) else ""


@dataclass(frozen=True)
class TomlFile:
    """Settings in TOML: one table for the server."""

    path: str
    servers_key: str
    name: str
    server: Mapping[str, Any]
    parts: tuple[str, ...] = (SERVER,)

    def find(self, text: str) -> set[str]:
        return {SERVER} if self._entry(text) is not None else set()

    def is_connected(self, text: str) -> bool:
        entry = self._entry(text)
        return entry is not None and all(entry.get(key) == value for key, value in self.server.items())

    def connect(self, base: str, old: str) -> EditBuffer:
        del old
        buffer = EditBuffer(base)
        toml_edit.add(buffer, self.servers_key, self.name, toml_edit.render_entries(self.server))
        return buffer

    def clean(self, text: str) -> str | None:
        return toml_edit.remove(text, self.servers_key, self.name)

    def _entry(self, text: str) -> dict[str, Any] | None:
        return toml_edit.table(toml_edit.parse(text), self.servers_key, self.name)


@dataclass(frozen=True)
class WholeFile:
    """A file that is ours alone; `mark` is in it whatever the version."""

    path: str
    content: str
    mark: str
    parts: tuple[str, ...] = (HOOKS,)
    servers_key: str = ""

    def find(self, text: str) -> set[str]:
        return {HOOKS} if self.mark in text else set()

    def is_connected(self, text: str) -> bool:
        return text == self.content

    def connect(self, base: str, old: str) -> EditBuffer:
        if base or (old and self.mark not in old):
            raise Malformed("already exists and was not written by Nudge; move it away")
        buffer = EditBuffer("")
        buffer.insert(0, self.content)
        return buffer

    def clean(self, text: str) -> str | None:
        return None if self.mark in text else text


def snippet(file: ConfigFile) -> str:
    """Return what a user who edits the file by hand has to write."""
    return file.connect("", "").text


def is_blank(text: str) -> bool:
    """Whether the text is empty, or an empty JSON object."""
    return not text.strip() or (text.strip() == "{}" and json_edit.load(text) == {})


# Hooks in a file that nests them as Claude Code does: event, groups, handlers. Codex and Gemini have the same nesting;
# Cursor has no groups.


def _add_hooks(buffer: EditBuffer, handlers: Handlers, *, grouped: bool) -> None:
    """Append each hook as a group of its own: groups have matchers, and some clients identify a hook by its
    position."""
    for event, handler in handlers.items():
        json_edit.add_item(buffer, (_HOOKS_KEY, event), {_HOOKS_KEY: [handler]} if grouped else handler)


def _remove_hooks(buffer: EditBuffer) -> None:
    """Remove our hooks, one at a time, since every removal moves the rest; groups, events and tables that become empty
    are removed too."""
    while (hook := next(_our_hooks(buffer.text), None)) is not None:
        event, _, array, index = hook
        json_edit.remove_item(buffer, array, index)
        json_edit.remove_if_empty(buffer, (_HOOKS_KEY, event))


def _has_hooks(text: str) -> bool:
    return next(_our_hooks(text), None) is not None


def _has_all_hooks(text: str, handlers: Handlers) -> bool:
    """Whether the text has each of our hooks once and no other hook of ours; a timeout that the user changed does not
    count."""
    hooks = [(event, command) for event, command, _, _ in _our_hooks(text)]
    return sorted(hooks) == sorted(
        (event, " ".join([handler["command"], *handler.get("args", ())])) for event, handler in handlers.items()
    )


def _our_hooks(text: str) -> Iterator[tuple[str, str, JsonNode, int]]:
    """Yield event and command of each of our hooks, and the array and index to remove: the whole group if it has no
    other handler."""
    for event, array in _arrays(json_edit.find(text, (_HOOKS_KEY,))):
        for number, entry in enumerate(array.entries):
            handlers = entry.node.member(_HOOKS_KEY)
            if handlers is None:
                yield from ((event, command, array, number) for command in _command(entry.node))
            elif handlers.kind == ARRAY:
                for index, handler in enumerate(handlers.entries):
                    alone = len(handlers.entries) == 1
                    yield from (
                        (event, command, *((array, number) if alone else (handlers, index)))
                        for command in _command(handler.node)
                    )


def _arrays(hooks: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    if hooks is not None and hooks.kind == OBJECT:
        yield from ((str(entry.key), entry.node) for entry in hooks.entries if entry.node.kind == ARRAY)


def _command(handler: JsonNode) -> Iterator[str]:
    """Yield the command line of a handler if it is a hook of ours."""
    command, arguments = handler.member("command"), handler.member("args")
    words = [command, *(entry.node for entry in arguments.entries)] if arguments is not None else [command]
    line = " ".join(node.scalar for node in words if node is not None and isinstance(node.scalar, str))
    if is_our_hook(line):
        yield line


# The servers, hooks and plugins in a configuration, ours and others'


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One server, hook or plugin. `remove` is the command that removes it; empty when the user has to edit the file."""

    kind: str
    name: str
    command: str
    file: str
    remove: str = ""


def is_our_plugin(entry: ConfigEntry) -> bool:
    return entry.kind == PLUGIN_ENTRY and entry.name.partition("@")[0] in OUR_NAMES


def table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object or table of that name in a document; an empty one when there is none."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def server_entries(path: str, servers: Mapping[str, Any], remove: str) -> Iterator[ConfigEntry]:
    """Yield the servers of one table; `remove` is a command with {name} in it."""
    for name, server in servers.items():
        if isinstance(server, dict):
            words = [*_words(server.get("command")), *_words(server.get("args")), *_words(server.get("url"))]
            yield ConfigEntry(SERVER_ENTRY, name, " ".join(words), path, remove.format(name=quote(name)))


def hook_entries(path: str, document: Mapping[str, Any]) -> Iterator[ConfigEntry]:
    """Yield the hooks of a document: `{"hooks": {EVENT: [{"hooks": [{"command": ...}]}]}}`, or without the groups."""
    for event, groups in table(document, "hooks").items():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks", [group]) if isinstance(group, dict) else []
            for handler in handlers if isinstance(handlers, list) else ():
                if isinstance(handler, dict) and isinstance(handler.get("command"), str):
                    words = [handler["command"], *_words(handler.get("args"))]
                    yield ConfigEntry(HOOK_ENTRY, event, " ".join(words), path)


def _words(value: object) -> list[str]:
    words = value if isinstance(value, list) else [value]
    return [word for word in words if isinstance(word, str)]


# Reading and writing


def read(path: str) -> str | None:
    """Return the text with its line ends unchanged; None when there is no such file. Raises Invalid or
    StorageFailed."""
    try:
        content = files.read_regular(path, MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        return None
    except files.NotRegular:
        raise Invalid(f"{display_path(path)} is not a regular file; nothing was changed") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {display_path(path)}: {error.strerror}; nothing was changed") from None
    if len(content) > MAX_CONFIG_BYTES:
        raise Invalid(f"{display_path(path)} is larger than {MAX_CONFIG_BYTES} bytes; nothing was changed")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{display_path(path)}, line {line}: is not UTF-8; nothing was changed") from None


def read_document(path: str) -> dict[str, Any]:
    """Return the document in a configuration file; empty when it cannot be read, which the client itself reports."""
    try:
        text = read(path) or ""
        document = toml_edit.parse(text) if path.endswith(".toml") else json_edit.load(text)
    except (NudgeError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def read_status_line(path: str) -> str | None:
    """Return the command of the status line in a file; None when there is none, or the file cannot be read."""
    try:
        return status_line_command(read(path) or "")
    except (Malformed, NudgeError):
        return None


def write(path: str, text: str) -> None:
    """Replace the file, or create it and its directories. Raises StorageFailed."""
    try:
        for directory in missing_directories(path):
            os.mkdir(directory, 0o700)
        files.replace_in_place(path, text.encode())
    except OSError as error:
        raise StorageFailed(f"cannot write {display_path(path)}: {error.strerror}") from None


def missing_directories(path: str) -> list[str]:
    """Return the directories that must be created before the file, outermost first."""
    missing = []
    directory = os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing[::-1]


def remove(path: str, directories: list[str]) -> None:
    """Remove the file (of a link, its target), then those of `directories` that are empty now. Raises StorageFailed."""
    try:
        os.unlink(os.path.realpath(path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageFailed(f"cannot remove {display_path(path)}: {error.strerror}") from None
    for directory in reversed(directories):
        try:
            os.rmdir(directory)
        except OSError:  # another program has put a file there
            return


def display_path(path: str) -> str:
    """`~/.codex/config.toml`."""
    home = paths.home()
    return "~" + path.removeprefix(home) if path.startswith(home.rstrip("/") + "/") else path
