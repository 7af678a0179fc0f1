"""What `nudge explain` says about versions that lost against one that was not made from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from nudge.core.context import project_of
from nudge.hints.scope import scope_of
from nudge.notes.fields import rfc3339
from nudge.team import store
from nudge.team.entry import HINT
from nudge.team.sharing import hint_name, note_name
from nudge.team.store import Conflict
from nudge.team.versions import seconds_of

_HERE = "this machine"
_SEE = "see: nudge team status --conflicts"


def reasons_of(connection: sqlite3.Connection, items: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the sentences for each explained item, in their order; most have none."""
    return [[_sentence(one) for one in _conflicts(connection, item)] for item in items]


def _conflicts(connection: sqlite3.Connection, item: Mapping[str, Any]) -> list[Conflict]:
    scope = item["matches"].get("scope")
    if item["kind"] == HINT and scope is not None:
        repo = scope.get("repo")
        project = project_of(repo, None) if isinstance(repo, str) else None
        return [] if project is None else _of_hint(connection, project, item["title"], scope)
    return store.conflicts(connection, note_name(item["project"] or "", item["title"]))


def _of_hint(connection: sqlite3.Connection, project: str, title: str, scope: Mapping[str, Any]) -> list[Conflict]:
    """Both parts of a hint's name may contain a slash, so each split is tried."""
    key = scope_of(scope).key
    names = [
        hint_name(project, (title[:at], title[at + 1 :], key)) for at, char in enumerate(title) if char == "/" and at
    ]
    return [one for name in names for one in store.conflicts(connection, name)]


def _sentence(one: Conflict) -> str:
    lost, won = rfc3339(seconds_of(one.clock)), rfc3339(seconds_of(one.won_clock))
    return (
        f"shared: the version of {one.role or _HERE} of {lost} lost against that of {one.won_role or _HERE} of {won},"
        f" which was not made from it; {_SEE}"
    )
