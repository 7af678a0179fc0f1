"""Gemini CLI: server and hooks in one file. Its events have names of their own, and its timeouts are milliseconds.

Hooks as documented; `make e2e` runs them with 0.61.0.
"""

from __future__ import annotations

import json
import os
import re

from nudge.clients.client import NAME, Client, Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable


class Gemini(Client):
    name = "gemini"
    title = "Gemini CLI"
    command = "gemini"
    folder = ".gemini"
    home_variable = "GEMINI_CLI_HOME"
    remove_server = "gemini mcp remove {name}"
    # Not PreCompress: it fires before each request, whether anything is compressed or not.
    wired_events = ("SessionStart", "BeforeAgent", "AfterTool", "SessionEnd")
    events: Mapping[str, str] = {
        "AfterTool": "PostToolUse",
        "BeforeAgent": "UserPromptSubmit",
        "PreCompress": "PostCompact",  # it has none for afterwards
    }
    tools: Mapping[str, str] = {
        "run_shell_command": "command",
        "read_file": "read",
        "write_file": "write",
        "replace": "edit",
        "glob": "find",
        "list_directory": "find",
        "grep_search": "search",
        "search_file_content": "search",
        "web_fetch": "web_fetch",
        "google_web_search": "web_search",
    }
    arguments: Mapping[str, str] = {"absolute_path": "file_path", "dir_path": "path"}

    def directory(self, home: Home) -> str:
        return os.path.join(home.variable(self.home_variable) or home.path, self.folder)

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile

        path = os.path.join(self.directory(home), "settings.json")
        return [JsonFile(path, ("mcpServers", NAME), executable.server_entry, self.hook_handlers(executable))]

    def hook_handlers(self, executable: Executable) -> dict[str, dict[str, Any]]:
        return {
            event: {"name": NAME, **handler, "timeout": handler["timeout"] * 1000}
            for event, handler in super().hook_handlers(executable).items()
        }

    def started(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get("GEMINI_CLI"))

    def adapt(self, event: dict[str, Any]) -> None:
        response = event.get("tool_response")
        if event["source_event"] != "AfterTool" or not isinstance(response, dict):
            return
        if isinstance(server := event.get("mcp_context"), dict):
            event["mcp_server"] = {"name": server.get("server_name")}
        if error := response.get("error"):
            message = error.get("message") if isinstance(error, dict) else error
            event.update(hook_event_name="PostToolUseFailure", error=str(message))
            return
        text = response.get("llmContent")
        codes = re.findall(r"(?m)^Exit Code: (\d{1,9})$", text) if isinstance(text, str) else []
        event["tool_response"] = {"output": text, "exit_code": int(codes[-1])} if codes else text

    def hook_output(self, text: str, event: str) -> str:
        """It reads nothing but JSON."""
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


CLIENT = Gemini()
