"""Namespaces of notes: their names, how a user's name for one is resolved, which are private, and their counts."""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from nudge.core import limits
from nudge.core.context import is_project
from nudge.core.errors import Invalid
from nudge.core.text import quote_name
from nudge.core.visibility import EVERYTHING, Visibility
from nudge.notes.fields import GLOBAL, TIERS
from nudge.notes.store import LIVE, SqlConnection, placeholders

_DAMAGED = "(damaged)"


def names(connection: SqlConnection) -> list[str]:
    """Return every namespace that has notes, including archived ones. The query makes one step in an index for each
    namespace: a scan would read the entry of every note."""
    namespaces: set[str] = set()
    for table in ("notes", "archived_notes"):
        rows = connection.execute(
            f"WITH RECURSIVE names(name) AS (SELECT min(namespace) FROM {table} UNION ALL"
            f" SELECT (SELECT min(namespace) FROM {table} WHERE namespace > name) FROM names WHERE name IS NOT NULL)"
            " SELECT name FROM names WHERE name IS NOT NULL"
        )
        namespaces.update(row[0] for row in rows if isinstance(row[0], str))  # of a damaged row anything
    return sorted(namespaces)


def find_named(connection: SqlConnection, name: str | None, visible: Visibility) -> str | None:
    """Like `find`, for a name that the caller need not give."""
    return None if name is None else find(connection, name, visible)


def find(connection: SqlConnection, name: str, visible: Visibility = EVERYTHING) -> str:
    """Return the namespace that a caller's name stands for, to read or to write: the caller's repo, else the namespace
    of exactly this name, else the one repo with this short name. A name that no namespace has is returned unchanged.

    Raises Invalid with the candidates when there are several. Namespaces of private projects are never suggested: they
    must be named in full where another namespace has the same short name."""
    if visible.here is not None and is_project(visible.here, name.casefold()):
        return visible.here
    if name == GLOBAL or _exists(connection, name):
        return name
    alike = [namespace for namespace in names(connection) if is_project(namespace.casefold(), name.casefold())]
    shown = [namespace for namespace in alike if not visible.is_private(namespace)]
    if len(shown) > 1:
        listed = ", ".join(quote_name(namespace, limits.MAX_NAMESPACE_BYTES) for namespace in shown[:20])
        raise Invalid(f"{name} matches {len(shown)} repos; name one of {listed}", field="namespace")
    if not shown and len(alike) > 1:
        raise Invalid(f"{name} matches several repos; name one in full", field="namespace")
    return (shown or alike or [name])[0]


def _exists(connection: SqlConnection, name: str) -> bool:
    tables = ("notes", "archived_notes")
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE namespace = ? LIMIT 1", (name,)).fetchone() for table in tables
    )


def find_hidden(connection: SqlConnection, visible: Visibility) -> tuple[str, ...]:
    """Return the namespaces that the caller may not see."""
    return tuple(sorted(visible.hidden(names(connection)))) if visible.private else ()


def counts(connection: SqlConnection, now: float, hidden: Sequence[str] = ()) -> list[dict[str, Any]]:
    rows = connection.execute(
        f"SELECT n.namespace, count(*) FROM notes n WHERE {LIVE} AND n.namespace NOT IN ({placeholders(hidden)})"
        " GROUP BY n.namespace ORDER BY 2 DESC, 1",
        (now, *hidden),
    )
    return [{"namespace": name if isinstance(name, str) else _DAMAGED, "count": count} for name, count in rows]


def stats(connection: SqlConnection, now: float, hidden: Sequence[str]) -> dict[str, Any]:
    """Return counts of notes, links and archived notes outside of the `hidden` namespaces, and the database's size."""
    one = connection.execute
    shown = f"namespace NOT IN ({placeholders(hidden)})"
    rows = one(
        f"SELECT tier, namespace, count(*) FROM notes n WHERE {LIVE} AND {shown} GROUP BY namespace, tier",
        (now, *hidden),
    )
    tiers: Counter[str] = Counter()
    for tier, _, count in rows:
        tiers[tier] += count
    soon = f"SELECT count(*) FROM notes WHERE expires_at > ? AND expires_at <= ? AND {shown}"
    pages, size = one("PRAGMA page_count").fetchone()[0], one("PRAGMA page_size").fetchone()[0]
    return {
        "total": tiers.total(),
        "by_tier": [{"tier": tier, "count": tiers[tier]} for tier in TIERS if tiers[tier]],
        "by_namespace": counts(connection, now, hidden),
        "expiring_soon": one(soon, (now, now + limits.EXPIRING_SOON, *hidden)).fetchone()[0],
        "links_count": one("SELECT count(*) FROM note_links").fetchone()[0],
        "archived": one(f"SELECT count(*) FROM archived_notes WHERE {shown}", hidden).fetchone()[0],
        "db_size_bytes": pages * size,
    }
