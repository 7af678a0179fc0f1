"""The verbs of a team: join, share, status, doctor, leave, and the SQL for the administrator of its database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from nudge.cli import output
from nudge.cli.app import verb, verb_group
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_REFUSED, Styler, Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import can_ask, yes_option
from nudge.cli.verbs import SERVER
from nudge.core import context
from nudge.core.text import escape
from nudge.team.address import Address
from nudge.team.server_sql import INIT, RESTORED, compact_sql

_PASSWORD = "PGPASSWORD"

verb_group(
    "team",
    __name__,
    "Each machine keeps its own store and works without the server. Nothing is shared until a repo is named for it.",
    "nudge team join postgresql://alice@db.example.com/team",
    "nudge team share github.com/acme/app",
    "nudge team status",
    group=SERVER,
    summary="share hints and notes of a repo through a PostgreSQL database",
)


@verb(
    "team join",
    "nudge team join postgresql://alice@db.example.com/team",
    "nudge team join 'postgresql://alice@localhost/team?host=/run/postgresql'",
    group=SERVER,
    summary="join the team whose shared log is in this database",
    operations=("nudge.team_join",),
)
@click.argument("url", metavar="URL", help="postgresql://ROLE@HOST/DATABASE.")
@option("--ask-password", is_flag=True, help="Ask for the password, whatever else there is.")
def join(invocation: Invocation, url: str, ask_password: bool) -> int:
    """The password is taken from PGPASSWORD, from ~/.pgpass, or from a prompt. It is not stored: a server that starts
    later needs it in ~/.pgpass. Connections to another machine use TLS."""
    _, in_url = Address.parse(url)
    if in_url is not None:
        invocation.console.note("the password in the URL is in your shell's history now; it is not stored")
    password = _ask_password() if ask_password else os.environ.get(_PASSWORD)
    fields = {"url": url, **({} if password is None else {"password": password})}
    result = invocation.client().call("nudge.team_join", fields)
    console = invocation.console
    console.result(result, [console.styler.done(f"joined as {escape(result['role'])}")])
    if not invocation.as_json:
        console.note(_next_step(result["repos"]))
    return EXIT_OK


def _ask_password() -> str:
    if not can_ask():
        raise Usage("cannot ask for the password: stdin is not a terminal", "set PGPASSWORD, or use ~/.pgpass")
    return str(click.prompt("password", hide_input=True, err=True))


def _next_step(repos: list[str]) -> str:
    if not repos:
        return "this role is let into no repo yet; an administrator adds one to nudge_team.repos"
    return f"nothing is shared yet; share a repo with: nudge team share {escape(repos[0])}"


@verb(
    "team share",
    "nudge team share",
    "nudge team share github.com/acme/app --notes",
    "nudge team share github.com/acme/app --stop",
    group=SERVER,
    summary="share the notes and hints of a repo with the team",
    operations=("nudge.team_share",),
)
@click.argument("repo", metavar="[REPO]", required=False, help="The repo (default: the one you are in).")
@option("--notes", is_flag=True, help="Share notes only.")
@option("--hints", is_flag=True, help="Share hints only.")
@option("--stop", is_flag=True, help="Share nothing of it any more; what others have stays theirs.")
def share(invocation: Invocation, repo: str | None, notes: bool, hints: bool, stop: bool) -> int:
    """Its notes and hints are sent to the team, and those of the team are told to agents in this repo. Never sent:
    observations, prompts, facts, private repos, what looks like a secret. Without --notes and --hints, both."""
    named = repo or context.resolve().repo
    if named is None:
        raise Usage("there is no repo here", "name one: nudge team share github.com/acme/app")
    if stop and (notes or hints):
        raise Usage("--stop goes without --notes and --hints")
    both = not (notes or hints or stop)
    fields = {"repo": named, "notes": notes or both, "hints": hints or both}
    result = invocation.client().call("nudge.team_share", fields)
    console = invocation.console
    kinds = " and ".join(kind for kind in ("notes", "hints") if result[kind])
    done = f"shared: {kinds} of {escape(result['repo'])}" if kinds else f"no longer shared: {escape(result['repo'])}"
    console.result(result, [console.styler.done(done)])
    return EXIT_OK


@verb(
    "team status",
    "nudge team status",
    "nudge team status --conflicts",
    "nudge team status --withheld",
    group=SERVER,
    summary="show what is shared, what was received, and what waits",
    operations=("nudge.team_status",),
)
@option("--conflicts", is_flag=True, help="Also show the versions that lost against one that was not made from them.")
@option("--withheld", is_flag=True, help="Also show what is not shared, or was not taken in, and why.")
def status(invocation: Invocation, conflicts: bool, withheld: bool) -> int:
    """Prints for each shared repo how many changes its log has, how many of them are here, and how many of this
    machine's wait to be sent. Exit code 1 when no team is joined."""
    result = invocation.client().call("nudge.team_status", {"conflicts": conflicts, "withheld": withheld})
    invocation.console.result(result, _status_lines(invocation.console.styler, result))
    return EXIT_OK if result["joined"] else EXIT_NOT_FOUND


