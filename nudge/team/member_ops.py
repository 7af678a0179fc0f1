"""What the operations of a team do; loaded with the first call of one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Any

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import iso
from nudge.core.errors import Invalid, NotFound
from nudge.core.text import mask
from nudge.core.visibility import Visibility, visible_to
from nudge.team import hints_ops, server_ops, server_sql, store
from nudge.team.address import Address
from nudge.team.sharing import parse_project
from nudge.team.store import Conflict, SharedRepo, Team
from nudge.team.sync_ops import TeamSync, home_of, new_origin
from nudge.team.versions import clock_problem, seconds_of

_NOT_JOINED = "no team is joined; run: nudge team join postgresql://ROLE@HOST/DATABASE"
_WITHHELD_SHOWN = 50


def _at_a_terminal(call: Call) -> None:
    if call.interface != "cli":
        raise Invalid("is for a person at a terminal; type: nudge team --help")


async def _team(app: App) -> Team:
    team = await app.read(store.read_team)
    if team is None:
        raise NotFound(_NOT_JOINED)
    return team


async def join(app: App, call: Call, url: str, password: str | None) -> dict[str, Any]:
    """Log in once, and remember the address without the password. Nothing is shared by that."""
    _at_a_terminal(call)
    address, in_url = Address.parse(url)
    password = in_url if password is None else password
    server = await server_ops.connect(address, password)
    try:
        hello = await server.hello()
        repos = await server.repos()
    finally:
        await server.close()
    if (problem := clock_problem(time.time() - hello.now)) is not None:
        raise Invalid(problem)
    home = home_of(app.require_database().path)
    await app.write(call, lambda connection: store.join(connection, address.url, new_origin(), home, app.now()))
    if app.team is None:
        app.team = TeamSync(app)
        app.team.start()
    app.team.password = password
    app.team.wake()
    return {"server": address.url, "role": hello.role, "repos": repos}


async def share(app: App, call: Call, repo: str, *, notes: bool, hints: bool) -> dict[str, Any]:
    """Share what is named of a repo from now on; nothing named: no longer."""
    _at_a_terminal(call)
    await _team(app)
    project = parse_project(repo)
    if Visibility(app.lifetime.settings.private_projects).is_private(project):
        raise Invalid(f"{mask(project)} is a private repo, and is not shared", field="repo")
    shared = SharedRepo(project, notes, hints)

    def write(connection: sqlite3.Connection) -> None:
        others = [one for one in store.repos(connection) if one.project != project]
        if len(others) >= limits.TEAM_SHARED_REPOS:
            raise Invalid(f"at most {limits.TEAM_SHARED_REPOS} repos can be shared", field="repo")
        store.share(connection, shared) if shared.kinds else store.unshare(connection, project)

    await app.write(call, write)
    if app.team is not None:
        app.team.wake()
    return {"repo": project, "notes": notes, "hints": hints}


async def leave(app: App, call: Call) -> dict[str, Any]:
    _at_a_terminal(call)
    team = await _team(app)
    if app.team is not None:
        await app.team.stop()
        app.team = None

    hints_waiting = _hints_waiting(app)

    async def stop_numbers() -> None:
        app.changes.send_hints("")

    await app.changes.serialize(call, stop_numbers)

    def write(connection: sqlite3.Connection) -> int:
        waiting = sum(
            store.counts(connection, repo.project).waiting + hints_waiting(connection, repo)
            for repo in store.repos(connection)
        )
        store.leave(connection)
        return waiting

    return {"server": team.url, "waiting": await app.write(call, write)}


async def report_status(app: App, call: Call, *, conflicts: bool, withheld: bool) -> dict[str, Any]:
    """Report from what is here, without asking the server. Private projects are named to nobody who may not see
    them."""
    visible = visible_to(app, call)
    team, repos = await app.read(lambda connection: (store.read_team(connection), store.repos(connection)))
    if team is None:
        return {"joined": False, "repos": []}
    repos = [repo for repo in repos if visible.shows(repo.project)]
    problems = {} if app.team is None else app.team.report.repos

    hints_waiting = _hints_waiting(app)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        rows = [
            _repo_row(connection, repo, hints_waiting(connection, repo), problems.get(repo.project)) for repo in repos
        ]
        result: dict[str, Any] = {"repos": rows}
        if conflicts:
            result["conflicts"] = [
                _conflict_row(one)
                for one in store.conflicts(connection, most=_WITHHELD_SHOWN)
                if visible.shows(one.name.project)
            ]
        if withheld:
            result["withheld"] = [row for repo in repos for row in _withheld_rows(connection, repo.project)]
        return result

    report = None if app.team is None else app.team.report
    return {
        "joined": True,
        "server": team.url,
        "role": report and report.role,
        "origin": team.origin,
        "problem": report and report.problem,
        "read_only": bool(report and report.read_only),
        "last_contact": None if team.contact_at is None else iso(team.contact_at),
        **await app.read(read),
    }


def _hints_waiting(app: App) -> Callable[[sqlite3.Connection, SharedRepo], int]:
    """What counts the hints of a repo that wait in the change log, as they are now."""
    outbox, hints = app.lifetime.outbox.copy(), app.lifetime.store.hints()
    return lambda connection, repo: hints_ops.count_waiting(connection, repo, outbox, hints)


def _repo_row(
    connection: sqlite3.Connection, repo: SharedRepo, hints_waiting: int, problem: str | None
) -> dict[str, Any]:
    counts = store.counts(connection, repo.project)
    return {
        "repo": repo.project,
        "notes": repo.notes,
        "hints": repo.hints,
        "expected": counts.expected,
        "received": counts.received,
        "waiting": counts.waiting + hints_waiting,
        "conflicts": counts.conflicts,
        "withheld": counts.withheld,
        "problem": problem,
    }


def _conflict_row(one: Conflict) -> dict[str, Any]:
    return {
        "repo": one.name.project,
        "kind": one.name.kind,
        "name": one.name.key,
        "by": one.role,
        "at": iso(seconds_of(one.clock)),
        "lost_to": one.won_role,
        "lost_to_at": iso(seconds_of(one.won_clock)),
        "fields": one.fields,
    }


def _withheld_rows(connection: sqlite3.Connection, project: str) -> list[dict[str, Any]]:
    return [
        {"repo": project, "kind": kind, "name": key, "received": is_inbound, "reason": reason}
        for kind, key, is_inbound, reason in store.withheld(connection, project, _WITHHELD_SHOWN)
    ]


async def check(app: App, call: Call) -> dict[str, Any]:
    """Try, from this member's connection, what a member must not be able to do."""
    _at_a_terminal(call)
    team = await _team(app)
    address, _ = Address.parse(team.url)
    server = await server_ops.connect(address, app.team.password if app.team else None)
    try:
        hello, rights = await server.hello(), await server.rights()
        checks = [
            _check("the server answers", True, f"PostgreSQL {rights['version']}, as {hello.role}"),
            _check("the log has this version's format", hello.format == server_sql.FORMAT, str(hello.format)),
            _clock_check(time.time() - hello.now),
            _tls_check(address, rights["tls"]),
            _check("the server takes changes", not hello.read_only, "" if not hello.read_only else "it is read-only"),
            _check("the role is a plain member", rights["is_member"] and not _is_above_policies(rights), ""),
            _check("every table has row policies", bool(rights["has_policies"]), ""),
        ]
        for what, statement in server_sql.PROBES.items():
            code = await server.probe(statement)
            checks.append(_check(f"a member cannot {what}", code in ("42501", "25006"), code or "it was not refused"))
    finally:
        await server.close()
    return {"checks": checks}


def _check(what: str, is_ok: bool, detail: str) -> dict[str, Any]:
    return {"check": what, "ok": bool(is_ok), "detail": detail}


def _clock_check(ahead: float) -> dict[str, Any]:
    return _check("the clocks agree", clock_problem(ahead) is None, f"this one is {ahead:+.1f} s ahead")


def _tls_check(address: Address, is_used: bool) -> dict[str, Any]:
    what = "the connection is encrypted"
    return _check(what, is_used or not address.uses_tls, "TLS" if is_used else "no TLS: the host is this machine")


def _is_above_policies(rights: Mapping[str, Any]) -> bool:
    names = ("rolsuper", "rolbypassrls", "may_update", "may_delete", "may_truncate", "may_let_in")
    return any(rights[name] for name in names)
