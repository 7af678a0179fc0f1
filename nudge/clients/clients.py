"""Every client that we can wire, and every one that we can only tell how to."""

from __future__ import annotations

from nudge.clients import claude_code, codex, gemini, opencode, printed
from nudge.clients.wiring import Wiring

WIRED: tuple[Wiring, ...] = (claude_code.WIRING, codex.WIRING, gemini.WIRING, opencode.WIRING)
PRINTED: tuple[Wiring, ...] = printed.WIRINGS
ALL = WIRED + PRINTED
NAMES = tuple(wiring.name for wiring in ALL)


def named(name: str) -> Wiring:
    return next(wiring for wiring in ALL if wiring.name == name)
