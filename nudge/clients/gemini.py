"""Gemini CLI: server and hooks in one file. Its events have names of their own, and its timeouts are milliseconds."""

from __future__ import annotations

import os

from nudge.clients.launch import NAME, Launch
from nudge.clients.place import GEMINI, Place
from nudge.clients.targets import JsonFile, Target
from nudge.clients.wiring import Wiring, timeout

# Not PreCompress: it fires before each request, whether anything is compressed or not.
EVENTS = ("SessionStart", "BeforeAgent", "AfterTool", "SessionEnd")


def _targets(place: Place, launch: Launch) -> list[Target]:
    settings = os.path.join(place.directory(GEMINI), ".gemini", "settings.json")
    executable, *arguments = launch.server
    handlers = {event: _handler(launch, event) for event in EVENTS}
    return [JsonFile(settings, ("mcpServers", NAME), {"command": executable, "args": arguments}, handlers)]


def _handler(launch: Launch, event: str) -> dict[str, object]:
    return {"name": NAME, "type": "command", "command": launch.hook, "timeout": timeout(event) * 1000}


WIRING = Wiring("gemini", "Gemini CLI", "gemini", _targets)
