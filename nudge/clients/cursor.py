"""Cursor: server and hooks in two JSON files, which its user edits. From its documentation only: nothing was
recorded."""

from __future__ import annotations

import json
import os

from nudge.clients.client import NAME, TOOLS, AgentClient, Home
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable

_MCP_TOOL = "MCP:"  # how the name of a server's tool begins


class Cursor(AgentClient):
    name = "cursor"
    title = "Cursor"
    command = "cursor"
    shell_variables = ("CURSOR_AGENT",)
    processes = ("cursor-agent",)  # a person's own terminal runs below `cursor`, the editor
    by_hand = True
    folder = ".cursor"
    instructions = ((".cursor/rules/*",), ("AGENTS.md",))
    # Not the ones for a single tool, such as afterShellExecution: what they tell comes with postToolUse as well.
    connected_events = (
        "sessionStart",
        "beforeSubmitPrompt",
        "postToolUse",
        "postToolUseFailure",
        "preCompact",
        "sessionEnd",
    )
    events: Mapping[str, str] = {
        "sessionStart": "SessionStart",
        "sessionEnd": "SessionEnd",
        "beforeSubmitPrompt": "UserPromptSubmit",
        "postToolUse": "PostToolUse",
        "postToolUseFailure": "PostToolUseFailure",
        "afterShellExecution": "PostToolUse",
        "afterFileEdit": "PostToolUse",
        "afterMCPExecution": "PostToolUse",
        "preCompact": "PostCompact",
    }
    tools: Mapping[str, str] = {**TOOLS, "shell": "command", "strreplace": "edit", "editnotebook": "edit"}
    arguments: Mapping[str, str] = {
        "target_file": "file_path",
        "contents": "content",
        "glob_pattern": "pattern",
        "target_directory": "path",
        "search_term": "query",
    }

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile

        folder = self.directory(home)
        handlers = self.hook_handlers(executable)
        return [
            JsonFile(os.path.join(folder, "mcp.json"), ("mcpServers", NAME), executable.server_entry),
            JsonFile(os.path.join(folder, "hooks.json"), handlers=handlers, version=1),
        ]

    def hook_handlers(self, executable: Executable) -> dict[str, dict[str, Any]]:
        command = self.hook_command(executable)
        return {event: {**command, "timeout": self.hook_timeout(event)} for event in self.connected_events}

    def recognizes(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        return "cursor_version" in payload or "conversation_id" in payload or super().recognizes(payload, environ)

    def adapt(self, event: dict[str, Any]) -> None:
        for name, other in _FIELDS.items():
            event.setdefault(name, event.get(other))
        roots = event.get("workspace_roots")
        if not text_of(event, "cwd") and isinstance(roots, list):
            event["cwd"] = next((root for root in roots if isinstance(root, str)), None)
        if event["source_event"] == "sessionStart":
            event.setdefault("source", "startup")
        event.update(_tool_of_event(event))
        tool = text_of(event, "tool_name")
        if tool.startswith(_MCP_TOOL):
            event.update(tool_kind="mcp", mcp_tool=tool.removeprefix(_MCP_TOOL))

    def hook_output(self, text: str, event: str) -> str:
        """Return JSON for every event: Cursor reads no plain text."""
        del event
        return json.dumps({"additional_context": text})


_FIELDS = {
    "session_id": "conversation_id",
    "prompt_id": "generation_id",
    "duration_ms": "duration",
    "tool_response": "tool_output",
    "error": "error_message",
}


def _tool_of_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Events for a single tool have the fields of that tool at the top level."""
    name = event["source_event"]
    if name == "afterShellExecution":
        arguments = {"command": event.get("command")}
        return {"tool_name": "Shell", "tool_input": arguments, "tool_response": event.get("output")}
    if name == "afterFileEdit":
        return {"tool_name": "Edit", "tool_input": {"file_path": event.get("file_path")}}
    if name == "afterMCPExecution":
        return {"tool_name": f"{_MCP_TOOL}{event.get('tool_name')}", "tool_input": _decoded(event.get("tool_input"))}
    return {}


def _decoded(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


CLIENT = Cursor()
