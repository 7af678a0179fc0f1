"""The operations that only the page needs: its one-time code, and what happened since it last looked."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Params, Result
from nudge.core.errors import Invalid, Unavailable
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.history import projects
from nudge.history.queries import recorded_after
from nudge.page.sign_in import SignIn
from nudge.telling.report import told_after


class OpenPage(Params):
    """`at_terminal`: the command line found a person at its terminal, who may trust hints on the page."""

    at_terminal: bool = False


class OpenPageResult(Result):
    """`address` has the code in its fragment; `file` redirects there, and only its owner can read it."""

    address: str
    file: str
    expires_in: int


@operation(
    "nudge.open_page",
    tool="open_page",
    group="admin",
    effect="write",
    route="POST /api/v1/page/code",
    result=OpenPageResult,
    listed=False,
    summary="Server: a one-time code for the browser page.",
)
async def open_page(app: App, params: OpenPage, call: Call) -> Any:
    """Make a code that the page trades for its secret within a minute."""
    if params.at_terminal and call.interface != "cli":
        raise Invalid("only the command line can say so", field="at_terminal")
    port = app.describe().get("port")
    if port is None:
        raise Unavailable("the server found no free port for HTTP, so there is no page; see: nudge doctor")
    sign_in = SignIn(app.require_directory(), port)
    address, file = sign_in.make_code(app.now(), is_person=params.at_terminal)
    asyncio.get_running_loop().call_later(limits.PAGE_CODE_SECONDS + 1, lambda: sign_in.remove_openers(app.now()))
    return {"address": address, "file": file, "expires_in": limits.PAGE_CODE_SECONDS}


class Changes(InContext):
    """Without a number: the last ones."""

    after_observation: Annotated[int | None, Field(ge=0, le=limits.MAX_ROW_ID)] = None
    after_told: Annotated[int | None, Field(ge=0, le=limits.MAX_ROW_ID)] = None
    limit: Annotated[int, Field(ge=0, le=limits.STREAM_ROWS)] = limits.STREAM_ROWS


class ChangesResult(Result):
    """Oldest first. `at` has the numbers to ask for more with."""

    observations: list[dict[str, Any]]
    told: list[dict[str, Any]]
    at: dict[str, int]


@operation(
    "nudge.changes",
    tool="changes",
    group="history",
    effect="read",
    route="GET /api/v1/changes",
    result=ChangesResult,
    listed=False,
    summary="History: what was recorded and told since.",
)
async def changes(app: App, params: Changes, call: Call) -> Any:
    """Return what was recorded and told after the numbers that the caller has seen."""
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        hidden = projects.find_hidden(connection, visible)
        observations = recorded_after(connection, params.after_observation, params.limit, hidden=hidden)
        told = told_after(connection, params.after_told, hidden, params.limit)
        last = connection.execute(
            "SELECT coalesce((SELECT max(id) FROM observations), 0), coalesce((SELECT max(id) FROM told), 0)"
        ).fetchone()
        names = projects.Names(connection)
        names.show(observations)
        names.show(told)
        at = {"observation": _at(observations, params.limit, last[0]), "told": _at(told, params.limit, last[1])}
        return {"observations": observations, "told": told, "at": at}

    return await app.read(read)


def _at(rows: list[dict[str, Any]], limit: int, last: int) -> int:
    """The number to go on from: the last row of a full page; otherwise the last there is, which may be hidden."""
    return int(rows[-1]["id"]) if rows and len(rows) == limit else last