def _status_lines(styler: Styler, result: Mapping[str, Any]) -> Iterator[str]:
    if not result["joined"]:
        yield "no team is joined; join one with: nudge team join postgresql://ROLE@HOST/DATABASE"
        return
    yield f"{escape(result['server'])}  {styler.paint('dim', _contact(result))}"
    if result["problem"]:
        yield f"  {escape(result['problem'])}"
    if not result["repos"]:
        yield "  nothing is shared; share a repo with: nudge team share REPO"
    for repo in result["repos"]:
        yield f"  {escape(repo['repo'])}  {', '.join(_repo_parts(repo))}"
        if repo["problem"]:
            yield f"    {escape(repo['problem'])}"
    for one in result.get("conflicts") or ():
        by, to = one["by"] or "this machine", one["lost_to"] or "this machine"
        yield f"  {escape(one['name'])}: {escape(by)} at {one['at']} lost to {escape(to)} at {one['lost_to_at']}"
        yield f"    {escape(_content(one['fields']))}"
    for one in result.get("withheld") or ():
        direction = "not taken in" if one["received"] else "not shared"
        yield f"  {direction}: {one['kind']} {escape(one['name'])}: {escape(one['reason'])}"


def _contact(result: Mapping[str, Any]) -> str:
    return f"last contact {result['last_contact']}" if result["last_contact"] else "no contact yet"


def _repo_parts(repo: Mapping[str, Any]) -> Iterator[str]:
    yield " and ".join(kind for kind in ("notes", "hints") if repo[kind])
    yield f"received {repo['received']:,} of {repo['expected']:,}"
    if repo["waiting"]:
        yield f"{repo['waiting']:,} to send"
    if repo["conflicts"]:
        yield output.count(repo["conflicts"], "conflict")
    if repo["withheld"]:
        yield f"{repo['withheld']:,} withheld"


def _content(fields: Mapping[str, Any] | None) -> str:
    if fields is None:
        return "(deleted)"
    text = str(fields.get("content") or fields.get("value") or "")
    return text.partition("\n")[0][:200]


@verb(
    "team doctor",
    "nudge team doctor",
    group=SERVER,
    summary="check the server, and what a member may do there",
    operations=("nudge.team_doctor",),
)
def doctor(invocation: Invocation) -> int:
    """Tries from this member's connection to change, delete and write as another; the server must refuse it. Exit code
    3 when a check fails."""
    result = invocation.client().call("nudge.team_doctor", {})
    rows = (("ok" if one["ok"] else "FAILED", escape(one["check"]), escape(one["detail"])) for one in result["checks"])
    invocation.console.result(result, map("  ".join, output.align(rows)))
    return EXIT_OK if all(one["ok"] for one in result["checks"]) else EXIT_REFUSED


@verb(
    "team leave",
    "nudge team leave",
    group=SERVER,
    summary="leave the team; what was received stays",
    operations=("nudge.team_leave",),
)
@yes_option
def leave(invocation: Invocation, yes: bool) -> int:
    """Asks when changes wait that were not sent: they never will be."""
    from nudge.cli.prompts import ask

    client, console = invocation.client(), invocation.console
    waiting = sum(repo["waiting"] for repo in client.call("nudge.team_status", {})["repos"])
    if waiting and not ask(f"{output.count(waiting, 'change')} were not sent yet; leave all the same?", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    result = client.call("nudge.team_leave", {})
    console.result(result, [console.styler.done(f"left {escape(result['server'])}")])
    return EXIT_OK


@verb(
    "team init",
    "nudge team init | psql -v ON_ERROR_STOP=1 -d team",
    "nudge team init --restored | psql -d team",
    group=SERVER,
    summary="print the SQL that an administrator runs once",
)
@option("--restored", is_flag=True, help="Print what to run after the database was restored from a backup.")
def init(invocation: Invocation, restored: bool) -> int:
    """Prints schema, grants and row policies, for a database administrator to read and run. Changes nothing."""
    return _print_sql(invocation, RESTORED if restored else INIT)


@verb(
    "team compact",
    "nudge team compact",
    "nudge team compact --days 365 | psql -d team",
    group=SERVER,
    summary="print the SQL that deletes what was replaced long ago",
)
@option("--days", type=click.IntRange(1, 3_650), default=90, metavar="N", help="Replaced before N days (default: 90).")
def compact(invocation: Invocation, days: int) -> int:
    """Keeps what counts, deletions, and the last change of each machine. Changes nothing by itself."""
    return _print_sql(invocation, compact_sql(days))


def _print_sql(invocation: Invocation, sql: str) -> int:
    invocation.console.result({"sql": sql}, [sql.rstrip("\n")])
    return EXIT_OK
