"""Checks of the agent clients' settings: other memory tools, which also inject text, and how Nudge is started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from nudge.clients import executable, registry
from nudge.clients.client import AgentClient, Home
from nudge.clients.entries import HOOK, OUR_NAMES, ConfigEntry, is_our_plugin
from nudge.clients.executable import GUARD
from nudge.doctor.model import Finding, Snapshot, edit_command, fail, ok, warn

_TOOLS = r"claude-mem|mem0|basic-memory|memento|openmemory|letta|zep|serena|byterover|server-memory"
_IN_COMMAND = re.compile(rf"(?<![a-z0-9])(?:{_TOOLS})(?![a-z0-9])", re.IGNORECASE)
_SCRIPT = re.compile(rf"""['"]?(.*[/\\]{GUARD})(?=['"\s]|$)""")  # in the command line of a hook
# `memory` counts in a name only: in a command it may be a limit.
_IN_NAME = re.compile(rf"(?<![a-z0-9])(?:{_TOOLS}|memory)(?![a-z0-9])", re.IGNORECASE)


def check_memory_tools(snapshot: Snapshot) -> Iterator[Finding]:
    others = [
        (client, entry, tool) for client, entry in _entries(snapshot) if (tool := _memory_tool(entry)) is not None
    ]
    for client, entry, tool in others:
        name = f"{entry.kind} {entry.name} ({tool})" if tool != entry.name else f"{entry.kind} {tool}"
        message = (
            f"{client.title} also has the {name}, which looks like a memory tool; with two, text is injected twice"
        )
        yield warn("memory tools", f"{message} ({entry.file})", _remove_command(entry))
    if not others:
        yield ok("memory tools", "no other memory tool in the clients' settings")


def check_wiring(snapshot: Snapshot) -> Iterator[Finding]:
    """A client starts one server for each name: the same name in two places is one server, two names are two."""
    ours: dict[str, dict[str, ConfigEntry]] = {}
    for client, entry in _entries(snapshot):
        if entry.kind != HOOK and _is_nudge(entry):
            ours.setdefault(client.title, {})[entry.name] = entry
    for title, by_name in ours.items():
        if len(by_name) > 1:
            *_, last = by_name.values()
            message = f"{title} starts Nudge more than once: {', '.join(by_name)} ({last.file})"
            yield warn("wiring", message, _remove_command(last))
        else:
            yield ok("wiring", f"{title} starts it as {next(iter(by_name))}")
    if not ours:
        yield ok("wiring", "no client here starts it yet; for Claude Code: nudge connect claude-code")


def check_hook_script(snapshot: Snapshot) -> Iterator[Finding]:
    """Hooks run a script of ours. Without it nothing is recorded, and some clients report no error."""
    scripts: dict[str, AgentClient] = {}
    for client, entry in _entries(snapshot):
        if entry.kind == HOOK and (match := _SCRIPT.match(entry.command)) is not None:
            scripts.setdefault(match.group(1), client)
    for path, client in scripts.items():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield ok("hooks", f"{client.title} runs {path}")
            continue
        problem = "cannot be run" if os.path.lexists(path) else "does not exist"
        message = f"{path}, which hooks of {client.title} run, {problem}: nothing is recorded"
        is_current = path == executable.guard_path(snapshot.environ)
        yield fail("hooks", message, f"nudge connect {client.name}", _install_script if is_current else None)


def _install_script() -> str:
    executable.install_guard(executable.find())
    return f"wrote {executable.guard_path()}"


def _entries(snapshot: Snapshot) -> Iterator[tuple[AgentClient, ConfigEntry]]:
    home = Home(snapshot.home, snapshot.environ)
    for client in registry.all_clients():
        yield from ((client, entry) for entry in client.entries(home, snapshot.cwd))


def _remove_command(entry: ConfigEntry) -> str:
    return entry.remove or edit_command(entry.file)


def _memory_tool(entry: ConfigEntry) -> str | None:
    """The name of the memory tool that an entry starts, or None. Only the name is shown: the command may hold a
    credential."""
    if _is_nudge(entry):
        return None
    in_name = None if entry.kind == HOOK else _IN_NAME.search(entry.name)
    match = in_name or _IN_COMMAND.search(entry.command)
    return match.group() if match else None


def _is_nudge(entry: ConfigEntry) -> bool:
    words = [os.path.basename(word) for word in entry.command.split()]
    return is_our_plugin(entry) or any(word in (*OUR_NAMES, GUARD) for word in words)
