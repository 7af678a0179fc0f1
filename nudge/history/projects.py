"""Projects: stored under the full identity of their repository, shown under the shortest name that is unique."""

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.context import is_project, project_name
from nudge.core.errors import Invalid
from nudge.core.text import quote_name
from nudge.core.visibility import EVERYTHING, Visibility

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from nudge.history.event import SqlConnection


def add(connection: SqlConnection, identity: str | None, clone: str | None) -> None:
    """Store a project and its clone, so that they can be looked up without reading all observations."""
    if identity is not None:
        connection.execute("INSERT OR IGNORE INTO projects VALUES (?, ?)", (identity, project_name(identity)))
    if identity is not None and clone is not None:
        connection.execute("INSERT OR IGNORE INTO clones VALUES (?, ?)", (identity, clone))


def paths_of(connection: SqlConnection, path: str, identity: str | None, root: str | None) -> list[str]:
    """Return a file's absolute paths in all clones and worktrees of its project. `root` is the top of the clone that
    has `path`; without it, a stored clone that has the path is used."""
    if identity is None or root is None:
        folders = [path[:place] for place, char in enumerate(path) if char == "/" and place]
        clone = connection.execute(
            "SELECT project, root FROM clones WHERE root IN (SELECT value FROM json_each(?))"
            " ORDER BY length(root) DESC",
            (json.dumps(folders),),
        ).fetchone()
        if clone is None:
            return [path]
        identity, root = clone
    rows = connection.execute(
        "SELECT root FROM clones WHERE project = ? LIMIT ?", (identity, limits.MAX_CLONES_SEARCHED)
    ).fetchall()
    below = path[len(str(root).rstrip("/")) :]
    return list(dict.fromkeys([path, *(row[0].rstrip("/") + below for row in rows)]))


def remove_unused(connection: SqlConnection) -> None:
    """Delete the projects without observations and sessions."""
    connection.execute(
        "DELETE FROM projects WHERE NOT EXISTS (SELECT 1 FROM observations WHERE project = identity)"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE project = identity)"
    )
    connection.execute("DELETE FROM clones WHERE project NOT IN (SELECT identity FROM projects)")


def find_identities(connection: SqlConnection, names: Iterable[str]) -> frozenset[str]:
    """Return the identities of the projects that have any of these names, short or long."""
    return frozenset(
        identity for name in names for identity in _named_alike(connection, name) if is_project(identity, name)
    )


def find(connection: SqlConnection, name: str | None, visible: Visibility = EVERYTHING) -> str | None:
    """Return the identity of the project with this name; a name that no project has is returned unchanged. Raises
    Invalid with the candidates when several projects have it. A project that the caller may not see is never
    suggested: it must be named in full where another project has the same short name."""
    if name is None:
        return None
    identities = find_identities(connection, [name])
    if name in identities or not identities:
        return name
    shown = identities - visible.hidden(identities)
    if len(shown) > 1:
        names = sorted(quote_name(_short_name(connection, identity), limits.MAX_TOLD_COMMAND) for identity in shown)
        raise Invalid(f"{name} matches {len(names)} repos; name one of {', '.join(names)}", field="project")
    if not shown and len(identities) > 1:
        raise Invalid(f"{name} matches several repos; name one in full", field="project")
    return next(iter(shown or identities))


def find_hidden(connection: SqlConnection, visible: Visibility, *named: str | None) -> frozenset[str]:
    """Return the identities of the projects that the caller may not see; `named` are those that it asks for."""
    return visible.hidden(find_identities(connection, visible.private), *named)


class Names:
    """The short names of projects, read once each."""

    __slots__ = ("_connection", "_names")

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._names: dict[str, str] = {}

    def name(self, identity: str) -> str:
        """`api`, or `acme/api` when there is another `api`."""
        if identity not in self._names:
            self._names[identity] = _short_name(self._connection, identity)
        return self._names[identity]

    def show(self, rows: Iterable[dict[str, Any]]) -> None:
        """Replace the identity in the field `project` of these rows by the short name."""
        for row in rows:
            row["project"] = row["project"] and self.name(row["project"])


def _named_alike(connection: SqlConnection, name: str) -> list[str]:
    rows = connection.execute("SELECT identity FROM projects WHERE name = ?", (project_name(name),))
    return [row[0] for row in rows]


def _short_name(connection: SqlConnection, identity: str) -> str:
    others = [other for other in _named_alike(connection, identity) if other != identity]
    parts = identity.split("/")
    names = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    return next((name for name in names if name and not any(is_project(other, name) for other in others)), identity)
