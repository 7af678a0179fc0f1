"""Which projects' history a caller may see: a private project is shown only to callers that are in it or name it. Hooks
load this module: standard library only."""

from __future__ import annotations

import os

from nudge import config, limits
from nudge.context import is_project
from nudge.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from nudge.config import Settings
    from nudge.usecases.call import Call

_CROSS_PROJECT = "NUDGE_CROSS_PROJECT"
_VARIABLES = frozenset((_CROSS_PROJECT, "NUDGE_PRIVATE_PROJECTS"))


class Visibility:
    """The session's settings, and a caller's own where they are stricter: a caller can hide more, never show more."""

    __slots__ = ("cross_project", "private")

    def __init__(self, settings: Settings, caller: Settings | None = None) -> None:
        self.cross_project, self.private = settings.cross_project, frozenset(settings.private_projects)
        if caller is not None:
            self.private |= frozenset(caller.private_projects)

    def hidden_from(self, project: str | None) -> frozenset[str]:
        """The names of private projects, except the one where the caller is."""
        return frozenset(name for name in self.private if project is None or not is_project(project, name))


def visible_to(call: Call, settings: Settings, also_needed: frozenset[str] = frozenset()) -> Visibility:
    """What this caller may see. Raises EnvNeeded for variables that it was not asked for yet; `also_needed` are further
    ones to ask for at the same time, since a hook has time for one round."""
    values = call.env_values(_VARIABLES | also_needed)
    if values is None:
        return Visibility(settings)
    environ = {name: _check_whole(name, value) for name in _VARIABLES if (value := values[name]) is not None}
    return _strictest(settings, environ)


def visible_here(environ: Mapping[str, str] = os.environ) -> Visibility:
    """What this process may see, when there is no server to ask."""
    return _strictest(config.load(environ), environ)


def _strictest(settings: Settings, environ: Mapping[str, str]) -> Visibility:
    caller = config.from_variables(environ)
    visibility = Visibility(settings, caller)
    if _CROSS_PROJECT in environ:  # an unset variable hides nothing
        visibility.cross_project = visibility.cross_project and caller.cross_project
    return visibility


def _check_whole(name: str, value: str) -> str:
    """Refuse a value that was cut on its way: the rest of the projects that it hides is not known."""
    if len(value) > limits.MAX_ENV_VALUE_CHARS:
        raise Invalid(f"must be at most {limits.MAX_ENV_VALUE_CHARS} characters; config.toml takes more", field=name)
    return value
