"""Hook payloads: the recorded ones, and short ways to make others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nudge.clients import registry
from nudge.history import extract as history

FIXTURES = Path(__file__).parents[2] / "fixtures"


def recorded(name: str) -> list[dict[str, Any]]:
    """The payloads that a real client sent, in order."""
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


CLAUDE_CODE = recorded("claude_code_2.1.325.jsonl")
CODEX = recorded("codex_0.166.0.jsonl")
GEMINI = recorded("gemini_0.61.0.jsonl")
OPENCODE = recorded("opencode_1.18.33.jsonl")  # by our plugin


def payload(event: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s-1", "cwd": "/home/u/proj", "hook_event_name": event, **fields}


def tool(name: str, arguments: dict[str, Any], response: Any = None, **fields: Any) -> dict[str, Any]:
    return payload(
        "PostToolUse", tool_name=name, tool_input=arguments, tool_response=response, tool_use_id="t-1", **fields
    )


def failure(name: str, arguments: dict[str, Any], error: str, **fields: Any) -> dict[str, Any]:
    return payload("PostToolUseFailure", tool_name=name, tool_input=arguments, error=error, tool_use_id="t-1", **fields)


def bash(command: str, stdout: str = "", **fields: Any) -> dict[str, Any]:
    """A command that Claude Code calls a success."""
    return tool("Bash", {"command": command}, {"stdout": stdout, "stderr": "", "interrupted": False}, **fields)


def extract(raw: dict[str, Any], *, now: float = 0, **environ: str) -> dict[str, Any] | None:
    """The event of a hook's payload, as `nudge record` makes it."""
    return history.extract(registry.detect(raw, environ).translate(raw), now=now)


def kind_of(raw: dict[str, Any]) -> str | None:
    """The type of the observation in a payload; None when it is ignored."""
    event = extract(raw)
    return None if event is None else str(event["type"])
