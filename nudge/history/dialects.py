"""The hooks of Gemini CLI and Cursor, in Claude Code's words. Both from their documentation only: no payload of theirs
has been seen."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GEMINI_EVENTS = {
    "AfterTool": "PostToolUse",
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterAgent": "Stop",
    "BeforeModel": "PreModelRequest",
    "AfterModel": "PreModelRequest",
    "BeforeToolSelection": "PreModelRequest",
    "PreCompress": "PostCompact",  # it has none for afterwards
}
CURSOR_EVENTS = {
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "afterShellExecution": "PostToolUse",
    "afterFileEdit": "PostToolUse",
    "afterMCPExecution": "PostToolUse",
    "beforeShellExecution": "PreToolUse",
    "beforeMCPExecution": "PreToolUse",
    "beforeReadFile": "PreToolUse",
    "preCompact": "PostCompact",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "afterAgentResponse": "Stop",
    "afterAgentThought": "Stop",
    "stop": "Stop",
}


def is_cursor(payload: Mapping[str, Any]) -> bool:
    return (
        "cursor_version" in payload
        or "conversation_id" in payload
        or str(payload.get("hook_event_name")) in CURSOR_EVENTS
    )


def translated(payload: Mapping[str, Any]) -> dict[str, Any]:
    return _from_cursor(payload) if is_cursor(payload) else _from_gemini(payload)


def _from_gemini(payload: Mapping[str, Any]) -> dict[str, Any]:
    name = payload["hook_event_name"]
    said = {**payload, "hook_event_name": GEMINI_EVENTS.get(name, name)}
    response = payload.get("tool_response")
    if name != "AfterTool" or not isinstance(response, dict):
        return said
    if isinstance(server := payload.get("mcp_context"), dict):
        said["mcp_server"] = {"name": server.get("server_name")}
    if error := response.get("error"):
        message = error.get("message") if isinstance(error, dict) else error
        return said | {"hook_event_name": "PostToolUseFailure", "error": str(message)}
    text = response.get("llmContent")
    codes = re.findall(r"(?m)^Exit Code: (\d{1,9})$", text) if isinstance(text, str) else []
    return said | {"tool_response": {"output": text, "exit_code": int(codes[-1])} if codes else text}


def _from_cursor(payload: Mapping[str, Any]) -> dict[str, Any]:
    name = str(payload.get("hook_event_name", ""))
    said = {**payload, "hook_event_name": CURSOR_EVENTS.get(name, name)}
    said.setdefault("session_id", payload.get("conversation_id"))
    said.setdefault("prompt_id", payload.get("generation_id"))
    said.setdefault("duration_ms", payload.get("duration"))
    said.setdefault("tool_response", payload.get("tool_output"))
    said.setdefault("error", payload.get("error_message"))
    if name == "sessionStart":
        said.setdefault("source", "startup")
    return said | _own_tool(name, payload)


def _own_tool(name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Cursor's hooks for one tool each have that tool's facts at the top."""
    if name == "afterShellExecution":
        return {
            "tool_name": "Shell",
            "tool_input": {"command": payload.get("command")},
            "tool_response": payload.get("output"),
        }
    if name == "afterFileEdit":
        return {"tool_name": "Edit", "tool_input": {"file_path": payload.get("file_path")}}
    if name == "afterMCPExecution":
        return {"tool_name": f"MCP:{payload.get('tool_name')}", "tool_input": _decoded(payload.get("tool_input"))}
    return {}


def _decoded(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
