"""What else is wired into the coding agents: other memory tools that inject text too, and Nudge itself more than
once."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from nudge.doctor.finding import Finding, Patient, edit, ok, warn

_NAMED = r"claude-mem|mem0|basic-memory|memento|openmemory|letta|zep|serena|byterover|server-memory"
_IN_A_COMMAND = re.compile(rf"(?<![a-z0-9])(?:{_NAMED})(?![a-z0-9])", re.IGNORECASE)
_IN_A_NAME = re.compile(
    rf"(?<![a-z0-9])(?:{_NAMED}|memory)(?![a-z0-9])", re.IGNORECASE
)  # in a command `memory` may be a limit
_OURS = ("nudge", "nudge-mcp")


@dataclass(frozen=True, slots=True)
class Wiring:
    """One server, hook or plugin in one client's configuration."""

    client: str
    kind: str
    name: str
    command: str
    file: str
    remove: str


def check_neighbours(patient: Patient) -> Iterator[Finding]:
    found = [(wiring, tool) for wiring in _wirings(patient) if (tool := _memory_tool(wiring)) is not None]
    for wiring, tool in found:
        what = f"{wiring.kind} {wiring.name} ({tool})" if tool != wiring.name else f"{wiring.kind} {tool}"
        message = f"{wiring.client} also has the {what}, which looks like a memory tool; two of them inject twice ({wiring.file})"
        yield warn("neighbours", message, wiring.remove)
    if not found:
        yield ok("neighbours", "no other memory tool in the clients' settings")


def check_wiring(patient: Patient) -> Iterator[Finding]:
    """The same name in two places is one server to a client; two names are two."""
    ours: dict[str, dict[str, Wiring]] = {}
    for wiring in _wirings(patient):
        if wiring.kind != "hook" and _is_nudge(wiring):
            ours.setdefault(wiring.client, {})[wiring.name] = wiring
    for client, by_name in ours.items():
        if len(by_name) > 1:
            *_, last = by_name.values()
            yield warn(
                "wiring", f"{client} starts Nudge more than once: {', '.join(by_name)} ({last.file})", last.remove
            )
        else:
            yield ok("wiring", f"{client} starts it as {next(iter(by_name))}")
    if not ours:
        yield ok("wiring", "no client here starts it yet; for Claude Code: nudge connect claude-code")


def _memory_tool(wiring: Wiring) -> str | None:
    """The name that gave it away. The command itself is not repeated: it may hold a credential."""
    if _is_nudge(wiring):
        return None
    named = None if wiring.kind == "hook" else _IN_A_NAME.search(wiring.name)
    match = named or _IN_A_COMMAND.search(wiring.command)
    return match.group() if match else None


def _is_nudge(wiring: Wiring) -> bool:
    words = [os.path.basename(word) for word in wiring.command.split()]
    return any(word in _OURS for word in words) or (wiring.kind == "plugin" and wiring.name.partition("@")[0] in _OURS)


# The clients' files


def _wirings(patient: Patient) -> Iterator[Wiring]:
    for read in _READERS:
        yield from read(patient)


def _claude_settings(patient: Patient) -> Iterator[Wiring]:
    file = os.path.join(patient.home, ".claude", "settings.json")
    settings = _load(file)
    yield from _hooks("Claude Code", file, settings)
    for name, enabled in _table(settings, "enabledPlugins").items():
        if enabled:
            yield Wiring("Claude Code", "plugin", name, "", file, f"claude plugin disable {quote(name)}")


def _claude_servers(patient: Patient) -> Iterator[Wiring]:
    """For every project, for this one alone, and as this project shares them."""
    file = os.path.join(patient.home, ".claude.json")
    settings = _load(file)
    yield from _servers("Claude Code", file, _table(settings, "mcpServers"), "claude mcp remove {name} -s user")
    for folder in _upwards(patient.cwd):
        local = _table(_table(settings, "projects"), folder)
        yield from _servers("Claude Code", file, _table(local, "mcpServers"), "claude mcp remove {name} -s local")
        shared = os.path.join(folder, ".mcp.json")
        yield from _servers(
            "Claude Code", shared, _table(_load(shared), "mcpServers"), "claude mcp remove {name} -s project"
        )


def _codex(patient: Patient) -> Iterator[Wiring]:
    file = os.path.join(patient.home, ".codex", "config.toml")
    settings = _load(file)
    yield from _servers("Codex", file, _table(settings, "mcp_servers"), "codex mcp remove {name}")
    yield from _hooks("Codex", file, settings)


def _gemini(patient: Patient) -> Iterator[Wiring]:
    file = os.path.join(patient.home, ".gemini", "settings.json")
    settings = _load(file)
    yield from _servers("Gemini CLI", file, _table(settings, "mcpServers"), "gemini mcp remove {name}")
    yield from _hooks("Gemini CLI", file, settings)


_READERS: tuple[Callable[[Patient], Iterator[Wiring]], ...] = (_claude_settings, _claude_servers, _codex, _gemini)


def _servers(client: str, file: str, servers: Mapping[str, Any], remove: str) -> Iterator[Wiring]:
    for name, server in servers.items():
        if isinstance(server, dict):
            words = [server.get("command"), *_list(server.get("args")), server.get("url")]
            command = " ".join(word for word in words if isinstance(word, str))
            yield Wiring(client, "server", name, command, file, remove.format(name=quote(name)))


def _hooks(client: str, file: str, settings: Mapping[str, Any]) -> Iterator[Wiring]:
    """`{"hooks": {EVENT: [{"hooks": [{"command": ...}]}]}}` everywhere."""
    for event, groups in _table(settings, "hooks").items():
        for group in _list(groups):
            for hook in _list(group.get("hooks") if isinstance(group, dict) else None):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str):
                    yield Wiring(client, "hook", event, command, file, edit(file))


def _load(file: str) -> dict[str, Any]:
    """What can be read of it; a client's broken file is the client's to report."""
    try:
        with open(file, "rb") as opened:
            loaded = tomllib.load(opened) if file.endswith(".toml") else json.load(opened)
    except (OSError, ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _table(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = settings.get(name)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield above
        folder = above
