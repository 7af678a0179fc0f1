"""Projects: known by the whole identity of their repository, shown by the shortest name that is theirs alone."""

from __future__ import annotations

import json

from nudge import limits
from nudge.context import is_project, project_name
from nudge.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from nudge.history.event import Connection


def add(connection: Connection, identity: str | None, clone: str | None = None) -> None:
    """Make a project and its clone known, so that they can be looked up without reading all observations."""
    if identity is not None:
        connection.execute("INSERT OR IGNORE INTO projects VALUES (?, ?)", (identity, project_name(identity)))
    if identity is not None and clone is not None:
        connection.execute("INSERT OR IGNORE INTO clones VALUES (?, ?)", (identity, clone))


def paths_of(connection: Connection, path: str, identity: str | None, root: str | None) -> list[str]:
    """A file's absolute paths in all clones and worktrees of its project. `root` is the top of the one in which `path`
    is; without one, a clone that was there before is looked for."""
    if identity is None or root is None:
        folders = [path[:place] for place, char in enumerate(path) if char == "/" and place]
        clones = connection.execute(
            (
                "SELECT project, root FROM clones WHERE root IN (SELECT value FROM "
                "json_each(?)) ORDER BY length(root) DESC"
            ),
            (json.dumps(folders),),
        ).fetchone()
        if clones is None:
            return [path]
        identity, root = clones
    rows = connection.execute(
        "SELECT root FROM clones WHERE project = ? LIMIT ?", (identity, limits.MAX_CLONES_SEARCHED)
    ).fetchall()
    below = path[len(str(root).rstrip("/")) :]
    return list(dict.fromkeys([path, *(row[0].rstrip("/") + below for row in rows)]))


def remove_unused(connection: Connection) -> None:
    """Forget the projects of which nothing is left."""
    connection.execute(
        "DELETE FROM projects WHERE NOT EXISTS (SELECT 1 FROM observations WHERE project = identity)"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE project = identity)"
    )
    connection.execute("DELETE FROM clones WHERE project NOT IN (SELECT identity FROM projects)")


def matching(connection: Connection, names: Iterable[str]) -> frozenset[str]:
    """The identities that any of these names, short or long, stands for."""
    return frozenset(
        identity for name in names for identity in _named_alike(connection, name) if is_project(identity, name)
    )


def find(connection: Connection, name: str | None) -> str | None:
    """The identity that a user's name for a project stands for; a name that no project has is returned as it is. Raises
    Invalid with the candidates when there are several."""
    if name is None:
        return None
    identities = matching(connection, [name])
    if name in identities or not identities:
        return name
    if len(identities) > 1:
        names = sorted(_short_name(connection, identity) for identity in identities)
        raise Invalid(f"{name} is {len(names)} projects; name one of {', '.join(names)}", field="project")
    return next(iter(identities))


def hidden(connection: Connection, private: Collection[str], *shown: str | None) -> frozenset[str]:
    """The identities of private projects, but for those in `shown`: where the caller is, and what it names."""
    return (
        matching(connection, private) - matching(connection, [name for name in shown if name])
        if private
        else frozenset()
    )


class Names:
    """The names under which projects are shown."""

    __slots__ = ("_connection", "_names")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[str, str] = {}

    def name(self, identity: str) -> str:
        """`api`, or `acme/api` when there is another `api`."""
        if identity not in self._names:
            self._names[identity] = _short_name(self._connection, identity)
        return self._names[identity]

    def show(self, rows: Iterable[dict[str, Any]]) -> None:
        """Replace the identity in `project` of these rows."""
        for row in rows:
            row["project"] = row["project"] and self.name(row["project"])


def _named_alike(connection: Connection, name: str) -> list[str]:
    rows = connection.execute("SELECT identity FROM projects WHERE name = ?", (project_name(name),))
    return [row[0] for row in rows]


def _short_name(connection: Connection, identity: str) -> str:
    others = [other for other in _named_alike(connection, identity) if other != identity]
    parts = identity.split("/")
    names = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    return next((name for name in names if name and not any(is_project(other, name) for other in others)), identity)
