"""Clients that are wired by hand: where their file is and what goes into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from nudge.clients.launch import NAME, Launch
from nudge.clients.place import Place
from nudge.clients.targets import JsonFile, Target
from nudge.clients.wiring import Wiring, timeout

# Not the ones for a single tool, such as afterShellExecution: what they tell comes with postToolUse as well.
CURSOR_EVENTS = ("sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "preCompact", "sessionEnd")


def _targets(key: str, *place_of_file: str, typed: bool = False) -> Callable[[Place, Launch], list[Target]]:
    def targets(place: Place, launch: Launch) -> list[Target]:
        executable, *arguments = launch.server
        server = {**({"type": "stdio"} if typed else {}), "command": executable, "args": arguments}
        return [JsonFile(os.path.join(place.home, *place_of_file), (key, NAME), server)]

    return targets


def _cursor(place: Place, launch: Launch) -> list[Target]:
    hooks = {event: {"command": launch.hook, "timeout": timeout(event)} for event in CURSOR_EVENTS}
    server = _targets("mcpServers", ".cursor", "mcp.json")
    return [
        *server(place, launch),
        JsonFile(os.path.join(place.home, ".cursor", "hooks.json"), handlers=hooks, version=1),
    ]


def _application(name: str) -> tuple[str, ...]:
    """Where a desktop program keeps its files."""
    return ("Library", "Application Support", name) if sys.platform == "darwin" else (".config", name)


_CLAUDE_DESKTOP = (*_application("Claude"), "claude_desktop_config.json")

WIRINGS = (
    Wiring("cursor", "Cursor", "cursor", _cursor),
    Wiring("vscode", "VS Code", "code", _targets("servers", *_application("Code"), "User", "mcp.json", typed=True)),
    Wiring("windsurf", "Windsurf", "windsurf", _targets("mcpServers", ".codeium", "windsurf", "mcp_config.json")),
    Wiring("zed", "Zed", "zed", _targets("context_servers", ".config", "zed", "settings.json")),
    Wiring("claude-desktop", "Claude Desktop", "claude-desktop", _targets("mcpServers", *_CLAUDE_DESKTOP)),
)
