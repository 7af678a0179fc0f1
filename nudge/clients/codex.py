"""Codex: a table in its TOML configuration, hooks in a JSON file beside it."""

from __future__ import annotations

import os

from nudge.clients.launch import NAME, Launch
from nudge.clients.place import CODEX, Place
from nudge.clients.targets import JsonFile, Target, TomlFile
from nudge.clients.wiring import Wiring, handlers

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "SessionEnd")


def _targets(place: Place, launch: Launch) -> list[Target]:
    home = place.directory(CODEX, ".codex")
    executable, *arguments = launch.server
    return [
        TomlFile(os.path.join(home, "config.toml"), "mcp_servers", NAME, {"command": executable, "args": arguments}),
        JsonFile(os.path.join(home, "hooks.json"), handlers=handlers(launch, EVENTS)),
    ]


WIRING = Wiring(
    "codex",
    "Codex",
    "codex",
    _targets,
    advice="Codex runs hooks only after you have trusted them: start it and open /hooks",
)
