"""Claude Code. Its own command adds the server, since it guards its state file itself; hooks go into the user's
settings.

Payloads and behavior as recorded with 2.1.325.
"""

from __future__ import annotations

import os

from nudge.clients.client import NAME, AgentClient, Home
from nudge.core import limits, paths
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nudge.clients.config_files import ConfigEntry, ConfigFile
    from nudge.clients.executable import Executable
    from nudge.clients.plan import Command, FileChange

_USER_SCOPE = ("--scope", "user")


class ClaudeCode(AgentClient):
    name = "claude-code"
    title = "Claude Code"
    command = "claude"
    folder = ".claude"
    instructions = (("CLAUDE.md",), (".claude/CLAUDE.md",), ("CLAUDE.local.md",))
    home_variable = "CLAUDE_CONFIG_DIR"
    project_variable = "CLAUDE_PROJECT_DIR"
    session_variable = "CLAUDE_CODE_SESSION_ID"
    shell_variables = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID")
    note_source = "claude"
    remove_server = "claude mcp remove {name} -s user"
    connected_events = (
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "PostCompact",
        "Stop",
        "SessionEnd",
    )
    shows_exit_2 = ("SessionStart", "SessionEnd")
    assistant_mark = b'"assistant"'
    action_marks = (b'"tool_use"',)

    def state_file(self, home: Home) -> str:
        """Servers of the user and of single projects, among much else."""
        return os.path.join(home.variable(self.home_variable) or home.path, ".claude.json")

    def settings_file(self, home: Home) -> str:
        """Hooks and plugins of the user."""
        return os.path.join(self.directory(home), "settings.json")

    def status_line(self, home: Home) -> str | None:
        """The command of its status line in the user's settings, ours or another's; None when none is set."""
        from nudge.clients import config_files

        return config_files.read_status_line(self.settings_file(home))

    def transcripts(self, home: Home) -> str:
        """The directory of its transcripts, in one folder for each project."""
        return os.path.join(self.directory(home), "projects")

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from shlex import join

        from nudge.clients.config_files import JsonFile

        # With `env`, as `claude mcp add` writes it: what it made can then be undone to the byte.
        server = {"type": "stdio", **executable.server_entry}
        return [
            JsonFile(self.state_file(home), ("mcpServers", NAME), server, defaults={"env": {}}),
            JsonFile(
                self.settings_file(home),
                handlers=self.hook_handlers(executable),
                status_line={"type": "command", "command": join(executable.status_line)},
                status_line_defaults={"refreshInterval": limits.STATUS_LINE_INTERVAL},
            ),
        ]

    def hook_command(self, executable: Executable) -> dict[str, Any]:
        """As a list of words, for which it starts no shell."""
        program, *arguments = executable.hook
        return {"command": program, "args": arguments}

    def entries(self, home: Home, cwd: str) -> Iterator[ConfigEntry]:
        """Also the servers of the project alone, those that it shares, and plugins."""
        from shlex import quote

        from nudge.clients.config_files import PLUGIN_ENTRY, ConfigEntry, read_document, server_entries, table

        yield from super().entries(home, cwd)
        settings = self.settings_file(home)
        for name, is_enabled in table(read_document(settings), "enabledPlugins").items():
            if is_enabled:
                yield ConfigEntry(PLUGIN_ENTRY, name, "", settings, f"claude plugin disable {quote(name)}")
        state = self.state_file(home)
        projects = table(read_document(state), "projects")
        for folder in paths.upward(cwd):
            local = table(table(projects, folder), "mcpServers")
            yield from server_entries(state, local, "claude mcp remove {name} -s local")
            shared = os.path.join(folder, ".mcp.json")
            servers = table(read_document(shared), "mcpServers")
            yield from server_entries(shared, servers, "claude mcp remove {name} -s project")

    def own_commands(self, change: FileChange, home: Home, executable: Executable) -> Sequence[Command]:
        import shutil

        claude = shutil.which(self.command, path=home.environ.get("PATH"))
        if claude is None or change.path != self.state_file(home):
            return ()
        is_there = change.before is not None and change.file.find(change.before)
        remove = ((claude, "mcp", "remove", *_USER_SCOPE, NAME),) if is_there else ()
        return (*remove, (claude, "mcp", "add", *_USER_SCOPE, NAME, "--", *executable.server))

    def assistant_text(self, entry: Mapping[str, Any]) -> str:
        if entry["type"] != "assistant" or entry.get("isSidechain"):
            return ""
        return "\n".join(text_of(block, "text") for block in entry["message"]["content"] if block["type"] == "text")

    def process_id(self, environ: Mapping[str, str]) -> int | None:
        process = environ.get("CLAUDE_PID", "")
        return int(process) if process.isdecimal() and process.isascii() and int(process) else None

    def recognizes_environ(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get("CLAUDECODE")) or environ.get("AI_AGENT", "").startswith("claude-code")


CLIENT = ClaudeCode()
