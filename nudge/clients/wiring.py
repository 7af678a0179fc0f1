"""One client: what it is called, where its files are, what goes into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nudge.clients.launch import Launch
from nudge.clients.place import Place
from nudge.clients.plan import Command, Step
from nudge.clients.targets import Target
from nudge.limits import CLIENT_HOOK_TIMEOUT, CLIENT_SESSION_END_TIMEOUT

SESSION_END = "sessionend"  # however a client capitalises it


def _no_commands(step: Step, place: Place, launch: Launch) -> Sequence[Command]:
    del step, place, launch
    return ()


@dataclass(frozen=True)
class Wiring:
    name: str
    title: str
    command: str  # the client's own, on PATH
    targets: Callable[[Place, Launch], list[Target]]
    commands: Callable[[Step, Place, Launch], Sequence[Command]] = _no_commands
    advice: str = ""  # what its user has to know after connecting


def handlers(launch: Launch, events: Sequence[str]) -> dict[str, dict[str, object]]:
    """Command hooks with the timeouts that clients of Claude Code's kind count in seconds."""
    return {event: {"type": "command", "command": launch.hook, "timeout": timeout(event)} for event in events}


def timeout(event: str) -> int:
    return CLIENT_SESSION_END_TIMEOUT if event.lower() == SESSION_END else CLIENT_HOOK_TIMEOUT
