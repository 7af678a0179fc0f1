"""The kinds of file that a client is wired through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nudge.clients import hooks, json_edit, json_text, toml_table
from nudge.clients.draft import Draft
from nudge.clients.malformed import Malformed

_VERSION = "version"

MCP, HOOKS = "MCP server", "hooks"


class Target(Protocol):
    """One file. `text` is what is in it, `base` the same without anything of ours."""

    @property
    def path(self) -> str: ...

    @property
    def parts(self) -> tuple[str, ...]:
        """What we put there: MCP, HOOKS or both."""

    def found(self, text: str) -> set[str]:
        """Those of the parts that it has, of this installation or another."""

    def is_wired(self, text: str) -> bool:
        """Whether it has all of them, just as we would write them."""

    def wired(self, base: str, old: str) -> Draft:
        """With all of them; `old` is the text that they replace, for what its owner added to our entry."""

    def cleaned(self, text: str) -> str | None:
        """Without any of them; None when nothing is left and the file is ours alone."""


@dataclass(frozen=True)
class JsonFile:
    """Settings in JSON, with comments or without: an entry for the server, hooks, or both."""

    path: str
    server_path: Sequence[str] = ()
    server: Mapping[str, Any] = field(default_factory=dict)
    handlers: hooks.Handlers = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of a new entry; its owner's to change
    version: int | None = None  # which a file that lists its hooks without groups has to say

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part, wanted in ((MCP, self.server), (HOOKS, self.handlers)) if wanted)

    def found(self, text: str) -> set[str]:
        found = {MCP} if self.server and self._entry(text) is not None else set()
        return found | ({HOOKS} if self.handlers and hooks.has_any(text) else set())

    def is_wired(self, text: str) -> bool:
        entry = self._entry(text) if self.server else {}
        has_server = isinstance(entry, dict) and all(entry.get(key) == value for key, value in self.server.items())
        return has_server and (not self.handlers or hooks.has_all(text, self.handlers))

    def wired(self, base: str, old: str) -> Draft:
        draft = Draft(base)
        if self.server:
            entry = self._entry(old)
            kept = entry if isinstance(entry, dict) else {}
            json_edit.add_member(draft, self.server_path, {**self.server, **self.defaults, **kept, **self.server})
        if self.version is not None and json_edit.find(draft.text, (_VERSION,)) is None:
            json_edit.add_member(draft, (_VERSION,), self.version)
        hooks.add(draft, self.handlers, grouped=self.version is None)
        return draft

    def cleaned(self, text: str) -> str | None:
        draft = Draft(text)
        if self.server:
            json_edit.remove_member(draft, self.server_path)
        if self.handlers:
            hooks.remove(draft)
        if self.version is not None and json_edit.find(draft.text, (hooks.KEY,)) is None:
            json_edit.remove_member(draft, (_VERSION,))
        return draft.text

    def _entry(self, text: str) -> Any:
        node = json_edit.find(text, self.server_path)
        return None if node is None else node.plain()


@dataclass(frozen=True)
class TomlFile:
    """Settings in TOML: one table for the server."""

    path: str
    parent: str
    name: str
    server: Mapping[str, Any]
    parts: tuple[str, ...] = (MCP,)

    def found(self, text: str) -> set[str]:
        return {MCP} if self._entry(text) is not None else set()

    def is_wired(self, text: str) -> bool:
        entry = self._entry(text)
        return entry is not None and all(entry.get(key) == value for key, value in self.server.items())

    def wired(self, base: str, old: str) -> Draft:
        del old
        draft = Draft(base)
        toml_table.add(draft, self.parent, self.name, toml_table.lines(self.server))
        return draft

    def cleaned(self, text: str) -> str | None:
        return toml_table.remove(text, self.parent, self.name)

    def _entry(self, text: str) -> dict[str, Any] | None:
        return toml_table.table(toml_table.parse(text), self.parent, self.name)


@dataclass(frozen=True)
class WholeFile:
    """A file that is ours alone; `mark` is in it whatever the version."""

    path: str
    content: str
    mark: str
    parts: tuple[str, ...] = (HOOKS,)

    def found(self, text: str) -> set[str]:
        return {HOOKS} if self.mark in text else set()

    def is_wired(self, text: str) -> bool:
        return text == self.content

    def wired(self, base: str, old: str) -> Draft:
        if base or (old and self.mark not in old):
            raise Malformed("is there already and not ours; move it away")
        draft = Draft("")
        draft.insert(0, self.content)
        return draft

    def cleaned(self, text: str) -> str | None:
        return None if self.mark in text else text


def snippet(target: Target) -> str:
    """What somebody who wires by hand has to write."""
    return target.wired("", "").text


def is_blank(text: str) -> bool:
    """Whether nothing is left worth a file."""
    return not text.strip() or (text.strip() == "{}" and json_text.plain(text) == {})
