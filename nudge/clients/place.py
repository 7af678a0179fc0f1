"""Whose files: a home, and the variables with which clients move theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from nudge import paths

CLAUDE, CODEX, GEMINI, XDG = "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"

_HOME = "HOME"


@dataclass(frozen=True)
class Place:
    home: str = field(default_factory=paths.home)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def moved(self, variable: str) -> str | None:
        """Where a client was told to keep its files."""
        named = self.environ.get(variable)
        return os.path.abspath(named) if named else None

    def directory(self, variable: str, *below_home: str) -> str:
        return self.moved(variable) or os.path.join(self.home, *below_home)

    def to_wire(self) -> dict[str, str]:
        """All that makes it another place than the next; nothing else of the environment."""
        return {
            _HOME: self.home,
            **{name: moved for name in (CLAUDE, CODEX, GEMINI, XDG) if (moved := self.moved(name))},
        }

    @classmethod
    def from_wire(cls, raw: Mapping[str, str]) -> Place:
        return cls(raw.get(_HOME) or paths.home(), {name: value for name, value in raw.items() if name != _HOME})
