"""`nudge connect`: wire a client's MCP server and hooks, after showing what that changes; alone, say which clients
there are."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace

from nudge.cli import exits, question, render, verbs
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage
from nudge.clients import clients, files, launch, plan, targets
from nudge.clients.launch import Launch
from nudge.clients.ledger import Ledger
from nudge.clients.place import Place
from nudge.clock import ago
from nudge.errors import NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.clients.plan import Step
    from nudge.clients.wiring import Wiring

EXAMPLES = ("nudge connect", "nudge connect claude-code", "nudge connect codex --yes", "nudge connect cursor --print")

_LATEST_SESSIONS = 50
_NEXT = (
    ("scan", "hints from the manifests of the repo you are in"),
    ("backfill", "history from the transcripts that Claude Code kept"),
)


def configure(parser: Parser) -> None:
    names = ", ".join(clients.NAMES)
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=clients.NAMES, help=f"{names} (none: list them)")
    parser.add_argument("--print", action="store_true", help="print what to write where, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    if arguments.client is None:
        return _list(console, arguments)
    wiring = clients.named(arguments.client)
    if arguments.print:
        return _print(console, wiring)
    if wiring in clients.PRINTED:
        raise Usage(f"{wiring.title} is wired by hand", f"see how with: nudge connect {wiring.name} --print")
    return _connect(console, wiring, yes=arguments.yes)


# One client


def _connect(console: Console, wiring: Wiring, *, yes: bool) -> int:
    place, found, records = Place(), launch.find(), Ledger()
    steps = plan.connecting(wiring.targets(place, found), records, place)
    steps = [replace(step, commands=wiring.commands(step, place, found)) for step in steps]
    result = {"client": wiring.name, "changed": [step.path for step in steps], "executable": found.executable}
    if not steps:
        console.result(result, [console.pen.done(f"{wiring.title} is already connected")])
        return exits.DONE
    show_changes(console, steps)
    if not question.agreed(f"Connect {wiring.title} like this?", yes=yes):
        console.remark("nothing was changed")
        return exits.REFUSED
    plan.apply(steps, records)
    console.result(result, _told(console.pen, wiring, steps))
    return exits.DONE if yes or console.as_json else _go_on()


def show_changes(console: Console, steps: Sequence[Step]) -> None:
    """Nothing when a program reads: it gets the result."""
    if not console.as_json:
        console.show(line for step in steps for line in _difference(console.pen, step))


def _difference(pen: render.Pen, step: Step) -> Iterator[str]:
    for line in plan.difference(step):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        shown = render.visible(line, lines=True)
        yield pen.paint(style, shown) if style else shown
    for command in step.commands:
        yield f"by running: {render.visible(' '.join(command))}"


def _told(pen: render.Pen, wiring: Wiring, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield pen.done(f"{wiring.title}: {' and '.join(step.target.parts)} in {render.visible(files.shown(step.path))}")
    if wiring.advice:
        yield f"  {wiring.advice}"
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


def _print(console: Console, wiring: Wiring) -> int:
    found = wiring.targets(Place(), launch.find())
    pieces = {files.shown(target.path): targets.snippet(target) for target in found}
    console.result({"client": wiring.name, "files": pieces}, _pieces(pieces))
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
    rows = [_row(wiring, seen) for wiring in clients.ALL]
    rows = [
        row
        for row in rows
        if row["installed"] or row["mcp"] or row["client"] in {wiring.name for wiring in clients.WIRED}
    ]
    console.result({"clients": rows, "server": seen is not None}, _table(console.pen, rows, known=seen is not None))
    return exits.DONE


def _row(wiring: Wiring, seen: Mapping[str, int] | None) -> dict[str, Any]:
    place = Place()
    files_of_it = wiring.targets(place, Launch(launch.NAME))
    found = plan.found(files_of_it)
    has_hooks = any(targets.HOOKS in target.parts for target in files_of_it)
    return {
        "client": wiring.name,
        "title": wiring.title,
        "installed": _is_installed(wiring, place, files_of_it),
        "mcp": targets.MCP in found,
        "hooks": targets.HOOKS in found if has_hooks else None,
        "last_event_at": None if seen is None else seen.get(wiring.name),
    }


def _is_installed(wiring: Wiring, place: Place, files_of_it: Sequence[targets.Target]) -> bool:
    """Its command is on PATH, or it has left files."""
    folders = {os.path.dirname(target.path) for target in files_of_it} - {place.home}
    return shutil.which(wiring.command) is not None or any(map(os.path.isdir, folders))


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
