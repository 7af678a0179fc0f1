"""Codex: a table in its TOML configuration, hooks in a JSON file beside it. Payloads as recorded with 0.166.0."""

from __future__ import annotations

import os

from nudge.clients.client import NAME, TOOLS, Client, Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable


class Codex(Client):
    name = "codex"
    title = "Codex"
    command = "codex"
    advice = "Codex runs hooks only after you have trusted them: start it and open /hooks"
    folder = ".codex"
    home_variable = "CODEX_HOME"
    remove_server = "codex mcp remove {name}"
    # A tool that failed is one of its PostToolUse.
    wired_events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "SessionEnd")
    tools: Mapping[str, str] = {
        **TOOLS,
        "shell": "command",
        "local_shell": "command",
        "exec_command": "command",
        "apply_patch": "patch",
        "web_search": "web_search",
    }
    arguments: Mapping[str, str] = {"cmd": "command", "input": "patch"}

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile, TomlFile

        folder = self.directory(home)
        return [
            TomlFile(os.path.join(folder, "config.toml"), "mcp_servers", NAME, executable.server_entry),
            JsonFile(os.path.join(folder, "hooks.json"), handlers=self.hook_handlers(executable)),
        ]

    def sent(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        return "turn_id" in payload or super().sent(payload, environ)


CLIENT = Codex()
