"""Gemini CLI: server and hooks in one file. Its events have names of their own, and its timeouts are milliseconds.

Payloads as recorded with 0.61.0.
"""

from __future__ import annotations

import json
import os

from nudge.clients.client import NAME, AgentClient, Home
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable

_OUTPUT = "Output: "
_SHELL_FIELDS = ("Process Group PGID", "Background PIDs", "Signal", "Exit Code")  # below the output, the last one first


class Gemini(AgentClient):
    name = "gemini"
    title = "Gemini CLI"
    command = "gemini"
    folder = ".gemini"
    instructions = (("GEMINI.md",),)
    home_variable = "GEMINI_CLI_HOME"
    shell_variables = ("GEMINI_CLI",)
    remove_server = "gemini mcp remove {name}"
    # Not PreCompress: it fires before each request, whether anything is compressed or not.
    connected_events = ("SessionStart", "BeforeAgent", "AfterTool", "SessionEnd")
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
        "invoke_agent": "task",
        "web_fetch": "web_fetch",
        "google_web_search": "web_search",
    }
    arguments: Mapping[str, str] = {"dir_path": "path", "agent_name": "subagent_type"}
    prompt_blocks = (*AgentClient.prompt_blocks, "hook_context")  # the text of our own SessionStart hook
    assistant_mark = b'"gemini"'
    action_marks = (b'"toolCalls"',)

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

    def recognizes_environ(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get("GEMINI_CLI"))

    def adapt(self, event: dict[str, Any]) -> None:
        response = event.get("tool_response")
        if event["source_event"] != "AfterTool" or not isinstance(response, dict):
            return
        if isinstance(server := event.get("mcp_context"), dict):
            event.update(
                tool_kind="mcp", mcp_server={"name": server.get("server_name")}, mcp_tool=server.get("tool_name")
            )
        if error := response.get("error"):
            message = error.get("message") if isinstance(error, dict) else error
            event.update(hook_event_name="PostToolUseFailure", error=str(message))
            return
        text = response.get("llmContent")
        event["tool_response"] = (_read_shell(text) if isinstance(text, str) else None) or text

    def assistant_text(self, entry: Mapping[str, Any]) -> str:
        return text_of(entry, "content") if entry["type"] == "gemini" else ""

    def hook_output(self, text: str, event: str) -> str:
        """Return JSON for every event: Gemini CLI reads no plain text."""
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def _read_shell(text: str) -> dict[str, Any] | None:
    """Return the output of a command and its exit code, which Gemini CLI names when it is not 0. None when the command
    has not ended: it was cancelled, or continues in the background."""
    body = text.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
    if not body.startswith(_OUTPUT):
        return None
    lines = body[len(_OUTPUT) :].split("\n")
    fields = {}
    for name in _SHELL_FIELDS:
        if lines[-1].startswith(f"{name}: "):
            fields[name] = lines.pop().removeprefix(f"{name}: ")
    code = fields.get("Exit Code", "0")
    is_known = code.isdecimal() and "Signal" not in fields
    output = "\n".join(lines)
    return {"output": "" if output == "(empty)" else output, "exit_code": int(code) if is_known else None}


CLIENT = Gemini()
