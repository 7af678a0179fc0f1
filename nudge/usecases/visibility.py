"""What the caller of an operation may see (`nudge.core.visibility`). Hooks load this module: standard library only."""

from __future__ import annotations

import os

from nudge import config
from nudge.core.visibility import EVERYTHING, VARIABLES, Visibility, visibility_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from nudge.context import Context
    from nudge.usecases.app import App
    from nudge.usecases.call import Call


def visible_to(app: App, call: Call, also_needed: frozenset[str] = frozenset()) -> Visibility:
    """What the caller may see from where the call is. Raises EnvNeeded for variables that it was not asked for yet;
    `also_needed` are further ones to ask for at the same time, since a hook has time for one round."""
    values = call.env_values(VARIABLES | also_needed) or {}
    environ = {name: value for name, value in values.items() if value is not None}
    return visibility_of(app.session.settings, environ, call.context)


def visible_hints(app: App, call: Call) -> Visibility:
    """What hints the caller may see. It is not asked for its variables, so that `get_hint` answers in one round: the
    CLI and PROXY send them with each call."""
    sent = call.env or {}
    environ = {name: value for name in VARIABLES if (value := sent.get(name)) is not None}
    if not environ and not app.session.settings.private_projects:
        return EVERYTHING
    return visibility_of(app.session.settings, environ, call.context)


def visible_here(context: Context, environ: Mapping[str, str] = os.environ) -> Visibility:
    """What this process may see in a context, when there is no server to ask."""
    return visibility_of(config.load(environ), environ, context)
