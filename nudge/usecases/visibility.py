"""Whose rows may be told where: a private project is told of to nobody who stands elsewhere and does not name it."""

from __future__ import annotations

import os

from nudge import config, limits
from nudge.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.config import Settings
    from nudge.usecases.call import Call

_VARIABLES = frozenset(f"NUDGE_{name}" for name in ("CROSS_PROJECT", "PRIVATE_PROJECTS"))


class Visibility:
    __slots__ = ("cross_project", "private")

    def __init__(self, settings: Settings) -> None:
        self.cross_project, self.private = settings.cross_project, frozenset(settings.private_projects)

    def hidden_from(self, *projects: str | None) -> frozenset[str]:
        """The private projects, but for those where the caller stands or that it names."""
        return self.private - frozenset(projects)


def visible_to(call: Call, also_asked: frozenset[str] = frozenset()) -> Visibility:
    """By the caller's environment, which wins, not by that of whoever happened to start the server. `also_asked` are
    variables that are
    needed as well: a hook has the time to be asked once."""
    told = call.env_values(_VARIABLES | also_asked)
    if told is None:
        return Visibility(config.load(os.environ))
    own = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    return Visibility(
        config.load({**own, **{name: _whole(name, told[name]) for name in _VARIABLES if told[name] is not None}})
    )


def _whole(name: str, value: str | None) -> str:
    """A longer one came cut: whom it would have hidden is not known."""
    if value is None or len(value) > limits.MAX_ENV_VALUE_CHARS:
        raise Invalid(f"must be at most {limits.MAX_ENV_VALUE_CHARS} characters; config.toml takes more", field=name)
    return value
