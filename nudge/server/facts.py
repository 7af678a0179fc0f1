"""What the transport of an MCP message knows beside its text."""

from __future__ import annotations

from dataclasses import dataclass

from nudge.usecases.call import Call


@dataclass(frozen=True, slots=True)
class Facts:
    call: Call
    protocol: str | None = None
    tools: str = "default"
