"""The verbs of the page: open; and at a terminal what it shows: known, browse, and watch, its live stream."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from nudge.cli import output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK
from nudge.cli.params import TIME, option
from nudge.cli.plain import Invocation
from nudge.cli.render import time_ago
from nudge.cli.verbs import HISTORY, NOTES, SERVER
from nudge.core import context, limits
from nudge.core.clock import boot_seconds, iso
from nudge.core.text import escape


@verb(
    "open",
    "nudge open",
    "nudge open --print",
    group=SERVER,
    summary="look at hints, notes and history in the browser",
    operations=("nudge.open_page",),
)
@option("--print", "print_only", is_flag=True, help="Print the address with its one-time code; open no browser.")
def open_page(invocation: Invocation, print_only: bool) -> int:
    """Opens the page in your browser and signs it in with a code that works once, within a minute. Without a browser,
    prints the address."""
    from nudge.repofile import person  # late: most commands ask nobody

    result = invocation.client().call("nudge.open_page", {"at_terminal": person.why_nobody() is None})
    console, seconds = invocation.console, result["expires_in"]
    is_opened = not (print_only or invocation.as_json) and _open(result["file"])
    page = result["address"].partition("#")[0]
    shown = console.styler.done(f"opened {page} in your browser") if is_opened else result["address"]
    console.result(result, [shown])
    if not is_opened and not invocation.as_json:
        console.note(f"open it within {seconds} seconds; it works once")
    return EXIT_OK


def _open(file: str) -> bool:
    """Open the file that redirects to the page: its name may be seen by other users of the machine, its content not.
    On a machine without a screen the browsers left are those for a terminal, which cannot show the page."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )
    if not has_screen:
        return False
    import webbrowser

    return webbrowser.open(Path(file).as_uri())


# known


@verb(
    "known",
    "nudge known",
    "nudge known docker --repo api",
    "nudge known --type note --counts",
    "nudge known --excluded",
    group=NOTES,
    summary="list hints, notes and facts together, newest first",
    operations=("nudge.known",),
)
@click.argument("words", metavar="[WORDS]...", nargs=-1, help="Only what has all of these words.")
@option(
    "--type",
    type=click.Choice(["hint", "note", "fact", "archived"]),
    help="Only hints, notes or facts; or notes in the archive.",
)
@option("--repo", metavar="REPO", help="Only what belongs to this repo; `everywhere`: to none.")
@option("--kind", metavar="KIND", help="Only notes of this kind, such as decision.")
@option("--tag", metavar="TAG", help="Only what has this tag.")
@option("--by", metavar="NAME", help="Only what this author or client added.")
@option("--since", type=TIME, metavar="TIME", help="Only what was changed since, such as 7d.")
@option("--after", metavar="CURSOR", help="Go on after an earlier answer: its `next`.")
@params.limit_option(50, most=limits.MAX_NOTES_LISTED)
@option("--counts", is_flag=True, help="Also print how many there are by kind, repo, tag and author.")
@option("--excluded", is_flag=True, help="Only hints and facts that do not apply here, and why.")
def known(
    invocation: Invocation, words: tuple[str, ...], counts: bool, excluded: bool, since: float | None, **filters: Any
) -> int:
    """Prints one line for each: when it changed, what it is, its name or title, and its repo."""
    when = None if since is None else iso(since)
    fields = {"query": " ".join(words), "facets": counts, **params.drop_none(since=when, **filters)}
    if excluded:
        fields |= {"applies": False, "context": context.resolve().to_json()}
    result = invocation.client().call("nudge.known", fields)
    console = invocation.console
    rows = [
        (
            *(time_ago(row["updated_at"]), row["kind"], row["id"], _first_line(row["title"])),
            "; ".join(row["reasons"]) if excluded else ", ".join(row["repos"]),
        )
        for row in result["items"]
    ]
    console.result(result, [*map("  ".join, output.align([tuple(map(escape, row)) for row in rows]))])
    if not invocation.as_json:
        _print_counts(invocation, result)
        console.note(f"{len(rows):,} of {result['total']:,}")
    return EXIT_OK


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _print_counts(invocation: Invocation, result: Mapping[str, Any]) -> None:
    for name, pairs in (result.get("counts") or {}).items():
        shown = ", ".join(f"{value or '-'} {number:,}" for value, number in pairs)
        invocation.console.show([escape(f"{name}: {shown}")])
    if result.get("partial"):
        invocation.console.note("there was no time to count all of them by kind, repo and author")


