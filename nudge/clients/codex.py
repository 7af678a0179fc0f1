"""Codex: a table in its TOML configuration, hooks in a JSON file beside it. Payloads as recorded with 0.166.0."""

from __future__ import annotations

import os

from nudge.clients.client import NAME, TOOLS, AgentClient, Home, transcript_end
from nudge.core import limits, thin_json
from nudge.core.repos import is_absolute
from nudge.core.text import has_control
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable


_TURN_METADATA = "x-codex-turn-metadata"  # in `_meta`: Codex starts servers in its own directory, not in the project
_NESTED_WORKSPACES = 3  # levels of lists and objects in which a path is looked for


class Codex(AgentClient):
    name = "codex"
    title = "Codex"
    command = "codex"
    advice = "Codex runs hooks only after you have trusted them (codex exec too): start it and open /hooks"
    folder = ".codex"
    instructions = (("AGENTS.override.md", "AGENTS.md"),)
    home_variable = "CODEX_HOME"
    shell_variables = ("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI")
    remove_server = "codex mcp remove {name}"
    # A tool that failed is one of its PostToolUse.
    connected_events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "SessionEnd")
    # Its hooks call every shell `Bash`. A patch is the argument `command` of its tool.
    tools: Mapping[str, str] = {**TOOLS, "apply_patch": "patch"}
    assistant_mark = b'"assistant"'
    action_marks = (b'"function_call"', b'"custom_tool_call"')

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile, TomlFile

        folder = self.directory(home)
        return [
            TomlFile(os.path.join(folder, "config.toml"), "mcp_servers", NAME, executable.server_entry),
            JsonFile(os.path.join(folder, "hooks.json"), handlers=self.hook_handlers(executable)),
        ]

    def call_directory(self, meta: Mapping[str, Any]) -> str | None:
        return _first_absolute(_turn_metadata(meta).get("workspaces"))

    def call_session(self, meta: Mapping[str, Any]) -> str | None:
        return next(filter(_is_session_id, (meta.get("sessionId"), _turn_metadata(meta).get("session_id"))), None)

    def recognizes(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        return "turn_id" in payload or super().recognizes(payload, environ)

    def adapt(self, event: dict[str, Any]) -> None:
        """Add how a command ended: hooks get only its output; the exit code is in the transcript, which is written
        before."""
        output, call = event.get("tool_response"), text_of(event, "tool_use_id")
        if isinstance(output, str) and call:
            code = _exit_code(text_of(event, "transcript_path"), call)
            if code is not None:
                event["tool_response"] = {"output": output, "exit_code": code}

    def assistant_text(self, entry: Mapping[str, Any]) -> str:
        message = entry["payload"]
        if entry["type"] != "response_item" or message["type"] != "message" or message["role"] != "assistant":
            return ""
        return "\n".join(text_of(block, "text") for block in message["content"])


def _turn_metadata(meta: Mapping[str, Any]) -> dict[str, Any]:
    turn = meta.get(_TURN_METADATA)
    if isinstance(turn, str):
        try:
            turn = thin_json.loads(turn)
        except (ValueError, RecursionError):
            return {}
    return turn if isinstance(turn, dict) else {}


def _first_absolute(node: object, depth: int = _NESTED_WORKSPACES) -> str | None:
    """Return the first absolute path in a text, a list, or an object's names and then values."""
    if isinstance(node, str):
        return node if is_absolute(node) else None
    if depth == 0 or not isinstance(node, dict | list):
        return None
    inner = [*node, *node.values()] if isinstance(node, dict) else node
    return next(filter(None, (_first_absolute(part, depth - 1) for part in inner)), None)


def _is_session_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= limits.MAX_SESSION_ID_CHARS and not has_control(value)


def _exit_code(transcript: str, call: str) -> int | None:
    """The exit code of the command that a tool call ran; None when the transcript does not have it."""
    for line in reversed(transcript_end(transcript)):
        if b'"CommandExecution"' in line and call.encode() in line:
            try:
                item = thin_json.loads(line)["payload"]["item"]
                if item["id"] == call:
                    return item["exit_code"] if type(item["exit_code"]) is int else None
            except (ValueError, RecursionError, KeyError, TypeError):
                continue
    return None


CLIENT = Codex()
