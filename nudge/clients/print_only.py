"""Clients without hooks whose users edit the configuration themselves: the file, and the key for the server."""

from __future__ import annotations

import os
import sys

from nudge.clients.client import NAME, AgentClient, Home
from nudge.clients.config_files import ConfigFile, JsonFile
from nudge.clients.executable import Executable

# Where a desktop program keeps its files.
_APPLICATIONS = "Library/Application Support" if sys.platform == "darwin" else ".config"


class PrintOnly(AgentClient):
    """A client for which `nudge connect` only prints what to write where."""

    by_hand = True

    def __init__(self, name: str, title: str, command: str, file: str, key: str, entry: dict[str, str] | None = None):
        self.name, self.title, self.command = name, title, command
        self.folder, self._file = os.path.split(file)
        self._key, self._entry = key, entry or {}

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        path = os.path.join(self.directory(home), self._file)
        return [JsonFile(path, (self._key, NAME), {**self._entry, **executable.server_entry})]


_CLIENTS = (
    PrintOnly("vscode", "VS Code", "code", f"{_APPLICATIONS}/Code/User/mcp.json", "servers", {"type": "stdio"}),
    PrintOnly("windsurf", "Windsurf", "windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    PrintOnly("zed", "Zed", "zed", ".config/zed/settings.json", "context_servers"),
    PrintOnly(
        "claude-desktop",
        "Claude Desktop",
        "claude-desktop",
        f"{_APPLICATIONS}/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
)
CLIENTS: dict[str, AgentClient] = {client.name: client for client in _CLIENTS}
