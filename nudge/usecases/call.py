"""Who calls: the facts that travel beside an operation's parameters."""

from __future__ import annotations

from dataclasses import dataclass

from nudge.context import NOWHERE, Context


class EnvNeeded(Exception):
    """A scope asks for environment variables that the caller can tell but was not asked for yet."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = sorted(names)


@dataclass(frozen=True, slots=True)
class Call:
    """`env` is None when the caller cannot be asked; otherwise what it has told so far, null for a name that is not
    set."""

    request_id: str | None = None
    deadline: float | None = None
    defaults: Context = NOWHERE
    env: dict[str, str | None] | None = None
    client: str | None = None
    scope_to_repo: bool = False
    """Whether a hint set without a scope gets the caller's repo: agents in two repos must not overwrite each other."""

    def context(self, given: Context, asked: frozenset[str]) -> Context:
        """The explicit context first, the caller's own facts behind it."""
        merged = given.merged(self.defaults)
        told = self.told(asked) if asked and merged.env is None else None
        if told is not None:
            merged.env = {name: value for name, value in told.items() if value is not None}
        return merged

    def told(self, names: frozenset[str]) -> dict[str, str | None] | None:
        """What the caller's environment says of these; None when it cannot be asked, EnvNeeded when it was not asked
        yet."""
        if self.env is not None and names - self.env.keys():
            raise EnvNeeded(names)
        return self.env
