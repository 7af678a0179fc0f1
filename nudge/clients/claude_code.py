"""Claude Code: its own command adds the server, since it guards its state file itself; hooks go into the user's
settings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from nudge.clients.launch import NAME, Launch
from nudge.clients.place import CLAUDE, Place
from nudge.clients.plan import Command, Step
from nudge.clients.targets import MCP, JsonFile, Target
from nudge.clients.wiring import Wiring, handlers

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PostCompact", "SessionEnd")

_COMMAND = "claude"
_SCOPE = ("--scope", "user")


def _targets(place: Place, launch: Launch) -> list[Target]:
    moved = place.moved(CLAUDE)
    state = os.path.join(moved or place.home, ".claude.json")
    settings = os.path.join(moved or os.path.join(place.home, ".claude"), "settings.json")
    executable, *arguments = launch.server
    # With `env`, as `claude mcp add` writes it: what it made can then be undone to the byte.
    server = {"type": "stdio", "command": executable, "args": arguments}
    return [
        JsonFile(state, ("mcpServers", NAME), server, defaults={"env": {}}),
        JsonFile(settings, handlers=handlers(launch, EVENTS)),
    ]


def _commands(step: Step, place: Place, launch: Launch) -> Sequence[Command]:
    command = shutil.which(_COMMAND, path=place.environ.get("PATH"))
    if command is None or step.target.parts != (MCP,):
        return ()
    replaced = ((command, "mcp", "remove", *_SCOPE, NAME),) if step.before and step.target.found(step.before) else ()
    return (*replaced, (command, "mcp", "add", *_SCOPE, NAME, "--", *launch.server))


WIRING = Wiring("claude-code", "Claude Code", _COMMAND, _targets, _commands)
