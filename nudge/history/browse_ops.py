"""The operation `nudge.browse`: observations page by page, with the total and counts by type, repo and client."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, ProjectName, Result, Text
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.history import browse, projects
from nudge.history.models import After, Before


class Browse(InContext):
    query: Text = ""
    project: ProjectName | None = None
    obs_type: Text | None = None
    client: Text | None = None
    session: Text | None = None
    since: After = None
    until: Before = None
    before: Annotated[int | None, Field(description="`next` of the previous page")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_SEARCH_LIMIT)] = 50
    facets: bool = False


class BrowseResult(Result):
    """`total` and `counts` are of all pages; `partial`: there was no time to count everything by facet."""

    items: list[dict[str, Any]]
    next: int | None
    total: int | None = None
    counts: dict[str, list[list[Any]]] | None = None
    partial: bool | None = None


@operation(
    "nudge.browse",
    tool="browse",
    group="history",
    effect="read",
    route="GET /api/v1/browse",
    result=BrowseResult,
    listed=False,
    summary="History: observations, the last recorded first, with counts.",
)
async def browse_history(app: App, params: Browse, call: Call) -> Any:
    """List observations of one project, or of all that the caller may see."""
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        project = projects.find(connection, params.project, visible)
        wanted = browse.Wanted(
            params.query,
            project,
            params.obs_type,
            params.client,
            params.session,
            params.since,
            params.until,
            projects.find_hidden(connection, visible, project),
        )
        names = projects.Names(connection)
        rows = browse.page(connection, wanted, params.before, params.limit + 1)
        items = rows[: params.limit]
        names.show(items)
        result = {"items": items, "next": items[-1]["id"] if len(rows) > params.limit else None}
        return {**result, **_counts(connection, wanted, names)} if params.facets else result

    return await app.read_history(read)


def _counts(connection: sqlite3.Connection, wanted: browse.Wanted, names: projects.Names) -> dict[str, Any]:
    found = browse.count(connection, wanted, limits.FACET_SECONDS)
    shown = [[names.name(one) if one else "", number] for one, number in found.projects.most_common(_MOST)]
    counts = {
        "type": [list(pair) for pair in found.types.most_common(_MOST)],
        "repo": shown,
        "client": [list(pair) for pair in found.clients.most_common(_MOST)],
    }
    return {"total": found.total, "counts": counts, "partial": found.is_partial}


_MOST = 50  # values of a facet
