"""What is private: what a caller may see of private projects, of their history, facts, notes, attempts and hints.

A private project is shown to callers that are in it or name it, and to nobody else. Every operation, the text of a
start and the command line ask this module. Hooks load it: standard library only."""

from __future__ import annotations

import os

from nudge.core import limits
from nudge.core.context import is_below, is_project, project_of
from nudge.core.errors import Invalid
from nudge.settings import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from nudge.core.app import App
    from nudge.core.call import Call
    from nudge.core.context import Context
    from nudge.settings.config import Settings

VARIABLES = frozenset(("NUDGE_CROSS_PROJECT", "NUDGE_PRIVATE_PROJECTS"))
"""A caller's own variables that count beside the settings of the session."""


class Visibility:
    """What one caller may see. `here` is the project where it is, `cwd` its directory; `private` are the names of
    private projects, short or long."""

    __slots__ = ("cross_project", "cwd", "here", "private")

    def __init__(
        self,
        private: Iterable[str] = (),
        here: str | None = None,
        cwd: str | None = None,
        *,
        cross_project: bool = False,
    ) -> None:
        self.private = frozenset(name.casefold() for name in private)
        self.here, self.cwd, self.cross_project = here, cwd, cross_project

    def is_private(self, project: str) -> bool:
        return _is_any(project, self.private)

    def shows(self, project: str | None, *named: str | None) -> bool:
        """Whether the caller may see a project, given by its identity; `named` are the projects that it asks for by
        name. What belongs to no project is shown."""
        if project is None or not self.is_private(project):
            return True
        return _is_any(project, (name for name in (self.here, *named) if name))

    @property
    def hidden_names(self) -> list[str]:
        """The names of private projects, except the one where the caller is."""
        here = self.here.casefold() if self.here else None
        return sorted(name for name in self.private if here is None or not is_project(here, name))

    def hidden(self, projects: Iterable[str], *named: str | None) -> frozenset[str]:
        """Those of the projects that the caller may not see."""
        return frozenset(project for project in projects if not self.shows(project, *named))

    def shows_scope(self, scope: Mapping[str, Any]) -> bool:
        """Whether the caller may see a hint with this scope. One that names a private project, by a repo or a
        directory, is shown in that project, and in the other repos that the scope names."""
        if not self.private:
            return True
        repos = [project for repo in _repos_of(scope) if (project := project_of(repo, None))]
        is_here = self.here is not None and _is_any(self.here, repos)
        folders = (folder for glob in scope.get("cwd_glob", ()) for folder in _folders_of(glob))
        return (is_here or not self.hidden(repos)) and all(map(self._shows_folder, folders))

    def _shows_folder(self, folder: str) -> bool:
        names = [name for name in self.private if is_project(folder.casefold(), name)]
        is_here = self.here is not None and _is_any(self.here, names)
        return not names or is_here or is_below(self.cwd, folder)


EVERYTHING = Visibility()
"""For what the server does for itself."""


def visibility_of(settings: Settings, environ: Mapping[str, str], context: Context) -> Visibility:
    """Return what a caller may see: by the settings of the session, and by its own variables where they are stricter.
    A caller can hide more, never show more. Raises Invalid or SettingInvalid for a variable that cannot be read."""
    private, cross_project = settings.private_projects, settings.cross_project
    own = {name: _check_whole(name, environ[name]) for name in VARIABLES if name in environ}
    if own:
        caller = config.from_variables(own)
        private += caller.private_projects
        cross_project = cross_project and (caller.cross_project or "cross_project" not in caller.explicit)
    here = context.project or (project_of(context.repo, None) if context.repo else None)
    return Visibility(private, here, context.cwd, cross_project=cross_project)


def visible_to(app: App, call: Call, also_needed: frozenset[str] = frozenset()) -> Visibility:
    """What the caller may see from where the call is. Raises EnvNeeded for variables that it was not asked for yet;
    `also_needed` are further ones to ask for at the same time, since a hook has time for one round."""
    values = call.env_values(VARIABLES | also_needed) or {}
    environ = {name: value for name, value in values.items() if value is not None}
    return visibility_of(app.lifetime.settings, environ, call.context)


def visible_hints(app: App, call: Call) -> Visibility:
    """What hints the caller may see. It is not asked for its variables, so that `get_hint` answers in one round: the
    CLI and PROXY send them with each call."""
    sent = call.env or {}
    environ = {name: value for name in VARIABLES if (value := sent.get(name)) is not None}
    if not environ and not app.lifetime.settings.private_projects:
        return EVERYTHING
    return visibility_of(app.lifetime.settings, environ, call.context)


def visible_here(context: Context, environ: Mapping[str, str] = os.environ) -> Visibility:
    """What this process may see in a context, when there is no server to ask."""
    return visibility_of(config.load(environ), environ, context)


def _check_whole(name: str, value: str) -> str:
    """Refuse a value that was cut on its way: the rest of the projects that it hides is not known."""
    if len(value) > limits.MAX_ENV_VALUE_CHARS:
        raise Invalid(f"must be at most {limits.MAX_ENV_VALUE_CHARS} characters; config.toml takes more", field=name)
    return value


def _is_any(project: str, names: Iterable[str]) -> bool:
    whole = project.casefold()
    return any(is_project(whole, name.casefold()) for name in names)


def _repos_of(scope: Mapping[str, Any]) -> list[str]:
    repos = scope.get("repo") or []
    return [repos] if isinstance(repos, str) else list(repos)


def _folders_of(glob: str) -> Iterator[str]:
    """`/home/me`, `/home/me/payroll` and `/home/me/payroll/**` of `/home/me/payroll/**`."""
    return (glob[:end] for end in (*(at for at, char in enumerate(glob) if char == "/" and at), len(glob)))
