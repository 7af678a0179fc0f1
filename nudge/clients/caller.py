"""What agent clients say about the caller of a tool: the directory of its project, and its session. Standard library
only.

All clients with hooks are imported with this module: a PROXY does not import its own code while it serves, since the
package may be upgraded meanwhile."""

from __future__ import annotations

from nudge.clients import registry
from nudge.repos import is_absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CLIENTS = registry.with_hooks()

SESSION_VARIABLES = tuple(client.session_variable for client in _CLIENTS if client.session_variable)
"""The variables in which clients name the session to the processes that they start."""


def project_directory(environ: Mapping[str, str], meta: object) -> str | None:
    """Return the directory that the client names with this one call (`_meta`) or, if it does not, in the environment of
    the process that it started; None when it names none."""
    if isinstance(meta, dict):
        for client in _CLIENTS:
            if directory := client.call_directory(meta):
                return directory
    named = (environ.get(client.project_variable, "") for client in _CLIENTS if client.project_variable)
    return next(filter(is_absolute, named), None)


def session(meta: object) -> str | None:
    """Return the session that the client names with this one call (`_meta`); None when it names none."""
    if not isinstance(meta, dict):
        return None
    return next(filter(None, (client.call_session(meta) for client in _CLIENTS)), None)


def note_source(client: str | None) -> str:
    """Return the source of the notes that a client stores, by the name that it gives in MCP: that of Claude Desktop
    begins like the command of Claude Code."""
    name = (client or "").casefold()
    return next((known.note_source for known in _CLIENTS if name.startswith(known.command)), "agent")
