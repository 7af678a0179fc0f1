"""`nudge connect`: wire a client's MCP server and hooks, after showing what that changes; alone, say which clients
there are."""

from __future__ import annotations

import time

from nudge.cli import exits, question, render, verbs
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage
from nudge.clients import config_files, executable, plan, registry
from nudge.clients.client import NAME, Home
from nudge.clients.executable import Executable
from nudge.clients.plan import Ledger
from nudge.clock import ago
from nudge.errors import NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.clients.client import Client
    from nudge.clients.plan import Change

EXAMPLES = ("nudge connect", "nudge connect claude-code", "nudge connect codex --yes", "nudge connect cursor --print")

_LATEST_SESSIONS = 50
_NEXT = (
    ("scan", "hints from the manifests of the repo you are in"),
    ("backfill", "history from the transcripts that Claude Code kept"),
)


def configure(parser: Parser) -> None:
    names = registry.names()
    parser.add_argument(
        "client", metavar="CLIENT", nargs="?", choices=names, help=f"{', '.join(names)} (none: list them)"
    )
    parser.add_argument("--print", action="store_true", help="print what to write where, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    if arguments.client is None:
        return _list(console, arguments)
    client = registry.get(arguments.client)
    if arguments.print:
        return _print(console, client)
    if client.by_hand:
        raise Usage(f"{client.title} is wired by hand", f"see how with: nudge connect {client.name} --print")
    return _connect(console, client, yes=arguments.yes)


# One client


def _connect(console: Console, client: Client, *, yes: bool) -> int:
    program, ledger = executable.find(), Ledger()
    changes = plan.connect(client, program, ledger)
    result = {"client": client.name, "changed": [change.path for change in changes], "executable": program.path}
    if not changes:
        console.result(result, [console.pen.done(f"{client.title} is already connected")])
        return exits.DONE
    show_changes(console, changes)
    if not question.agreed(f"Connect {client.title} like this?", yes=yes):
        console.remark("nothing was changed")
        return exits.REFUSED
    plan.apply(changes, ledger)
    console.result(result, _told(console.pen, client, changes))
    return exits.DONE if yes or console.as_json else _go_on()


def show_changes(console: Console, changes: Sequence[Change]) -> None:
    """Nothing when a program reads: it gets the result."""
    if not console.as_json:
        console.show(line for change in changes for line in _difference(console.pen, change))


def _difference(pen: render.Pen, change: Change) -> Iterator[str]:
    for line in plan.diff(change):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        shown = render.visible(line, lines=True)
        yield pen.paint(style, shown) if style else shown
    for command in change.commands:
        yield f"by running: {render.visible(' '.join(command))}"


def _told(pen: render.Pen, client: Client, changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        yield pen.done(
            f"{client.title}: {' and '.join(change.file.parts)} in {render.visible(config_files.shown(change.path))}"
        )
    if client.advice:
        yield f"  {client.advice}"
    yield "next:"
    yield from (f"  nudge {verb:<9} {meaning}" for verb, meaning in _NEXT)


def _go_on() -> int:
    """What a new user does next, if they say so."""
    from nudge.cli import runner

    for name, _ in _NEXT:
        verb = verbs.find(name)
        if verb is not None and question.agreed(f"Run nudge {name} now?"):
            runner.run(verb, [])
    return exits.DONE


# By hand


def _print(console: Console, client: Client) -> int:
    files = client.config_files(Home(), executable.find())
    pieces = {config_files.shown(file.path): config_files.snippet(file) for file in files}
    console.result({"client": client.name, "files": pieces}, _pieces(pieces))
    if len(pieces) == 1 and not console.as_json:
        console.remark(f"goes into {render.visible(next(iter(pieces)))}, beside what is there")
    return exits.DONE


def _pieces(pieces: Mapping[str, str]) -> Iterator[str]:
    """A heading only where there are several: one piece can then go straight into a file, whose name is told on the
    other stream."""
    for number, (path, text) in enumerate(pieces.items()):
        if len(pieces) > 1:
            yield f"{'' if number == 0 else chr(10)}{path}:"
        yield render.visible(text.rstrip("\n"), lines=True)


# All of them


def _list(console: Console, arguments: Namespace) -> int:
    seen = _last_events(arguments)
    rows = [
        row
        for client in registry.all_clients()
        if (row := _row(client, seen))["installed"] or row["mcp"] or not client.by_hand
    ]
    console.result({"clients": rows, "server": seen is not None}, _table(console.pen, rows, known=seen is not None))
    return exits.DONE


def _row(client: Client, seen: Mapping[str, int] | None) -> dict[str, Any]:
    home = Home()
    files = client.config_files(home, Executable(NAME))
    parts = plan.connected_parts(files)
    has_hooks = any(config_files.HOOKS in file.parts for file in files)
    return {
        "client": client.name,
        "title": client.title,
        "installed": client.is_installed(home, files),
        "mcp": config_files.SERVER in parts,
        "hooks": config_files.HOOKS in parts if has_hooks else None,
        "last_event_at": None if seen is None else seen.get(client.name),
    }


def _last_events(arguments: Namespace) -> dict[str, int] | None:
    """By client; None when no server can say."""
    try:
        answer = connect(arguments).call("nudge.sessions", {"limit": _LATEST_SESSIONS}, start=False)
    except NudgeError:
        return None
    latest: dict[str, int] = {}
    for session in answer if isinstance(answer, list) else answer.get("sessions", ()):
        when = session.get("last_event_at") or session.get("started_at") or 0
        latest[session.get("client")] = max(when, latest.get(session.get("client"), 0))
    return latest


def _table(pen: render.Pen, rows: Sequence[Mapping[str, Any]], *, known: bool) -> Iterator[str]:
    heading = ("client", "found", "MCP", "hooks", "last event")
    cells = [heading, *(_cells(row, known) for row in rows)]
    widths = [render.widest(column) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        line = "  ".join(render.padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield pen.paint("bold", line) if number == 0 else line
    if not all(row["mcp"] for row in rows if row["installed"]):
        yield "wire one with: nudge connect CLIENT"


def _cells(row: Mapping[str, Any], known: bool) -> tuple[str, ...]:
    moment = row["last_event_at"]
    last = ago(time.time() - moment) if moment else "none" if known and row["hooks"] is not None else "-"
    hooks = "-" if row["hooks"] is None else _yes(row["hooks"])
    return row["client"], _yes(row["installed"]), _yes(row["mcp"]), hooks, last


def _yes(value: bool) -> str:
    return "yes" if value else "no"
