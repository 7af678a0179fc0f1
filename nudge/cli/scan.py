"""`nudge scan`: hints that nobody has to write. Manifests are read, nothing in them is run."""

from __future__ import annotations

import os
from pathlib import Path

from nudge import context, manifests
from nudge.cli import exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.context_flags import absolute
from nudge.cli.parsing import Usage
from nudge.errors import Invalid
from nudge.limits import MAX_SCANNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge scan", "nudge scan --dry-run", "nudge scan ~/code/api")

_OUTCOMES = (("added", "+", "green"), ("updated", "~", "yellow"), ("removed", "-", "red"), ("kept", "=", "dim"))


def configure(parser: Parser) -> None:
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="any directory of the repo (this one)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be set, and set nothing")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    folder = absolute(arguments.directory)
    if not os.path.isdir(folder):
        raise Usage(f"{folder} is not a directory", "name one, or leave it out for the one you are in")
    here = context.resolve(folder)
    if here.repo is None:
        raise Invalid(f"{folder} is in no git repository; go into one, or name one: nudge scan DIR")
    scanned = manifests.scan_repo(Path(_root(folder)), here.project)
    result = connect(arguments).call("nudge.scan", _params(here.repo, scanned, dry_run=arguments.dry_run))
    console.result(result, _lines(console.pen, result, dry_run=arguments.dry_run))
    beyond = len(scanned.commands) - MAX_SCANNED
    too_many = [f"{beyond} commands beyond the first {MAX_SCANNED}"] if beyond > 0 else []
    for problem in [*scanned.problems, *too_many, *map(_skipped, result.get("skipped", ()))]:
        console.remark(f"passed over: {render.visible(problem)}")
    return exits.DONE


def _params(repo: str, scanned: manifests.RepoScan, *, dry_run: bool) -> dict[str, Any]:
    """An older server knows nothing of files that could not be read: it is told of them only where there are some."""
    unread = {"unread": scanned.unread} if scanned.unread else {}
    return {
        "repo": repo,
        "found": [_entry(command) for command in scanned.commands[:MAX_SCANNED]],
        "dry_run": dry_run,
        **unread,
    }


def _skipped(entry: dict[str, Any]) -> str:
    return f"{entry['component']}/{entry['key']}: {entry['reason']}"


def _entry(command: manifests.Command) -> dict[str, Any]:
    """A command for a nested package is typed at the root, and whoever gets it may be anywhere in the repo."""
    value = {"type": "command", "cmd": command.cmd}
    reason = command.reason if command.cwd == "." else f"{command.reason}, run it in the root of the repo"
    return {"component": command.component, "key": command.key, "value": value, "reason": reason}


def _root(folder: str) -> str:
    """The nearest directory at or above that git calls a work tree."""
    for parent in (Path(folder), *Path(folder).parents):
        if (parent / ".git").is_file() or (parent / ".git" / "HEAD").is_file():
            return os.fspath(parent)
    return folder


def _lines(pen: render.Pen, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    rows = [(mark, style, entry) for outcome, mark, style in _OUTCOMES for entry in result[outcome]]
    names = [render.name_of(entry["component"], entry["key"]) for _, _, entry in rows]
    width = render.widest(names)
    for name, (mark, style, entry) in zip(names, rows, strict=True):
        reason = render.visible(entry.get("reason") or "")
        value = pen.clip(render.visible(render.bare_value(entry["value"])), width + len(reason) + 6)
        yield f"{pen.paint(style, mark)} {render.padded(name, width)}  {value}  {pen.paint('dim', reason)}".rstrip()
    yield _summary(pen, result, dry_run=dry_run)


def _summary(pen: render.Pen, result: dict[str, Any], *, dry_run: bool) -> str:
    counts = {outcome: len(result[outcome]) for outcome, _, _ in _OUTCOMES} | {"unchanged": result["unchanged"]}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing found"
    if dry_run:
        return f"nothing was set (--dry-run); it would be: {told}"
    return pen.done(told + (" (kept: set by a person or an agent)" if result["kept"] else ""))
