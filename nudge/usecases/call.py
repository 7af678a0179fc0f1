"""What travels beside an operation's parameters: who calls, through which interface, from where, until when."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from nudge.context import NO_CONTEXT, Context, resolve

Door = Literal["cli", "mcp", "hook", "http"]


class EnvNeeded(Exception):
    """A scope names environment variables that the caller was not asked for yet; the interface asks and calls again."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = sorted(names)


def _located(given: Context, merged: Context) -> Context:
    """A directory of this machine, named without repo and branch, brings both: the caller's own belong elsewhere."""
    if given.cwd is None or (given.repo, given.branch) != (None, None) or not os.path.isdir(given.cwd):
        return merged
    here = resolve(given.cwd)
    return Context(**{**merged.to_wire(), "repo": here.repo, "branch": here.branch})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one operation.

    `env` holds the variables that the caller was asked for, None for one that is not set; it is None as a whole when
    the caller cannot be asked. `once` is the at-most-once key: a repeated call gets the answer of the first one.
    `deadline` is on the boot clock; a write is not applied after it.

    `session` is what the client says of its session with this one call; `connection` stands for one that says nothing.
    `client_process` is the process id of the client, as far as the caller knows it. `nudge.usecases.agent_sessions`
    decides by these.
    """

    door: Door = "http"
    client: str | None = None
    context: Context = NO_CONTEXT
    env: dict[str, str | None] | None = None
    deadline: float | None = None
    once: str | None = None
    session: str | None = None
    connection: str | None = None
    client_process: int | None = None
    fingerprint: str | None = None
    """Of operation and parameters, set by the application: `once` must not come back with others."""

    @property
    def scopes_to_repo(self) -> bool:
        """Whether a hint without a scope gets the caller's repo: agents in two repos must not overwrite each other."""
        return self.door in ("cli", "mcp")

    def merge_context(self, given: Context, env_names: frozenset[str]) -> Context:
        """The parameters' context, completed by the caller's own; raises EnvNeeded when `env_names` are not known
        yet."""
        merged = _located(given, given.merged(self.context))
        values = self.env_values(env_names) if env_names and merged.env is None else None
        if values is not None:
            merged.env = {name: value for name, value in values.items() if value is not None}
        return merged

    def env_values(self, names: frozenset[str]) -> dict[str, str | None] | None:
        """The caller's values of these variables, or None when it cannot be asked; raises EnvNeeded when it can."""
        if self.env is not None and names - self.env.keys():
            raise EnvNeeded(names)
        return self.env
