"""The operations of a team: join, share, status, leave, and the checks of `nudge team doctor`.

All but the status are for a person at a terminal: what is sent to whom is no decision of an agent. What they do is in
`member_ops`, which is loaded with the first call of one.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from nudge.core.app import App
from nudge.core.call import Call, InContext, NoParams, Params, Result, Text
from nudge.core.operation import operation


class JoinTeam(Params):
    url: Annotated[Text, Field(description="postgresql://ROLE@HOST/DATABASE")]
    password: Annotated[Text | None, Field(description="kept in memory only")] = None


class JoinTeamResult(Result):
    server: str
    role: str
    repos: Annotated[list[str], Field(description="that the role is let into")]


class ShareRepo(Params):
    repo: Text
    notes: bool = True
    hints: bool = True


class ShareRepoResult(Result):
    repo: str
    notes: bool
    hints: bool


class TeamStatus(InContext):
    conflicts: Annotated[bool, Field(description="also the versions that lost")] = False
    withheld: Annotated[bool, Field(description="also what is not shared, and why")] = False


class TeamStatusResult(Result):
    joined: bool
    server: str | None = None
    role: str | None = None
    origin: str | None = None
    problem: str | None = None
    read_only: bool = False
    last_contact: str | None = None
    repos: list[dict[str, Any]]
    conflicts: list[dict[str, Any]] | None = None
    withheld: list[dict[str, Any]] | None = None


class LeaveTeamResult(Result):
    server: str
    waiting: Annotated[int, Field(description="changes that were not sent")]


class TeamDoctorResult(Result):
    checks: list[dict[str, Any]]


@operation(
    "nudge.team_join",
    tool="team_join",
    group="admin",
    effect="write",
    route="POST /api/v1/team",
    result=JoinTeamResult,
    listed=False,
    summary="Team: join the one whose shared log is in a PostgreSQL database.",
)
async def join_team(app: App, params: JoinTeam, call: Call) -> Any:
    """Log in once, and remember the address without the password. Nothing is shared by that."""
    from nudge.team import member_ops

    return await member_ops.join(app, call, params.url, params.password)


@operation(
    "nudge.team_share",
    tool="team_share",
    group="admin",
    effect="write",
    route="PUT /api/v1/team/repos",
    result=ShareRepoResult,
    listed=False,
    summary="Team: share the notes and hints of a repo, or no longer.",
)
async def share_repo(app: App, params: ShareRepo, call: Call) -> Any:
    """Share what is named of a repo from now on; nothing named: no longer."""
    from nudge.team import member_ops

    return await member_ops.share(app, call, params.repo, notes=params.notes, hints=params.hints)


@operation(
    "nudge.team_leave",
    tool="team_leave",
    group="admin",
    effect="delete",
    route="DELETE /api/v1/team",
    result=LeaveTeamResult,
    listed=False,
    summary="Team: leave it; what was received stays.",
)
async def leave_team(app: App, _params: NoParams, call: Call) -> Any:
    from nudge.team import member_ops

    return await member_ops.leave(app, call)


@operation(
    "nudge.team_status",
    tool="team_status",
    group="admin",
    effect="read",
    route="GET /api/v1/team",
    result=TeamStatusResult,
    listed=False,
    summary="Team: how much of each repo's log is here, what waits, and what went wrong.",
)
async def team_status(app: App, params: TeamStatus, call: Call) -> Any:
    """Report from what is here, without asking the server."""
    from nudge.team import member_ops

    return await member_ops.report_status(app, call, conflicts=params.conflicts, withheld=params.withheld)


@operation(
    "nudge.team_doctor",
    tool="team_doctor",
    group="admin",
    effect="read",
    route="GET /api/v1/team/doctor",
    result=TeamDoctorResult,
    listed=False,
    summary="Team: check the server, and what this role may do there.",
)
async def team_doctor(app: App, _params: NoParams, call: Call) -> Any:
    """Try, from this member's connection, what a member must not be able to do."""
    from nudge.team import member_ops

    return await member_ops.check(app, call)