# browse


@verb(
    "browse",
    "nudge browse",
    "nudge browse docker --type command_error --counts",
    group=HISTORY,
    summary="list observations, the last recorded first, with counts",
    operations=("nudge.browse",),
)
@click.argument("words", metavar="[QUERY]...", nargs=-1, help='Words, "a phrase", prefix*, AND, OR, NOT.')
@params.project_option("Only observations of this repo (default: all repos).")
@option("--type", "obs_type", metavar="TYPE", help="Only this type of observation.")
@option("--client", metavar="CLIENT", help="Only what sessions of this client did.")
@option("--session", metavar="ID", help="Only what this session did.")
@option("--before", type=int, metavar="ID", help="Only those recorded before the one with this id.")
@params.limit_option(50, most=limits.MAX_SEARCH_LIMIT)
@option("--counts", is_flag=True, help="Also print how many there are by type, repo and client.")
def browse(invocation: Invocation, words: tuple[str, ...], project: str | None, counts: bool, **filters: Any) -> int:
    """Prints one line for each observation: id, age, type, repo and text."""
    chosen = params.project_params(project) | params.drop_none(**filters)
    result = invocation.client().call("nudge.browse", {"query": " ".join(words), "facets": counts, **chosen})
    rows = [
        (
            *(str(row["id"]), time_ago(row["timestamp"]), row["obs_type"]),
            *(row["project"] or "-", _first_line(row["content_preview"] or "")),
        )
        for row in result["items"]
    ]
    invocation.console.result(result, map("  ".join, output.align([tuple(map(escape, row)) for row in rows])))
    if not invocation.as_json:
        _print_counts(invocation, result)
        if result["next"]:
            invocation.console.note(f"show older ones with: nudge browse --before {result['next']}")
    return EXIT_OK


# watch

_POLL = 1.0  # seconds


@verb(
    "watch",
    "nudge watch",
    "nudge watch --json",
    "nudge watch --once",
    group=HISTORY,
    summary="print what is recorded and told, as it happens",
    operations=("nudge.changes",),
)
@option("--once", is_flag=True, help="Print the last ones and end.")
@option("--limit", type=int, default=20, metavar="N", help="How many of the last ones to print first (default: 20).")
def watch(invocation: Invocation, once: bool, limit: int) -> int:
    """Prints what hooks record and what agents are told, in all repos, until Ctrl-C. With --json, one JSON object for
    each look that found something."""
    client, console = invocation.client(), invocation.console
    result = client.call("nudge.changes", {"limit": limit})
    while True:
        if invocation.as_json and (once or result["observations"] or result["told"]):
            print(json.dumps(result), flush=True)
        elif not invocation.as_json:
            console.show(_live_lines(result))
            sys.stdout.flush()
        if once:
            return EXIT_OK
        seen, started = result["at"], boot_seconds()
        time.sleep(max(_POLL - (boot_seconds() - started), 0))
        result = client.call("nudge.changes", {"after_observation": seen["observation"], "after_told": seen["told"]})


def _live_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each, by time."""
    rows = [
        (row["timestamp"], row["obs_type"], row["content_preview"], row["project"]) for row in result["observations"]
    ]
    rows += [(row["timestamp"], f"told ({row['moment']})", row["text"], row["project"]) for row in result["told"]]
    for timestamp, what, text, project in sorted(rows, key=lambda row: row[0]):
        first = (text or "").partition("\n")[0]
        yield escape(f"{time_ago(timestamp)}  {project or '-'}  {what}  {first}")
