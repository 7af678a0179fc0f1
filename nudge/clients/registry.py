"""The list of clients, and what is asked of all of them: which one sent a hook event, and in which project and session
the caller of a tool is.

A client with hooks is a module, which `make handshake` writes into `MODULES_OF`; one without hooks is a line here.
Standard library only.
"""

from __future__ import annotations

import os
import sys

from nudge.clients import MODULES_OF
from nudge.clients.client import NAME, AgentClient, Home
from nudge.core.repos import is_absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable

_APPLICATIONS = "Library/Application Support" if sys.platform == "darwin" else ".config"  # files of desktop programs


class _PrintOnly(AgentClient):
    """A client without hooks whose users edit the configuration themselves: `nudge connect` only prints what to write
    where."""

    by_hand = True

    def __init__(self, name: str, title: str, command: str, file: str, key: str, entry: dict[str, str] | None = None):
        self.name, self.title, self.command = name, title, command
        self.folder, self._file = os.path.split(file)
        self._key, self._entry = key, entry or {}

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile

        path = os.path.join(self.directory(home), self._file)
        return [JsonFile(path, (self._key, NAME), {**self._entry, **executable.server_entry})]


_CLAUDE_DESKTOP = f"{_APPLICATIONS}/Claude/claude_desktop_config.json"
_PRINT_ONLY = (
    _PrintOnly("vscode", "VS Code", "code", f"{_APPLICATIONS}/Code/User/mcp.json", "servers", {"type": "stdio"}),
    _PrintOnly("windsurf", "Windsurf", "windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    _PrintOnly("zed", "Zed", "zed", ".config/zed/settings.json", "context_servers"),
    _PrintOnly("claude-desktop", "Claude Desktop", "claude-desktop", _CLAUDE_DESKTOP, "mcpServers"),
)


def get(name: str) -> AgentClient:
    """Return the client of that name. Raises KeyError when there is none."""
    return _load(name) if name in MODULES_OF else {client.name: client for client in _PRINT_ONLY}[name]


def all_clients() -> tuple[AgentClient, ...]:
    return (*with_hooks(), *_PRINT_ONLY)


def with_hooks() -> tuple[AgentClient, ...]:
    """Return the clients that have a module of their own; the first call imports all these modules."""
    return tuple(map(_load, MODULES_OF))


def names() -> tuple[str, ...]:
    return (*MODULES_OF, *(client.name for client in _PRINT_ONLY))


def _load(name: str) -> AgentClient:
    # Not `importlib.import_module`: a hook would load importlib's package for it.
    client = __import__(f"nudge.clients.{MODULES_OF[name]}", None, None, ["CLIENT"]).CLIENT
    assert isinstance(client, AgentClient)
    return client


# The sender of a hook event


def detect(payload: Mapping[str, Any], environ: Mapping[str, str]) -> AgentClient:
    """Return the client that sent a hook's payload. When that cannot be told, the client is called `unknown` and
    understands the names of all clients."""
    name = payload.get("client")
    if isinstance(name, str) and name in MODULES_OF:
        return _load(name)
    for client in map(_load, MODULES_OF):
        if client.recognizes(payload, environ):
            return client
    return next((client for client in with_hooks() if client.recognizes_environ(environ)), None) or _unknown()


def _unknown() -> AgentClient:
    client = AgentClient()
    client.tools, client.arguments, client.prompt_blocks = {}, {}, ()
    for other in with_hooks():
        client.prompt_blocks = tuple(dict.fromkeys((*client.prompt_blocks, *other.prompt_blocks)))
        client.tools = {**client.tools, **other.tools}
        client.arguments = {**client.arguments, **other.arguments}
    return client


# The caller of a tool


def call_directory(environ: Mapping[str, str], meta: object) -> str | None:
    """Return the project's directory that the client names with this one call (`_meta`) or, if it does not, in the
    environment of the process that it started; None when it names none."""
    if isinstance(meta, dict):
        for client in with_hooks():
            if directory := client.call_directory(meta):
                return directory
    named = (environ.get(client.project_variable, "") for client in with_hooks() if client.project_variable)
    return next(filter(is_absolute, named), None)


def call_session(meta: object) -> str | None:
    """Return the session that the client names with this one call (`_meta`); None when it names none."""
    if not isinstance(meta, dict):
        return None
    return next(filter(None, (client.call_session(meta) for client in with_hooks())), None)


def session_variables() -> tuple[str, ...]:
    """Return the variables in which clients name the session to the processes that they start."""
    return tuple(client.session_variable for client in with_hooks() if client.session_variable)


_ANY_AGENT = ("AI_AGENT", "AGENT")  # of several vendors


def shell_variables() -> tuple[str, ...]:
    """Return the variables that clients set for the commands that their agents run."""
    return (*(name for client in with_hooks() for name in client.shell_variables), *_ANY_AGENT)


def process_names() -> frozenset[str]:
    """Return what the processes of clients are called, below which their agents run commands."""
    return frozenset(name for client in with_hooks() for name in client.processes or (client.command,))


def note_source(client: str | None) -> str:
    """Return the source of the notes that a client stores, by the name that it gives in MCP: that of Claude Desktop
    begins like the command of Claude Code."""
    name = (client or "").casefold()
    return next((known.note_source for known in with_hooks() if name.startswith(known.command)), "agent")
